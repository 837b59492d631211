import { expect, test } from 'vitest';
import { checkHistory } from './check-history.ts';
import type { Command, Operation, Outcome } from './operation.ts';
import { type CachedRead, type ListRead, Recorder } from './recorder.ts';
import { change, done, operation, shown } from './testing.ts';
import type { Segment } from './watch-log.ts';

/** What clients and watchers of one key saw; tests change one part of it. */
interface Seen {
  operations: Operation[];
  cachedReads: CachedRead[];
  lists: ListRead[];
  segments: Segment[];
}

const read: Command = { type: 'read' };
const write = (type: 'create' | 'replace', mark: string): Command => ({ type, data: { mark } });
const absent: Outcome = { type: 'absent' };

function rightHistory(): Seen {
  const events = [
    change('ADDED', 11, { mark: 'a' }),
    change('MODIFIED', 12, { mark: 'b' }),
    change('DELETED', 14, { mark: 'b' }),
    change('ADDED', 17, { mark: 'd' }),
  ];
  const item = (version: number, mark: string) => ({ key: 'k', ...shown(version, { mark }) });
  const list = { by: 'lister', process: 's#1', type: 'consistent' as const };
  const cached = { by: 'reader', process: 's#1', key: 'k' };
  return {
    operations: [
      operation([1, 2], write('create', 'a'), done(11, { mark: 'a' })),
      operation([3], write('replace', 'b')),
      operation([5, 6], read, done(12, { mark: 'b' })),
      operation([7, 8], { type: 'delete' }, { type: 'removed', uid: 'u1' }),
      operation([9, 10], read, absent),
      operation([11], write('replace', 'c')),
      operation([13, 14], write('create', 'd'), done(17, { mark: 'd' })),
      operation([15, 16], write('create', 'e'), { type: 'exists' }),
    ],
    cachedReads: [
      { ...cached, invoked: 17, completed: 18, shown: shown(12, { mark: 'b' }) },
      { ...cached, invoked: 19, completed: 20, shown: shown(17, { mark: 'd' }) },
    ],
    lists: [
      { ...list, invoked: 4, completed: 5, version: 13, items: [item(12, 'b')] },
      { ...list, invoked: 9, completed: 10, version: 15, items: [] },
      { ...list, invoked: 21, completed: 22, version: 18, items: [item(17, 'd')] },
    ],
    segments: [
      { by: 'steady', after: 10, upTo: 18, events },
      { by: 'hasty', after: 10, upTo: 12, events: events.slice(0, 2) },
      { by: 'hasty', after: 12, upTo: 17, events: events.slice(2) },
    ],
  };
}

function checkOf(change: (seen: Seen) => void) {
  const seen = rightHistory();
  change(seen);
  const recorder = new Recorder();
  for (const recorded of seen.operations) recorder.add(recorded);
  recorder.cachedReads.push(...seen.cachedReads);
  recorder.lists.push(...seen.lists);
  recorder.segments.push(...seen.segments);
  return () => checkHistory(recorder, ['k'], { start: 10, fenced: 18 });
}

const replaceAt = <T>(all: T[], index: number, more: Partial<T>) => {
  all[index] = { ...(all[index] as T), ...more };
};

test('accepts a correct history', () => {
  const figures = checkOf(() => {})();
  expect(figures).toMatchObject({ complete: 1, changes: 4, events: 8, unknown: 2, undecided: 0 });
});

const wrongs: Readonly<Record<string, readonly [(seen: Seen) => void, RegExp]>> = {
  'a stale read': [
    ({ operations }) => replaceAt(operations, 4, { outcome: done(12, { mark: 'b' }) }),
    /no order of the operations on k/,
  ],
  'a lost write': [
    ({ operations }) => replaceAt(operations, 2, { outcome: absent }),
    /no order of the operations on k/,
  ],
  'a lost write that no watcher saw': [
    ({ operations, segments, lists, cachedReads }) => {
      for (const [i, segment] of segments.entries()) {
        replaceAt(segments, i, { events: segment.events.filter(({ version }) => version !== 17) });
      }
      operations.splice(7);
      lists.splice(2);
      cachedReads.splice(1);
    },
    /shows k at 17, which no watcher saw/,
  ],
  'a lost update': [
    ({ operations }) => {
      const command = { type: 'replace' as const, data: { mark: 'b' }, expect: 9 };
      replaceAt(operations, 1, { command });
    },
    /MODIFIED k at 12 .* follows ADDED k at 11/,
  ],
  'an event that a watcher misses': [
    ({ segments }) => replaceAt(segments, 2, { events: segments[2]?.events.slice(1) ?? [] }),
    /hasty watched from 12 to 17 and missed DELETED/,
  ],
  'an event that comes twice over a lost connection': [
    ({ segments }) => replaceAt(segments, 2, { events: segments[0]?.events.slice(1) ?? [] }),
    /hasty saw MODIFIED k at 12 .* after version 12/,
  ],
  'events out of order': [
    ({ segments }) => replaceAt(segments, 0, { events: segments[0]?.events.toReversed() ?? [] }),
    /after version/,
  ],
  'a list without an object': [
    ({ lists }) => replaceAt(lists, 2, { items: [] }),
    /lister at 18 shows k of nothing/,
  ],
  'a list of a version from before': [
    ({ lists }) => replaceAt(lists, 1, { version: 11, items: lists[0]?.items ?? [] }),
    /shows k of 12/,
  ],
  'a consistent list that is behind': [
    ({ lists }) => replaceAt(lists, 2, { version: 16, items: [] }),
    /contradicts version 17 before it/,
  ],
  'a cache that goes back': [
    ({ cachedReads }) =>
      cachedReads.reverse().forEach((_, i) => {
        replaceAt(cachedReads, i, { invoked: 17 + 2 * i, completed: 18 + 2 * i });
      }),
    /reader read 12 of k from s#1 at 19, after reader had read 17/,
  ],
  'a command that was refused and carried out': [
    ({ operations }) => replaceAt(operations, 1, { outcome: { type: 'refused' } }),
    /not carried out, but seen/,
  ],
  'an object as nobody wrote it': [
    ({ cachedReads }) => replaceAt(cachedReads, 0, { shown: shown(12, { mark: 'b', a: 'rest' }) }),
    /the change was MODIFIED k at 12/,
  ],
};

for (const [name, [spoil, message]] of Object.entries(wrongs)) {
  test(`rejects ${name}`, () => {
    expect(checkOf(spoil)).toThrow(message);
  });
}

import { expect, test } from 'vitest';
import type { Command, Operation } from './operation.ts';
import { change, done, operation, shown } from './testing.ts';
import {
  type ChangeEvent,
  checkCommands,
  checkShown,
  checkSnapshot,
  type Segment,
  WatchLog,
} from './watch-log.ts';

const events = [
  change('ADDED', 11, { mark: 'a' }),
  change('MODIFIED', 12, { mark: 'b' }),
  change('MODIFIED', 15, { mark: 'c' }),
  change('DELETED', 17, { mark: 'c' }),
];
const segment = (
  by: string,
  seen: readonly ChangeEvent[],
  more: Partial<Segment> = {},
): Segment => ({
  by,
  after: 10,
  upTo: 20,
  events: seen,
  ...more,
});
const [first, second, third, last] = events as [ChangeEvent, ChangeEvent, ChangeEvent, ChangeEvent];

test('accepts watchers that see parts of one history', () => {
  const log = new WatchLog([
    segment('one', events),
    segment('other', [second, third], { after: 11, upTo: 16 }),
    segment('late', [], { after: 17 }),
  ]);
  expect(log.events).toEqual(events);
  expect(log.covers(10, 20)).toBe(true);
  expect(log.covers(9, 20)).toBe(false);
});

test('rejects an event that a watcher sees twice', () => {
  expect(() => new WatchLog([segment('one', [first, second, second])])).toThrow(/after version 12/);
  const resumed = segment('one', [second], { after: 12 });
  expect(() => new WatchLog([segment('one', [first, second], { upTo: 12 }), resumed])).toThrow(
    /after version 12/,
  );
});

test('rejects events out of order', () => {
  expect(() => new WatchLog([segment('one', [second, first])])).toThrow(/after version 12/);
});

test('rejects an event that one watcher misses and another sees', () => {
  const missing = segment('other', [first, third, last]);
  expect(() => new WatchLog([segment('one', events), missing])).toThrow(
    /other watched from 10 to 20 and missed MODIFIED k at 12/,
  );
});

test('rejects watchers that see different changes at one version', () => {
  const differing = segment('other', [first, change('MODIFIED', 12, { mark: 'x' })], { upTo: 12 });
  expect(() => new WatchLog([segment('one', events), differing])).toThrow(/one saw .* and other/);
});

test('rejects an object that no watcher saw, or that differs from what they saw', () => {
  const log = new WatchLog([segment('one', events)]);
  const item = (version: number, mark: string) => ({
    by: 'x',
    key: 'k',
    ...shown(version, { mark }),
  });
  expect(() => checkShown(log, item(12, 'b'))).not.toThrow();
  expect(() => checkShown(log, item(30, 'z'))).not.toThrow();
  expect(() => checkShown(log, item(13, 'z'))).toThrow(/which no watcher saw/);
  expect(() => checkShown(log, item(12, 'z'))).toThrow(/the change was MODIFIED/);
  expect(() => checkShown(log, item(17, 'c'))).toThrow(/the change was DELETED/);
});

test('rejects snapshots that miss changes, show deleted objects, or run ahead', () => {
  const log = new WatchLog([segment('one', events)]);
  const check = (version: number, ...items: readonly { version: number; mark: string }[]) => {
    const shownItems = items.map((item) => ({
      key: 'k',
      ...shown(item.version, { mark: item.mark }),
    }));
    return () => checkSnapshot(log, { by: 'list', version, items: shownItems }, ['k']);
  };
  expect(check(10)).not.toThrow();
  expect(check(14, { version: 12, mark: 'b' })).not.toThrow();
  expect(check(18)).not.toThrow();
  expect(check(14, { version: 11, mark: 'a' })).toThrow(/after MODIFIED k at 12/);
  expect(check(14)).toThrow(/shows k of nothing/);
  expect(check(18, { version: 15, mark: 'c' })).toThrow(/after DELETED/);
  expect(check(11, { version: 12, mark: 'b' })).toThrow(/at 11 shows k of 12/);
  const twice = { version: 12, mark: 'b' };
  expect(check(12, twice, twice)).toThrow(/lists a key twice/);
});

const write = (type: 'create' | 'replace' | 'patch', mark: string, expect?: number): Command =>
  type === 'create'
    ? { type, data: { mark } }
    : { type, data: { mark }, ...(expect === undefined ? {} : { expect }) };
const commands: readonly Operation[] = [
  operation([1, 2], write('create', 'a'), done(11, { mark: 'a' })),
  operation([3, 4], write('replace', 'b', 11), done(12, { mark: 'b' })),
  operation([5], write('patch', 'c')),
  operation([7, 8], { type: 'delete' }, { type: 'removed', uid: 'u1' }),
];

test('accepts a log that the commands explain', () => {
  expect(() => checkCommands(new WatchLog([segment('one', events)]), commands)).not.toThrow();
});

test('rejects a log without an acknowledged write', () => {
  const log = new WatchLog([segment('one', [first, second])]);
  const lost = operation([5, 6], write('patch', 'c'), done(15, { mark: 'c' }));
  expect(() => checkCommands(log, [...commands.slice(0, 2), lost])).toThrow(/no watcher saw/);
});

test('rejects a log without an acknowledged deletion', () => {
  const log = new WatchLog([segment('one', [first, second, third])]);
  expect(() => checkCommands(log, commands)).toThrow(/no watcher saw what .* removed/);
});

test('rejects changes of commands that were refused, repeated, or never sent', () => {
  const log = new WatchLog([segment('one', events)]);
  const refused = operation([5, 6], write('patch', 'c'), { type: 'conflict' });
  const without = commands.filter((command) => command !== commands[2]);
  expect(() => checkCommands(log, [...without, refused])).toThrow(/not carried out, but seen/);
  expect(() => checkCommands(log, without)).toThrow(/nobody asked for/);
  const again = new WatchLog([
    segment('one', [first, second, third, change('MODIFIED', 16, { mark: 'c' })]),
  ]);
  expect(() => checkCommands(again, commands)).toThrow(/took effect twice/);
});

test('rejects a change that its command does not produce', () => {
  const half = change('MODIFIED', 12, { mark: 'b', a: 'rest' });
  const log = new WatchLog([segment('one', [first, half, third, last])]);
  expect(() => checkCommands(log, [...commands.slice(0, 1), ...commands.slice(2)])).toThrow(
    /nobody asked/,
  );
  const unsure = operation([3], write('replace', 'b', 11));
  expect(() =>
    checkCommands(log, [commands[0] as Operation, unsure, ...commands.slice(2)]),
  ).toThrow(/MODIFIED k at 12 .* follows ADDED/);
  const late = operation([3], write('replace', 'b', 10));
  const right = new WatchLog([segment('one', events)]);
  expect(() =>
    checkCommands(right, [commands[0] as Operation, late, ...commands.slice(2)]),
  ).toThrow(/follows ADDED/);
});

import { describe, markField, type Operation, Violation } from './operation.ts';
import type { CachedRead, ListRead, Recorder } from './recorder.ts';
import type { WatchLog } from './watch-log.ts';

/** Versions of writes by their markers, according to answers and events. */
export function versionsByMark(recorder: Recorder, log: WatchLog): ReadonlyMap<string, number> {
  const versions = new Map<string, number>();
  const add = (by: string, { version, data }: { version: number; data: object }) => {
    const mark = (data as Record<string, string>)[markField];
    if (mark === undefined) return;
    const earlier = versions.get(mark);
    if (earlier !== undefined && earlier !== version) {
      throw new Violation(`${by} shows ${mark} at ${version}, others saw it at ${earlier}`);
    }
    versions.set(mark, version);
  };
  for (const event of log.events) if (event.type !== 'DELETED') add('a watcher', event);
  for (const { by, items } of [...recorder.lists, ...recorder.snapshots]) {
    for (const item of items) add(by, item);
  }
  for (const { client, outcome } of recorder.operations) {
    if (outcome.type === 'done') add(client, outcome.shown);
  }
  for (const { by, shown } of recorder.cachedReads) if (shown !== undefined) add(by, shown);
  return versions;
}

/** The content of a consistent list as reads of these keys. */
export function readsOf(list: ListRead, keys: readonly string[]): readonly Operation[] {
  const items = new Map(list.items.map((item) => [item.key, item]));
  const { by: client, invoked, completed } = list;
  return keys.map((key) => {
    const item = items.get(key);
    const outcome = item === undefined ? { type: 'absent' as const } : doneOf(item);
    return { client, key, command: { type: 'read' as const }, invoked, completed, outcome };
  });
}

/** Whether a list shows a state between its call and its answer. */
export function isConsistent({ type, least }: ListRead): boolean {
  return type === 'consistent' || type === 'paged' || (type === 'exact' && least === 0);
}

function doneOf({ version, uid, data }: ListRead['items'][number]) {
  return { type: 'done' as const, shown: { version, uid, data } };
}

/** The highest version that any answer had shown at each moment. */
export class ShownVersions {
  /** Sorted by tick; each contains the highest version so far. */
  readonly #moments: readonly { readonly tick: number; readonly version: number }[];

  constructor({ operations, lists }: Recorder) {
    const shown = lists.map(({ completed, version }) => ({ tick: completed, version }));
    for (const { completed, outcome } of operations) {
      if (outcome.type !== 'done') continue;
      shown.push({ tick: completed, version: outcome.shown.version });
    }
    shown.sort((left, right) => left.tick - right.tick);
    let highest = 0;
    this.#moments = shown.map(({ tick, version }) => {
      highest = Math.max(highest, version);
      return { tick, version: highest };
    });
  }

  /** The highest version shown before a tick; 0 if there was none. */
  before(tick: number): number {
    let [low, high] = [0, this.#moments.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#moments[middle]?.tick ?? 0) < tick) low = middle + 1;
      else high = middle;
    }
    return this.#moments[low - 1]?.version ?? 0;
  }
}

/**
 * Versions only grow: a write that begins after a version was shown gets a higher one, and a
 * consistent list that begins then has that version or a higher one. Throws for a contradiction.
 */
export function checkVersions({ operations, lists }: Recorder, shown: ShownVersions): void {
  for (const operation of operations) {
    const { invoked, command, outcome } = operation;
    if (outcome.type !== 'done' || command.type === 'read') continue;
    const before = shown.before(invoked);
    if (outcome.shown.version > before) continue;
    throw new Violation(`${describe(operation)} contradicts version ${before} before it`);
  }
  for (const list of lists) {
    const { by, invoked, completed, version, type, least = 0 } = list;
    const before = isConsistent(list) ? shown.before(invoked) : 0;
    const isRight = type === 'exact' && least > 0 ? version === least : version >= least;
    if (isRight && version >= before) continue;
    const what = `the ${type} list of ${by} at [${invoked}, ${completed}] of ${version}`;
    throw new Violation(`${what} contradicts version ${Math.max(least, before)} before it`);
  }
}

/** Reads from one process's cache do not go back: a later read shows no older version. */
export function checkCachedReads(reads: readonly CachedRead[], log: WatchLog): void {
  const newest = new Map<string, { readonly version: number; readonly by: string }>();
  const moments: { readonly tick: number; readonly run: () => void }[] = [];
  for (const { by, process, key, invoked, completed, shown } of reads) {
    if (shown === undefined) continue;
    const place = `${process} ${key}`;
    moments.push({
      tick: invoked,
      run: () => {
        const before = newest.get(place);
        if (before === undefined || before.version <= shown.version) return;
        const what = `${by} read ${shown.version} of ${key} from ${process} at ${invoked}`;
        throw new Violation(`${what}, after ${before.by} had read ${before.version}`);
      },
    });
    moments.push({
      tick: completed,
      run: () => {
        const before = newest.get(place)?.version ?? 0;
        if (shown.version > before) newest.set(place, { version: shown.version, by });
      },
    });
    const event = log.at(shown.version);
    if (event?.type === 'DELETED') throw new Violation(`${by} read ${key} at its deletion`);
  }
  moments.sort((left, right) => left.tick - right.tick);
  for (const { run } of moments) run();
}

import { checkRegister } from './linearizability.ts';
import { describe, markOf, type Operation, Violation } from './operation.ts';
import type { Recorder } from './recorder.ts';
import { registerText } from './register.ts';
import {
  checkCachedReads,
  checkVersions,
  isConsistent,
  readsOf,
  ShownVersions,
  versionsByMark,
} from './versions.ts';
import { checkCommands, checkShown, checkSnapshot, WatchLog } from './watch-log.ts';

/** The amounts that the checks of a correct history covered. */
export interface HistoryFigures {
  readonly operations: number;
  /** Operations whose outcome is unknown. */
  readonly unknown: number;
  /**
   * Keys for whose operations the search found no order within its bound, nor proved that there is
   * none.
   */
  readonly undecided: number;
  /** Changes in the log, and the number of times that all watchers together saw them. */
  readonly changes: number;
  readonly events: number;
  /** Answers that do not reveal the requested state, by status. */
  readonly statuses: ReadonlyMap<number, number>;
  /** 1 if watchers had to see every change from beginning to end. */
  readonly complete: number;
}

/**
 * Checks what clients and watchers saw in one history against the guarantees. Rejects with a
 * `Violation` that names the contradiction.
 * @param between.start a version before all changes of the history
 * @param between.fenced a version after all acknowledged changes
 */
export function checkHistory(
  recorder: Recorder,
  keys: readonly string[],
  between: { readonly start: number; readonly fenced: number },
): HistoryFigures {
  const { operations, lists, snapshots, segments, cachedReads } = recorder;
  const log = new WatchLog(segments);
  for (const snapshot of [...snapshots, ...lists]) checkSnapshot(log, snapshot, keys);
  checkCommands(log, operations);
  for (const { shown, by, key } of cachedReads) {
    if (shown !== undefined) checkShown(log, { by, key, ...shown });
  }
  const shown = new ShownVersions(recorder);
  checkVersions(recorder, shown);
  checkCachedReads(cachedReads, log);
  const versions = versionsByMark(recorder, log);
  // If watchers had to see all changes since its call, a write that none saw did not happen.
  const mayHaveHappened = ({ command, outcome, invoked }: Operation) => {
    const mark = markOf(command);
    if (outcome.type !== 'unknown' || mark === undefined || versions.has(mark)) return true;
    return !log.covers(Math.max(between.start, shown.before(invoked)), between.fenced);
  };
  const reads = lists.filter(isConsistent).map((list) => readsOf(list, keys));
  const all = [...operations.filter(mayHaveHappened), ...reads.flat()];
  return {
    operations: operations.length + lists.length + cachedReads.length,
    unknown: operations.filter(({ outcome }) => outcome.type === 'unknown').length,
    undecided: keys.filter((key) => !isDecided(all, { key, versions })).length,
    changes: log.events.length,
    events: segments.reduce((sum, { events }) => sum + events.length, 0),
    complete: Number(log.covers(between.start, between.fenced)),
    statuses: recorder.oddStatuses,
  };
}

/** Whether an order was found for a key's operations; throws if there is none. */
function isDecided(
  all: readonly Operation[],
  { key, versions }: { readonly key: string; readonly versions: ReadonlyMap<string, number> },
): boolean {
  const operations = all.filter((operation) => operation.key === key);
  const verdict = checkRegister(operations, { versions });
  if (verdict.type !== 'violated') return verdict.type === 'linearizable';
  const { stuck, state } = verdict;
  const near = operations
    .filter(({ invoked, completed }) => completed > stuck.invoked - 60 && invoked < stuck.completed)
    .map(describe);
  throw new Violation(
    `no order of the operations on ${key} explains ${describe(stuck)}; at best the register is ` +
      `${registerText(state)}\n${near.slice(-60).join('\n')}`,
  );
}

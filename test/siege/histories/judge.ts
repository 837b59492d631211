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

/** What the checks went through, all of which was right. */
export interface Judgement {
  readonly operations: number;
  /** Operations whose outcome nobody knows. */
  readonly unknown: number;
  /** Keys whose operations no order was found for within the bound, nor shown to have none. */
  readonly undecided: number;
  /** Changes in the log, and how often watchers saw them all together. */
  readonly changes: number;
  readonly events: number;
  /** Answers that say nothing of what was asked, by status. */
  readonly statuses: ReadonlyMap<number, number>;
  /** 1 where watchers were to see every change from beginning to end. */
  readonly complete: number;
}

/**
 * Holds what clients and watchers saw in one history against the guarantees. Rejects with a
 * `Violation` that names what contradicts them.
 *
 * @param between.start a version before all changes of the history
 * @param between.fenced a version after all changes that were acknowledged
 */
export function judge(
  recorder: Recorder,
  keys: readonly string[],
  between: { readonly start: number; readonly fenced: number },
): Judgement {
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
  // Where watchers were to see all changes since its call, a write that none saw did not happen.
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

/** Whether an order was found for a key's operations; rejects when there is none. */
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

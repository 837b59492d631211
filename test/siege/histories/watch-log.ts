import {
  type Data,
  dataAfter,
  dataText,
  describe,
  markField,
  markOf,
  type Operation,
  Violation,
} from './operation.ts';

export interface ChangeEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly key: string;
  readonly version: number;
  readonly uid: string;
  readonly data: Data;
}

/** A list, or the initial events of a watch up to their closing bookmark. */
export interface Snapshot {
  readonly by: string;
  readonly version: number;
  /** The only key that it covers; all keys if absent. */
  readonly only?: string;
  readonly items: readonly { key: string; version: number; uid: string; data: Data }[];
}

/** The events of one stream, which must be all changes after one version up to another. */
export interface Segment {
  readonly by: string;
  readonly only?: string;
  readonly after: number;
  /** Version of the last event or bookmark. */
  readonly upTo: number;
  readonly events: readonly ChangeEvent[];
}

/** All changes that any watcher saw, in order: the reference for checking each watcher. */
export class WatchLog {
  readonly #events: readonly ChangeEvent[];
  readonly #byVersion: ReadonlyMap<number, { readonly event: ChangeEvent; readonly by: string }>;
  readonly #byKey = new Map<string, ChangeEvent[]>();
  readonly #covered: readonly { readonly after: number; readonly upTo: number }[];

  /** Throws for segments that are out of order or contradict each other. */
  constructor(segments: readonly Segment[]) {
    const byVersion = new Map<number, { event: ChangeEvent; by: string }>();
    for (const segment of segments) {
      checkOrder(segment);
      for (const event of segment.events) {
        const first = byVersion.get(event.version);
        if (first === undefined) byVersion.set(event.version, { event, by: segment.by });
        else if (eventText(first.event) !== eventText(event)) {
          throw new Violation(
            `${first.by} saw ${eventText(first.event)}, and ${segment.by} ${eventText(event)}`,
          );
        }
      }
    }
    this.#byVersion = byVersion;
    this.#events = [...byVersion.values()]
      .map(({ event }) => event)
      .sort((left, right) => left.version - right.version);
    for (const event of this.#events) {
      const events = this.#byKey.get(event.key);
      if (events === undefined) this.#byKey.set(event.key, [event]);
      else events.push(event);
    }
    this.#covered = merged(segments.filter(({ only }) => only === undefined));
    for (const segment of segments) this.#checkComplete(segment);
  }

  get events(): readonly ChangeEvent[] {
    return this.#events;
  }

  keyEvents(key: string): readonly ChangeEvent[] {
    return this.#byKey.get(key) ?? [];
  }

  at(version: number): ChangeEvent | undefined {
    return this.#byVersion.get(version)?.event;
  }

  /** Whether some watcher had to see all changes after one version up to another. */
  covers(after: number, upTo: number): boolean {
    return this.#covered.some((range) => range.after <= after && range.upTo >= upTo);
  }

  #checkComplete(segment: Segment): void {
    const seen = new Set(segment.events.map(({ version }) => version));
    for (const event of this.#events) {
      const { version, key } = event;
      if (version <= segment.after || version > segment.upTo || seen.has(version)) continue;
      if (segment.only !== undefined && segment.only !== key) continue;
      throw new Violation(
        `${segment.by} watched from ${segment.after} to ${segment.upTo} and missed ` +
          eventText(event),
      );
    }
  }
}

export function eventText({ type, key, version, uid, data }: ChangeEvent): string {
  return `${type} ${key} at ${version} (${uid}) ${dataText(data)}`;
}

function checkOrder({ by, after, events }: Segment): void {
  let last = after;
  for (const event of events) {
    if (event.version <= last) {
      throw new Violation(`${by} saw ${eventText(event)} after version ${last}`);
    }
    last = event.version;
  }
}

function merged(segments: readonly Segment[]): { after: number; upTo: number }[] {
  const all: { after: number; upTo: number }[] = [];
  const sorted = [...segments].sort((left, right) => left.after - right.after);
  for (const { after, upTo } of sorted) {
    const last = all.at(-1);
    if (last !== undefined && after <= last.upTo) last.upTo = Math.max(last.upTo, upTo);
    else all.push({ after, upTo });
  }
  return all;
}

/**
 * Compares a snapshot with the log: each key must have the state of its last change up to the
 * snapshot's version, if some watcher had to see all changes in between.
 */
export function checkSnapshot(log: WatchLog, snapshot: Snapshot, keys: readonly string[]): void {
  const { by, version, only } = snapshot;
  const items = new Map(snapshot.items.map((item) => [item.key, item]));
  if (items.size !== snapshot.items.length) throw new Violation(`${by} lists a key twice`);
  for (const item of snapshot.items) {
    if (item.version > version) {
      throw new Violation(`${by} at ${version} shows ${item.key} of ${item.version}`);
    }
    checkShown(log, { by, ...item });
  }
  for (const key of keys) {
    if (only !== undefined && only !== key) continue;
    const last = log.keyEvents(key).findLast((event) => event.version <= version);
    if (last === undefined) continue;
    const item = items.get(key);
    const expected = last.type === 'DELETED' ? undefined : last.version;
    if (item?.version === expected) continue;
    const isStale = item !== undefined && item.version < last.version;
    if (isStale || log.covers(last.version, version)) {
      throw new Violation(
        `${by} at ${version} shows ${key} of ${item?.version ?? 'nothing'} after ` +
          eventText(last),
      );
    }
  }
}

/** Compares an object in an answer with the change of its version. */
export function checkShown(
  log: WatchLog,
  shown: { by: string; key: string; version: number; uid: string; data: Data },
): void {
  const { by, key, version, uid, data } = shown;
  const event = log.at(version);
  if (event === undefined) {
    if (!log.covers(version - 1, version)) return;
    throw new Violation(`${by} shows ${key} at ${version}, which no watcher saw`);
  }
  const isSame = event.key === key && event.uid === uid && dataText(event.data) === dataText(data);
  if (event.type !== 'DELETED' && isSame) return;
  throw new Violation(
    `${by} shows ${key} at ${version} as ${dataText(data)} (${uid}), the change was ` +
      eventText(event),
  );
}

/**
 * Compares the log with the commands: each change is the result of one command on the previous
 * state, acknowledged commands appear at the version of their answer, and rejected ones do not
 * appear.
 */
export function checkCommands(log: WatchLog, operations: readonly Operation[]): void {
  const byMark = new Map<string, Operation>();
  for (const operation of operations) {
    const mark = markOf(operation.command);
    if (mark !== undefined) byMark.set(mark, operation);
  }
  const keys = new Set(operations.map(({ key }) => key));
  for (const key of keys) checkChanges(log, log.keyEvents(key), byMark);
  for (const operation of operations) {
    const { outcome, client, key } = operation;
    if (outcome.type === 'done') checkShown(log, { by: client, key, ...outcome.shown });
  }
  checkRemovals(log, operations);
}

function checkChanges(
  log: WatchLog,
  events: readonly ChangeEvent[],
  byMark: ReadonlyMap<string, Operation>,
): void {
  let before: ChangeEvent | undefined;
  const marks = new Set<string>();
  for (const event of events) {
    const isKnown = before !== undefined && log.covers(before.version, event.version);
    const previous = before;
    before = event;
    if (event.type === 'DELETED') {
      if (isKnown && previous !== undefined) checkDeletion(previous, event);
      continue;
    }
    const mark = event.data[markField] ?? '';
    const operation = byMark.get(mark);
    if (operation === undefined || operation.key !== event.key) {
      throw new Violation(`nobody asked for ${eventText(event)}`);
    }
    if (marks.has(mark)) throw new Violation(`a command took effect twice: ${eventText(event)}`);
    marks.add(mark);
    const { type } = operation.outcome;
    if (type !== 'done' && type !== 'unknown') {
      throw new Violation(`not carried out, but seen: ${describe(operation)}; ${eventText(event)}`);
    }
    if (isKnown) checkChange(previous, event, operation);
  }
}

function checkDeletion(previous: ChangeEvent, event: ChangeEvent): void {
  const isSame = previous.uid === event.uid && dataText(previous.data) === dataText(event.data);
  if (previous.type !== 'DELETED' && isSame) return;
  throw new Violation(`${eventText(event)} follows ${eventText(previous)}`);
}

function checkChange(
  previous: ChangeEvent | undefined,
  event: ChangeEvent,
  operation: Operation,
): void {
  const standing = previous?.type === 'DELETED' ? undefined : previous;
  const { command } = operation;
  const expected = dataAfter(command, standing?.data);
  const isRight =
    expected !== undefined &&
    dataText(expected) === dataText(event.data) &&
    (event.type === 'ADDED') === (standing === undefined) &&
    (standing === undefined || standing.uid === event.uid) &&
    (!('expect' in command) || command.expect === standing?.version);
  if (isRight) return;
  throw new Violation(
    `${eventText(event)} follows ${previous === undefined ? 'nothing' : eventText(previous)} ` +
      `by ${describe(operation)}`,
  );
}

function checkRemovals(log: WatchLog, operations: readonly Operation[]): void {
  const removed = new Set(
    log.events.filter(({ type }) => type === 'DELETED').map(({ uid }) => uid),
  );
  const last = log.events.at(-1)?.version ?? 0;
  for (const operation of operations) {
    const { outcome, key } = operation;
    if (outcome.type !== 'removed' || outcome.uid === undefined) continue;
    if (removed.has(outcome.uid)) continue;
    const shown = log.keyEvents(key).find(({ uid }) => uid === outcome.uid);
    // If no watcher was connected, none need have seen it; only the register's check covers it.
    if (shown === undefined || !log.covers(shown.version, last)) continue;
    throw new Violation(`no watcher saw what ${describe(operation)} removed`);
  }
}

import type { JsonObject } from '@wheelhouse/machinery/browser';
import { type Change, changesBetween, pathText } from '../changes.ts';
import { objectOf, objectsOf, textOf } from '../failure.ts';
import { type FieldOwner, fieldOwners } from '../ownership.ts';

/** One write of an object: the changes and their managers. */
export interface Revision {
  readonly resourceVersion: string;
  /** RFC 3339; the time in the managed fields, or else when the change was observed. */
  readonly time: string;
  readonly changes: readonly ManagedChanges[];
  readonly event: 'opened' | 'changed' | 'deleted';
}

/** The changes by one manager. */
interface ManagedChanges {
  /** Empty if no manager owns the fields. */
  readonly manager: string;
  readonly subresource: string;
  readonly changes: readonly Change[];
}

/** A manager's last write before the object was first observed, from its managed fields. */
export interface EarlierWrite {
  readonly manager: string;
  readonly operation: FieldOwner['operation'];
  readonly subresource: string;
  /** RFC 3339; empty if not recorded. */
  readonly time: string;
  /** The fields that the manager owns; its other writes are not recorded. */
  readonly fields: readonly string[];
}

const revisionsMax = 200;

/** The writes of an object since it was first observed, newest first. */
export class ObjectHistory {
  #last: JsonObject | undefined;
  #revisions: readonly Revision[] = [];
  #earlier: readonly EarlierWrite[] = [];

  get revisions(): readonly Revision[] {
    return this.#revisions;
  }

  /** Earlier writes from managed fields, newest first. */
  get earlier(): readonly EarlierWrite[] {
    return this.#earlier;
  }

  /** Adds a version of the object; ignores one that is already recorded. */
  record(object: JsonObject, observedAt: string, event: 'present' | 'deleted' = 'present'): void {
    const resourceVersion = textOf(objectOf(object, 'metadata'), 'resourceVersion');
    const before = this.#last;
    const isRecorded = this.#revisions[0]?.resourceVersion === resourceVersion;
    if (isRecorded && event === 'present') return;
    if (before === undefined) this.#earlier = earlierWrites(object);
    this.#last = object;
    const changes = before === undefined ? [] : changesByManager(before, object);
    const writers = new Set(changes.map(keyOf));
    const times = fieldOwners(object).flatMap((owner) =>
      owner.time !== '' && writers.has(keyOf(owner)) ? [owner.time] : [],
    );
    const revision: Revision = {
      resourceVersion,
      time: times.sort().at(-1) ?? observedAt,
      changes,
      event: event === 'deleted' ? 'deleted' : before === undefined ? 'opened' : 'changed',
    };
    this.#revisions = [revision, ...this.#revisions].slice(0, revisionsMax);
  }
}

function earlierWrites(object: JsonObject): EarlierWrite[] {
  const byTime = (left: EarlierWrite, right: EarlierWrite): number =>
    right.time < left.time ? -1 : Number(right.time > left.time);
  return fieldOwners(object).sort(byTime);
}

const keyOf = ({ manager, subresource }: Pick<FieldOwner, 'manager' | 'subresource'>): string =>
  `${manager} ${subresource}`;

/** Fields that every write changes. */
const ignoredFields = new Set(['managedFields', 'resourceVersion', 'generation']);

/**
 * Groups the changes between two versions by the managers that own the fields afterward. If several
 * managers own a field, the one with a new entry is the writer; it also counts as the writer of
 * removed fields.
 */
export function changesByManager(before: JsonObject, after: JsonObject): ManagedChanges[] {
  const changes = changesBetween(before, after).filter(
    ({ path: [first, second] }) => first !== 'metadata' || !ignoredFields.has(String(second)),
  );
  const [ownersBefore, ownersAfter] = [fieldOwners(before), fieldOwners(after)];
  const newOwners = newEntries(ownersBefore, ownersAfter);
  const entries: WriterEntries = {
    owners: lookupOf(ownersAfter),
    writers: lookupOf(newOwners.toReversed()),
    previousEntries: lookupOf(newEntries(ownersAfter, ownersBefore).toReversed()),
    firstWriter: newOwners[0],
  };
  const groups = new Map<string, { owner: FieldOwner | undefined; changes: Change[] }>();
  for (const change of changes) {
    const owner = writerOf(change, entries);
    const key = owner === undefined ? '' : keyOf(owner);
    const group = groups.get(key) ?? { owner, changes: [] };
    group.changes.push(change);
    groups.set(key, group);
  }
  return [...groups.values()].map(({ owner, changes: ownChanges }) => ({
    manager: owner?.manager ?? '',
    subresource: owner?.subresource ?? '',
    changes: ownChanges,
  }));
}

/** Finds the last of several managed-fields entries, of which there may be thousands. */
interface Lookup {
  /** The entry that owns a field or a part of it. */
  has(field: string): FieldOwner | undefined;
  /** The entry that owns one of several fields. */
  hasOneOf(fields: readonly string[]): FieldOwner | undefined;
}

function lookupOf(entries: readonly FieldOwner[]): Lookup {
  const owned = new Map<string, number>();
  const ownedOrAround = new Map<string, number>();
  for (const [index, { fields }] of entries.entries()) {
    for (const field of fields) {
      owned.set(field, index);
      for (const path of [field, ...pathsAround(field)]) ownedOrAround.set(path, index);
    }
  }
  return {
    has: (field) => entries[ownedOrAround.get(field) ?? -1],
    hasOneOf: (fields) => entries[Math.max(-1, ...fields.map((field) => owned.get(field) ?? -1))],
  };
}

/** The paths that enclose another: `a` and `a.b` for `a.b[0]`. */
function pathsAround(path: string): string[] {
  return [...path.matchAll(/[.[]/g)].map(({ index }) => path.slice(0, index));
}

/** The second entries that are not among the first. */
function newEntries(
  before: readonly FieldOwner[],
  after: readonly FieldOwner[],
): readonly FieldOwner[] {
  const entries = new Set(before.map((owner) => JSON.stringify(owner)));
  return after.filter((owner) => !entries.has(JSON.stringify(owner)));
}

/** The managed-fields entries after a change. */
interface WriterEntries {
  readonly owners: Lookup;
  /** Managers whose entry has changed, which means that they wrote, in reverse order. */
  readonly writers: Lookup;
  /** Their previous entries, and the removed entries, in reverse order. */
  readonly previousEntries: Lookup;
  readonly firstWriter: FieldOwner | undefined;
}

function writerOf(
  { path, after: value }: Change,
  { owners, writers, previousEntries, firstWriter }: WriterEntries,
): FieldOwner | undefined {
  const text = pathText(path);
  const enclosing = pathsAround(text);
  // A removed field has no owner anymore; its previous owner most likely removed it.
  if (value === undefined)
    return previousEntries.has(text) ?? previousEntries.hasOneOf(enclosing) ?? firstWriter;
  // A second write within the same second leaves the entry unchanged. The creator of a map owns it,
  // but not the members that others add.
  return (
    writers.has(text) ??
    owners.has(text) ??
    writers.hasOneOf(enclosing) ??
    owners.hasOneOf(enclosing) ??
    firstWriter
  );
}

/** A condition change, Event, creation, or deletion of an object. */
export interface TimelineEntry {
  readonly source: 'condition' | 'event' | 'metadata';
  /** RFC 3339; empty if unknown. */
  readonly time: string;
  /** `Available is True`, `ScalingReplicaSet` */
  readonly title: string;
  readonly message: string;
  readonly tone: 'good' | 'bad' | 'plain';
  /** The number of occurrences of an Event. */
  readonly count: number;
  /** The reporting component of an Event. */
  readonly reporter: string;
}

/** A condition of an object's status. */
interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
  readonly time: string;
  readonly tone: TimelineEntry['tone'];
}

/** Matches condition types that indicate a problem when true. */
const problemCondition =
  /(fail|error|pressure|unavailable|stalled|degraded|denied|unreachable|notaccepted|violat)/i;

/** The conditions of an object, in their stored order. */
export function conditionsOf(object: JsonObject): Condition[] {
  return objectsOf(objectOf(object, 'status'), 'conditions').map((condition) => {
    const type = textOf(condition, 'type');
    const status = textOf(condition, 'status');
    const isGood = (status === 'True') !== problemCondition.test(type);
    return {
      type,
      status,
      reason: textOf(condition, 'reason'),
      message: textOf(condition, 'message'),
      time: textOf(condition, 'lastTransitionTime') || textOf(condition, 'lastUpdateTime'),
      tone: status === 'Unknown' || status === '' ? 'plain' : isGood ? 'good' : 'bad',
    };
  });
}

/** The timeline of an object, newest first; entries without a time are last. */
export function timelineOf(object: JsonObject, events: readonly JsonObject[]): TimelineEntry[] {
  const entries = [
    ...conditionsOf(object).map(conditionEntry),
    ...events.map(eventEntry),
    ...lifecycleEntries(objectOf(object, 'metadata')),
  ];
  const timeOf = ({ time }: TimelineEntry): number => Date.parse(time) || 0;
  return entries.sort((left, right) => timeOf(right) - timeOf(left));
}

function conditionEntry({ type, status, reason, message, time, tone }: Condition): TimelineEntry {
  const title = `${type} is ${status || 'unknown'}`;
  const text = [reason, message].filter((part) => part !== '').join(': ');
  return { source: 'condition', time, title, message: text, tone, count: 1, reporter: '' };
}

function eventEntry(event: JsonObject): TimelineEntry {
  const series = objectOf(event, 'series');
  const times = [
    ...[textOf(series, 'lastObservedTime'), textOf(event, 'lastTimestamp')],
    ...[textOf(event, 'eventTime'), textOf(event, 'firstTimestamp')],
    textOf(objectOf(event, 'metadata'), 'creationTimestamp'),
  ];
  const count = typeof series['count'] === 'number' ? series['count'] : event['count'];
  const source = objectOf(event, 'source');
  return {
    source: 'event',
    time: times.find((time) => time !== '') ?? '',
    title: textOf(event, 'reason') || 'Event',
    message: textOf(event, 'message'),
    tone: textOf(event, 'type') === 'Warning' ? 'bad' : 'plain',
    count: typeof count === 'number' && count > 0 ? count : 1,
    reporter: textOf(source, 'component') || textOf(event, 'reportingComponent'),
  };
}

function lifecycleEntries(metadata: JsonObject): TimelineEntry[] {
  const names = { creationTimestamp: 'Created', deletionTimestamp: 'Deletion requested' };
  return Object.entries(names).flatMap(([name, title]): TimelineEntry[] => {
    const time = textOf(metadata, name);
    if (time === '') return [];
    const tone = name === 'creationTimestamp' ? 'plain' : 'bad';
    return [{ source: 'metadata', time, title, message: '', tone, count: 1, reporter: '' }];
  });
}

import type { JsonObject } from '@wheelhouse/machinery/browser';
import { type Change, changesBetween, pathText } from '../changes.ts';
import { objectOf, textOf } from '../failure.ts';
import { type FieldOwner, fieldOwners } from '../ownership.ts';

/** One write of an object: what it changed, by whom. */
export interface Revision {
  readonly resourceVersion: string;
  /** RFC 3339; when the writer's fields were recorded, or else when the change was seen. */
  readonly time: string;
  readonly changes: readonly ManagedChanges[];
  readonly event: 'seen first' | 'changed' | 'deleted';
}

/** What one manager changed. */
export interface ManagedChanges {
  /** Empty when no manager owns the fields. */
  readonly manager: string;
  readonly subresource: string;
  readonly changes: readonly Change[];
}

/** The last write of a manager before an object was seen, as its managed fields tell. */
export interface EarlierWrite {
  readonly manager: string;
  readonly operation: FieldOwner['operation'];
  readonly subresource: string;
  /** RFC 3339; empty when it is not recorded. */
  readonly time: string;
  /** The fields that the manager owned then: what else it wrote is not recorded. */
  readonly fields: readonly string[];
}

const revisionsMax = 200;

/** The writes of an object since it was seen first, newest first. */
export class ObjectHistory {
  #last: JsonObject | undefined;
  #revisions: readonly Revision[] = [];
  #earlier: readonly EarlierWrite[] = [];

  get revisions(): readonly Revision[] {
    return this.#revisions;
  }

  /** What is recorded of the time before, newest first. */
  get earlier(): readonly EarlierWrite[] {
    return this.#earlier;
  }

  /** Takes a version of the object; one that is known already changes nothing. */
  record(object: JsonObject, seenAt: string, event: 'present' | 'deleted' = 'present'): void {
    const resourceVersion = textOf(objectOf(object, 'metadata'), 'resourceVersion');
    const before = this.#last;
    const isKnown = this.#revisions[0]?.resourceVersion === resourceVersion;
    if (isKnown && event === 'present') return;
    if (before === undefined) this.#earlier = earlierWrites(object);
    this.#last = object;
    const changes = before === undefined ? [] : changesByManager(before, object);
    const times = changes.flatMap(({ manager, subresource }) =>
      newestOf(object, manager, subresource),
    );
    const revision: Revision = {
      resourceVersion,
      time: times.sort().at(-1) ?? seenAt,
      changes,
      event: event === 'deleted' ? 'deleted' : before === undefined ? 'seen first' : 'changed',
    };
    this.#revisions = [revision, ...this.#revisions].slice(0, revisionsMax);
  }
}

function earlierWrites(object: JsonObject): EarlierWrite[] {
  const byTime = (one: EarlierWrite, other: EarlierWrite): number =>
    other.time < one.time ? -1 : Number(other.time > one.time);
  return fieldOwners(object).sort(byTime);
}

function newestOf(object: JsonObject, manager: string, subresource: string): string[] {
  return fieldOwners(object)
    .filter((owner) => owner.manager === manager && owner.subresource === subresource)
    .map(({ time }) => time)
    .filter((time) => time !== '');
}

/** What every write changes says nothing. */
const uninteresting = new Set(['managedFields', 'resourceVersion', 'generation']);

/**
 * What leads from one version of an object to the next, by the managers that own the changed fields
 * now. Of several owners the one whose entry is new is the writer; a field that is gone is its too.
 */
export function changesByManager(before: JsonObject, after: JsonObject): ManagedChanges[] {
  const changes = changesBetween(before, after).filter(
    ({ path: [first, second] }) => first !== 'metadata' || !uninteresting.has(String(second)),
  );
  const writers = newEntries(before, after);
  const losers = newEntries(after, before);
  const groups = new Map<string, { owner: FieldOwner | undefined; changes: Change[] }>();
  for (const change of changes) {
    const owner = writerOf(change, { after, writers, losers });
    const key = owner === undefined ? '' : `${owner.manager} ${owner.subresource}`;
    const group = groups.get(key) ?? { owner, changes: [] };
    group.changes.push(change);
    groups.set(key, group);
  }
  return [...groups.values()].map(({ owner, changes: own }) => ({
    manager: owner?.manager ?? '',
    subresource: owner?.subresource ?? '',
    changes: own,
  }));
}

/** Entries of the second object that the first does not have. */
function newEntries(before: JsonObject, after: JsonObject): readonly FieldOwner[] {
  const entries = new Set(fieldOwners(before).map((owner) => JSON.stringify(owner)));
  return fieldOwners(after).filter((owner) => !entries.has(JSON.stringify(owner)));
}

function writerOf(
  { path, after: value }: Change,
  entries: {
    readonly after: JsonObject;
    /** Managers whose entry is another one now: they have written. */
    readonly writers: readonly FieldOwner[];
    /** Their entries of before, and those that are gone. */
    readonly losers: readonly FieldOwner[];
  },
): FieldOwner | undefined {
  const { after, writers, losers } = entries;
  const text = pathText(path);
  const has = ({ fields }: FieldOwner): boolean =>
    fields.some((field) => field === text || isWithin(field, text));
  const surrounds = ({ fields }: FieldOwner): boolean =>
    fields.some((field) => isWithin(text, field));
  // A field that is gone is owned by nobody any more: its owner took it away, as far as one can see.
  if (value === undefined) return losers.find(has) ?? losers.find(surrounds) ?? writers[0];
  // A write within the second of the one before leaves the entry as it was. Whoever created a map
  // owns it, and with it not what others add.
  const owners = fieldOwners(after);
  return (
    writers.find(has) ??
    owners.findLast(has) ??
    writers.find(surrounds) ??
    owners.findLast(surrounds) ??
    writers[0]
  );
}

/** Whether a field is part of another. */
function isWithin(field: string, other: string): boolean {
  return field.startsWith(other) && /^[.[]/.test(field.slice(other.length));
}

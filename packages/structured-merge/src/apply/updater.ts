import {
  getOrMake,
  type JsonValue,
  jsonEqual,
  jsonEqualSteps,
  Stride,
} from '@wheelhouse/machinery';
import { type Comparison, compare, compareSteps, comparisonWithoutReset } from './compare.ts';
import {
  containsSet,
  difference,
  differenceSteps,
  emptySet,
  type FieldSet,
  type GrowingFieldSet,
  intersection,
  intersectionSteps,
  leafNode,
  nodeOf,
  pathsOf,
  union,
  unionOfSteps,
  unionSteps,
  withoutReset,
} from './field-set.ts';
import { merge, mergeSteps } from './merge.ts';
import { type FieldPath, fieldNameOf } from './path-element.ts';
import { removeItemsSteps, toFieldSet, toFieldSetSteps, withNamedFields } from './value-fields.ts';
import { memberType, type ValueType } from './value-type.ts';

/** Cached results of `reconcileSet` by set and type. */
const reconciled = new WeakMap<FieldSet, WeakMap<ValueType, FieldSet>>();

const reconciledBefore = (set: FieldSet, type: ValueType) => reconciled.get(set)?.get(type);

/**
 * Adapts a set of owned paths to a changed schema (MF-8): owners of fields inside a part that
 * became atomic now own the whole part. The ownership of parts that became granular does not
 * change.
 */
function* reconcileSet(set: FieldSet, type: ValueType): Generator<void, FieldSet> {
  const cachedResult = reconciledBefore(set, type);
  if (cachedResult !== undefined) return cachedResult;
  const result = yield* reconcileChildren(set, type, new Stride());
  getOrMake(reconciled, set, () => new WeakMap<ValueType, FieldSet>()).set(type, result);
  return result;
}

function* reconcileChildren(
  set: FieldSet,
  { map, scalar, list }: ValueType,
  stride: Stride,
): Generator<void, FieldSet> {
  if (map?.deduced === true || (map === undefined && scalar !== undefined)) return set;
  let result: GrowingFieldSet | undefined;
  for (const [element, node] of set) {
    stride.count();
    if (stride.isOver) yield;
    if (node.children === undefined) continue;
    const name = fieldNameOf(element);
    const declared = map !== undefined && name !== undefined ? memberType(map, name) : undefined;
    const below = declared ?? (map ?? list)?.element?.get();
    if (below === undefined) continue;
    const children = isAtomic(below)
      ? undefined
      : yield* reconcileChildren(node.children, below, stride);
    if (children === node.children) continue;
    result ??= new Map(set);
    result.set(element, children === undefined ? leafNode : nodeOf(node.member, children)!);
  }
  return result ?? set;
}

const isAtomic = ({ map, scalar, list }: ValueType): boolean =>
  map !== undefined ? map.atomic && !map.deduced : scalar === undefined && list?.atomic === true;

/** The fields of one manager, in terms of one API version. */
export interface VersionedSet {
  readonly set: FieldSet;
  readonly apiVersion: string;
  /** Whether the manager is an applier. */
  readonly applied: boolean;
}

/** Owners by identity. */
type Managers = ReadonlyMap<string, VersionedSet>;

/** An object in one version. */
export interface TypedObject {
  readonly value: JsonValue;
  readonly type: ValueType;
  readonly apiVersion: string;
}

/** What the updater needs from a kind. */
export interface UpdaterPort {
  /** Converts an object to another version; undefined if the version no longer exists. */
  convert(object: TypedObject, apiVersion: string): Generator<void, TypedObject | undefined>;
  /** The fields of a version that the endpoint resets, which no write can own. */
  resetFor(apiVersion: string): FieldSet | undefined;
}

/** A path that the writer wants to change and another manager owns. */
export interface Conflict {
  readonly manager: string;
  readonly path: FieldPath;
}

/** An apply without `force` conflicts with other managers. */
export class ConflictsError extends Error {
  readonly conflicts: readonly Conflict[];

  constructor(conflicts: readonly Conflict[]) {
    super(`${conflicts.length} conflicts`);
    this.name = 'ConflictsError';
    this.conflicts = conflicts;
  }
}

/** A write: the previous object, its owners, and the writer. */
interface Write {
  /** `large` processes objects in steps, which is slower for small ones. */
  readonly size?: 'large' | undefined;
  readonly live: TypedObject;
  readonly managers: Managers;
  readonly manager: string;
}

/**
 * The owners after a write that replaced the object, as a new map: the writer owns the changes, and
 * all managers lose removed fields. Throws a TypedError if an object violates its type.
 */
export function* updateManagers(
  port: UpdaterPort,
  write: Write & { readonly object: TypedObject },
): Generator<void, Map<string, VersionedSet>> {
  const { live, object, manager } = write;
  const { apiVersion } = object;
  const reconciled = yield* reconcileManagers(port, write);
  const { size } = write;
  const change: Change = { live, object, managers: reconciled, manager, size };
  if (size === 'large') yield;
  const { managers, comparison } = yield* moveOwnership(port, change, { force: true });
  if (size === 'large') yield;
  const before = managers.get(manager)?.set ?? emptySet;
  const taken = size === 'large' ? yield* gainSteps(before, comparison) : gain(before, comparison);
  const set = withoutReset(taken, port.resetFor(apiVersion));
  if (set.size === 0) managers.delete(manager);
  else managers.set(manager, { set, apiVersion, applied: false });
  return managers;
}

/**
 * The writer's fields after a change: those that it owned and that still exist, and the changes.
 */
function gain(before: FieldSet, { removed, modified, added }: Comparison): FieldSet {
  return union(union(difference(before, removed), modified), added);
}

function* gainSteps(before: FieldSet, changes: Comparison): Generator<void, FieldSet> {
  const kept = yield* differenceSteps(before, changes.removed);
  return yield* unionSteps(yield* unionSteps(kept, changes.modified), changes.added);
}

/** The fields of another manager after a change. */
interface Remainder {
  /** The fields that the writer takes from the manager. */
  readonly taken: FieldSet;
  /** The fields that the manager keeps. */
  readonly set: FieldSet;
}

/** What other managers lose in a write. */
interface Losses {
  readonly removed: FieldSet;
  /** The modified and added fields, which the writer takes. */
  readonly changed: FieldSet;
}

function lose(before: FieldSet, { removed, changed }: Losses): Remainder {
  const taken = intersection(before, changed);
  return { taken, set: difference(difference(before, taken), removed) };
}

function* loseSteps(before: FieldSet, { removed, changed }: Losses): Generator<void, Remainder> {
  const taken = yield* intersectionSteps(before, changed);
  const left = yield* differenceSteps(before, taken);
  return { taken, set: yield* differenceSteps(left, removed) };
}

/** The result of an apply; `managers` is a new map. */
interface Applied {
  /** Undefined if nothing changes. */
  readonly object: TypedObject | undefined;
  readonly managers: Map<string, VersionedSet>;
}

/**
 * Merges an applied configuration into the object. The manager owns the fields in it and gives up
 * those that it applied before and omits now, which are removed unless another manager owns them.
 * Throws ConflictsError unless `force`, and TypedError.
 */
export function* applyConfiguration(
  port: UpdaterPort,
  write: Write & { readonly applied: TypedObject; readonly force: boolean },
): Generator<void, Applied> {
  const { live, applied, manager, force, size } = write;
  const { apiVersion } = applied;
  const managers = yield* reconcileManagers(port, write);
  const mergedValue =
    size === 'large'
      ? yield* mergeSteps(live.type, live.value, applied.value)
      : merge(live.type, live.value, applied.value);
  const value = mergedValue ?? null;
  if (size === 'large') yield;
  const merged: TypedObject = { value, type: live.type, apiVersion: live.apiVersion };
  const last = managers.get(manager);
  const whole =
    size === 'large'
      ? yield* toFieldSetSteps(applied.type, applied.value)
      : toFieldSet(applied.type, applied.value);
  const set = withoutReset(whole, port.resetFor(apiVersion));
  managers.set(manager, { set, apiVersion, applied: true });
  if (size === 'large') yield;
  const pruning = last === undefined ? undefined : { managers, manager, last, size };
  const object = pruning === undefined ? merged : yield* prune(port, merged, pruning);
  if (size === 'large') yield;
  const moved = yield* moveOwnership(port, { live, object, managers, manager, size }, { force });
  if (size === 'large') yield;
  const isSame =
    size === 'large'
      ? yield* jsonEqualSteps(live.value, object.value)
      : jsonEqual(live.value, object.value);
  return { object: isSame ? undefined : object, managers: moved.managers };
}

function* reconcileManagers(
  port: UpdaterPort,
  { live, managers, size }: Write,
): Generator<void, Map<string, VersionedSet>> {
  const result = new Map<string, VersionedSet>();
  for (const [manager, owned] of managers) {
    const object =
      owned.apiVersion === live.apiVersion ? live : yield* port.convert(live, owned.apiVersion);
    if (object === undefined) continue;
    if (size === 'large') yield;
    const set =
      reconciledBefore(owned.set, object.type) ?? (yield* reconcileSet(owned.set, object.type));
    result.set(manager, set === owned.set ? owned : { ...owned, set });
  }
  return result;
}

interface Change {
  readonly size: 'large' | undefined;
  readonly live: TypedObject;
  readonly object: TypedObject;
  /** A new map, which may be modified. */
  readonly managers: Map<string, VersionedSet>;
  readonly manager: string;
}

interface Moved {
  readonly managers: Map<string, VersionedSet>;
  readonly comparison: Comparison;
}

/** Takes changed and removed paths from all managers but the writer. */
function* moveOwnership(
  port: UpdaterPort,
  change: Change,
  { force }: { force: boolean },
): Generator<void, Moved> {
  const { live, object, managers, manager } = change;
  const { apiVersion } = object;
  const unfiltered =
    change.size === 'large'
      ? yield* compareSteps(live.type, live.value, object.value)
      : compare(live.type, live.value, object.value);
  const comparison = comparisonWithoutReset(unfiltered, port.resetFor(apiVersion));
  const losses = new Map<string, Losses>();
  const conflicts: Conflict[] = [];
  const stride = new Stride();
  const result = new Map<string, VersionedSet>();
  for (const [name, owned] of managers) {
    if (name === manager) {
      if (owned.set.size > 0) result.set(name, owned);
      continue;
    }
    if (change.size === 'large') yield;
    const { apiVersion: version } = owned;
    let lost = losses.get(version);
    if (lost === undefined) {
      const differences =
        version === apiVersion ? comparison : yield* comparisonIn(port, change, version);
      if (differences === undefined) continue;
      const { removed, modified, added } = differences;
      const isLarge = change.size === 'large';
      const changed = isLarge ? yield* unionSteps(modified, added) : union(modified, added);
      lost = { removed, changed };
      losses.set(version, lost);
    }
    if (change.size === 'large') yield;
    const { taken, set } =
      change.size === 'large' ? yield* loseSteps(owned.set, lost) : lose(owned.set, lost);
    if (!force) {
      for (const path of pathsOf(taken)) {
        conflicts.push({ manager: name, path });
        stride.count();
        if (stride.isOver) yield;
      }
    }
    if (set.size === 0) continue;
    result.set(name, set === owned.set ? owned : { ...owned, set });
  }
  if (conflicts.length > 0) throw new ConflictsError(conflicts);
  return { managers: result, comparison };
}

/** The comparison in terms of another version; undefined if the version does not exist. */
function* comparisonIn(
  port: UpdaterPort,
  { live, object, size }: Change,
  version: string,
): Generator<void, Comparison | undefined> {
  const before = yield* port.convert(live, version);
  const after = before === undefined ? undefined : yield* port.convert(object, version);
  if (before === undefined || after === undefined) return undefined;
  yield;
  const differences =
    size === 'large'
      ? yield* compareSteps(before.type, before.value, after.value)
      : compare(before.type, before.value, after.value);
  return comparisonWithoutReset(differences, port.resetFor(version));
}

interface Pruning {
  readonly managers: Managers;
  readonly manager: string;
  /** The manager's previous configuration. */
  readonly last: VersionedSet;
  readonly size: 'large' | undefined;
}

/**
 * Removes fields of the manager's previous configuration that the current one omits and no other
 * manager owns.
 */
function* prune(
  port: UpdaterPort,
  merged: TypedObject,
  pruning: Pruning,
): Generator<void, TypedObject> {
  const { managers, manager, last } = pruning;
  const now = managers.get(manager)!;
  const { apiVersion } = now;
  if (last.set.size === 0 || (yield* retainsAll(last, now, pruning.size))) return merged;
  const whole = yield* port.convert(merged, last.apiVersion);
  if (whole === undefined) return merged;
  const lastNamed = yield* withNamedFields(last.set, whole.type);
  const withoutLast = yield* removeFrom(whole, lastNamed);
  yield;
  const withOwned = yield* addBackOwned(port, { whole, pruned: withoutLast }, managers);
  yield;
  const owned: VersionedSet = { ...last, set: lastNamed };
  const withUnowned = yield* addBackUnowned(port, { whole, pruned: withOwned }, owned);
  yield;
  return (yield* port.convert(withUnowned, apiVersion)) ?? merged;
}

/**
 * Whether the current configuration contains all fields of the previous one in the same version, so
 * that there is nothing to prune.
 */
function* retainsAll(
  last: VersionedSet,
  now: VersionedSet,
  size: 'large' | undefined,
): Generator<void, boolean> {
  if (last.apiVersion !== now.apiVersion) return false;
  if (size === undefined) return containsSet(now.set, last.set);
  return (yield* differenceSteps(last.set, now.set)).size === 0;
}

function* removeFrom(object: TypedObject, paths: FieldSet): Generator<void, TypedObject> {
  return { ...object, value: yield* removeItemsSteps(object.type, object.value, paths) };
}

/** An object before and after pruning. */
interface PruningStages {
  readonly whole: TypedObject;
  readonly pruned: TypedObject;
}

/** Restores fields that any manager owns, including the applier's new ones, version by version. */
function* addBackOwned(
  port: UpdaterPort,
  stages: PruningStages,
  managers: Managers,
): Generator<void, TypedObject> {
  const byVersion = new Map<string, FieldSet[]>();
  for (const { apiVersion, set } of managers.values()) {
    const sets = byVersion.get(apiVersion);
    if (sets === undefined) byVersion.set(apiVersion, [set]);
    else sets.push(set);
  }
  // The pruned version comes first, because conversions may need fields that it restores.
  const first = stages.whole.apiVersion;
  const versions = [...byVersion.keys()].filter((version) => version !== first);
  if (byVersion.has(first)) versions.unshift(first);
  let current = stages;
  for (const version of versions) {
    const whole = yield* port.convert(current.whole, version);
    const pruned = whole && (yield* port.convert(current.pruned, version));
    if (whole === undefined || pruned === undefined) continue;
    yield;
    const owned = yield* unionOfSteps(byVersion.get(version)!);
    current = { whole, pruned: yield* keepOwned({ whole, pruned }, owned) };
  }
  return current.pruned;
}

function* namedSetOf({ type, value }: TypedObject): Generator<void, FieldSet> {
  return yield* withNamedFields(yield* toFieldSetSteps(type, value), type);
}

/** The object before pruning, reduced to what is left and what is owned. */
function* keepOwned(
  { whole, pruned }: PruningStages,
  owned: FieldSet,
): Generator<void, TypedObject> {
  const present = yield* namedSetOf(pruned);
  yield;
  const keep = yield* unionSteps(present, yield* withNamedFields(owned, whole.type));
  yield;
  const all = yield* namedSetOf(whole);
  yield;
  const unowned = yield* differenceSteps(all, keep);
  yield;
  return yield* removeFrom(whole, unowned);
}

/**
 * Restores removed items that the applier never owned (dangling items).
 * @param last its previous configuration, with named fields
 */
function* addBackUnowned(
  port: UpdaterPort,
  stages: PruningStages,
  last: VersionedSet,
): Generator<void, TypedObject> {
  const { whole } = stages;
  const pruned = yield* port.convert(stages.pruned, last.apiVersion);
  if (pruned === undefined) return whole;
  const all = yield* namedSetOf(whole);
  yield;
  const left = yield* toFieldSetSteps(pruned.type, pruned.value);
  yield;
  const removed = yield* differenceSteps(all, yield* withNamedFields(left, whole.type));
  yield;
  const removedOwned = yield* intersectionSteps(removed, last.set);
  yield;
  return yield* removeFrom(whole, removedOwned);
}

import {
  compareText,
  goPlain,
  isObject,
  type JsonObject,
  type JsonValue,
  jsonEqual,
  member,
  setMember,
} from '@wheelhouse/machinery';
import type { Schema } from '@wheelhouse/schema';
import {
  badDirectiveValue,
  badType,
  deleteListPrefix,
  directiveMember,
  elementOrderPrefix,
  type FieldMerging,
  listMergingOf,
  mergingOf,
  noMergeKey,
  retainKeysMember,
} from './strategic-fields.ts';
import { combinePatches, itemKind } from './strategic-merge.ts';
import { identityOfItem, isDeletion, positions } from './strategic-order.ts';

/** The differences that a patch includes. */
interface DiffWay {
  /** Deletions of members that only the first object has. */
  readonly deletions: boolean;
  /** Members that are new or different in the second object. */
  readonly changes: boolean;
  /** `$setElementOrder` for each merged list that differs. */
  readonly order: boolean;
}

const wholly: DiffWay = { deletions: true, changes: true, order: true };

/**
 * The strategic merge patch that transforms `before` into `after`, both of a built-in kind. Empty
 * if they are equal. It contains no `$setElementOrder` directives unless `ordered`. Throws
 * StrategicMergeError for lists that cannot be merged and for unknown fields.
 */
export function strategicPatchBetween(
  schema: Schema,
  before: JsonObject,
  after: JsonObject,
  { ordered = true }: { readonly ordered?: boolean } = {},
): JsonObject {
  const way = { ...wholly, order: ordered };
  return diffObjects(schema, { before, after, way, retains: false });
}

/** The three objects of a client-side apply. */
export interface ThreeWayObjects {
  /** What the client applied last. */
  readonly last: JsonObject;
  /** What the client applies now. */
  readonly desired: JsonObject;
  /** The object on the server. */
  readonly live: JsonObject;
}

/**
 * The strategic merge patch of a client-side apply. It sets what `desired` sets differently from
 * `live`, and deletes what `last` set and `desired` omits. It leaves everything else alone, and
 * contains the same directives as kubectl's. Throws StrategicMergeError.
 */
export function threeWayStrategicPatch(schema: Schema, ways: ThreeWayObjects): JsonObject {
  const { last, desired, live } = ways;
  const added = diffObjects(schema, {
    before: live,
    after: desired,
    way: { ...wholly, deletions: false },
    retains: false,
  });
  const deleted = diffObjects(schema, {
    before: last,
    after: desired,
    way: { ...wholly, changes: false },
    retains: false,
  });
  return combinePatches(schema, deleted, added);
}

interface ObjectPair {
  readonly before: JsonObject;
  readonly after: JsonObject;
  readonly way: DiffWay;
  /** Whether the patch lists the members to retain. */
  readonly retains: boolean;
}

function diffObjects(schema: Schema, pair: ObjectPair): JsonObject {
  const { before, after, way } = pair;
  const patch: JsonObject = {};
  for (const [name, value] of Object.entries(after)) {
    const had = member(before, name);
    if (value === undefined) continue;
    if (had === undefined) {
      if (way.changes) setMember(patch, name, value);
    } else if (name === directiveMember) {
      if (typeof had !== 'string' || typeof value !== 'string') throw badDirectiveValue();
      if (had !== value) patch[name] = value;
    } else diffMember(schema, patch, { name, had, value, way });
  }
  if (way.deletions) {
    for (const name of Object.keys(before)) {
      if (before[name] !== undefined && member(after, name) === undefined) {
        setMember(patch, name, null);
      }
    }
  }
  if (pair.retains) noteRetained(patch, pair);
  return patch;
}

/** Adds `$retainKeys` if anything changes. */
function noteRetained(patch: JsonObject, { before, after }: ObjectPair): void {
  const named = (object: JsonObject) =>
    Object.keys(object).filter((name) => object[name] !== undefined && object[name] !== null);
  const kept = named(after);
  const leaves = named(before).some((name) => !Object.hasOwn(after, name));
  if (kept.length > 0 && (leaves || Object.keys(patch).length > 0)) {
    patch[retainKeysMember] = kept.sort(compareText);
  }
}

interface MemberPair {
  readonly name: string;
  readonly had: JsonValue;
  readonly value: JsonValue;
  readonly way: DiffWay;
}

function diffMember(schema: Schema, patch: JsonObject, pair: MemberPair): void {
  const { name, had, value, way } = pair;
  if (isObject(had) && isObject(value)) {
    const field = knownMerging(() => mergingOf(schema, name), pair);
    if (field === undefined) return;
    if (field.strategy === 'replace') {
      if (way.changes) setMember(patch, name, value);
      return;
    }
    const { retains, schema: inner } = field;
    const nested = diffObjects(inner, { before: had, after: value, way, retains });
    if (Object.keys(nested).length > 0) setMember(patch, name, nested);
  } else if (Array.isArray(had) && Array.isArray(value)) {
    const field = knownMerging(() => listMergingOf(schema, name), pair);
    if (field?.strategy === 'merge') {
      noteLists(patch, name, diffLists(field, { before: had, after: value, way }));
    } else if (field !== undefined && way.changes && !jsonEqual(had, value)) {
      setMember(patch, name, value);
    }
  } else if (way.changes && !jsonEqual(had, value)) setMember(patch, name, value);
}

/** The merge strategy of a field. An unknown field is allowed as long as it does not change. */
function knownMerging(look: () => FieldMerging, pair: MemberPair): FieldMerging | undefined {
  try {
    return look();
  } catch (error) {
    if (jsonEqual(pair.had, pair.value)) return undefined;
    throw error;
  }
}

interface ListPair {
  readonly before: readonly JsonValue[];
  readonly after: readonly JsonValue[];
  readonly way: DiffWay;
}

/** The parts of a patch for one list. */
interface ListDiff {
  readonly items: readonly JsonValue[];
  /** Removed scalars. */
  readonly deleted: readonly JsonValue[];
  readonly order: readonly JsonValue[];
}

function noteLists(patch: JsonObject, name: string, diff: ListDiff): void {
  if (diff.items.length > 0) setMember(patch, name, [...diff.items]);
  if (diff.deleted.length > 0) patch[`${deleteListPrefix}/${name}`] = [...diff.deleted];
  if (diff.order.length > 0) patch[`${elementOrderPrefix}/${name}`] = [...diff.order];
}

function diffLists(field: FieldMerging, pair: ListPair): ListDiff {
  const { before, after, way } = pair;
  if (before.length === 0) return { items: way.changes ? after : [], deleted: [], order: [] };
  const kind = itemKind([before, after]);
  return kind === 'map' ? diffItems(field, pair) : diffScalars(pair);
}

function diffScalars({ before, after, way }: ListPair): ListDiff {
  const sorted = sortedBy(before, goPlain);
  const added: JsonValue[] = [];
  const deleted: JsonValue[] = [];
  for (const { one, other } of pairs(sorted, sortedBy(after, goPlain), goPlain)) {
    if (other === undefined && way.deletions && one !== undefined) deleted.push(one);
    if (one === undefined && way.changes && other !== undefined) added.push(other);
  }
  const places = positions(after, '');
  added.sort((one, other) => (places.get(one) ?? 0) - (places.get(other) ?? 0));
  // kube-apiserver has sorted the list at this point, so clients see an order directive for it.
  const differs =
    (way.deletions && deleted.length > 0) || (way.changes && !jsonEqual(sorted, [...after]));
  return {
    items: added,
    deleted: [...new Set(deleted)],
    order: way.order && differs ? after : [],
  };
}

function diffItems(field: FieldMerging, pair: ListPair): ListDiff {
  const { before, after, way } = pair;
  const { mergeKey, schema, retains } = field;
  const keyText = (item: JsonValue) => goPlain(identityOfItem(item, mergeKey));
  const changed: JsonValue[] = [];
  const deletions: JsonValue[] = [];
  const keyOf = (item: JsonValue | undefined) => requiredKey(item, mergeKey);
  for (const { one, other } of pairs(sortedBy(before, keyText), sortedBy(after, keyText), (item) =>
    goPlain(keyOf(item)),
  )) {
    if (isObject(one) && isObject(other)) {
      const nested = diffObjects(schema, { before: one, after: other, way, retains });
      if (Object.keys(nested).length === 0) continue;
      setMember(nested, mergeKey, keyOf(other));
      changed.push(nested);
    } else if (other !== undefined) {
      if (way.changes) changed.push(other);
    } else if (way.deletions) {
      const deletion: JsonObject = { [directiveMember]: 'delete' };
      setMember(deletion, mergeKey, keyOf(one));
      deletions.push(deletion);
    }
  }
  const items = [...inOrderOf(changed, after, mergeKey), ...deletions];
  const reordered = way.changes && !sameOrder(pair, mergeKey);
  const ordered = way.order && (items.length > 0 || reordered);
  return {
    items,
    deleted: [],
    order: ordered ? after.map((item) => keyAlone(item, mergeKey)) : [],
  };
}

function keyAlone(item: JsonValue, mergeKey: string): JsonObject {
  const alone: JsonObject = {};
  setMember(alone, mergeKey, identityOfItem(item, mergeKey) ?? null);
  return alone;
}

function requiredKey(item: JsonValue | undefined, mergeKey: string): JsonValue {
  if (!isObject(item)) throw badType('map', item);
  const key = member(item, mergeKey);
  if (key === undefined) throw noMergeKey(item, mergeKey);
  return key;
}

/** Items in the order of another list, followed by deletions. */
function inOrderOf(
  items: readonly JsonValue[],
  order: readonly JsonValue[],
  mergeKey: string,
): JsonValue[] {
  for (const item of order) requiredKey(item, mergeKey);
  const places = positions(order, mergeKey);
  const at = (item: JsonValue) => places.get(identityOfItem(item, mergeKey)) ?? 0;
  const changes = items.filter((item) => !isDeletion(item)).sort((a, b) => at(a) - at(b));
  return [...changes, ...items.filter(isDeletion)];
}

function sameOrder({ before, after }: ListPair, mergeKey: string): boolean {
  if (before.length !== after.length) return false;
  return after.every(
    (item, at) => requiredKey(item, mergeKey) === requiredKey(before[at], mergeKey),
  );
}

/** Sorts by text. Equal items are reversed, like in Go's sort of short lists. */
function sortedBy(items: readonly JsonValue[], textOf: (item: JsonValue) => string): JsonValue[] {
  const keyed = items.map((item) => ({ item, text: textOf(item) })).reverse();
  return keyed.sort((one, other) => compareText(one.text, other.text)).map(({ item }) => item);
}

/** Iterates over two sorted lists in parallel and pairs items with the same text. */
function* pairs(
  ones: readonly JsonValue[],
  others: readonly JsonValue[],
  textOf: (item: JsonValue) => string,
): Generator<{ readonly one?: JsonValue; readonly other?: JsonValue }> {
  let left = 0;
  let right = 0;
  while (left < ones.length || right < others.length) {
    const one = ones[left];
    const other = others[right];
    const order = compareOrAbsent(one, other, textOf);
    if (order <= 0) left += 1;
    if (order >= 0) right += 1;
    yield {
      ...(order <= 0 && one !== undefined ? { one } : {}),
      ...(order >= 0 && other !== undefined ? { other } : {}),
    };
  }
}

function compareOrAbsent(
  one: JsonValue | undefined,
  other: JsonValue | undefined,
  textOf: (item: JsonValue) => string,
): number {
  const left = one === undefined ? undefined : textOf(one);
  const right = other === undefined ? undefined : textOf(other);
  if (left === undefined) return 1;
  return right === undefined ? -1 : compareText(left, right);
}

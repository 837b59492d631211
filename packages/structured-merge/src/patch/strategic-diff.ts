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
  identityOfItem,
  isDeletion,
  listMergingOf,
  mergingOf,
  positions,
  requiredKey,
  retainKeysMember,
} from './strategic-fields.ts';
import { combinePatches, itemKind } from './strategic-merge.ts';

/** The differences that a patch includes. */
interface DiffScope {
  /** Deletions of members that only the first object has. */
  readonly deletions: boolean;
  /** Members that are new or different in the second object. */
  readonly changes: boolean;
  /** `$setElementOrder` for each merged list that differs. */
  readonly order: boolean;
}

const allDifferences: DiffScope = { deletions: true, changes: true, order: true };

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
  const scope = { ...allDifferences, order: ordered };
  return diffObjects(schema, { before, after, scope, retains: false });
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
export function threeWayStrategicPatch(
  schema: Schema,
  { last, desired, live }: ThreeWayObjects,
): JsonObject {
  const added = diffObjects(schema, {
    before: live,
    after: desired,
    scope: { ...allDifferences, deletions: false },
    retains: false,
  });
  const deleted = diffObjects(schema, {
    before: last,
    after: desired,
    scope: { ...allDifferences, changes: false },
    retains: false,
  });
  return combinePatches(schema, deleted, added);
}

interface ObjectPair {
  readonly before: JsonObject;
  readonly after: JsonObject;
  readonly scope: DiffScope;
  /** Whether the patch lists the members to retain. */
  readonly retains: boolean;
}

function diffObjects(schema: Schema, pair: ObjectPair): JsonObject {
  const { before, after, scope } = pair;
  const patch: JsonObject = {};
  for (const [name, value] of Object.entries(after)) {
    const previous = member(before, name);
    if (value === undefined) continue;
    if (previous === undefined) {
      if (scope.changes) setMember(patch, name, value);
    } else if (name === directiveMember) {
      if (typeof previous !== 'string' || typeof value !== 'string') throw badDirectiveValue();
      if (previous !== value) patch[name] = value;
    } else diffMember(schema, patch, { name, previous, value, scope });
  }
  if (scope.deletions) {
    for (const name of Object.keys(before)) {
      if (before[name] !== undefined && member(after, name) === undefined) {
        setMember(patch, name, null);
      }
    }
  }
  if (pair.retains) addRetainKeys(patch, pair);
  return patch;
}

/** Adds `$retainKeys` if anything changes. */
function addRetainKeys(patch: JsonObject, { before, after }: ObjectPair): void {
  const setMembers = (object: JsonObject) =>
    Object.keys(object).filter((name) => object[name] !== undefined && object[name] !== null);
  const retained = setMembers(after);
  const removesMembers = setMembers(before).some((name) => !Object.hasOwn(after, name));
  if (retained.length > 0 && (removesMembers || Object.keys(patch).length > 0)) {
    patch[retainKeysMember] = retained.sort(compareText);
  }
}

interface MemberPair {
  readonly name: string;
  readonly previous: JsonValue;
  readonly value: JsonValue;
  readonly scope: DiffScope;
}

function diffMember(schema: Schema, patch: JsonObject, pair: MemberPair): void {
  const { name, previous, value, scope } = pair;
  if (isObject(previous) && isObject(value)) {
    const field = mergingIfChanged(() => mergingOf(schema, name), pair);
    if (field === undefined) return;
    if (field.strategy === 'replace') {
      if (scope.changes) setMember(patch, name, value);
      return;
    }
    const { retains, schema: inner } = field;
    const nested = diffObjects(inner, { before: previous, after: value, scope, retains });
    if (Object.keys(nested).length > 0) setMember(patch, name, nested);
  } else if (Array.isArray(previous) && Array.isArray(value)) {
    const field = mergingIfChanged(() => listMergingOf(schema, name), pair);
    if (field?.strategy === 'merge') {
      addListDiff(patch, name, diffLists(field, { before: previous, after: value, scope }));
    } else if (field !== undefined && scope.changes && !jsonEqual(previous, value)) {
      setMember(patch, name, value);
    }
  } else if (scope.changes && !jsonEqual(previous, value)) setMember(patch, name, value);
}

/** How a field is merged. An unknown field is allowed, and undefined, if it does not change. */
function mergingIfChanged(lookUp: () => FieldMerging, pair: MemberPair): FieldMerging | undefined {
  try {
    return lookUp();
  } catch (error) {
    if (jsonEqual(pair.previous, pair.value)) return undefined;
    throw error;
  }
}

interface ListPair {
  readonly before: readonly JsonValue[];
  readonly after: readonly JsonValue[];
  readonly scope: DiffScope;
}

/** The parts of a patch for one list. */
interface ListDiff {
  readonly items: readonly JsonValue[];
  /** Removed scalars. */
  readonly deleted: readonly JsonValue[];
  readonly order: readonly JsonValue[];
}

function addListDiff(patch: JsonObject, name: string, diff: ListDiff): void {
  if (diff.items.length > 0) setMember(patch, name, [...diff.items]);
  if (diff.deleted.length > 0) patch[`${deleteListPrefix}/${name}`] = [...diff.deleted];
  if (diff.order.length > 0) patch[`${elementOrderPrefix}/${name}`] = [...diff.order];
}

function diffLists(field: FieldMerging, pair: ListPair): ListDiff {
  const { before, after, scope } = pair;
  if (before.length === 0) return { items: scope.changes ? after : [], deleted: [], order: [] };
  const kind = itemKind([before, after]);
  return kind === 'map' ? diffItems(field, pair) : diffScalars(pair);
}

function diffScalars({ before, after, scope }: ListPair): ListDiff {
  const sorted = sortedBy(before, goPlain);
  const added: JsonValue[] = [];
  const deleted: JsonValue[] = [];
  for (const { left, right } of pairs(sorted, sortedBy(after, goPlain), goPlain)) {
    if (right === undefined && scope.deletions && left !== undefined) deleted.push(left);
    if (left === undefined && scope.changes && right !== undefined) added.push(right);
  }
  const places = positions(after, '');
  added.sort((left, right) => (places.get(left) ?? 0) - (places.get(right) ?? 0));
  // kube-apiserver has sorted the list at this point, so clients see an order directive for it.
  const differs =
    (scope.deletions && deleted.length > 0) || (scope.changes && !jsonEqual(sorted, [...after]));
  return {
    items: added,
    deleted: [...new Set(deleted)],
    order: scope.order && differs ? after : [],
  };
}

function diffItems(field: FieldMerging, pair: ListPair): ListDiff {
  const { before, after, scope } = pair;
  const { mergeKey, schema, retains } = field;
  const keyText = (item: JsonValue) => goPlain(identityOfItem(item, mergeKey));
  const changed: JsonValue[] = [];
  const deletions: JsonValue[] = [];
  const keyOf = (item: JsonValue | undefined) => requiredKey(item, mergeKey);
  const requiredKeyText = (item: JsonValue) => goPlain(keyOf(item));
  const lists = [sortedBy(before, keyText), sortedBy(after, keyText)] as const;
  for (const { left, right } of pairs(...lists, requiredKeyText)) {
    if (isObject(left) && isObject(right)) {
      const nested = diffObjects(schema, { before: left, after: right, scope, retains });
      if (Object.keys(nested).length === 0) continue;
      setMember(nested, mergeKey, keyOf(right));
      changed.push(nested);
    } else if (right !== undefined) {
      if (scope.changes) changed.push(right);
    } else if (scope.deletions) {
      const deletion: JsonObject = { [directiveMember]: 'delete' };
      setMember(deletion, mergeKey, keyOf(left));
      deletions.push(deletion);
    }
  }
  const items = [...inOrderOf(changed, after, mergeKey), ...deletions];
  const isReordered = scope.changes && !sameOrder(pair, mergeKey);
  const isOrdered = scope.order && (items.length > 0 || isReordered);
  return {
    items,
    deleted: [],
    order: isOrdered ? after.map((item) => onlyKey(item, mergeKey)) : [],
  };
}

/** An item reduced to its merge key. */
function onlyKey(item: JsonValue, mergeKey: string): JsonObject {
  const reduced: JsonObject = {};
  setMember(reduced, mergeKey, identityOfItem(item, mergeKey) ?? null);
  return reduced;
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
  return keyed.sort((left, right) => compareText(left.text, right.text)).map(({ item }) => item);
}

/** Iterates over two sorted lists in parallel and pairs items with the same text. */
function* pairs(
  leftItems: readonly JsonValue[],
  rightItems: readonly JsonValue[],
  textOf: (item: JsonValue) => string,
): Generator<{ readonly left?: JsonValue | undefined; readonly right?: JsonValue | undefined }> {
  let leftAt = 0;
  let rightAt = 0;
  while (leftAt < leftItems.length || rightAt < rightItems.length) {
    const left = leftItems[leftAt];
    const right = rightItems[rightAt];
    const order = compareOrAbsent(left, right, textOf);
    if (order <= 0) leftAt += 1;
    if (order >= 0) rightAt += 1;
    yield { left: order <= 0 ? left : undefined, right: order >= 0 ? right : undefined };
  }
}

/** Compares the texts of two items, which may throw; an absent item comes last. */
function compareOrAbsent(
  left: JsonValue | undefined,
  right: JsonValue | undefined,
  textOf: (item: JsonValue) => string,
): number {
  const leftText = left === undefined ? undefined : textOf(left);
  const rightText = right === undefined ? undefined : textOf(right);
  if (leftText === undefined) return 1;
  return rightText === undefined ? -1 : compareText(leftText, rightText);
}

/**
 * Whether two strategic merge patches of one type conflict by setting a field differently. Merged
 * lists of scalars never conflict. Throws StrategicMergeError if the patches cannot be compared.
 */
export function patchesConflict(schema: Schema, left: JsonObject, right: JsonObject): boolean {
  return Object.entries(left).some(([name, value]) => {
    const otherValue = member(right, name);
    if (name === directiveMember || name === retainKeysMember) return false;
    if (value === undefined || otherValue === undefined) return false;
    if (Array.isArray(value)) {
      const field = listMergingOf(schema, name);
      return !Array.isArray(otherValue) || listsConflict(field, value, otherValue);
    }
    if (!isObject(value)) return !jsonEqual(value, otherValue);
    const field = mergingOf(schema, name);
    return !isObject(otherValue) || objectsConflict(field, value, otherValue);
  });
}

function objectsConflict(
  { schema, strategy }: Pick<FieldMerging, 'schema' | 'strategy'>,
  left: JsonObject,
  right: JsonObject,
): boolean {
  // A directive concerns the whole object.
  if (member(left, directiveMember) !== member(right, directiveMember)) return true;
  return strategy !== 'replace' && patchesConflict(schema, left, right);
}

function listsConflict(
  field: FieldMerging,
  left: readonly JsonValue[],
  right: readonly JsonValue[],
): boolean {
  const kind = itemKind([left, right]);
  if (field.strategy === 'merge') return kind === 'map' && itemsConflict(field, left, right);
  if (left.length !== right.length) return true;
  if (kind !== 'map') return !jsonEqual(sortedScalars(left), sortedScalars(right));
  const { schema } = field;
  return left.some((item, at) => {
    const otherItem = right[at];
    if (!isObject(item) || !isObject(otherItem)) return true;
    return objectsConflict({ schema, strategy: undefined }, item, otherItem);
  });
}

/** Compares two merged lists of objects by merge key. */
function itemsConflict(
  { schema, mergeKey }: FieldMerging,
  left: readonly JsonValue[],
  right: readonly JsonValue[],
): boolean {
  const otherItems = byKey(right, mergeKey);
  return [...byKey(left, mergeKey)].some(([key, item]) => {
    const otherItem = otherItems.get(key);
    if (otherItem === undefined) return false;
    return objectsConflict({ schema, strategy: undefined }, item, otherItem);
  });
}

function byKey(items: readonly JsonValue[], mergeKey: string): ReadonlyMap<string, JsonObject> {
  const itemsByKey = new Map<string, JsonObject>();
  for (const item of items) {
    if (!isObject(item)) throw badType('map', item);
    itemsByKey.set(goPlain(requiredKey(item, mergeKey)), item);
  }
  return itemsByKey;
}

function sortedScalars(items: readonly JsonValue[]): JsonValue[] {
  return [...new Set(items)].sort((left, right) => compareText(goPlain(left), goPlain(right)));
}

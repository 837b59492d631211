import {
  cloneJsonSteps,
  isObject,
  type JsonObject,
  type JsonValue,
  jsonEqual,
  member,
  runInOnePiece,
  Stride,
  setMember,
} from '@wheelhouse/machinery';
import type { Schema } from '@wheelhouse/schema';
import {
  badDirective,
  badElementOrder,
  badPrimitiveList,
  badRetainKeys,
  badType,
  deleteListPrefix,
  directiveMember,
  elementOrderPrefix,
  type FieldMerging,
  goKindOf,
  identityOfItem,
  inOrder,
  isDeletion,
  itemIsNoMap,
  listMergingOf,
  listOfLists,
  mergeDirectiveInList,
  mergingOf,
  mixedItems,
  noItems,
  noKeyDeclared,
  orderDiffers,
  requiredIdentity,
  requiredKey,
  retainKeysDiffer,
  retainKeysMember,
} from './strategic-fields.ts';

/**
 * The mode of a merge: into an object, which executes the directives; into another patch, which
 * keeps the directives and nulls; or into an object while removing executed parts from the patch.
 */
type Into = 'object' | 'patch' | 'object-consuming';

/** The state of a merge in steps. */
interface Merging {
  readonly into: Into;
  readonly stride: Stride;
}

/**
 * Applies a strategic merge patch to an object of a built-in kind (PATCH-3). The arguments are not
 * modified; the result shares parts with both. Throws StrategicMergeError.
 */
export function strategicMerge(schema: Schema, object: JsonObject, patch: JsonObject): JsonObject {
  return runInOnePiece(strategicMergeSteps(schema, object, patch));
}

/** `strategicMerge` in steps. */
export function strategicMergeSteps(
  schema: Schema,
  object: JsonObject,
  patch: JsonObject,
): Generator<void, JsonObject> {
  return mergeInto({ into: 'object', stride: new Stride() }, schema, object, patch);
}

/**
 * The remainder of a patch after it was merged into an object, for example without `$retainKeys`
 * and ordered lists. kube-apiserver shows it, rather than the original patch, if the result is
 * invalid. Throws StrategicMergeError.
 */
export function* remainingPatchSteps(
  schema: Schema,
  object: JsonObject,
  patch: JsonObject,
): Generator<void, JsonObject> {
  const remainder = yield* cloneJsonSteps(patch);
  yield* mergeInto({ into: 'object-consuming', stride: new Stride() }, schema, object, remainder);
  return remainder;
}

/**
 * A strategic merge patch that combines `first` and then `second`. If both order a list, the orders
 * must be the same. Throws StrategicMergeError.
 */
export function combinePatches(schema: Schema, first: JsonObject, second: JsonObject): JsonObject {
  return runInOnePiece(mergeInto({ into: 'patch', stride: new Stride() }, schema, first, second));
}

function* mergeInto(
  merging: Merging,
  schema: Schema,
  object: JsonObject,
  patch: JsonObject,
): Generator<void, JsonObject> {
  const { into, stride } = merging;
  const directive = member(patch, directiveMember);
  const rest = into === 'object-consuming' ? patch : yield* copyOf(patch, stride);
  if (directive !== undefined) return followDirective(directive, rest);
  const merged = yield* copyOf(object, stride);
  if (into === 'patch') moveRetainKeys(merged, rest);
  else retainKeys(merged, rest);
  for (const name of Object.keys(rest)) {
    stride.count();
    if (stride.isOver) yield;
    if (!name.startsWith(elementOrderPrefix)) continue;
    if (into === 'patch') copyOrder(merged, rest, name);
    yield* mergeOrderedList(merging, schema, { merged, rest, name });
  }
  for (const name of Object.keys(rest)) {
    const value = rest[name];
    if (value === undefined) continue;
    stride.count();
    if (stride.isOver) yield;
    if (!name.startsWith(deleteListPrefix)) {
      yield* mergeMember(merging, schema, { merged, name, value });
    } else if (into === 'patch') setMember(merged, name, value);
    else {
      const field = fieldOfDirective(name, deleteListPrefix);
      yield* deleteFromList(merging, schema, { merged, name: field, value });
    }
  }
  return merged;
}

/** A shallow copy. Copying thousands of members takes milliseconds. */
function* copyOf(object: JsonObject, stride: Stride): Generator<void, JsonObject> {
  stride.count(Object.keys(object).length);
  if (stride.isOver) yield;
  return { ...object };
}

function moveRetainKeys(merged: JsonObject, rest: JsonObject): void {
  const listed = member(rest, retainKeysMember);
  delete rest[retainKeysMember];
  if (listed === undefined) return;
  const before = member(merged, retainKeysMember);
  if (before !== undefined && !jsonEqual(before, listed)) throw retainKeysDiffer(before, listed);
  merged[retainKeysMember] = listed;
}

function copyOrder(merged: JsonObject, rest: JsonObject, name: string): void {
  const order = rest[name];
  const before = member(merged, name);
  if (order === undefined) return;
  if (before !== undefined && !jsonEqual(before, order)) throw badElementOrder();
  merged[name] = order;
}

function followDirective(directive: JsonValue, rest: JsonObject): JsonObject {
  if (directive === 'delete') return {};
  if (directive !== 'replace') throw badDirective(directive, rest);
  delete rest[directiveMember];
  return rest;
}

/** `$setElementOrder/finalizers` -> `finalizers`. */
function fieldOfDirective(name: string, prefix: string): string {
  const slash = name.indexOf('/');
  if (slash >= 0 && name.slice(0, slash) === prefix) return name.slice(slash + 1);
  throw prefix === deleteListPrefix ? badPrimitiveList() : badElementOrder();
}

/**
 * Removes members from the object that `$retainKeys` does not list. The patch may only set listed
 * members.
 */
function retainKeys(merged: JsonObject, rest: JsonObject): void {
  const listed = member(rest, retainKeysMember);
  if (listed === undefined) return;
  delete rest[retainKeysMember];
  if (!Array.isArray(listed)) throw badRetainKeys();
  const kept = new Set(listed);
  for (const name of Object.keys(rest)) {
    const isDirective = name.startsWith(deleteListPrefix) || name.startsWith(elementOrderPrefix);
    if (rest[name] === null || isDirective) continue;
    if (!kept.has(name)) throw badRetainKeys();
  }
  for (const name of Object.keys(merged)) if (!kept.has(name)) delete merged[name];
}

interface MemberChange {
  readonly merged: JsonObject;
  readonly name: string;
  readonly value: JsonValue;
}

function* mergeMember(
  merging: Merging,
  schema: Schema,
  { merged, name, value }: MemberChange,
): Generator<void, void> {
  const { into } = merging;
  if (value === null) {
    delete merged[name];
    if (into === 'patch') setMember(merged, name, null);
    return;
  }
  const present = member(merged, name);
  if (isObject(present) && isObject(value)) {
    const field = mergingOf(schema, name);
    const isReplaced = field.strategy === 'replace';
    const result = isReplaced ? value : yield* mergeInto(merging, field.schema, present, value);
    setMember(merged, name, result);
  } else if (Array.isArray(present) && Array.isArray(value)) {
    const field = listMergingOf(schema, name);
    const isMerged = field.strategy === 'merge';
    const list = isMerged ? yield* mergeLists(merging, field, present, value) : value;
    setMember(merged, name, list);
  } else if (typeof value !== 'object') setMember(merged, name, value);
  else {
    const bare = yield* withoutDirectives(value, { merging, dropNulls: into !== 'patch' });
    if (bare === undefined) delete merged[name];
    else setMember(merged, name, bare);
  }
}

/**
 * Executes `$deleteFromPrimitiveList`. Like kube-apiserver, patches a member that is no list with a
 * value of its type as if there were no directive, and ignores values of other types.
 */
function* deleteFromList(
  merging: Merging,
  schema: Schema,
  { merged, name, value }: MemberChange,
): Generator<void, void> {
  const present = member(merged, name);
  if (!Array.isArray(present) || !Array.isArray(value)) {
    if (value !== null && !isOfSameType(present, value)) return;
    yield* mergeMember(merging, schema, { merged, name, value });
    return;
  }
  const field = listMergingOf(schema, name);
  if (present.length === 0 && value.length === 0) return;
  if (itemKind([present, value]) === 'map') {
    setMember(merged, name, yield* mergeLists(merging, field, present, value));
    return;
  }
  const deleted = new Set(value);
  const remaining = present.filter((item) => !deleted.has(item));
  setMember(merged, name, remaining);
}

const isOfSameType = (present: JsonValue | undefined, value: JsonValue): boolean =>
  typeof value === 'object'
    ? isObject(present) && isObject(value)
    : typeof present === typeof value;

/**
 * The value that results from merging into nothing: without directives and, if `dropNulls`, without
 * nulls in objects. Undefined if the whole value is a directive.
 */
function* withoutDirectives(
  value: JsonValue,
  options: { readonly merging: Merging; readonly dropNulls: boolean },
): Generator<void, JsonValue | undefined> {
  const { into, stride } = options.merging;
  if (Array.isArray(value)) {
    const items: JsonValue[] = [];
    for (const item of value) {
      const kept = yield* withoutDirectives(item, options);
      if (kept !== undefined) items.push(kept);
    }
    return items;
  }
  stride.count();
  if (stride.isOver) yield;
  if (!isObject(value)) return value;
  const bare: JsonObject = into === 'object-consuming' ? value : { ...value };
  if (options.dropNulls) deleteNulls(bare);
  if (Object.hasOwn(bare, directiveMember)) return undefined;
  for (const [name, item] of Object.entries(bare)) {
    if (typeof item !== 'object' && item !== undefined) continue;
    const kept = item === undefined ? undefined : yield* withoutDirectives(item, options);
    if (kept === undefined) delete bare[name];
    else setMember(bare, name, kept);
  }
  return bare;
}

function deleteNulls(object: JsonObject): void {
  for (const [name, item] of Object.entries(object)) if (item === null) delete object[name];
}

type ItemKind = 'map' | 'string' | 'number' | 'boolean' | 'null';

/** The common kind of all items of the lists. Throws if there is none or it is not allowed. */
export function itemKind(lists: readonly (readonly JsonValue[])[]): ItemKind {
  let kind: ItemKind | undefined;
  for (const list of lists) {
    for (const item of list) {
      if (kind === undefined && Array.isArray(item)) throw listOfLists();
      const own = Array.isArray(item) ? undefined : kindOfItem(item);
      kind ??= own;
      if (own !== kind) throw mixedItems(lists as JsonValue[][]);
    }
  }
  if (kind === undefined) throw noItems();
  return kind;
}

function kindOfItem(item: JsonValue): ItemKind {
  if (item === null) return 'null';
  if (isObject(item)) return 'map';
  if (typeof item === 'string') return 'string';
  return typeof item === 'boolean' ? 'boolean' : 'number';
}

/** Merges a list into another by strategy `merge`, and orders the result. */
function* mergeLists(
  merging: Merging,
  field: FieldMerging,
  live: JsonValue[],
  patch: JsonValue[],
): Generator<void, JsonValue[]> {
  if (live.length === 0 && patch.length === 0) return live;
  if (itemKind([live, patch]) !== 'map') {
    const merged = [...new Set([...live, ...patch])];
    return inOrder(merged, patch, { live, mergeKey: '' });
  }
  const { mergeKey, schema } = field;
  if (mergeKey === '') throw noKeyDeclared(goKindOf(schema));
  const { kept, patchItems } = followItemDirectives(live, patch, mergeKey);
  const merged = yield* mergeItems(merging, field, { live: kept, patchItems });
  yield;
  return inOrder(merged, patchItems, { live: kept, mergeKey });
}

/** Executes `$patch` directives of list items; returns the items that remain to be merged. */
function followItemDirectives(
  live: readonly JsonValue[],
  patch: readonly JsonValue[],
  mergeKey: string,
): { readonly kept: readonly JsonValue[]; readonly patchItems: readonly JsonValue[] } {
  const patchItems: JsonValue[] = [];
  const deletedKeys = new Set<JsonValue>();
  let isReplaced = false;
  for (const item of patch) {
    if (!isObject(item)) continue;
    const directive = member(item, directiveMember);
    if (directive === undefined) patchItems.push(item);
    else if (directive === 'replace') isReplaced = true;
    else if (directive === 'merge') throw mergeDirectiveInList();
    else if (directive === 'delete') deletedKeys.add(requiredKey(item, mergeKey));
    else throw badDirective(directive, item);
  }
  if (isReplaced) return { kept: patchItems, patchItems: [] };
  if (deletedKeys.size === 0) return { kept: live, patchItems };
  const kept = live.filter((item, index) => {
    if (!isObject(item)) throw itemIsNoMap(index);
    const key = member(item, mergeKey);
    return key === undefined || !deletedKeys.has(key);
  });
  return { kept, patchItems };
}

function* mergeItems(
  merging: Merging,
  { schema, mergeKey }: FieldMerging,
  {
    live,
    patchItems,
  }: { readonly live: readonly JsonValue[]; readonly patchItems: readonly JsonValue[] },
): Generator<void, JsonValue[]> {
  const { stride } = merging;
  const merged = [...live];
  const places = new Map<JsonValue, number>();
  for (const [index, item] of merged.entries()) {
    const key = isObject(item) ? member(item, mergeKey) : undefined;
    if (key !== undefined && !places.has(key)) places.set(key, index);
  }
  yield;
  for (const item of patchItems) {
    if (!isObject(item)) continue;
    stride.count();
    if (stride.isOver) yield;
    const key = requiredKey(item, mergeKey);
    const place = places.get(key);
    const present = place === undefined ? undefined : merged[place];
    if (place !== undefined && isObject(present)) {
      merged[place] = yield* mergeInto(merging, schema, present, item);
    } else {
      places.set(key, merged.length);
      merged.push(item);
    }
  }
  return merged;
}

interface OrderedList {
  readonly merged: JsonObject;
  readonly rest: JsonObject;
  /** The member of the patch with the order. */
  readonly name: string;
}

/** Merges a list with a `$setElementOrder/…` directive and orders it. */
function* mergeOrderedList(
  merging: Merging,
  schema: Schema,
  { merged, rest, name }: OrderedList,
): Generator<void, void> {
  const order = rest[name];
  delete rest[name];
  if (!Array.isArray(order)) throw badType('[]', order);
  const field = fieldOfDirective(name, elementOrderPrefix);
  const live = listMember(merged, field);
  const patchItems = listMember(rest, field);
  const fieldMerging = listMergingOf(schema, field);
  const { mergeKey } = fieldMerging;
  checkOrder(patchItems, order, mergeKey);
  if (live === undefined && patchItems === undefined) return;
  const list = yield* mergeForOrder(merging, fieldMerging, { live, patchItems });
  itemKind([live ?? [], patchItems ?? []]);
  yield;
  const before = patchItems === undefined ? live : liveForOrder(fieldMerging, live, patchItems);
  setMember(merged, field, inOrder(list, order, { live: before ?? [], mergeKey }));
  delete rest[field];
}

/**
 * The live list by which the order is determined. For each item that the patch deletes, one of its
 * new items counts as if it had been at the end of the live list. kube-apiserver does this, and it
 * affects the resulting order.
 */
function liveForOrder(
  { strategy, mergeKey }: FieldMerging,
  live: readonly JsonValue[] | undefined,
  patchItems: readonly JsonValue[],
): readonly JsonValue[] | undefined {
  if (strategy !== 'merge' || mergeKey === '' || live === undefined) return live;
  const remaining = followItemDirectives(live, patchItems, mergeKey);
  const deletedCount = live.length - remaining.kept.length;
  if (deletedCount <= 0 || remaining.patchItems.length === 0) return live;
  const keptIdentities = new Set(remaining.kept.map((item) => identityOfItem(item, mergeKey)));
  const newItems = remaining.patchItems.filter(
    (item) => !keptIdentities.has(identityOfItem(item, mergeKey)),
  );
  return [...remaining.kept, ...newItems.slice(0, deletedCount)];
}

function listMember(object: JsonObject, name: string): JsonValue[] | undefined {
  const list = member(object, name);
  if (list === undefined) return undefined;
  if (!Array.isArray(list)) throw badType('[]', list);
  return list;
}

function* mergeForOrder(
  merging: Merging,
  field: FieldMerging,
  lists: { readonly live: JsonValue[] | undefined; readonly patchItems: JsonValue[] | undefined },
): Generator<void, JsonValue[]> {
  const { live, patchItems } = lists;
  if (patchItems === undefined) return live ?? [];
  if (live === undefined) {
    const bare = yield* withoutDirectives(patchItems, { merging, dropNulls: false });
    return Array.isArray(bare) ? bare : [];
  }
  const isMerged = field.strategy === 'merge';
  return isMerged ? yield* mergeLists(merging, field, live, patchItems) : patchItems;
}

/**
 * Checks that the items of a patch are in the order of its directive; deletions may be anywhere.
 */
function checkOrder(
  patchItems: readonly JsonValue[] | undefined,
  order: readonly JsonValue[],
  mergeKey: string,
): void {
  if (patchItems === undefined || patchItems.length === 0 || order.length === 0) return;
  const items = patchItems.filter((item) => {
    if (mergeKey !== '' && !isObject(item)) throw badType('map', item);
    return mergeKey === '' || !isDeletion(item);
  });
  const isDirective = (item: JsonValue) => isObject(item) && Object.hasOwn(item, directiveMember);
  let at = 0;
  for (const ordered of order) {
    while (at < items.length && isDirective(items[at]!)) at += 1;
    const item = items[at];
    if (item === undefined) return;
    if (requiredIdentity(item, mergeKey) === requiredIdentity(ordered, mergeKey)) at += 1;
  }
  // kube-apiserver does not skip directives after the last item of the order.
  if (at < items.length) throw orderDiffers([...patchItems], [...order]);
}

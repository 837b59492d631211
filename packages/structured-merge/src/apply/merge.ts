import {
  isObject,
  type JsonObject,
  type JsonValue,
  jsonEqual,
  jsonEqualSteps,
  member,
  Stride,
  setMember,
} from '@wheelhouse/machinery';
import { type PathElement, showElement } from './path-element.ts';
import {
  below,
  belowField,
  complain,
  type Place,
  rootPlace,
  scalarProblem,
  TypedError,
} from './validate-typed.ts';
import { isEmptyObject } from './value-fields.ts';
import {
  fitting,
  itemElement,
  type ListType,
  type MapType,
  memberType,
  type ValueType,
} from './value-type.ts';

interface Sides {
  readonly left: JsonValue | undefined;
  readonly right: JsonValue | undefined;
}

/**
 * Merges a partial value into a live one. Removes nothing; the partial value wins where both are
 * set. The result shares parts that only one side has and unchanged parts of the live value; if
 * nothing changes, it is the live value itself. Throws a TypedError if a visited value violates the
 * type.
 */
export function merge(type: ValueType, live: JsonValue, applied: JsonValue): JsonValue | undefined {
  const place = rootPlace();
  const merged = mergeAt(type, { left: live, right: applied }, place);
  if (place.problems.count > 0) throw new TypedError(place.problems);
  return merged;
}

/** `merge` in steps, for large objects. */
export function* mergeSteps(
  type: ValueType,
  live: JsonValue,
  applied: JsonValue,
): Generator<void, JsonValue | undefined> {
  const place = rootPlace();
  const stride = new Stride();
  const merged = yield* mergeAtSteps(type, { left: live, right: applied }, { place, stride });
  if (place.problems.count > 0) throw new TypedError(place.problems);
  return merged;
}

/** The state of a walk in steps. */
interface Walk {
  readonly place: Place;
  readonly stride: Stride;
}

/** Whether both sides are light and can be merged in one piece. */
function areLight({ left, right }: Sides, stride: Stride): boolean {
  return stride.weigh(right) === 'light' && stride.weigh(left) === 'light';
}

/** `mergeAt` in steps, for sides of which at least one is heavy. */
function* mergeAtSteps(
  type: ValueType,
  sides: Sides,
  walk: Walk,
): Generator<void, JsonValue | undefined> {
  const leftType = fitting(type, sides.left);
  if (sides.right === undefined) return yield* mergeKindSteps(leftType, sides, walk);
  const rightType = fitting(type, sides.right);
  if (sides.left !== undefined && leftType !== rightType) {
    yield* mergeKindSteps(leftType, sides, walk);
  }
  return yield* mergeKindSteps(rightType, sides, walk);
}

function* mergeKindSteps(
  type: ValueType,
  sides: Sides,
  walk: Walk,
): Generator<void, JsonValue | undefined> {
  const { map, scalar, list } = type;
  if (map !== undefined) {
    return map.atomic ? yield* preferredWholeSteps(sides) : yield* mergeMapsSteps(map, sides, walk);
  }
  if (scalar === undefined && list !== undefined) {
    return list.atomic
      ? yield* preferredWholeSteps(sides)
      : yield* mergeListsSteps(list, sides, walk);
  }
  return mergeKind(type, sides, walk.place);
}

function mergeAt(type: ValueType, sides: Sides, place: Place): JsonValue | undefined {
  const leftType = fitting(type, sides.left);
  if (sides.right === undefined) return mergeKind(leftType, sides, place);
  const rightType = fitting(type, sides.right);
  if (sides.left !== undefined && leftType !== rightType) mergeKind(leftType, sides, place);
  return mergeKind(rightType, sides, place);
}

/** The partial value if there is one, otherwise the live one. */
const preferred = ({ left, right }: Sides) => (right === undefined ? left : right);

function mergeKind(type: ValueType, sides: Sides, place: Place): JsonValue | undefined {
  if (type.map !== undefined) return mergeMaps(type.map, sides, place);
  if (type.scalar !== undefined) {
    const leftProblem = scalarProblem(type.scalar, sides.left, 'lhs: ');
    const rightProblem = scalarProblem(type.scalar, sides.right, 'rhs: ');
    if (leftProblem === undefined || rightProblem === undefined) return preferred(sides);
    complain(place, leftProblem, rightProblem);
    return undefined;
  }
  if (type.list !== undefined) return mergeLists(type.list, sides, place);
  complain(place, 'schema error: invalid atom: inlined');
  return undefined;
}

function mergeMaps(map: MapType, sides: Sides, place: Place): JsonValue | undefined {
  const left = isObject(sides.left) ? sides.left : undefined;
  const right = isObject(sides.right) ? sides.right : undefined;
  if (isEmptyObject(left) && isEmptyObject(right)) return preferred(sides);
  if (map.atomic) return preferredWhole(sides);
  if (right === undefined) return left;
  let merged: JsonObject | undefined = left === undefined ? {} : undefined;
  for (const name of Object.keys(right)) {
    const before = left === undefined ? undefined : member(left, name);
    const value = mergeMember(map, { name, left: before, right: right[name] }, place);
    if (value === before) continue;
    merged ??= { ...left };
    putMember(merged, name, value);
  }
  if (merged === undefined) return left;
  return isEmptyObject(merged) ? undefined : merged;
}

function putMember(object: JsonObject, name: string, value: JsonValue | undefined): void {
  if (value === undefined) delete object[name];
  else setMember(object, name, value);
}

/** `mergeMaps` in steps, for a map that is not atomic. */
function* mergeMapsSteps(
  map: MapType,
  sides: Sides,
  walk: Walk,
): Generator<void, JsonValue | undefined> {
  const left = isObject(sides.left) ? sides.left : undefined;
  const right = isObject(sides.right) ? sides.right : undefined;
  if (isEmptyObject(right) && isEmptyObject(left)) return preferred(sides);
  if (right === undefined) return left;
  let merged: JsonObject | undefined = left === undefined ? {} : undefined;
  yield;
  for (const name of Object.keys(right)) {
    if (walk.stride.isOver) yield;
    const before = left === undefined ? undefined : member(left, name);
    const after = right[name];
    if (before === undefined && after === undefined) continue;
    const type = memberType(map, name);
    const there = belowField(walk.place, name);
    let value: JsonValue | undefined;
    if (type === undefined) complain(there, 'field not declared in schema');
    else {
      const member = { left: before, right: after };
      const below: Walk = { place: there, stride: walk.stride };
      value = areLight(member, walk.stride)
        ? mergeAt(type, member, there)
        : yield* mergeAtSteps(type, member, below);
    }
    if (value === before) continue;
    merged ??= yield* copyMembers(left, walk.stride);
    putMember(merged, name, value);
  }
  if (merged === undefined) return left;
  return isEmptyObject(merged) ? undefined : merged;
}

/** A shallow copy of an object in steps: spreading many members takes several milliseconds. */
function* copyMembers(object: JsonObject | undefined, stride: Stride): Generator<void, JsonObject> {
  const copy: JsonObject = {};
  for (const name of object === undefined ? [] : Object.keys(object)) {
    putMember(copy, name, object?.[name]);
    stride.count();
    if (stride.isOver) yield;
  }
  return copy;
}

/** `preferredWhole` in steps. */
function* preferredWholeSteps(sides: Sides): Generator<void, JsonValue | undefined> {
  const { left, right } = sides;
  return left !== undefined && (yield* jsonEqualSteps(left, right)) ? left : preferred(sides);
}

/**
 * The partial value, or the live one if they are equal, since shared values need no later
 * comparison.
 */
function preferredWhole(sides: Sides): JsonValue | undefined {
  const { left, right } = sides;
  return left !== undefined && jsonEqual(left, right) ? left : preferred(sides);
}

function mergeMember(
  map: MapType,
  { name, left, right }: Sides & { readonly name: string },
  place: Place,
): JsonValue | undefined {
  if (left === undefined && right === undefined) return undefined;
  const type = memberType(map, name);
  const there = belowField(place, name);
  if (type !== undefined) return mergeAt(type, { left, right }, there);
  complain(there, 'field not declared in schema');
  return undefined;
}

function mergeLists(list: ListType, sides: Sides, place: Place): JsonValue | undefined {
  const left = Array.isArray(sides.left) ? sides.left : [];
  const right = Array.isArray(sides.right) ? sides.right : [];
  if (list.atomic) return preferredWhole(sides);
  if (left.length === 0 && right.length === 0) return preferred(sides);
  if (right.length === 0) return sides.left;
  const problemsBefore = place.problems.count;
  const applied = indexItems(list, right, { place, allowDuplicates: false });
  const present = indexItems(list, left, { place, allowDuplicates: true });
  if (place.problems.count > problemsBefore) return undefined;
  const items = interleave(list, { present, applied, live: left }, place);
  if (items.length === left.length && items.every((item, at) => item === left[at])) return left;
  return items.length > 0 ? items : undefined;
}

/** `mergeLists` in steps, for a list that is not atomic. */
function* mergeListsSteps(
  list: ListType,
  sides: Sides,
  walk: Walk,
): Generator<void, JsonValue | undefined> {
  const left = Array.isArray(sides.left) ? sides.left : [];
  const right = Array.isArray(sides.right) ? sides.right : [];
  if (left.length === 0 && right.length === 0) return preferred(sides);
  if (right.length === 0) return sides.left;
  const { place, stride } = walk;
  const problemsBefore = place.problems.count;
  const applied = yield* indexItemsSteps(list, right, { place, stride, allowDuplicates: false });
  const present = yield* indexItemsSteps(list, left, { place, stride, allowDuplicates: true });
  if (place.problems.count > problemsBefore) return undefined;
  const type = list.element.get();
  const items: JsonValue[] = [];
  for (const item of interleaved({ present, applied, live: left })) {
    const there = below(place, item.element);
    const merged = areLight(item, stride)
      ? mergeAt(type, item, there)
      : yield* mergeAtSteps(type, item, { place: there, stride });
    if (merged !== undefined) items.push(merged);
    if (stride.isOver) yield;
  }
  if (items.length === left.length && items.every((item, at) => item === left[at])) return left;
  return items.length > 0 ? items : undefined;
}

interface IndexedItems {
  /** Path elements in list order, including duplicates. */
  readonly order: PathElement[];
  /** Items by path element; null for duplicates, into which nothing is merged. */
  readonly byElement: Map<PathElement, JsonValue>;
}

function indexItems(
  list: ListType,
  items: readonly JsonValue[],
  { place, allowDuplicates }: { place: Place; allowDuplicates: boolean },
): IndexedItems {
  const indexed = noItems();
  for (const [index, item] of items.entries()) {
    addItem(indexed, { list, index, item }, { place, allowDuplicates });
  }
  return indexed;
}

const noItems = (): IndexedItems => ({ order: [], byElement: new Map() });

function addItem(
  { order, byElement }: IndexedItems,
  { list, index, item }: { list: ListType; index: number; item: JsonValue },
  { place, allowDuplicates }: { place: Place; allowDuplicates: boolean },
): void {
  const element = itemElement(list, item);
  if (typeof element !== 'string') {
    complain(place, `element ${index}: ${element.problem}`);
    return;
  }
  const isDuplicate = byElement.has(element);
  if (isDuplicate && !allowDuplicates) {
    complain(place, `duplicate entries for key ${showElement(element)}`);
    return;
  }
  byElement.set(element, isDuplicate ? null : item);
  order.push(element);
}

/** `indexItems` in steps. */
function* indexItemsSteps(
  list: ListType,
  items: readonly JsonValue[],
  options: { place: Place; stride: Stride; allowDuplicates: boolean },
): Generator<void, IndexedItems> {
  const { stride } = options;
  const indexed = noItems();
  for (const [index, item] of items.entries()) {
    addItem(indexed, { list, index, item }, options);
    stride.count();
    if (stride.isOver) yield;
  }
  return indexed;
}

/**
 * Orders the items of both lists: the partial list keeps its order, and items that only the live
 * list has stay before the shared item that they preceded. With live `a b c d` and partial `d x b`,
 * `a` comes first (no shared item precedes it), then `c`, then `d x b`.
 */
function interleave(
  list: ListType,
  lists: { present: IndexedItems; applied: IndexedItems; live: readonly JsonValue[] },
  place: Place,
): JsonValue[] {
  const type = list.element.get();
  const items: JsonValue[] = [];
  for (const item of interleaved(lists)) {
    const merged = mergeAt(type, item, below(place, item.element));
    if (merged !== undefined) items.push(merged);
  }
  return items;
}

/** One item of a merged list. */
interface ItemSides extends Sides {
  readonly element: PathElement;
}

/** The items of both sides, in the order of the merged list. */
function* interleaved(lists: {
  present: IndexedItems;
  applied: IndexedItems;
  live: readonly JsonValue[];
}): Generator<ItemSides> {
  const { present, applied, live } = lists;
  const taken = new Set<PathElement>();
  const shared = applied.order.filter((element) => present.byElement.has(element));
  let nextShared = 0;
  const sidesOf = (element: PathElement, left: JsonValue | undefined): ItemSides => ({
    element,
    left,
    right: applied.byElement.get(element),
  });
  const takePartial = (element: PathElement) => {
    taken.add(element);
    if (shared[nextShared] === element) nextShared += 1;
    return sidesOf(element, present.byElement.get(element));
  };
  let leftAt = 0;
  let rightAt = 0;
  while (leftAt < present.order.length || rightAt < applied.order.length) {
    const left = present.order[leftAt];
    const right = applied.order[rightAt];
    if (left !== undefined && left === right) {
      yield takePartial(left);
      leftAt += 1;
      rightAt += 1;
    } else if (left !== undefined && !applied.byElement.has(left)) {
      yield sidesOf(left, live[leftAt]);
      leftAt += 1;
    } else if (left !== undefined && right !== undefined && waits(left, shared[nextShared])) {
      leftAt += 1;
    } else {
      if (left !== undefined && taken.has(left)) leftAt += 1;
      if (right !== undefined) {
        yield takePartial(right);
        rightAt += 1;
      }
    }
  }
}

/** A shared item that is not next in the partial list is emitted when its turn comes. */
const waits = (element: PathElement, next: PathElement | undefined) =>
  next !== undefined && next !== element;

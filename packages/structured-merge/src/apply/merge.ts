import {
  isObject,
  type JsonObject,
  type JsonValue,
  jsonEqual,
  member,
  setMember,
} from '@wheelhouse/machinery';
import { itemElement } from './list-items.ts';
import { type PathElement, showElement } from './path-element.ts';
import { below, belowField, complain, type Place, rootPlace } from './place.ts';
import { TypedError } from './typed-errors.ts';
import { scalarProblem } from './validate-typed.ts';
import {
  fitting,
  type ListShape,
  type MapShape,
  memberType,
  type ValueType,
} from './value-type.ts';

interface Sides {
  readonly left: JsonValue | undefined;
  readonly right: JsonValue | undefined;
}

/**
 * Merges a partly given value into one: takes nothing away, and the given value wins where both say
 * something. Parts that only one side has are shared with it, not copied, and parts that stay as they
 * are with the live value: it is itself the answer when nothing changes. Throws a TypedError when a
 * value does not fit the type where both are looked at.
 */
export function merge(type: ValueType, live: JsonValue, applied: JsonValue): JsonValue | undefined {
  const place = rootPlace();
  const merged = mergeAt(type, { left: live, right: applied }, place);
  if (place.problems.length > 0) throw new TypedError(place.problems);
  return merged;
}

function mergeAt(type: ValueType, sides: Sides, place: Place): JsonValue | undefined {
  const leftType = fitting(type, sides.left);
  if (sides.right === undefined) return mergeKind(leftType, sides, place);
  const rightType = fitting(type, sides.right);
  if (sides.left !== undefined && leftType !== rightType) mergeKind(leftType, sides, place);
  return mergeKind(rightType, sides, place);
}

const preferred = ({ left, right }: Sides) => (right === undefined ? left : right);

function mergeKind(type: ValueType, sides: Sides, place: Place): JsonValue | undefined {
  if (type.map !== undefined) return mergeMaps(type.map, sides, place);
  if (type.scalar !== undefined) {
    const one = scalarProblem(type.scalar, sides.left, 'lhs: ');
    const other = scalarProblem(type.scalar, sides.right, 'rhs: ');
    if (one === undefined || other === undefined) return preferred(sides);
    complain(place, one, other);
    return undefined;
  }
  if (type.list !== undefined) return mergeLists(type.list, sides, place);
  complain(place, 'schema error: invalid atom: inlined');
  return undefined;
}

const isEmptyObject = (object: JsonObject | undefined) => {
  if (object !== undefined) {
    for (const name in object) if (object[name] !== undefined) return false;
  }
  return true;
};

function mergeMaps(map: MapShape, sides: Sides, place: Place): JsonValue | undefined {
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
    if (value === undefined) delete merged[name];
    else setMember(merged, name, value);
  }
  if (merged === undefined) return left;
  return isEmptyObject(merged) ? undefined : merged;
}

/** The given value, or the live one itself where they are equal: what is shared is not compared. */
function preferredWhole(sides: Sides): JsonValue | undefined {
  const { left, right } = sides;
  return left !== undefined && jsonEqual(left, right) ? left : preferred(sides);
}

function mergeMember(
  map: MapShape,
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

function mergeLists(list: ListShape, sides: Sides, place: Place): JsonValue | undefined {
  const left = Array.isArray(sides.left) ? sides.left : [];
  const right = Array.isArray(sides.right) ? sides.right : [];
  if (list.atomic) return preferredWhole(sides);
  if (left.length === 0 && right.length === 0) return preferred(sides);
  if (right.length === 0) return sides.left;
  const problemsBefore = place.problems.length;
  const applied = indexItems(list, right, { place, allowDuplicates: false });
  const present = indexItems(list, left, { place, allowDuplicates: true });
  if (place.problems.length > problemsBefore) return undefined;
  const items = interleave(list, { present, applied, live: left }, place);
  if (items.length === left.length && items.every((item, at) => item === left[at])) return left;
  return items.length > 0 ? items : undefined;
}

interface IndexedItems {
  /** Steps in list order; duplicates stand for each of their items. */
  readonly order: readonly PathElement[];
  /** Items by step; null stands for several that are the same, which are not merged into. */
  readonly byElement: ReadonlyMap<PathElement, JsonValue>;
}

function indexItems(
  list: ListShape,
  items: readonly JsonValue[],
  { place, allowDuplicates }: { place: Place; allowDuplicates: boolean },
): IndexedItems {
  const order: PathElement[] = [];
  const byElement = new Map<PathElement, JsonValue>();
  for (const [index, item] of items.entries()) {
    const element = itemElement(list, item);
    if (typeof element !== 'string') {
      complain(place, `element ${index}: ${element.why}`);
      continue;
    }
    const again = byElement.has(element);
    if (again && !allowDuplicates) {
      complain(place, `duplicate entries for key ${showElement(element)}`);
      continue;
    }
    byElement.set(element, again ? null : item);
    order.push(element);
  }
  return { order, byElement };
}

/**
 * Puts the items of both lists in one order: the given list's own order holds; items only the live
 * list has keep their place before the shared item they stood before. With live `a b c d` and given
 * `d x b`, `a` comes first (nothing shared before it), then `c`, then `d x b`.
 */
function interleave(
  list: ListShape,
  lists: { present: IndexedItems; applied: IndexedItems; live: readonly JsonValue[] },
  place: Place,
): JsonValue[] {
  const { present, applied, live } = lists;
  const type = list.element.get();
  const out: JsonValue[] = [];
  const taken = new Set<PathElement>();
  const shared = applied.order.filter((element) => present.byElement.has(element));
  let nextShared = 0;
  const take = (element: PathElement, left: JsonValue | undefined) => {
    const right = applied.byElement.get(element);
    const item = mergeAt(type, { left, right }, below(place, element));
    if (item !== undefined) out.push(item);
  };
  const takeGiven = (element: PathElement) => {
    taken.add(element);
    take(element, present.byElement.get(element));
    if (shared[nextShared] === element) nextShared += 1;
  };
  let leftAt = 0;
  let rightAt = 0;
  while (leftAt < present.order.length || rightAt < applied.order.length) {
    const left = present.order[leftAt];
    const right = applied.order[rightAt];
    if (left !== undefined && left === right) {
      takeGiven(left);
      leftAt += 1;
      rightAt += 1;
    } else if (left !== undefined && !applied.byElement.has(left)) {
      take(left, live[leftAt]);
      leftAt += 1;
    } else if (left !== undefined && right !== undefined && waits(left, shared[nextShared])) {
      leftAt += 1;
    } else {
      if (left !== undefined && taken.has(left)) leftAt += 1;
      if (right !== undefined) {
        takeGiven(right);
        rightAt += 1;
      }
    }
  }
  return out;
}

/** A shared item that is not the next one of the given order: it is taken in its turn there. */
const waits = (element: PathElement, next: PathElement | undefined) =>
  next !== undefined && next !== element;

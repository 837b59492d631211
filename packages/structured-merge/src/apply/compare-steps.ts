import { isObject, type JsonObject, type JsonValue, member } from '@wheelhouse/machinery';
import {
  addItem,
  type Changes,
  type Comparison,
  changesOf,
  collect,
  compareAt,
  compareItems,
  compareKind,
  comparisonOf,
  type Growing,
  isEmptyMap,
  joinChanges,
  kindOf,
  none,
  ownChanges,
  type Sides,
} from './compare.ts';
import { fieldElement, type PathElement } from './path-element.ts';
import { below, belowField, complain, type Place, rootPlace } from './place.ts';
import {
  fitting,
  type ListShape,
  type MapShape,
  memberType,
  type ValueType,
} from './value-type.ts';

/** Values that are compared between two pauses; a millisecond of work at most. */
const valuesPerStep = 250;

/** A walk in steps: what is counted is all of its values. */
interface Walk {
  left: number;
}

function isStepOver(walk: Walk): boolean {
  walk.left -= 1;
  if (walk.left > 0) return false;
  walk.left = valuesPerStep;
  return true;
}

/** `compare` in steps, for large objects (TRUST-2): small ones it costs more. */
export function* compareSteps(
  type: ValueType,
  left: JsonValue,
  right: JsonValue,
): Generator<void, Comparison> {
  const place = rootPlace();
  const changes = yield* changesAt(type, { left, right }, { place, walk: { left: valuesPerStep } });
  return comparisonOf(changes, place);
}

interface At {
  readonly place: Place;
  readonly walk: Walk;
}

const isContainer = (value: JsonValue | undefined) => typeof value === 'object' && value !== null;

/** As `compareAt`. */
function* changesAt(type: ValueType, sides: Sides, at: At): Generator<void, Changes | undefined> {
  const { left, right } = sides;
  if (!isContainer(left) && !isContainer(right)) return compareAt(type, sides, at.place);
  if (left === right) return undefined;
  const leftType = fitting(type, left);
  const rightType = fitting(type, right);
  if (right === undefined) return yield* changesOfKind(leftType, sides, at);
  if (left === undefined || leftType === rightType) {
    return yield* changesOfKind(rightType, sides, at);
  }
  const mixed: Sides = { ...sides, isMixed: true };
  const one = yield* changesOfKind(leftType, mixed, at);
  return joinChanges(one, yield* changesOfKind(rightType, mixed, at));
}

/** As `compareKind`. */
function* changesOfKind(
  type: ValueType,
  sides: Sides,
  at: At,
): Generator<void, Changes | undefined> {
  const kind = kindOf(type);
  const { map, list } = type;
  if (kind === 'map' && map !== undefined && !map.atomic) {
    const left = isObject(sides.left) ? sides.left : undefined;
    const right = isObject(sides.right) ? sides.right : undefined;
    if (isEmptyMap(left) && isEmptyMap(right)) return compareKind(type, sides, at.place);
    return ownChanges(changesOf(yield* memberChanges(map, { left, right }, at)), sides);
  }
  if (kind === 'list' && list !== undefined && !list.atomic) {
    const left = Array.isArray(sides.left) ? sides.left : [];
    const right = Array.isArray(sides.right) ? sides.right : [];
    if (left.length > 0 || right.length > 0) {
      return ownChanges(changesOf(yield* itemChanges(list, { left, right }, at)), sides);
    }
  }
  return compareKind(type, sides, at.place);
}

const nothing = (): Growing => ({ removed: undefined, modified: undefined, added: undefined });

function* memberChanges(
  map: MapShape,
  {
    left,
    right,
  }: { readonly left: JsonObject | undefined; readonly right: JsonObject | undefined },
  { place, walk }: At,
): Generator<void, Growing> {
  const growing = nothing();
  for (const name of namesOf(left, right)) {
    if (isStepOver(walk)) yield;
    const one = left === undefined ? undefined : member(left, name);
    const other = right === undefined ? undefined : member(right, name);
    if (one === other) continue;
    const type = memberType(map, name);
    const there = belowField(place, name);
    if (type === undefined) {
      complain(there, 'field not declared in schema');
      continue;
    }
    const sides: Sides = { left: one, right: other };
    collect(growing, fieldElement(name), yield* changesAt(type, sides, { place: there, walk }));
  }
  return growing;
}

/** The members of one object, then those that only the other has. */
function* namesOf(left: JsonObject | undefined, right: JsonObject | undefined): Generator<string> {
  if (left !== undefined) yield* Object.keys(left);
  if (right === undefined) return;
  for (const name of Object.keys(right)) {
    if (left === undefined || member(left, name) === undefined) yield name;
  }
}

function* itemChanges(
  list: ListShape,
  sides: { readonly left: readonly JsonValue[]; readonly right: readonly JsonValue[] },
  { place, walk }: At,
): Generator<void, Growing> {
  const growing = nothing();
  const before = yield* itemsIn(list, sides.left, { place, walk });
  const after = yield* itemsIn(list, sides.right, { place, walk });
  const type = list.element.get();
  const elements = [...before.keys()];
  for (const element of after.keys()) if (!before.has(element)) elements.push(element);
  for (const element of elements) {
    if (isStepOver(walk)) yield;
    const one = before.get(element) ?? none;
    const other = after.get(element) ?? none;
    const there = below(place, element);
    const isPlain = one.length <= 1 && other.length <= 1;
    const changes = isPlain
      ? yield* changesAt(type, { left: one[0], right: other[0] }, { place: there, walk })
      : compareItems(type, { one, other }, there);
    collect(growing, element, changes);
  }
  return growing;
}

/** As `itemsByElement`. */
function* itemsIn(
  list: ListShape,
  items: readonly JsonValue[],
  { place, walk }: At,
): Generator<void, Map<PathElement, JsonValue[]>> {
  const found = new Map<PathElement, JsonValue[]>();
  for (const [index, item] of items.entries()) {
    addItem(found, { list, item, index }, place);
    if (isStepOver(walk)) yield;
  }
  return found;
}

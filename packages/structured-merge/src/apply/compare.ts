import {
  isObject,
  type JsonObject,
  type JsonValue,
  jsonEqual,
  member,
  Stride,
} from '@wheelhouse/machinery';
import {
  addNode,
  emptySet,
  type FieldNode,
  type FieldSet,
  type GrowingFieldSet,
  leafNode,
  nodeOf,
  unionNode,
  withoutReset,
} from './field-set.ts';
import { fieldElement, type PathElement } from './path-element.ts';
import {
  below,
  belowField,
  complain,
  type Place,
  rootPlace,
  scalarProblem,
  TypedError,
} from './validate-typed.ts';
import { asMember, isEmptyObject } from './value-fields.ts';
import {
  fitting,
  itemElement,
  type ListType,
  type MapType,
  memberType,
  type ValueType,
} from './value-type.ts';

/** The differences between two values of a type. The sets are disjoint. */
export interface Comparison {
  readonly removed: FieldSet;
  readonly modified: FieldSet;
  readonly added: FieldSet;
}

/** The comparison without the fields that an endpoint resets. */
export function comparisonWithoutReset(
  { removed, modified, added }: Comparison,
  reset: FieldSet | undefined,
): Comparison {
  return {
    removed: withoutReset(removed, reset),
    modified: withoutReset(modified, reset),
    added: withoutReset(added, reset),
  };
}

/** The differences at and below one place; an undefined member means none of its type. */
interface Changes {
  removed?: FieldNode | undefined;
  modified?: FieldNode | undefined;
  added?: FieldNode | undefined;
}

/** The differences below one place, by path element, under construction. */
interface GrowingChanges {
  removed: GrowingFieldSet | undefined;
  modified: GrowingFieldSet | undefined;
  added: GrowingFieldSet | undefined;
}

const noChanges = (): GrowingChanges => ({
  removed: undefined,
  modified: undefined,
  added: undefined,
});

interface Sides {
  readonly left: JsonValue | undefined;
  readonly right: JsonValue | undefined;
  /** Set if the sides have different types, both allowed by the type. */
  readonly isMixed?: true;
}

/**
 * Compares two values of a type. Throws a TypedError if one of them violates the type where they
 * differ.
 */
export function compare(type: ValueType, left: JsonValue, right: JsonValue): Comparison {
  const place = rootPlace();
  return comparisonOf(compareAt(type, { left, right }, place), place);
}

/** The differences below the root. Throws a TypedError if the walk found problems. */
function comparisonOf(changes: Changes | undefined, place: Place): Comparison {
  if (place.problems.count > 0) throw new TypedError(place.problems);
  return {
    removed: changes?.removed?.children ?? emptySet,
    modified: changes?.modified?.children ?? emptySet,
    added: changes?.added?.children ?? emptySet,
  };
}

/** The type as which a value is compared. */
type AtomKind = 'map' | 'scalar' | 'list' | undefined;

function kindOf(type: ValueType): AtomKind {
  if (type.map !== undefined) return 'map';
  if (type.scalar !== undefined) return 'scalar';
  return type.list === undefined ? undefined : 'list';
}

function compareAt(type: ValueType, sides: Sides, place: Place): Changes | undefined {
  const { left, right } = sides;
  if (left === right) return undefined;
  const leftType = fitting(type, left);
  const rightType = fitting(type, right);
  if (right === undefined) return compareKind(leftType, sides, place);
  if (left === undefined || leftType === rightType) return compareKind(rightType, sides, place);
  const mixed: Sides = { ...sides, isMixed: true };
  const leftChanges = compareKind(leftType, mixed, place);
  return joinChanges(leftChanges, compareKind(rightType, mixed, place));
}

function joinChanges(left: Changes | undefined, right: Changes | undefined): Changes | undefined {
  if (left === undefined || right === undefined) return left ?? right;
  return {
    removed: joinNodes(left.removed, right.removed),
    modified: joinNodes(left.modified, right.modified),
    added: joinNodes(left.added, right.added),
  };
}

function joinNodes(left: FieldNode | undefined, right: FieldNode | undefined) {
  return left === undefined || right === undefined ? (left ?? right) : unionNode(left, right);
}

function compareKind(type: ValueType, sides: Sides, place: Place): Changes | undefined {
  const kind = kindOf(type);
  if (kind === 'map') return compareMaps(type.map!, sides, place);
  if (kind === 'list') return compareLists(type.list!, sides, place);
  if (kind === 'scalar') {
    const leftProblem = scalarProblem(type.scalar!, sides.left, 'lhs: ');
    const rightProblem = scalarProblem(type.scalar!, sides.right, 'rhs: ');
    const problems = [leftProblem, rightProblem].filter((problem) => problem !== undefined);
    if (problems.length === 0 || (sides.isMixed === true && problems.length === 1)) {
      return leafChanges(sides);
    }
    complain(place, ...problems);
    return ownChanges({}, sides);
  }
  complain(place, 'schema error: invalid atom: inlined');
  return undefined;
}

/** The change of an atomic part. */
function leafChanges({ left, right }: Sides): Changes | undefined {
  if (left === undefined) return { added: leafNode };
  if (right === undefined) return { removed: leafNode };
  return jsonEqual(left, right) ? undefined : { modified: leafNode };
}

/** The changes with the part itself if it was added or removed. */
function ownChanges(changes: Changes | undefined, { left, right }: Sides): Changes | undefined {
  if (left === undefined) return { ...changes, added: asMember(changes?.added) };
  if (right === undefined) return { ...changes, removed: asMember(changes?.removed) };
  return changes;
}

function compareMaps(map: MapType, sides: Sides, place: Place): Changes | undefined {
  const left = isObject(sides.left) ? sides.left : undefined;
  const right = isObject(sides.right) ? sides.right : undefined;
  if (map.atomic || (isEmptyObject(left) && isEmptyObject(right))) return leafChanges(sides);
  const growing = noChanges();
  compareMembers(map, { left, right, growing }, place);
  return ownChanges(changesOf(growing), sides);
}

interface MapSides {
  readonly left: JsonObject | undefined;
  readonly right: JsonObject | undefined;
  readonly growing: GrowingChanges;
}

function compareMembers(map: MapType, sides: MapSides, place: Place): void {
  const { left, right, growing } = sides;
  const visit = (name: string, before: JsonValue | undefined, after: JsonValue | undefined) => {
    if (before === after) return;
    const type = memberType(map, name);
    const there = belowField(place, name);
    if (type === undefined) complain(there, 'field not declared in schema');
    else {
      const changes = compareAt(type, { left: before, right: after }, there);
      if (changes !== undefined) collect(growing, fieldElement(name), changes);
    }
  };
  if (left !== undefined) {
    for (const name of Object.keys(left)) {
      visit(name, left[name], right === undefined ? undefined : member(right, name));
    }
  }
  if (right === undefined) return;
  for (const name of Object.keys(right)) {
    if (left === undefined || member(left, name) === undefined) {
      visit(name, undefined, right[name]);
    }
  }
}

function collect(
  growing: GrowingChanges,
  element: PathElement,
  changes: Changes | undefined,
): void {
  if (changes === undefined) return;
  const { removed, modified, added } = changes;
  if (removed !== undefined) growing.removed = grown(growing.removed, element, removed);
  if (modified !== undefined) growing.modified = grown(growing.modified, element, modified);
  if (added !== undefined) growing.added = grown(growing.added, element, added);
}

function grown(
  set: GrowingFieldSet | undefined,
  element: PathElement,
  node: FieldNode,
): GrowingFieldSet {
  const growing = set ?? new Map<PathElement, FieldNode>();
  addNode(growing, element, node);
  return growing;
}

function changesOf({ removed, modified, added }: GrowingChanges): Changes | undefined {
  if (removed === undefined && modified === undefined && added === undefined) return undefined;
  return {
    removed: nodeOf(false, removed),
    modified: nodeOf(false, modified),
    added: nodeOf(false, added),
  };
}

function compareLists(list: ListType, sides: Sides, place: Place): Changes | undefined {
  const left = Array.isArray(sides.left) ? sides.left : [];
  const right = Array.isArray(sides.right) ? sides.right : [];
  if (list.atomic || (left.length === 0 && right.length === 0)) return leafChanges(sides);
  const growing = noChanges();
  const before = itemsByElement(list, left, place);
  const after = itemsByElement(list, right, place);
  const type = list.element.get();
  for (const element of elementsOf(before, after)) {
    const leftItems = before.get(element) ?? noItems;
    const rightItems = after.get(element) ?? noItems;
    const items: ItemSides = { leftItems, rightItems };
    collect(growing, element, compareItems(type, items, below(place, element)));
  }
  return ownChanges(changesOf(growing), sides);
}

const noItems: readonly JsonValue[] = [];

type ItemsByElement = Map<PathElement, JsonValue[]>;

/** The path elements of the left items, then those that only the right items have. */
const elementsOf = (before: ItemsByElement, after: ItemsByElement): readonly PathElement[] => [
  ...new Set([...before.keys(), ...after.keys()]),
];

function itemsByElement(list: ListType, items: readonly JsonValue[], place: Place): ItemsByElement {
  const byElement: ItemsByElement = new Map();
  for (const [index, item] of items.entries()) addItem(byElement, { list, item, index }, place);
  return byElement;
}

/** Groups an item with those of the same path element, or reports that it has none. */
function addItem(
  byElement: ItemsByElement,
  { list, item, index }: { list: ListType; item: JsonValue; index: number },
  place: Place,
): void {
  const element = itemElement(list, item);
  if (typeof element !== 'string') {
    complain(place, `element ${index}: ${element.problem}`);
    return;
  }
  const items = byElement.get(element);
  if (items === undefined) byElement.set(element, [item]);
  else items.push(item);
}

/**
 * The items of both sides with the same path element: at most one per side, unless a stored object
 * contains duplicates.
 */
interface ItemSides {
  readonly leftItems: readonly JsonValue[];
  readonly rightItems: readonly JsonValue[];
}

function compareItems(
  type: ValueType,
  { leftItems, rightItems }: ItemSides,
  place: Place,
): Changes | undefined {
  const [left] = leftItems;
  const [right] = rightItems;
  if (leftItems.length <= 1 && rightItems.length <= 1) {
    return compareAt(type, { left, right }, place);
  }
  if (leftItems.length >= 2 && rightItems.length >= 2) {
    return jsonEqual([...leftItems], [...rightItems]) ? undefined : { modified: leafNode };
  }
  // Duplicates are owned as one leaf; the content of a single item is added or removed with it.
  if (leftItems.length >= 2) {
    const addedItem =
      right === undefined ? undefined : compareAt(type, { left: undefined, right }, place);
    return { ...addedItem, removed: asMember(addedItem?.removed) };
  }
  const removedItem =
    left === undefined ? undefined : compareAt(type, { left, right: undefined }, place);
  return { ...removedItem, added: asMember(removedItem?.added) };
}

/** Number of values that are compared between two pauses, about a millisecond of work. */
const valuesPerStep = 250;

/**
 * `compare` in steps, for large objects (TRUST-2). Every write of a small object compares it, which
 * takes longer in steps, so both forms exist; they share what handles one place.
 */
export function* compareSteps(
  type: ValueType,
  left: JsonValue,
  right: JsonValue,
): Generator<void, Comparison> {
  const place = rootPlace();
  const changes = yield* compareAtSteps(
    type,
    { left, right },
    { place, stride: new Stride(valuesPerStep) },
  );
  return comparisonOf(changes, place);
}

/** The state of a walk in steps. */
interface Walk {
  readonly place: Place;
  readonly stride: Stride;
}

const isContainer = (value: JsonValue | undefined) => typeof value === 'object' && value !== null;

/** `compareAt` in steps. */
function* compareAtSteps(
  type: ValueType,
  sides: Sides,
  at: Walk,
): Generator<void, Changes | undefined> {
  const { left, right } = sides;
  if (!isContainer(left) && !isContainer(right)) return compareAt(type, sides, at.place);
  if (left === right) return undefined;
  const leftType = fitting(type, left);
  const rightType = fitting(type, right);
  if (right === undefined) return yield* compareKindSteps(leftType, sides, at);
  if (left === undefined || leftType === rightType) {
    return yield* compareKindSteps(rightType, sides, at);
  }
  const mixed: Sides = { ...sides, isMixed: true };
  const leftChanges = yield* compareKindSteps(leftType, mixed, at);
  return joinChanges(leftChanges, yield* compareKindSteps(rightType, mixed, at));
}

/** `compareKind` in steps. */
function* compareKindSteps(
  type: ValueType,
  sides: Sides,
  at: Walk,
): Generator<void, Changes | undefined> {
  const kind = kindOf(type);
  const { map, list } = type;
  if (kind === 'map' && map !== undefined && !map.atomic) {
    const left = isObject(sides.left) ? sides.left : undefined;
    const right = isObject(sides.right) ? sides.right : undefined;
    if (isEmptyObject(left) && isEmptyObject(right)) return compareKind(type, sides, at.place);
    return ownChanges(changesOf(yield* memberChangesSteps(map, { left, right }, at)), sides);
  }
  if (kind === 'list' && list !== undefined && !list.atomic) {
    const left = Array.isArray(sides.left) ? sides.left : [];
    const right = Array.isArray(sides.right) ? sides.right : [];
    if (left.length > 0 || right.length > 0) {
      return ownChanges(changesOf(yield* itemChangesSteps(list, { left, right }, at)), sides);
    }
  }
  return compareKind(type, sides, at.place);
}

function* memberChangesSteps(
  map: MapType,
  {
    left,
    right,
  }: { readonly left: JsonObject | undefined; readonly right: JsonObject | undefined },
  { place, stride }: Walk,
): Generator<void, GrowingChanges> {
  const growing = noChanges();
  for (const name of namesOf(left, right)) {
    stride.count();
    if (stride.isOver) yield;
    const before = left === undefined ? undefined : member(left, name);
    const after = right === undefined ? undefined : member(right, name);
    if (before === after) continue;
    const type = memberType(map, name);
    const there = belowField(place, name);
    if (type === undefined) {
      complain(there, 'field not declared in schema');
      continue;
    }
    const sides: Sides = { left: before, right: after };
    collect(
      growing,
      fieldElement(name),
      yield* compareAtSteps(type, sides, { place: there, stride }),
    );
  }
  return growing;
}

/** The names of the left object's members, then those that only the right object has. */
function* namesOf(left: JsonObject | undefined, right: JsonObject | undefined): Generator<string> {
  if (left !== undefined) yield* Object.keys(left);
  if (right === undefined) return;
  for (const name of Object.keys(right)) {
    if (left === undefined || member(left, name) === undefined) yield name;
  }
}

function* itemChangesSteps(
  list: ListType,
  { left, right }: { readonly left: readonly JsonValue[]; readonly right: readonly JsonValue[] },
  { place, stride }: Walk,
): Generator<void, GrowingChanges> {
  const growing = noChanges();
  const before = yield* itemsByElementSteps(list, left, { place, stride });
  const after = yield* itemsByElementSteps(list, right, { place, stride });
  const type = list.element.get();
  for (const element of elementsOf(before, after)) {
    stride.count();
    if (stride.isOver) yield;
    const leftItems = before.get(element) ?? noItems;
    const rightItems = after.get(element) ?? noItems;
    const there = below(place, element);
    const areUnique = leftItems.length <= 1 && rightItems.length <= 1;
    const sides: Sides = { left: leftItems[0], right: rightItems[0] };
    const changes = areUnique
      ? yield* compareAtSteps(type, sides, { place: there, stride })
      : compareItems(type, { leftItems, rightItems }, there);
    collect(growing, element, changes);
  }
  return growing;
}

/** `itemsByElement` in steps. */
function* itemsByElementSteps(
  list: ListType,
  items: readonly JsonValue[],
  { place, stride }: Walk,
): Generator<void, ItemsByElement> {
  const byElement: ItemsByElement = new Map();
  for (const [index, item] of items.entries()) {
    addItem(byElement, { list, item, index }, place);
    stride.count();
    if (stride.isOver) yield;
  }
  return byElement;
}

import {
  isObject,
  type JsonObject,
  type JsonValue,
  Stride,
  setMember,
} from '@wheelhouse/machinery';
import {
  emptySet,
  type FieldNode,
  type FieldSet,
  type GrowingFieldSet,
  leafNode,
  nodeOf,
} from './field-set.ts';
import { fieldElement, fieldNameOf, type PathElement } from './path-element.ts';
import {
  fitting,
  itemElement,
  type ListType,
  type MapType,
  memberType,
  type ValueType,
} from './value-type.ts';

/**
 * The paths in a value: its scalars, atomic parts, list items, undeclared members of maps, and
 * members that are null or `{}`. The value must be valid for its type (`validateTyped`).
 */
export function toFieldSet(type: ValueType, value: JsonValue): FieldSet {
  return nodeFor(type, value)?.children ?? emptySet;
}

/** `toFieldSet` in steps, for large values. */
export function* toFieldSetSteps(type: ValueType, value: JsonValue): Generator<void, FieldSet> {
  const stride = new Stride();
  if (stride.weigh(value) === 'light') return toFieldSet(type, value);
  const node = yield* nodeForSteps(type, value, stride);
  return node?.children ?? emptySet;
}

function* nodeForSteps(
  type: ValueType,
  value: JsonValue,
  stride: Stride,
): Generator<void, FieldNode | undefined> {
  const { map, scalar, list } = fitting(type, value);
  if (map !== undefined && !map.atomic && isObject(value)) {
    const set: GrowingFieldSet = new Map();
    for (const name of Object.keys(value)) {
      const part = value[name];
      const inner = memberType(map, name);
      if (part === undefined || inner === undefined) continue;
      const isLight = stride.weigh(part) === 'light';
      const below = isLight ? nodeFor(inner, part) : yield* nodeForSteps(inner, part, stride);
      addMember(set, map, { name, value: part, below });
      if (stride.isOver) yield;
    }
    return nodeOf(false, set);
  }
  const hasItems = map === undefined && scalar === undefined && list?.atomic === false;
  if (!hasItems || !Array.isArray(value)) return nodeFor(type, value);
  const set: GrowingFieldSet = new Map();
  const inner = list.element.get();
  for (const item of value) {
    const element = itemElement(list, item);
    if (typeof element !== 'string') continue;
    const isLight = stride.weigh(item) === 'light';
    const below = isLight ? nodeFor(inner, item) : yield* nodeForSteps(inner, item, stride);
    set.set(element, set.has(element) ? leafNode : asMember(below));
    if (stride.isOver) yield;
  }
  return nodeOf(false, set);
}

function nodeFor(type: ValueType, value: JsonValue): FieldNode | undefined {
  const { map, scalar, list } = fitting(type, value);
  if (map !== undefined) {
    if (map.atomic) return leafNode;
    return isObject(value) ? nodeOf(false, membersSet(map, value)) : undefined;
  }
  if (scalar !== undefined) return leafNode;
  if (list === undefined) return undefined;
  if (list.atomic) return leafNode;
  return Array.isArray(value) ? nodeOf(false, itemsSet(list, value)) : undefined;
}

function membersSet(map: MapType, object: JsonObject): FieldSet {
  const set: GrowingFieldSet = new Map();
  for (const name of Object.keys(object)) {
    const value = object[name];
    const type = memberType(map, name);
    if (value === undefined || type === undefined) continue;
    addMember(set, map, { name, value, below: nodeFor(type, value) });
  }
  return set;
}

function addMember(
  set: GrowingFieldSet,
  map: MapType,
  {
    name,
    value,
    below,
  }: { readonly name: string; readonly value: JsonValue; readonly below: FieldNode | undefined },
): void {
  const isEmpty = value === null || (isObject(value) && isEmptyObject(value));
  const node = isEmpty || !map.fields.has(name) ? asMember(below) : below;
  if (node !== undefined) set.set(fieldElement(name), node);
}

/** Whether an object has no members; one that is undefined counts as absent. */
export function isEmptyObject(object: JsonObject | undefined): boolean {
  if (object === undefined) return true;
  for (const name in object) if (object[name] !== undefined) return false;
  return true;
}

/** The node with its own path in the set. */
export function asMember(node: FieldNode | undefined): FieldNode {
  if (node === undefined) return leafNode;
  return node.member ? node : { member: true, children: node.children };
}

/** The set of a list's items. Duplicate items occur once, without their content. */
function itemsSet(list: ListType, items: readonly JsonValue[]): FieldSet {
  const set: GrowingFieldSet = new Map();
  const type = list.element.get();
  for (const item of items) {
    const element = itemElement(list, item);
    if (typeof element !== 'string') continue;
    set.set(element, set.has(element) ? leafNode : asMember(nodeFor(type, item)));
  }
  return set;
}

/**
 * The set plus every declared field on the way to one of its paths, in steps: `spec.replicas` adds
 * `spec`. Members of maps and list items on the way are not added.
 */
export function* withNamedFields(
  set: FieldSet,
  type: ValueType | undefined,
  stride = new Stride(),
): Generator<void, FieldSet> {
  const result: GrowingFieldSet = new Map();
  for (const [element, node] of set) {
    stride.count();
    if (stride.isOver) yield;
    if (node.children === undefined) {
      result.set(element, node);
      continue;
    }
    const name = fieldNameOf(element);
    let below: ValueType | undefined;
    let named = false;
    if (name !== undefined && type?.map !== undefined) {
      below = memberType(type.map, name);
      named = type.map.fields.has(name);
    } else if (element.startsWith('k:')) {
      below = type?.list?.element.get();
    }
    const children = yield* withNamedFields(node.children, below, stride);
    result.set(element, nodeOf(node.member || named, children)!);
  }
  return result;
}

/**
 * The value without the members and list items in the set, in steps. A part that loses all its
 * content becomes null; atomic parts below a path of the set are removed as a whole.
 */
export function* removeItemsSteps(
  type: ValueType,
  value: JsonValue,
  paths: FieldSet,
  stride = new Stride(),
): Generator<void, JsonValue> {
  const { map, scalar, list } = fitting(type, value);
  if (map !== undefined) {
    if (map.atomic || !isObject(value)) return null;
    const kept: JsonObject = {};
    let count = 0;
    for (const name of Object.keys(value)) {
      const part = value[name];
      if (part === undefined) continue;
      const item = { type: memberType(map, name), value: part, element: fieldElement(name) };
      const remainder = yield* remainderSteps(item, { paths, stride });
      if (remainder === undefined) continue;
      setMember(kept, name, remainder);
      count += 1;
    }
    return count > 0 ? kept : null;
  }
  if (scalar !== undefined) return value;
  if (list === undefined || list.atomic || !Array.isArray(value)) return null;
  const inner = list.element.get();
  const kept: JsonValue[] = [];
  for (const item of value) {
    const element = itemElement(list, item);
    if (typeof element !== 'string') continue;
    const remainder = yield* remainderSteps(
      { type: inner, value: item, element },
      { paths, stride },
    );
    if (remainder !== undefined) kept.push(remainder);
  }
  return kept.length > 0 ? kept : null;
}

/** A member or list item, and its type if its container declares one. */
interface Item {
  readonly type: ValueType | undefined;
  readonly value: JsonValue;
  readonly element: PathElement;
}

/** The remainder of a member or list item; undefined if it is removed. */
function* remainderSteps(
  { type, value, element }: Item,
  { paths, stride }: { readonly paths: FieldSet; readonly stride: Stride },
): Generator<void, JsonValue | undefined> {
  stride.count();
  if (stride.isOver) yield;
  const node = paths.get(element);
  if (node?.member === true) return undefined;
  if (type === undefined || node?.children === undefined) return value;
  return yield* removeItemsSteps(type, value, node.children, stride);
}

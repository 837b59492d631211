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
import { fieldElement, fieldNameOf } from './path-element.ts';
import {
  fitting,
  itemElement,
  type ListShape,
  type MapShape,
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
  const isItems = map === undefined && scalar === undefined && list?.atomic === false;
  if (!isItems || !Array.isArray(value)) return nodeFor(type, value);
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

function membersSet(map: MapShape, object: JsonObject): FieldSet {
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
  map: MapShape,
  of: {
    readonly name: string;
    readonly value: JsonValue;
    readonly below: FieldNode | undefined;
  },
): void {
  const isMember = isEmptyMember(of.value) || !map.fields.has(of.name);
  const node = isMember ? asMember(of.below) : of.below;
  if (node !== undefined) set.set(fieldElement(of.name), node);
}

/** Whether a value is null or an empty object. */
function isEmptyMember(value: JsonValue): boolean {
  if (value === null) return true;
  if (!isObject(value)) return false;
  for (const name in value) if (value[name] !== undefined) return false;
  return true;
}

/** The node with its own path in the set. */
export function asMember(node: FieldNode | undefined): FieldNode {
  if (node === undefined) return leafNode;
  return node.member ? node : { member: true, children: node.children };
}

/** Duplicate items occur once, without their content. */
function itemsSet(list: ListShape, items: readonly JsonValue[]): FieldSet {
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
 * The set plus every declared field on the way to one of its paths: `spec.replicas` adds `spec`.
 * Members of maps and list items on the way are not added.
 */
export function withNamedFields(set: FieldSet, type: ValueType | undefined): FieldSet {
  const result: GrowingFieldSet = new Map();
  for (const [element, node] of set) {
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
    const children = withNamedFields(node.children, below);
    result.set(element, nodeOf(node.member || named, children)!);
  }
  return result;
}

type Mode = 'remove' | 'extract';

/**
 * The value without the members and list items in the set. A part that loses all its content
 * becomes null; atomic parts below a path of the set are removed as a whole.
 */
function removeItems(type: ValueType, value: JsonValue, paths: FieldSet): JsonValue {
  return walk(type, value, { paths, mode: 'remove' });
}

/** `removeItems` in steps, for large values. */
export function* removeItemsSteps(
  type: ValueType,
  value: JsonValue,
  paths: FieldSet,
): Generator<void, JsonValue> {
  const stride = new Stride();
  if (stride.weigh(value) === 'light') return removeItems(type, value, paths);
  return yield* walkSteps(type, value, { paths, stride });
}

function* walkSteps(
  type: ValueType,
  value: JsonValue,
  at: { readonly paths: FieldSet; readonly stride: Stride },
): Generator<void, JsonValue> {
  const { paths } = at;
  const { map, scalar, list } = fitting(type, value);
  const isMap = map !== undefined && !map.atomic && isObject(value);
  const isList = map === undefined && scalar === undefined && list?.atomic === false;
  if (isMap) {
    const kept: JsonObject = {};
    let count = 0;
    for (const name of Object.keys(value)) {
      const part = value[name];
      if (part === undefined) continue;
      const of = { type: memberType(map, name), value: part, element: fieldElement(name) };
      const left = yield* pickSteps(of, at);
      if (left !== undefined) setMember(kept, name, left);
      if (left !== undefined) count += 1;
    }
    return count > 0 ? kept : null;
  }
  if (!isList || !Array.isArray(value)) {
    return walk(type, value, { paths, mode: 'remove' });
  }
  const inner = list.element.get();
  const kept: JsonValue[] = [];
  for (const item of value) {
    const element = itemElement(list, item);
    if (typeof element !== 'string') continue;
    const left = yield* pickSteps({ type: inner, value: item, element }, at);
    if (left !== undefined) kept.push(left);
  }
  return kept.length > 0 ? kept : null;
}

/** `pick` in steps. */
function* pickSteps(
  of: {
    readonly type: ValueType | undefined;
    readonly value: JsonValue;
    readonly element: string;
  },
  { paths, stride }: { readonly paths: FieldSet; readonly stride: Stride },
): Generator<void, JsonValue | undefined> {
  const { type, value, element } = of;
  const isLight = stride.weigh(value) === 'light';
  if (stride.isOver) yield;
  const node = paths.get(element);
  const hasDeeperPaths = type !== undefined && node?.children !== undefined && !node.member;
  if (!isLight && hasDeeperPaths)
    return yield* walkSteps(type, value, { paths: node.children, stride });
  return pick(type, value, { picking: { paths, mode: 'remove' }, element });
}

interface Picking {
  readonly paths: FieldSet;
  readonly mode: Mode;
}

function walk(type: ValueType, value: JsonValue, picking: Picking): JsonValue {
  const { map, scalar, list } = fitting(type, value);
  if (map !== undefined) return isObject(value) ? walkMap(map, value, picking) : null;
  if (scalar !== undefined) return value;
  return list !== undefined && Array.isArray(value) ? walkList(list, value, picking) : null;
}

function walkMap(map: MapShape, object: JsonObject, picking: Picking): JsonValue {
  const names = Object.keys(object).filter((name) => object[name] !== undefined);
  if (names.length === 0) return null;
  if (map.atomic) return picking.mode === 'extract' ? object : null;
  const kept: JsonObject = {};
  let count = 0;
  for (const name of names) {
    const type = memberType(map, name);
    const value = pick(type, object[name]!, { picking, element: fieldElement(name) });
    if (value === undefined) continue;
    setMember(kept, name, value);
    count += 1;
  }
  return count > 0 ? kept : null;
}

function walkList(list: ListShape, items: readonly JsonValue[], picking: Picking): JsonValue {
  if (items.length === 0) return null;
  if (list.atomic) return picking.mode === 'extract' ? [...items] : null;
  const type = list.element.get();
  const kept: JsonValue[] = [];
  for (const item of items) {
    const element = itemElement(list, item);
    if (typeof element !== 'string') continue;
    const value = pick(type, item, { picking, element });
    if (value !== undefined) kept.push(value);
  }
  return kept.length > 0 ? kept : null;
}

/** The remainder of a member or item; undefined if it is removed. */
function pick(
  type: ValueType | undefined,
  value: JsonValue,
  { picking, element }: { picking: Picking; element: string },
): JsonValue | undefined {
  const { paths, mode } = picking;
  const node = paths.get(element);
  if (node?.member === true && mode === 'remove') return undefined;
  if (type === undefined) return mode === 'remove' ? value : undefined;
  if (node?.children !== undefined) return walk(type, value, { paths: node.children, mode });
  if (mode === 'remove') return value;
  return node === undefined ? undefined : extractLeaf(type, value);
}

/** The value of a leaf of the set: the whole value if it is atomic, otherwise only its presence. */
function extractLeaf(type: ValueType, value: JsonValue): JsonValue {
  const { map, scalar, list } = fitting(type, value);
  const whole = map?.atomic ?? (scalar !== undefined || list?.atomic === true);
  return whole ? value : walk(type, value, { paths: emptySet, mode: 'extract' });
}

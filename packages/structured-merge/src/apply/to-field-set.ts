import { isObject, type JsonObject, type JsonValue, Stride } from '@wheelhouse/machinery';
import {
  emptySet,
  type FieldNode,
  type FieldSet,
  type GrowingFieldSet,
  leafNode,
  nodeOf,
} from './field-set.ts';
import { itemElement } from './list-items.ts';
import { fieldElement } from './path-element.ts';
import {
  fitting,
  type ListShape,
  type MapShape,
  memberType,
  type ValueType,
} from './value-type.ts';

/**
 * The paths a value names: its scalars and atomic parts, its list items, members of maps that are not
 * declared, and members that are null or `{}`. The value must fit its type (`validateTyped`).
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

/** Null, or an object without members. */
function isEmptyMember(value: JsonValue): boolean {
  if (value === null) return true;
  if (!isObject(value)) return false;
  for (const name in value) if (value[name] !== undefined) return false;
  return true;
}

/** The node, its own path in the set. */
export function asMember(node: FieldNode | undefined): FieldNode {
  if (node === undefined) return leafNode;
  return node.member ? node : { member: true, children: node.children };
}

/** Items that occur several times are named once, without what is in them. */
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

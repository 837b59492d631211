import {
  compareText,
  isObject,
  type JsonObject,
  type JsonValue,
  member,
} from '@wheelhouse/machinery';
import { resolved, type Schema } from '@wheelhouse/schema';
import { encodePlainString, encodeValue, type PathElement, valueElement } from './path-element.ts';

/**
 * The part of a schema that apply needs: the types that a value may have, and how changes to each
 * type are merged. A value of unknown structure may have all three types; the actual value
 * decides.
 */
export interface ValueType {
  readonly map?: MapType;
  readonly scalar?: ScalarType;
  readonly list?: ListType;
}

/** The type of a scalar; an untyped one may be of any type. */
export type ScalarType = 'numeric' | 'string' | 'boolean' | 'untyped';

/** How maps and structs are merged: as a whole if atomic, otherwise member by member. */
export interface MapType {
  /** Declared members. */
  readonly fields: ReadonlyMap<string, FieldType>;
  /** Type of all other members; undefined if there are none. */
  readonly element: LazyType | undefined;
  readonly atomic: boolean;
  /**
   * Whether the map declares no members and allows any value in them. Ownership of what is below it
   * is never reconciled with a changed schema.
   */
  readonly deduced: boolean;
}

interface FieldType {
  readonly type: LazyType;
  /** Default of an absent key of a list map. */
  readonly default: JsonValue | undefined;
}

/** How lists are merged: as a whole, as a set, or by the keys of their items (MF-5). */
export interface ListType {
  readonly element: LazyType;
  /** A list that is neither atomic nor has keys is a set. */
  readonly atomic: boolean;
  readonly keys: readonly string[];
  /** The keys in the order of a path element, each with its encoded prefix. */
  readonly sortedKeys: readonly KeyPrefix[];
}

interface KeyPrefix {
  readonly name: string;
  /** `"port":` */
  readonly prefix: string;
}

/** A type that is compiled when it is first needed, because schemas may be recursive. */
interface LazyType {
  get(): ValueType;
}

/** Untyped values that are atomic at every depth. */
const untypedAtomic: ValueType = {
  scalar: 'untyped',
  list: { element: lazily(() => untypedAtomic), atomic: true, keys: [], sortedKeys: [] },
  map: {
    fields: new Map(),
    element: lazily(() => untypedAtomic),
    atomic: true,
    deduced: false,
  },
};

/**
 * Untyped values that are merged by their actual type: objects by member, lists and scalars as a
 * whole (MF-7).
 */
const deducedType: ValueType = {
  scalar: 'untyped',
  list: { element: lazily(() => untypedAtomic), atomic: true, keys: [], sortedKeys: [] },
  map: {
    fields: new Map(),
    element: lazily(() => deducedType),
    atomic: false,
    deduced: true,
  },
};

const resources = new WeakMap<Schema, ValueType>();

/**
 * The type of the objects of a kind. Custom kinds need not declare apiVersion, kind, and metadata,
 * and cannot restrict the structure of metadata.
 */
export function resourceType(schema: Schema, metadataSchema: Schema): ValueType {
  const at = resolved(schema);
  if (at.typed === true) return typeOf(at);
  const cachedType = resources.get(at);
  if (cachedType !== undefined) return cachedType;
  const metadata = lazily(() => typeOf(metadataSchema));
  const own = compile(at, { preserve: false, metadata });
  const fields = new Map(own.map?.fields);
  addResourceFields(fields, metadata);
  const map = { ...(own.map ?? deducedType.map!), fields, deduced: false };
  // An object of a kind that declares no fields has those of every resource, and no others.
  const declaresNone = at.type === 'object' && map.element === lazyDeduced;
  const isOpen = at.preserveUnknownFields === true || at.additionalProperties !== undefined;
  const type: ValueType = { map: declaresNone && !isOpen ? { ...map, element: undefined } : map };
  resources.set(at, type);
  return type;
}

function lazily(make: () => ValueType): LazyType {
  let type: ValueType | undefined;
  return {
    get() {
      type ??= make();
      return type;
    },
  };
}

/** The compiled types of a schema. */
interface Compiled {
  plain?: ValueType;
  /** For a schema below one that preserves unknown fields, which applies to everything below. */
  preserving?: ValueType;
}

const compiled = new WeakMap<Schema, Compiled>();

/** Properties that a schema inherits from its ancestors. */
interface Inherited {
  readonly preserve: boolean;
  /** Type of the metadata of embedded resources. */
  readonly metadata: LazyType;
}

/** The type of values of a built-in schema, compiled once. */
function typeOf(schema: Schema): ValueType {
  return compile(schema, { preserve: false, metadata: lazyDeduced });
}

function compile(schema: Schema, { preserve: inherited, metadata }: Inherited): ValueType {
  const at = resolved(schema);
  const preserve = inherited || at.preserveUnknownFields === true;
  let cachedTypes = compiled.get(at);
  if (cachedTypes === undefined) {
    cachedTypes = {};
    compiled.set(at, cachedTypes);
  }
  const variant = preserve ? 'preserving' : 'plain';
  const type = cachedTypes[variant] ?? build(at, { preserve, metadata });
  cachedTypes[variant] = type;
  return type;
}

function build(schema: Schema, inherited: Inherited): ValueType {
  switch (schema.type) {
    case 'object':
      return { map: mapType(schema, inherited) };
    case 'array':
      return { list: listType(schema, inherited) };
    case 'integer':
    case 'number':
      return { scalar: 'numeric' };
    case 'boolean':
      return { scalar: 'boolean' };
    case 'string':
      return { scalar: isPlainString(schema) ? 'string' : 'untyped' };
    default:
      return untypedType(schema, inherited);
  }
}

/** Whether kube-apiserver requires strings for a schema, unlike for times and quantities. */
function isPlainString(schema: Schema): boolean {
  return schema.format === undefined || schema.format === '' || schema.format === 'byte';
}

function untypedType(schema: Schema, inherited: Inherited): ValueType {
  if (schema.mapType === 'atomic' && schema.typed === true) return untypedAtomic;
  return { scalar: 'untyped', list: listType(schema, inherited), map: mapType(schema, inherited) };
}

const lazyDeduced = lazily(() => deducedType);
const lazyUntyped = lazily(() => untypedAtomic);

function mapType(schema: Schema, inherited: Inherited): MapType {
  const fields = new Map<string, FieldType>();
  for (const [name, property] of schema.properties ?? []) {
    const field = property.schema;
    const isAlwaysWritten = property.omitEmpty !== true && property.pointer !== true;
    fields.set(name, {
      type: lazily(() => compile(field, inherited)),
      get default() {
        return keyDefault(field, isAlwaysWritten);
      },
    });
  }
  if (schema.embeddedResource === true) addResourceFields(fields, inherited.metadata);
  const element = elementOf(schema, inherited);
  return {
    fields,
    element,
    atomic: schema.mapType === 'atomic',
    get deduced() {
      return fields.size === 0 && element !== undefined && hasAnyValue(schema, element);
    },
  };
}

/** Whether the members of a map may be any scalar, which is decided by the map's own schema. */
function hasAnyValue({ additionalProperties }: Schema, element: LazyType): boolean {
  if (element === lazyDeduced) return true;
  // Built-in types of any scalar, such as quantities, are named, and kube-apiserver looks no
  // further than a name.
  if (additionalProperties === undefined || resolved(additionalProperties).typed === true) {
    return false;
  }
  return element.get().scalar === 'untyped';
}

/** Adds the fields that every resource has, regardless of a custom kind's declaration. */
function addResourceFields(fields: Map<string, FieldType>, metadata: LazyType): void {
  const text: FieldType = { type: lazily(() => ({ scalar: 'string' })), default: undefined };
  fields.set('apiVersion', text).set('kind', text);
  fields.set('metadata', { type: metadata, default: undefined });
}

function elementOf(schema: Schema, inherited: Inherited): LazyType | undefined {
  const { additionalProperties } = schema;
  if (additionalProperties !== undefined) {
    if (resolved(additionalProperties).type === undefined && isBare(additionalProperties)) {
      return lazyDeduced;
    }
    return lazily(() => compile(additionalProperties, inherited));
  }
  return inherited.preserve || (schema.properties?.size ?? 0) === 0 ? lazyDeduced : undefined;
}

/** `additionalProperties: true`. */
const isBare = (schema: Schema) => Object.keys(resolved(schema)).length === 0;

/**
 * The default of a key of list maps. Built-in fields that are always serialized default to their
 * zero values.
 */
function keyDefault(schema: Schema, isAlwaysWritten: boolean): JsonValue | undefined {
  const at = resolved(schema);
  if (at.default !== undefined) return at.default;
  if (schema.default !== undefined) return schema.default;
  if (at.typed !== true || !isAlwaysWritten) return undefined;
  if (at.type === 'string') return at.format === undefined ? '' : undefined;
  if (at.type === 'integer' || at.type === 'number') return 0;
  return at.type === 'boolean' ? false : undefined;
}

function listType(schema: Schema, inherited: Inherited): ListType {
  const { items } = schema;
  const keys = schema.listType === 'map' ? (schema.listMapKeys ?? []) : [];
  return {
    element: items === undefined ? lazyUntyped : lazily(() => compile(items, inherited)),
    atomic: schema.listType !== 'set' && schema.listType !== 'map',
    keys,
    sortedKeys: [...keys]
      .sort(compareText)
      .map((name) => ({ name, prefix: `${encodePlainString(name)}:` })),
  };
}

/**
 * The alternatives of a type that match a value: one if the type allows the value; otherwise all
 * alternatives (for null and for an invalid value, which the walker then reports).
 */
export function fitting(type: ValueType, value: JsonValue | undefined): ValueType {
  if (value === null || value === undefined) return type;
  if (Array.isArray(value)) return onlyList(type);
  if (isObject(value)) return onlyMap(type);
  return onlyScalar(type);
}

const narrowed = new WeakMap<ValueType, Record<'map' | 'scalar' | 'list', ValueType>>();

function narrowings(type: ValueType): Record<'map' | 'scalar' | 'list', ValueType> {
  let narrowedTypes = narrowed.get(type);
  if (narrowedTypes === undefined) {
    narrowedTypes = {
      map: type.map === undefined ? type : { map: type.map },
      scalar: type.scalar === undefined ? type : { scalar: type.scalar },
      list: type.list === undefined ? type : { list: type.list },
    };
    narrowed.set(type, narrowedTypes);
  }
  return narrowedTypes;
}

/** Whether a type has exactly one alternative. */
const isSingle = (type: ValueType) =>
  Number(type.map !== undefined) +
    Number(type.scalar !== undefined) +
    Number(type.list !== undefined) ===
  1;

function onlyMap(type: ValueType): ValueType {
  return type.map === undefined || isSingle(type) ? type : narrowings(type).map;
}

function onlyList(type: ValueType): ValueType {
  return type.list === undefined || isSingle(type) ? type : narrowings(type).list;
}

function onlyScalar(type: ValueType): ValueType {
  return type.scalar === undefined || isSingle(type) ? type : narrowings(type).scalar;
}

/** The type of a member; undefined if the map cannot have it. */
export function memberType(map: MapType, name: string): ValueType | undefined {
  return (map.fields.get(name)?.type ?? map.element)?.get();
}

/** The path element of a list item, or the reason that it has none. */
type ItemElement = PathElement | { readonly problem: string };

/** The path element of an item of a set or list map. */
export function itemElement(list: ListType, item: JsonValue | undefined): ItemElement {
  if (list.keys.length > 0) return keyedElement(list, item ?? null);
  return setElement(item ?? null);
}

function setElement(item: JsonValue): ItemElement {
  if (isObject(item)) {
    return { problem: "associative list without keys has an element that's a map type" };
  }
  if (Array.isArray(item)) {
    return { problem: 'not supported: associative list with lists as elements' };
  }
  if (item === null) {
    return { problem: "associative list without keys has an element that's an explicit null" };
  }
  return valueElement(item);
}

function keyedElement(list: ListType, item: JsonValue): ItemElement {
  if (item === null) return { problem: 'associative list with keys may not have a null element' };
  if (!isObject(item)) {
    return { problem: 'associative list with keys may not have non-map elements' };
  }
  const cachedElements = elementsOf(list);
  const cachedElement = cachedElements.get(item);
  if (cachedElement !== undefined) return cachedElement;
  const element = encodeKeys(list, item);
  if (typeof element === 'string') cachedElements.set(item, element);
  return element;
}

/**
 * Path elements of the items that the current operation has visited: each of its passes visits the
 * same ones. Items do not change during an operation but may between operations, so the cache is
 * cleared at the start of each.
 */
let elements = new Map<ListType, WeakMap<JsonObject, PathElement>>();

/** Clears the cache of path elements. Must be called at the start of an operation. */
export function forgetElements(): void {
  if (elements.size > 0) elements = new Map();
}

function elementsOf(list: ListType): WeakMap<JsonObject, PathElement> {
  let cachedElements = elements.get(list);
  if (cachedElements === undefined) {
    cachedElements = new WeakMap();
    elements.set(list, cachedElements);
  }
  return cachedElements;
}

function encodeKeys(list: ListType, item: JsonObject): ItemElement {
  let text = 'k:{';
  for (const { name, prefix } of list.sortedKeys) {
    const keyValue = member(item, name);
    const value = keyValue === undefined ? defaultOf(list, name) : keyValue;
    if (value === undefined) return { problem: missingKeyProblem(list, item) };
    if (text.length > 3) text += ',';
    text += prefix + encodeValue(value);
  }
  return `${text}}`;
}

/** The default of an absent key; undefined if it has none. */
function defaultOf(list: ListType, name: string): JsonValue | undefined {
  return list.element.get().map?.fields.get(name)?.default ?? undefined;
}

/** The error for an item that lacks a key; it names the first one in order of declaration. */
function missingKeyProblem(list: ListType, item: JsonObject): string {
  const absent = list.keys.find(
    (name) => member(item, name) === undefined && defaultOf(list, name) === undefined,
  );
  if (list.element.get().map === undefined) {
    const reason = 'associative list may not have non-map types';
    return `couldn't find default value for ${absent}: ${reason}`;
  }
  return (
    `associative list with keys has an element that omits key field ${JSON.stringify(absent)}` +
    " (and doesn't have default value)"
  );
}

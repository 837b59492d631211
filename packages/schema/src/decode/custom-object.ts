import {
  cloneJson,
  isObject,
  type JsonArray,
  type JsonObject,
  type JsonValue,
  member,
  setMember,
} from '@wheelhouse/machinery';
import { childPath, FoundPaths, indexPath } from '../field-paths.ts';
import { isBooleanSchema, type Property, resolved, type Schema } from '../schema.ts';
import { decodeTyped } from './decode-typed.ts';
import { coerceEmbedded, type EmbeddedRules, wellTyped } from './embedded.ts';

/** Removes unknown members in place and records their paths. */
type Pruner = (value: JsonValue, path: string, removed: FoundPaths) => void;

const pruners = new WeakMap<Schema, Pruner>();
const roots = new WeakMap<Schema, (object: JsonObject) => FoundPaths>();

/**
 * Prunes custom objects (FV-4): removes unspecified members in place and returns their paths,
 * sorted, as field validation reports them (`spec.list[0].y`). `apiVersion`, `kind`, and `metadata`
 * are kept at the root and in embedded resources; the content of metadata is pruned by its typed
 * schema. Below `preserveUnknownFields` only members with a schema are visited.
 */
export function prune(schema: Schema): (object: JsonObject) => FoundPaths {
  const cachedPruner = roots.get(schema);
  if (cachedPruner !== undefined) return cachedPruner;
  const pruner = build({ ...resolved(schema), embeddedResource: true });
  const root = (object: JsonObject): FoundPaths => {
    const removed = new FoundPaths();
    pruner(object, '', removed);
    return removed.count > 1 ? removed.sort() : removed;
  };
  roots.set(schema, root);
  return root;
}

/** Prunes a value that is not the root of a resource, in place. Used for defaults. */
export function pruneValue(schema: Schema, value: JsonValue): void {
  prunerOf(resolved(schema))(value, '', new FoundPaths());
}

const isMetaField = (name: string) =>
  name === 'apiVersion' || name === 'kind' || name === 'metadata';

function prunerOf(schema: Schema): Pruner {
  if (isBooleanSchema(schema)) return pruneUnknown;
  const cachedPruner = pruners.get(schema);
  if (cachedPruner !== undefined) return cachedPruner;
  const pruner = build(schema);
  pruners.set(schema, pruner);
  return pruner;
}

function build(schema: Schema): Pruner {
  return schema.preserveUnknownFields === true ? keeper(schema) : remover(schema);
}

interface Parts {
  readonly embedded: boolean;
  readonly properties: ReadonlyMap<string, Pruner>;
  readonly additional: Pruner | undefined;
}

function partsOf(schema: Schema): Parts {
  const properties = new Map<string, Pruner>();
  for (const [name, property] of schema.properties ?? new Map<string, Property>()) {
    properties.set(name, prunerOf(resolved(property.schema)));
  }
  const additional = schema.additionalProperties;
  return {
    embedded: schema.embeddedResource === true,
    properties,
    additional: additional === undefined ? undefined : prunerOf(resolved(additional)),
  };
}

function remover(schema: Schema): Pruner {
  const { embedded, properties, additional } = partsOf(schema);
  const items = schema.items === undefined ? pruneUnknown : prunerOf(resolved(schema.items));
  return (value, path, removed) => {
    if (typeof value !== 'object' || value === null) return;
    if (Array.isArray(value)) {
      pruneItems(items, { list: value, path, removed });
      return;
    }
    for (const name of Object.keys(value)) {
      if (embedded && isMetaField(name)) continue;
      const pruner = properties.get(name) ?? additional;
      if (pruner !== undefined) {
        const child = value[name];
        if (typeof child === 'object') pruner(child, childPath(path, name), removed);
        continue;
      }
      if (path !== '' || !isMetaField(name)) removed.add(childPath(path, name));
      delete value[name];
    }
  };
}

/** Below `preserveUnknownFields`: lists pass it on to their items, objects do not. */
function keeper(schema: Schema): Pruner {
  const { embedded, properties, additional } = partsOf(schema);
  const items = schema.items === undefined ? undefined : keeper(resolved(schema.items));
  return (value, path, removed) => {
    if (Array.isArray(value)) {
      if (items !== undefined) pruneItems(items, { list: value, path, removed });
      return;
    }
    if (!isObject(value)) return;
    for (const name of Object.keys(value)) {
      if (embedded && isMetaField(name)) continue;
      const child = value[name];
      if (typeof child !== 'object' || child === null) continue;
      (properties.get(name) ?? additional)?.(child, childPath(path, name), removed);
    }
  };
}

function pruneItems(
  pruner: Pruner,
  at: { list: JsonArray; path: string; removed: FoundPaths },
): void {
  for (let index = 0; index < at.list.length; index += 1) {
    const item = at.list[index];
    if (typeof item === 'object' && item !== null) {
      pruner(item, indexPath(at.path, index), at.removed);
    }
  }
}

/**
 * Without a schema, objects lose all members and lists keep their length. Not recursive, because
 * the input determines the depth.
 */
function pruneUnknown(value: JsonValue, path: string, removed: FoundPaths): void {
  const stack: { value: JsonValue; path: string }[] = [{ value, path }];
  for (let at = stack.pop(); at !== undefined; at = stack.pop()) {
    if (Array.isArray(at.value)) {
      let index = at.value.length;
      for (const item of at.value.toReversed()) {
        index -= 1;
        stack.push({ value: item, path: indexPath(at.path, index) });
      }
    } else if (isObject(at.value)) {
      for (const name of Object.keys(at.value)) {
        removed.add(childPath(at.path, name));
        delete at.value[name];
      }
    }
  }
}

/** Removes null members and map values that are neither nullable nor defaulted, in place. */
function dropNulls(schema: Schema): (value: JsonValue) => void {
  return dropperOf(resolved(schema), anyNull);
}

/** The same, only for fields with any type, in which null would pass as a value. */
function dropUntypedNulls(schema: Schema): (value: JsonValue) => void {
  return dropperOf(resolved(schema), untypedNull);
}

type Dropper = (value: JsonValue) => void;

/** Decides which nulls to drop by their schema, and caches the compiled functions. */
interface Dropping {
  readonly of: (schema: Schema) => boolean;
  readonly made: WeakMap<Schema, Dropper>;
}

const anyNull: Dropping = { of: () => true, made: new WeakMap() };
const untypedNull: Dropping = {
  of: ({ type, intOrString }) => type === undefined && intOrString !== true,
  made: new WeakMap(),
};

function dropperOf(schema: Schema, dropping: Dropping): Dropper {
  const cachedDropper = dropping.made.get(schema);
  if (cachedDropper !== undefined) return cachedDropper;
  const dropper = buildDropper(schema, dropping);
  dropping.made.set(schema, dropper);
  return dropper;
}

interface Slot {
  readonly drop: Dropper;
  /** Whether a null must be dropped here. */
  readonly refusesNull: boolean;
}

function slotOf(schema: Schema, dropping: Dropping): Slot | undefined {
  const at = resolved(schema);
  if (isBooleanSchema(at)) return undefined;
  const isBare = at.nullable !== true && (at.default === undefined || at.default === null);
  return { drop: dropperOf(at, dropping), refusesNull: isBare && dropping.of(at) };
}

function buildDropper(schema: Schema, dropping: Dropping): Dropper {
  const slots = new Map<string, Slot>();
  for (const [name, property] of schema.properties ?? new Map<string, Property>()) {
    const slot = slotOf(property.schema, dropping);
    if (slot !== undefined) slots.set(name, slot);
  }
  const additional =
    schema.additionalProperties === undefined
      ? undefined
      : slotOf(schema.additionalProperties, dropping);
  const items = schema.items === undefined ? undefined : slotOf(schema.items, dropping);
  return (value) => {
    if (typeof value !== 'object' || value === null) return;
    if (Array.isArray(value)) {
      if (items !== undefined) for (const item of value) items.drop(item);
      return;
    }
    for (const name of Object.keys(value)) {
      const slot = slots.get(name) ?? additional;
      if (slot === undefined) continue;
      const child = member(value, name);
      if (child === null && slot.refusesNull) delete value[name];
      else if (typeof child === 'object') slot.drop(child);
    }
  };
}

/** Normalizes an object in place and returns the paths of dropped members. */
export type CustomDecoder = (object: JsonObject, options?: CustomDecoding) => FoundPaths;

export interface CustomDecoding {
  /** Keeps nulls for validation, except those of fields with any type. */
  readonly keepsNulls?: boolean;
  /** Drops members of metadata with the wrong type instead of throwing, as for stored objects. */
  readonly dropsMistyped?: boolean;
}

/**
 * Normalizes the body of a custom object in place, in kube-apiserver's order: defaults, typed
 * metadata, pruning, dropping nulls, embedded metadata. Returns the paths of unknown members.
 * Throws `DecodeError` or `EmbeddedError` for metadata of the wrong type.
 */
export function decodeCustom(schema: Schema, rules: EmbeddedRules): CustomDecoder {
  let fill: ((object: JsonObject) => void) | undefined;
  const shape = pruneCustom(schema, rules);
  return (object, options) => {
    fill ??= applyDefaults(schema);
    fill(object);
    return shape(object, options);
  };
}

/** The same for an object that already has its defaults: only drops unknown members. */
export function pruneCustom(schema: Schema, rules: EmbeddedRules): CustomDecoder {
  // Compiled on first use: there are many large definitions, most with few objects.
  let compiled: ReturnType<typeof compilePruning> | undefined;
  return (object, { keepsNulls = false, dropsMistyped = false } = {}) => {
    compiled ??= compilePruning(schema, rules);
    const { pruneObject, drop, dropUntyped, metadataOf } = compiled;
    const unknown = new FoundPaths();
    const metadataValue = object['metadata'];
    const ofMetadata = new FoundPaths();
    const decode = dropsMistyped ? wellTyped(metadataOf) : metadataOf;
    const metadata = metadataValue === undefined ? undefined : decode(metadataValue, ofMetadata);
    unknown.addUnder('metadata', ofMetadata);
    unknown.addAll(pruneObject(object));
    if (keepsNulls) dropUntyped(object);
    else drop(object);
    unknown.addAll(coerceEmbedded(schema, object, rules, { dropsMistyped }));
    if (metadata !== undefined) object['metadata'] = metadata;
    return unknown;
  };
}

const compilePruning = (schema: Schema, rules: EmbeddedRules) => ({
  pruneObject: prune(schema),
  drop: dropNulls(schema),
  dropUntyped: dropUntypedNulls(schema),
  metadataOf: decodeTyped(rules.objectMeta),
});

type Defaulter = (value: JsonValue) => void;
const defaulters = new WeakMap<Schema, Defaulter>();

/**
 * Sets absent members to their schema's defaults, in place and recursively. A null that is not
 * nullable counts as absent if there is a default. For custom kinds only: the defaults of built-in
 * kinds are code.
 */
export function applyDefaults(schema: Schema): (object: JsonValue) => void {
  return defaulterOf(resolved(schema));
}

function defaulterOf(schema: Schema): Defaulter {
  const cachedDefaulter = defaulters.get(schema);
  if (cachedDefaulter !== undefined) return cachedDefaulter;
  const defaulter = buildDefaulter(schema);
  defaulters.set(schema, defaulter);
  return defaulter;
}

interface DefaultedSlot {
  readonly fill: Defaulter;
  readonly standard: JsonValue | undefined;
  readonly nullable: boolean;
}

function defaultedSlotOf(schema: Schema): DefaultedSlot {
  const at = resolved(schema);
  return {
    fill: defaulterOf(at),
    standard: at.default ?? undefined,
    nullable: at.nullable === true,
  };
}

/** Compiles the function that sets the defaults of a schema. */
function buildDefaulter(schema: Schema): Defaulter {
  const slots = new Map<string, DefaultedSlot>();
  for (const [name, property] of schema.properties ?? new Map<string, Property>()) {
    slots.set(name, defaultedSlotOf(property.schema));
  }
  const defaulted = [...slots].filter(([, slot]) => slot.standard !== undefined);
  const { additionalProperties } = schema;
  const additional =
    additionalProperties === undefined || isBooleanSchema(resolved(additionalProperties))
      ? undefined
      : defaultedSlotOf(additionalProperties);
  const items = schema.items === undefined ? undefined : defaultedSlotOf(schema.items);
  if (slots.size === 0 && additional === undefined && items === undefined) return () => {};
  return (value) => {
    if (typeof value !== 'object' || value === null) return;
    if (Array.isArray(value)) {
      if (items !== undefined) fillItems(items, value);
      return;
    }
    for (const [name, slot] of defaulted) {
      const child = Object.hasOwn(value, name) ? value[name] : undefined;
      if (child === undefined || (child === null && !slot.nullable)) {
        setMember(value, name, cloneJson(slot.standard as JsonValue));
      }
    }
    fillMembers(value, slots, additional);
  };
}

function fillItems(items: DefaultedSlot, list: JsonValue[]): void {
  for (let index = 0; index < list.length; index += 1) {
    if (list[index] === null && !items.nullable && items.standard !== undefined) {
      list[index] = cloneJson(items.standard);
    }
    items.fill(list[index] as JsonValue);
  }
}

function fillMembers(
  object: JsonObject,
  slots: ReadonlyMap<string, DefaultedSlot>,
  additional: DefaultedSlot | undefined,
): void {
  for (const name of Object.keys(object)) {
    const slot = slots.get(name) ?? additional;
    if (slot === undefined) continue;
    const child = object[name];
    if (typeof child !== 'object') continue;
    if (child !== null) {
      slot.fill(child);
    } else if (!slots.has(name) && !slot.nullable && slot.standard !== undefined) {
      const standard = cloneJson(slot.standard);
      setMember(object, name, standard);
      slot.fill(standard);
    }
  }
}

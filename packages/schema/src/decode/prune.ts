import {
  isObject,
  type JsonArray,
  type JsonObject,
  type JsonValue,
  member,
} from '@wheelhouse/machinery';
import { FoundPaths } from '../found-paths.ts';
import { childPath, indexPath } from '../path.ts';
import { type Property, resolved, type Schema, saysNothing } from '../schema.ts';

/** Removes what the schema does not know, in place, and notes the paths. */
type Pruner = (value: JsonValue, path: string, removed: FoundPaths) => void;

const pruners = new WeakMap<Schema, Pruner>();
const roots = new WeakMap<Schema, (object: JsonObject) => FoundPaths>();

/**
 * Prunes custom objects of a schema (FV-4): removes in place what it does not specify, and gives the
 * removed paths sorted, as field validation reports them (`spec.list[0].y`). `apiVersion`, `kind`
 * and `metadata` stay at the root and in embedded resources; what is inside that metadata is the
 * typed schema's business (see `coerceMetadata`). Below `preserveUnknownFields` only members with a
 * schema of their own are looked at.
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

/** Prunes a value in place by its schema, taking it for no resource root: for defaults. */
export function pruneValue(schema: Schema, value: JsonValue): void {
  prunerOf(resolved(schema))(value, '', new FoundPaths());
}

const isMetaField = (name: string) =>
  name === 'apiVersion' || name === 'kind' || name === 'metadata';

function prunerOf(schema: Schema): Pruner {
  if (saysNothing(schema)) return pruneUnknown;
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

/** Below preserveUnknownFields: lists hand the permission on to their items, objects do not. */
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
 * Nothing is known: objects lose all members, lists keep their places. Input sets the depth, so it
 * keeps its own stack.
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
export function dropNulls(schema: Schema): (value: JsonValue) => void {
  return dropperOf(resolved(schema), anyNull);
}

/** The same, of nothing but what may be of any type: null passes for a value there. */
export function dropUntypedNulls(schema: Schema): (value: JsonValue) => void {
  return dropperOf(resolved(schema), untypedNull);
}

type Dropper = (value: JsonValue) => void;

/** Which nulls go, by what stands where they are; and the droppers made so far. */
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
  /** Null may not stay here. */
  readonly refusesNull: boolean;
}

function slotOf(schema: Schema, dropping: Dropping): Slot | undefined {
  const at = resolved(schema);
  if (saysNothing(at)) return undefined;
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

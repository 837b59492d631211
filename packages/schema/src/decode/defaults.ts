import { isObject, type JsonObject, type JsonValue, setMember } from '@wheelhouse/machinery';
import { type Property, resolved, type Schema, saysNothing } from '../schema.ts';

type Defaulter = (value: JsonValue) => void;
const defaulters = new WeakMap<Schema, Defaulter>();

/**
 * Fills absent members with their schema's defaults, in place, all the way down; a null that is not
 * nullable counts as absent where there is a default. For custom kinds: built-in ones default in
 * code of their own.
 */
export function applyDefaults(schema: Schema): (object: JsonValue) => void {
  return defaulterOf(resolved(schema));
}

/** A copy that shares nothing with the original. */
export function copyJson(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(copyJson);
  if (!isObject(value)) return value;
  const copy: JsonObject = {};
  for (const name of Object.keys(value)) {
    const child = value[name];
    if (child !== undefined) setMember(copy, name, copyJson(child));
  }
  return copy;
}

function defaulterOf(schema: Schema): Defaulter {
  const cachedDefaulter = defaulters.get(schema);
  if (cachedDefaulter !== undefined) return cachedDefaulter;
  const defaulter = build(schema);
  defaulters.set(schema, defaulter);
  return defaulter;
}

interface Slot {
  readonly fill: Defaulter;
  readonly standard: JsonValue | undefined;
  readonly nullable: boolean;
}

function slotOf(schema: Schema): Slot {
  const at = resolved(schema);
  return {
    fill: defaulterOf(at),
    standard: at.default ?? undefined,
    nullable: at.nullable === true,
  };
}

/**
 * What takes the place of null; a list's or map's null becomes the default even if there is none.
 */
function build(schema: Schema): Defaulter {
  const slots = new Map<string, Slot>();
  for (const [name, property] of schema.properties ?? new Map<string, Property>()) {
    slots.set(name, slotOf(property.schema));
  }
  const defaulted = [...slots].filter(([, slot]) => slot.standard !== undefined);
  const { additionalProperties } = schema;
  const additional =
    additionalProperties === undefined || saysNothing(resolved(additionalProperties))
      ? undefined
      : slotOf(additionalProperties);
  const items = schema.items === undefined ? undefined : slotOf(schema.items);
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
        setMember(value, name, copyJson(slot.standard as JsonValue));
      }
    }
    fillMembers(value, slots, additional);
  };
}

function fillItems(items: Slot, list: JsonValue[]): void {
  for (let index = 0; index < list.length; index += 1) {
    if (list[index] === null && !items.nullable && items.standard !== undefined) {
      list[index] = copyJson(items.standard);
    }
    items.fill(list[index] as JsonValue);
  }
}

function fillMembers(
  object: JsonObject,
  slots: ReadonlyMap<string, Slot>,
  additional: Slot | undefined,
): void {
  for (const name of Object.keys(object)) {
    const slot = slots.get(name) ?? additional;
    if (slot === undefined) continue;
    const child = object[name];
    if (typeof child !== 'object') continue;
    if (child !== null) {
      slot.fill(child);
    } else if (!slots.has(name) && !slot.nullable && slot.standard !== undefined) {
      const standard = copyJson(slot.standard);
      setMember(object, name, standard);
      slot.fill(standard);
    }
  }
}

import {
  cloneJson,
  getOrMake,
  isObject,
  type JsonArray,
  type JsonObject,
  type JsonValue,
  member,
  setMember,
  WorkBudget,
} from '@wheelhouse/machinery';
import { childPath, FoundPaths, indexPath } from '../field-paths.ts';
import { isBooleanSchema, type Property, resolved, type Schema } from '../schema.ts';
import { decodeTyped } from './decode-typed.ts';
import {
  coerceEmbedded,
  type EmbeddedRules,
  withoutMistyped,
  withSortedErrors,
} from './embedded.ts';

/** Removes unknown members in place and adds their paths to `removed`. */
type Pruner = (value: JsonValue, path: string, removed: FoundPaths) => void;

const pruners = new WeakMap<Schema, Pruner>();
const roots = new WeakMap<Schema, (object: JsonObject) => FoundPaths>();

/**
 * Returns a function that prunes custom objects (FV-4): it removes unspecified members in place and
 * returns their sorted paths, as field validation reports them (`spec.list[0].y`). It does not
 * remove `apiVersion`, `kind`, and `metadata` at the root and in embedded resources. In an object
 * with `preserveUnknownFields` it visits only members with a schema.
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

/** Prunes a value that is not the root of a resource, such as a default, in place. */
export function pruneValue(schema: Schema, value: JsonValue): void {
  prunerOf(resolved(schema))(value, '', new FoundPaths());
}

const isMetaField = (name: string) =>
  name === 'apiVersion' || name === 'kind' || name === 'metadata';

function prunerOf(schema: Schema): Pruner {
  return isBooleanSchema(schema) ? pruneUnknown : getOrMake(pruners, schema, build);
}

function build(schema: Schema): Pruner {
  return schema.preserveUnknownFields === true ? preservingPruner(schema) : removingPruner(schema);
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

function removingPruner(schema: Schema): Pruner {
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

/**
 * Returns the pruner of a schema with `preserveUnknownFields`, which applies to the items of a list
 * too, but not to the members of an object.
 */
function preservingPruner(schema: Schema): Pruner {
  const { embedded, properties, additional } = partsOf(schema);
  const items = schema.items === undefined ? undefined : preservingPruner(resolved(schema.items));
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
 * Prunes a value without a schema: objects lose all members, and lists keep their length. Not
 * recursive, because the input determines the depth.
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

/** Removes nulls from a value in place. */
type NullRemover = (value: JsonValue) => void;

/**
 * Which nulls to remove: those of members and map values that are neither nullable nor defaulted,
 * and whose schema is selected.
 */
interface NullRemoval {
  readonly selects: (schema: Schema) => boolean;
  /** The compiled functions, by schema. */
  readonly removers: WeakMap<Schema, NullRemover>;
}

const allNulls: NullRemoval = { selects: () => true, removers: new WeakMap() };
/** Only fields of any type, in which validation would accept null as a value. */
const untypedNulls: NullRemoval = {
  selects: ({ type, intOrString }) => type === undefined && intOrString !== true,
  removers: new WeakMap(),
};

function nullRemover(schema: Schema, removal: NullRemoval): NullRemover {
  return getOrMake(removal.removers, schema, () => buildNullRemover(schema, removal));
}

interface NullSlot {
  /** Removes nulls inside the value. */
  readonly remove: NullRemover;
  /** Whether to remove the value if it is null. */
  readonly refusesNull: boolean;
}

function nullSlotOf(schema: Schema, removal: NullRemoval): NullSlot | undefined {
  const at = resolved(schema);
  if (isBooleanSchema(at)) return undefined;
  const isBare = at.nullable !== true && (at.default === undefined || at.default === null);
  return { remove: nullRemover(at, removal), refusesNull: isBare && removal.selects(at) };
}

function buildNullRemover(schema: Schema, removal: NullRemoval): NullRemover {
  const slots = new Map<string, NullSlot>();
  for (const [name, property] of schema.properties ?? new Map<string, Property>()) {
    const slot = nullSlotOf(property.schema, removal);
    if (slot !== undefined) slots.set(name, slot);
  }
  const additional =
    schema.additionalProperties === undefined
      ? undefined
      : nullSlotOf(schema.additionalProperties, removal);
  const items = schema.items === undefined ? undefined : nullSlotOf(schema.items, removal);
  return (value) => {
    if (typeof value !== 'object' || value === null) return;
    if (Array.isArray(value)) {
      if (items !== undefined) for (const item of value) items.remove(item);
      return;
    }
    for (const name of Object.keys(value)) {
      const slot = slots.get(name) ?? additional;
      if (slot === undefined) continue;
      const child = member(value, name);
      if (child === null && slot.refusesNull) delete value[name];
      else if (typeof child === 'object') slot.remove(child);
    }
  };
}

/**
 * Normalizes an object in place and returns the paths of the removed unknown members.
 * @throws DecodeError or EmbeddedError if metadata has the wrong type, and WorkExceeded if defaults
 * add too much
 */
export type CustomDecoder = (object: JsonObject, options?: CustomDecoding) => FoundPaths;

interface CustomDecoding {
  /** Whether to keep nulls for validation, except those of fields of any type. */
  readonly keepsNulls?: boolean;
  /**
   * Whether the object was stored earlier: members of metadata with the wrong type are removed, and
   * defaults beyond their limit left out, instead of throwing.
   */
  readonly dropsMistyped?: boolean;
  /** `small`: a small body, to which defaults may add less. */
  readonly size?: 'small' | 'large';
}

/**
 * Returns the decoder of the custom objects of a schema, which works in kube-apiserver's order:
 * defaults, metadata, unknown members, nulls, metadata of embedded resources.
 */
export function decodeCustom(schema: Schema, rules: EmbeddedRules): CustomDecoder {
  let fill: ReturnType<typeof applyDefaults> | undefined;
  const pruneObject = pruneCustom(schema, rules);
  return (object, options = {}) => {
    const { dropsMistyped = false, size = 'large' } = options;
    fill ??= applyDefaults(schema);
    fill(object, { size, beyond: dropsMistyped ? 'left out' : 'refused' });
    return pruneObject(object, options);
  };
}

/** Returns the decoder of custom objects that already have their defaults. */
export function pruneCustom(schema: Schema, rules: EmbeddedRules): CustomDecoder {
  // Compiled on first use: there are many large definitions, most with few objects.
  let compiled: ReturnType<typeof compilePruning> | undefined;
  return (object, { keepsNulls = false, dropsMistyped = false } = {}) => {
    compiled ??= compilePruning(schema, rules);
    const { pruneObject, removeNulls, removeUntypedNulls, decodeMetadata } = compiled;
    const unknown = new FoundPaths();
    const metadataValue = object['metadata'];
    const ofMetadata = new FoundPaths();
    const decode = dropsMistyped ? withoutMistyped(decodeMetadata) : decodeMetadata;
    const metadata = metadataValue === undefined ? undefined : decode(metadataValue, ofMetadata);
    unknown.addUnder('metadata', ofMetadata);
    unknown.addAll(pruneObject(object));
    if (keepsNulls) removeUntypedNulls(object);
    else removeNulls(object);
    unknown.addAll(coerceEmbedded(schema, object, rules, { dropsMistyped }));
    if (metadata !== undefined) object['metadata'] = metadata;
    return unknown;
  };
}

const compilePruning = (schema: Schema, rules: EmbeddedRules) => ({
  pruneObject: prune(schema),
  removeNulls: nullRemover(resolved(schema), allNulls),
  removeUntypedNulls: nullRemover(resolved(schema), untypedNulls),
  decodeMetadata: withSortedErrors(decodeTyped(rules.objectMeta)),
});

type Defaulter = (value: JsonValue, growth: Growth) => void;
const defaulters = new WeakMap<Schema, Defaulter>();

/**
 * How much defaults may add to an object whose body is small, in characters: a list of many items
 * multiplies the default of a member (TRUST-2). Each value counts as 96 of them.
 */
const defaultsMaxInSmall = 1_572_864;

/** The same for a large body, whose result is checked against the limits of bodies too. */
const defaultsMaxInLarge = 6_291_456;

/** Characters that a value counts as, besides those of its name and text. */
const charactersPerValue = 96;

/** How much defaults may still add to one object. */
class Growth {
  readonly #budget: WorkBudget;
  readonly #beyond: 'refused' | 'left out';

  constructor({ size, beyond }: Required<Defaulting>) {
    const steps = size === 'small' ? defaultsMaxInSmall : defaultsMaxInLarge;
    this.#budget = new WorkBudget({ what: 'adding the defaults', steps });
    this.#beyond = beyond;
  }

  /** Returns a copy of a default; undefined if it is left out. Throws WorkExceeded. */
  copyOf({ standard, weight }: DefaultedSlot): JsonValue | undefined {
    if (this.#beyond === 'left out' && weight > this.#budget.left) return undefined;
    this.#budget.spend(weight);
    return cloneJson(standard as JsonValue);
  }
}

interface Defaulting {
  readonly size?: 'small' | 'large';
  /** What happens to defaults beyond the limit. */
  readonly beyond?: 'refused' | 'left out';
}

/**
 * Returns a function that sets absent members to the defaults of a schema, in place and at any
 * depth. A null that is not nullable counts as absent if there is a default. The function throws
 * WorkExceeded if the defaults add too much.
 */
export function applyDefaults(schema: Schema): (object: JsonValue, options?: Defaulting) => void {
  const fill = defaulterOf(resolved(schema));
  return (object, { size = 'large', beyond = 'refused' } = {}) =>
    fill(object, new Growth({ size, beyond }));
}

function weightOf(value: JsonValue): number {
  if (typeof value === 'string') return charactersPerValue + value.length;
  if (typeof value !== 'object' || value === null) return charactersPerValue;
  const names = Array.isArray(value) ? 0 : Object.keys(value).join('').length;
  const items = Array.isArray(value) ? value : Object.values(value);
  return items.reduce<number>(
    (sum, item) => sum + (item === undefined ? 0 : weightOf(item)),
    charactersPerValue + names,
  );
}

const defaulterOf = (schema: Schema): Defaulter => getOrMake(defaulters, schema, buildDefaulter);

interface DefaultedSlot {
  /** Fills the defaults inside the value. */
  readonly fill: Defaulter;
  /** The default of the value itself. */
  readonly standard: JsonValue | undefined;
  /** Characters that the default counts as. */
  readonly weight: number;
  readonly nullable: boolean;
}

function defaultedSlotOf(schema: Schema): DefaultedSlot {
  const at = resolved(schema);
  const standard = at.default ?? undefined;
  return {
    fill: defaulterOf(at),
    standard,
    weight: standard === undefined ? 0 : weightOf(standard),
    nullable: at.nullable === true,
  };
}

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
  return (value, growth) => {
    if (typeof value !== 'object' || value === null) return;
    if (Array.isArray(value)) {
      if (items !== undefined) fillItems(items, value, growth);
      return;
    }
    for (const [name, slot] of defaulted) {
      const child = Object.hasOwn(value, name) ? value[name] : undefined;
      if (child === undefined || (child === null && !slot.nullable)) {
        setDefault(value, name, growth.copyOf(slot));
      }
    }
    fillMembers(value, { slots, additional, growth });
  };
}

/** Sets a member to its default, unless that is left out. */
function setDefault(object: JsonObject, name: string, standard: JsonValue | undefined): void {
  if (standard !== undefined) setMember(object, name, standard);
}

function fillItems(items: DefaultedSlot, list: JsonValue[], growth: Growth): void {
  for (let index = 0; index < list.length; index += 1) {
    if (list[index] === null && !items.nullable && items.standard !== undefined) {
      list[index] = growth.copyOf(items) ?? null;
    }
    items.fill(list[index] as JsonValue, growth);
  }
}

function fillMembers(
  object: JsonObject,
  {
    slots,
    additional,
    growth,
  }: {
    readonly slots: ReadonlyMap<string, DefaultedSlot>;
    readonly additional: DefaultedSlot | undefined;
    readonly growth: Growth;
  },
): void {
  for (const name of Object.keys(object)) {
    const slot = slots.get(name) ?? additional;
    if (slot === undefined) continue;
    const child = object[name];
    if (typeof child !== 'object') continue;
    if (child !== null) {
      slot.fill(child, growth);
    } else if (!slots.has(name) && !slot.nullable && slot.standard !== undefined) {
      const standard = growth.copyOf(slot);
      setDefault(object, name, standard);
      if (standard !== undefined) slot.fill(standard, growth);
    }
  }
}

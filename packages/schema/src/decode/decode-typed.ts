import {
  cloneJson,
  cloneJsonSteps,
  compareText,
  copyIntegralFloats,
  getOrMake,
  integralFloatsOf,
  isObject,
  type JsonArray,
  type JsonObject,
  type JsonValue,
  runInOnePiece,
  Stride,
  setMember,
} from '@wheelhouse/machinery';
import type { FoundPaths } from '../field-paths.ts';
import { bareTypeName } from '../go-wording.ts';
import { anySchema, type Property, resolved, type Schema } from '../schema.ts';
import {
  copyOmitted,
  currentField,
  type DecodeContext,
  DecodeError,
  type DecodeSource,
  descend,
  enterName,
  failFinally,
  failType,
  isEmptyCollection,
  newContext,
  noteOmitted,
  noteUnknown,
  rememberOmitted,
  type Spellings,
} from './decode-context.ts';
import { type StepDecoder, scalarWalker, type TypedWalker } from './decode-scalars.ts';

/**
 * Decodes an object and does not modify it. Adds the paths of unknown members, such as
 * `spec.containers[0].foo`, to `unknown`.
 * @throws DecodeError with Go's message (see `Problem`) for a value of the wrong type
 */
export type TypedDecoder = (
  value: JsonValue,
  unknown?: FoundPaths,
  source?: DecodeSource,
) => JsonObject;

const decoders = new WeakMap<Schema, TypedDecoder>();
const walkers = new WeakMap<Schema, TypedWalker>();

/**
 * Returns the decoder of a built-in type, which is equivalent to Go's strict JSON decoding followed
 * by encoding. Members are in the order of their declaration; null counts as absent; empty members
 * are omitted if the type declares `omitempty`, and otherwise have their zero values; times,
 * quantities, and durations have their stored form. Cached per schema.
 */
export function decodeTyped(schema: Schema): TypedDecoder {
  const at = resolved(schema);
  const cachedDecoder = decoders.get(at);
  if (cachedDecoder !== undefined) return cachedDecoder;
  const walker = walkerOf(at);
  const decoder: TypedDecoder = (value, unknown, source = 'text') => {
    const context = newContext({ inputOrder: false, source });
    const object = value === null ? walker.zero() : walker.decode(value, context);
    if (context.error !== undefined) {
      const { error = '' } = source === 'map' ? context : decodeInInputOrder(walker, value, source);
      throw new DecodeError(error);
    }
    rememberEmpty(object as JsonObject, context);
    if (context.unknown.count > 0 && unknown !== undefined) {
      const found = needsSecondPass(context) ? decodeInInputOrder(walker, value, source) : context;
      addUnknown(unknown, found);
    }
    return object as JsonObject;
  };
  decoders.set(at, decoder);
  return decoder;
}

/**
 * Does the work of `decodeTyped` in steps (TRUST-2).
 * @param options.spellings numbers in the value that are placeholders, and the texts of the numbers
 *   for which they stand, which errors show
 * @throws DecodeError for a value of the wrong type
 */
export function* decodeTypedSteps(
  schema: Schema,
  value: JsonValue,
  options: {
    readonly unknown?: FoundPaths | undefined;
    readonly source?: DecodeSource | undefined;
    readonly spellings?: Spellings | undefined;
  } = {},
): Generator<void, JsonObject> {
  const { unknown, source = 'text', spellings } = options;
  const walker = walkerOf(resolved(schema));
  if (value === null || walker.decodeSteps === undefined) {
    return decodeTyped(schema)(value, unknown, source);
  }
  const { decodeSteps } = walker;
  const context = newContext({ inputOrder: false, source, spellings });
  const object = yield* decodeSteps(value, context, new Stride());
  function* decodeAgain(): Generator<void, DecodeContext> {
    const second = newContext({ inputOrder: true, source, spellings });
    yield* decodeSteps(value, second, new Stride());
    return second;
  }
  if (context.error !== undefined) {
    const { error = '' } = source === 'map' ? context : yield* decodeAgain();
    throw new DecodeError(error);
  }
  rememberEmpty(object as JsonObject, context);
  if (context.unknown.count > 0 && unknown !== undefined) {
    addUnknown(unknown, needsSecondPass(context) ? yield* decodeAgain() : context);
  }
  return object as JsonObject;
}

/** Objects that were decoded with empty but present lists or maps. */
const withEmpty = new WeakSet<JsonObject>();

function rememberEmpty(object: JsonObject, { hasEmpty, omitted }: DecodeContext): void {
  if (hasEmpty) withEmpty.add(object);
  rememberOmitted(object, omitted);
}

/**
 * Returns a copy of a decoded object for which `settleEmpty`, `restoreOmitted`, and
 * `integralFloatsOf` work as for the object.
 */
export function copyDecoded<T extends JsonObject>(object: T): T {
  const copy = cloneJson(object);
  if (withEmpty.has(object)) withEmpty.add(copy);
  copyOmitted(object, copy);
  if (integralFloatsOf(object) !== undefined) runInOnePiece(copyIntegralFloats(object, copy));
  return copy;
}

/** Does the work of `copyDecoded` in steps (TRUST-2). */
export function* copyDecodedSteps(object: JsonObject): Generator<void, JsonObject> {
  const copy = yield* cloneJsonSteps(object);
  if (withEmpty.has(object)) withEmpty.add(copy);
  copyOmitted(object, copy);
  yield* copyIntegralFloats(object, copy);
  return copy;
}

/**
 * Replaces empty lists and maps in a decoded object with null, in place, because the stored form
 * does not distinguish them from absent ones. The managers of fields must be recorded before.
 */
export function settleEmpty(schema: Schema, object: JsonObject): void {
  if (withEmpty.delete(object)) settleIn(resolved(schema), object);
}

function settleIn(schema: Schema, value: JsonValue | undefined): void {
  if (Array.isArray(value)) {
    const items = resolved(schema.items ?? anySchema);
    for (const item of value) settleIn(items, item);
    return;
  }
  if (!isObject(value)) return;
  for (const [name, member] of Object.entries(value)) {
    const property = schema.properties?.get(name);
    const inner = property?.schema ?? schema.additionalProperties;
    if (inner === undefined || typeof inner !== 'object') continue;
    const isEmpty = member !== undefined && isEmptyCollection(member);
    if (property !== undefined && isEmpty && fieldOf([name, property], false).emptyIsNull) {
      value[name] = null;
    } else settleIn(resolved(inner), member);
  }
}

/** Whether a second pass is needed to list unknown members in the order of the input. */
const needsSecondPass = ({ unknown, source }: DecodeContext) =>
  unknown.count > 1 && source !== 'map';

/** Adds unknown members in kube-apiserver's order; those of a map are sorted by name. */
function addUnknown(unknown: FoundPaths, { unknown: found, source }: DecodeContext): void {
  if (source === 'map') {
    const quoted = (path: string) => `${path}"`;
    found.sort((left, right) => compareText(quoted(left), quoted(right)));
  }
  for (const path of new Set(found.paths)) unknown.add(path);
  unknown.omit(found.omitted);
}

/** Decodes a value in the order of its members, in which responses report the first error. */
function decodeInInputOrder(
  walker: TypedWalker,
  value: JsonValue,
  source: DecodeSource,
): DecodeContext {
  const context = newContext({ inputOrder: true, source });
  walker.decode(value, context);
  return context;
}

const walkerOf = (schema: Schema): TypedWalker => getOrMake(walkers, schema, build);

/** Returns a walker that resolves its reference on first use, because types are recursive. */
function lazyWalker(schema: Schema): TypedWalker {
  if (schema.resolve === undefined) return walkerOf(schema);
  let walker: TypedWalker | undefined;
  const get = () => {
    walker ??= walkerOf(resolved(schema));
    return walker;
  };
  return {
    decode: (value, context) => get().decode(value, context),
    *decodeSteps(value, context, stride) {
      const { decode, decodeSteps } = get();
      if (decodeSteps === undefined) return decode(value, context);
      return yield* decodeSteps(value, context, stride);
    },
    zero: () => get().zero(),
    isEmpty: (value) => get().isEmpty(value),
    nested: true,
  };
}

function build(schema: Schema): TypedWalker {
  if (schema.alternatives !== undefined) return alternativesWalker(schema);
  const scalar = scalarWalker(schema);
  if (scalar !== undefined) return scalar;
  if (schema.type === 'array') return listWalker(schema);
  if (schema.properties !== undefined) return structWalker(schema);
  if (schema.additionalProperties !== undefined) return mapWalker(schema);
  return opaqueWalker;
}

/** The walker of raw JSON, which is not changed. */
const opaqueWalker: TypedWalker = {
  decode: (value) => value,
  zero: () => null,
  isEmpty: (value) => value === null,
  nested: false,
};

function listWalker(schema: Schema): TypedWalker {
  const element = lazyWalker(schema.items ?? anySchema);
  const decodeItem = itemDecoder(element);
  const decode = (value: JsonValue, context: DecodeContext): JsonValue => {
    if (!Array.isArray(value)) {
      failType(context, value, { schema });
      return value;
    }
    descend(context);
    const list: JsonArray = new Array(value.length);
    let index = 0;
    for (const item of value) {
      list[index] = decodeItem(item, index, context);
      index += 1;
    }
    context.depthLeft += 1;
    return list;
  };
  const decodeSteps: StepDecoder = function* (value, context, stride) {
    if (!Array.isArray(value)) return decode(value, context);
    descend(context);
    const list: JsonArray = [];
    for (const [index, item] of value.entries()) {
      if (stride.weigh(item) === 'light' || element.decodeSteps === undefined) {
        list.push(decodeItem(item, index, context));
      } else {
        context.steps.push(`[${index}]`);
        list.push(yield* element.decodeSteps(item, context, stride));
        context.steps.pop();
      }
      if (stride.isOver) yield;
    }
    context.depthLeft += 1;
    return list;
  };
  return { decode, decodeSteps, zero: () => null, isEmpty: isEmptyCollection, nested: true };
}

function itemDecoder(element: TypedWalker) {
  return (item: JsonValue, index: number, context: DecodeContext): JsonValue => {
    if (item === null) return element.zero();
    if (!element.nested) return element.decode(item, context);
    context.steps.push(`[${index}]`);
    const decoded = element.decode(item, context);
    context.steps.pop();
    return decoded;
  };
}

/** Returns the walker of the values of a map, in which null bytes become empty bytes. */
function elementWalker(schema: Schema): TypedWalker {
  const walker = lazyWalker(schema);
  return schema.format === 'byte' ? { ...walker, zero: () => '' } : walker;
}

function mapWalker(schema: Schema): TypedWalker {
  const element = elementWalker(schema.additionalProperties ?? anySchema);
  const decode = (value: JsonValue, context: DecodeContext): JsonValue => {
    if (!isObject(value)) {
      failType(context, value, { schema });
      return value;
    }
    descend(context);
    const map: JsonObject = {};
    for (const name of context.inputOrder ? Object.keys(value) : sortedNames(value)) {
      const item = value[name];
      if (item === undefined) continue;
      setMember(map, name, decodeMember(element, { name, value: item, context }));
    }
    context.depthLeft += 1;
    return map;
  };
  const decodeSteps: StepDecoder = function* (value, context, stride) {
    if (!isObject(value)) return decode(value, context);
    descend(context);
    const map: JsonObject = {};
    for (const name of context.inputOrder ? Object.keys(value) : sortedNames(value)) {
      const item = value[name];
      if (item === undefined) continue;
      if (stride.weigh(item) === 'light' || element.decodeSteps === undefined) {
        setMember(map, name, decodeMember(element, { name, value: item, context }));
      } else {
        enterName(context, name);
        setMember(map, name, yield* element.decodeSteps(item, context, stride));
        context.steps.pop();
      }
      if (stride.isOver) yield;
    }
    context.depthLeft += 1;
    return map;
  };
  return { decode, decodeSteps, zero: () => null, isEmpty: isEmptyCollection, nested: true };
}

/** Upper bound of the names that are sorted; a map with more keeps the order of the input. */
const sortedNamesMax = 4096;

/** Returns the names of a map in Go's order, in which most clients send them. */
function sortedNames(map: JsonObject): readonly string[] {
  const names = Object.keys(map);
  let last = '';
  for (const name of names) {
    if (name < last) return names.length > sortedNamesMax ? names : names.sort(compareText);
    last = name;
  }
  return names;
}

function decodeMember(
  element: TypedWalker,
  member: { name: string; value: JsonValue; context: DecodeContext },
): JsonValue {
  const { name, value, context } = member;
  if (value === null) return element.zero();
  if (!element.nested) return element.decode(value, context);
  enterName(context, name);
  const decoded = element.decode(value, context);
  context.steps.pop();
  return decoded;
}

interface Field {
  readonly name: string;
  readonly walker: TypedWalker;
  readonly omitEmpty: boolean;
  readonly pointer: boolean;
  /** Whether the stored form is protobuf, which cannot represent an empty list or map. */
  readonly emptyIsNull: boolean;
}

interface Struct {
  /** The name in messages, such as `PodSpec`. */
  readonly name: string;
  readonly schema: Schema;
  readonly fields: readonly Field[];
  readonly byName: ReadonlyMap<string, Field>;
}

function structWalker(schema: Schema): TypedWalker {
  // Only CustomResourceDefinitions are stored as JSON.
  const isJson = schema.typeName?.startsWith('apiextensions.') === true;
  const fields = [...(schema.properties ?? [])].map((entry) => fieldOf(entry, isJson));
  const struct: Struct = {
    name: bareTypeName(schema.typeName ?? ''),
    schema,
    fields,
    byName: new Map(fields.map((field) => [field.name, field])),
  };
  const decode = (value: JsonValue, context: DecodeContext): JsonValue => {
    if (!isObject(value)) {
      failType(context, value, { schema });
      return value;
    }
    descend(context);
    const outer = context.struct;
    context.struct = struct.name;
    const decoded = context.inputOrder
      ? runInOnePiece(decodeInInputOrderSteps(struct, { value, context, stride: new Stride() }))
      : decodeFields(struct, value, context);
    context.struct = outer;
    context.depthLeft += 1;
    return decoded;
  };
  const decodeSteps: StepDecoder = function* (value, context, stride) {
    if (!isObject(value)) return decode(value, context);
    descend(context);
    const outer = context.struct;
    context.struct = struct.name;
    const decoded = context.inputOrder
      ? yield* decodeInInputOrderSteps(struct, { value, context, stride })
      : yield* decodeFieldsSteps(struct, { value, context, stride });
    context.struct = outer;
    context.depthLeft += 1;
    return decoded;
  };
  const zero = () => zeroStruct(fields);
  return { decode, decodeSteps, zero, isEmpty: () => false, nested: true };
}

function fieldOf([name, property]: [string, Property], isJson: boolean): Field {
  const { schema, omitEmpty = false, pointer = false } = property;
  const isCollection = schema.type === 'array' || schema.additionalProperties !== undefined;
  return {
    name,
    walker: lazyWalker(schema),
    omitEmpty,
    pointer,
    emptyIsNull: isCollection && !omitEmpty && !pointer && !isJson,
  };
}

function zeroStruct(fields: readonly Field[]): JsonObject {
  const object: JsonObject = {};
  for (const field of fields) {
    if (!field.omitEmpty) object[field.name] = field.pointer ? null : field.walker.zero();
  }
  return object;
}

function decodeFields(struct: Struct, value: JsonObject, context: DecodeContext): JsonObject {
  const object: JsonObject = {};
  let found = 0;
  for (const field of struct.fields) {
    const { name } = field;
    const isPresent = Object.hasOwn(value, name);
    const memberValue = isPresent ? value[name] : undefined;
    if (isPresent) found += 1;
    if (memberValue === undefined || memberValue === null) {
      if (!field.omitEmpty) object[name] = field.pointer ? null : field.walker.zero();
      continue;
    }
    setField(object, { field, decoded: decodeField(field, memberValue, context), context });
  }
  const names = Object.keys(value);
  if (names.length !== found) noteUnknownOf(struct, { names, value, context });
  return object;
}

function setField(
  object: JsonObject,
  of: { readonly field: Field; readonly decoded: JsonValue; readonly context: DecodeContext },
): void {
  const { field, decoded, context } = of;
  const isEmpty = decoded === null || (!field.pointer && field.walker.isEmpty(decoded));
  if (field.omitEmpty && isEmpty) {
    if (decoded !== null && typeof decoded === 'object') {
      noteOmitted(context.omitted, { steps: context.steps, name: field.name, value: decoded });
    }
    return;
  }
  object[field.name] = decoded;
  if (field.emptyIsNull && isEmptyCollection(decoded)) context.hasEmpty = true;
}

/** A value that is decoded in steps. */
interface Stepping {
  readonly value: JsonObject;
  readonly context: DecodeContext;
  readonly stride: Stride;
}

function* decodeFieldsSteps(
  struct: Struct,
  { value, context, stride }: Stepping,
): Generator<void, JsonObject> {
  const object: JsonObject = {};
  for (const field of struct.fields) {
    const { name } = field;
    const memberValue = Object.hasOwn(value, name) ? value[name] : undefined;
    if (memberValue === undefined || memberValue === null) {
      if (!field.omitEmpty) object[name] = field.pointer ? null : field.walker.zero();
      continue;
    }
    const decoded = yield* decodeFieldSteps(field, memberValue, { context, stride });
    setField(object, { field, decoded, context });
    if (stride.isOver) yield;
  }
  noteUnknownOf(struct, { names: Object.keys(value), value, context });
  return object;
}

function* decodeFieldSteps(
  field: Field,
  value: JsonValue,
  { context, stride }: Pick<Stepping, 'context' | 'stride'>,
): Generator<void, JsonValue> {
  const { decodeSteps } = field.walker;
  if (stride.weigh(value) === 'light' || decodeSteps === undefined) {
    return decodeField(field, value, context);
  }
  context.fields.push(field.name);
  enterName(context, field.name);
  const decoded = yield* decodeSteps(value, context, stride);
  context.steps.pop();
  context.fields.pop();
  return decoded;
}

function decodeField(field: Field, value: JsonValue, context: DecodeContext): JsonValue {
  context.fields.push(field.name);
  enterName(context, field.name);
  const decoded = field.walker.decode(value, context);
  context.steps.pop();
  context.fields.pop();
  return decoded;
}

function noteUnknownOf(
  struct: Struct,
  input: { names: readonly string[]; value: JsonObject; context: DecodeContext },
): void {
  for (const name of input.names) {
    if (struct.byName.has(name) || input.value[name] === undefined) continue;
    noteUnknown(input.context, name);
  }
}

function* decodeInInputOrderSteps(
  struct: Struct,
  { value, context, stride }: Stepping,
): Generator<void, JsonObject> {
  const names = Object.keys(value);
  if (context.source === 'patched') names.sort(compareText);
  for (const name of names) {
    const memberValue = value[name];
    const field = struct.byName.get(name);
    if (memberValue === undefined) continue;
    if (field === undefined) noteUnknown(context, name);
    else if (memberValue !== null) yield* decodeFieldSteps(field, memberValue, { context, stride });
    if (stride.isOver) yield;
  }
  return {};
}

function alternativesWalker(schema: Schema): TypedWalker {
  const alternatives = schema.alternatives ?? {};
  const object = alternatives.object === undefined ? undefined : lazyWalker(alternatives.object);
  const list = alternatives.list === undefined ? undefined : lazyWalker(alternatives.list);
  const decode = (value: JsonValue, context: DecodeContext): JsonValue => {
    if (typeof value === 'boolean' && alternatives.boolean === true) return value;
    const walker = Array.isArray(value) ? list : isObject(value) ? object : undefined;
    if (walker !== undefined) {
      // kube-apiserver's custom decoders of such members are not strict.
      const unknownBefore = context.unknown.count;
      const outer = context.field;
      context.field ??= currentField(context);
      const decoded = walker.decode(value, context);
      context.field = outer;
      context.unknown.rewind(unknownBefore);
      // kube-apiserver decodes an empty list like a value of another type.
      return Array.isArray(decoded) && decoded.length === 0 ? null : decoded;
    }
    if (alternatives.otherwise !== undefined) failFinally(context, alternatives.otherwise);
    return null;
  };
  const decodeSteps: StepDecoder = function* (value, context, stride) {
    const walker = Array.isArray(value) ? list : isObject(value) ? object : undefined;
    if (walker?.decodeSteps === undefined) return decode(value, context);
    const unknownBefore = context.unknown.count;
    const outer = context.field;
    context.field ??= currentField(context);
    const decoded = yield* walker.decodeSteps(value, context, stride);
    context.field = outer;
    context.unknown.rewind(unknownBefore);
    return Array.isArray(decoded) && decoded.length === 0 ? null : decoded;
  };
  const isEmpty = (value: JsonValue) => value === null;
  return { decode, decodeSteps, zero: () => null, isEmpty, nested: true };
}

import {
  base64ErrorAt,
  type IntegralFloats,
  isIntegralFloat,
  type JsonObject,
  type JsonValue,
  jsonEqual,
  member,
  narrowed,
  problemText,
  setMember,
} from '@wheelhouse/machinery';
import { isBooleanSchema, parseDurationFormat, type Schema } from '@wheelhouse/schema';
import { LazyItems } from './items.ts';
import { parseTimestamp, showDuration, showTimestamp, zoneOf } from './library/times.ts';
import type { Conversions } from './meter.ts';
import { namesOf, visibleSchema } from './types/schema-types.ts';
import {
  CelError,
  DeclaredList,
  Duration,
  isMapValue,
  kindOf,
  List,
  type ListKind,
  type MapValue,
  memberOf,
  Optional,
  Timestamp,
  Uint,
  Unreadable,
  type Value,
} from './values.ts';

/** What the conversion of a value and of its parts needs besides their schemas. */
interface Conversion {
  readonly floats?: IntegralFloats | undefined;
  /** Counts the converted items of lists. */
  readonly counter?: Conversions;
}

/**
 * Converts a JSON value to a CEL value by its schema: objects by their fields, formats to their
 * types. Members, and the items of long lists, are converted lazily, so a rule pays only for what
 * it reads.
 */
export function jsonToValue(json: JsonValue, schema: Schema, conversion: Conversion = {}): Value {
  return readable(converted(json, schema, conversion));
}

function readable(value: Value): Value {
  if (value instanceof Unreadable) throw value.error;
  return value;
}

/** Maximum number of items that are converted with their lists. */
const atOnceMax = 1_000;

/**
 * The value, or why there is none.
 * @param countMax the maximum number of items that are converted with the list
 */
function converted(
  json: JsonValue,
  declaredSchema: Schema,
  conversion: Conversion,
  countMax = atOnceMax,
): Value {
  const schema = visibleSchema(declaredSchema);
  if (schema.intOrString === true && !isIntOrString(json)) return new Unreadable(noIntOrString);
  if (json === null || typeof json === 'boolean') return json;
  if (typeof json === 'bigint') return integerOf(json, schema);
  if (typeof json === 'number') return numberOf(json, schema);
  if (typeof json === 'string') return textOf(json, schema);
  if (!Array.isArray(json)) return new JsonMap(json, schema, conversion);
  const itemSchema = schema.items ?? {};
  const items =
    json.length > countMax
      ? new JsonItems(json, itemSchema, conversion)
      : json.map((item, index) =>
          isIntegralFloat(conversion.floats, json, index)
            ? convertedFloat(Number(item), itemSchema)
            : counted(converted(item, itemSchema, conversion, countMax / json.length), conversion),
        );
  if (schema.items === undefined) return new List(items);
  const undeclared = () => converted(json, {}, conversion);
  return new DeclaredList(items, listKindOf(schema), undeclared);
}

/** Counts an item if its conversion made an object. */
function counted(value: Value, { counter }: Conversion): Value {
  if (typeof value === 'object' && value !== null) counter?.add();
  return value;
}

/** The items of a long list, each of which is converted when it is first read (TRUST-2). */
class JsonItems extends LazyItems {
  readonly #json: readonly JsonValue[];
  readonly #values: (Value | undefined)[];
  readonly #schema: Schema;
  readonly #conversion: Conversion;

  constructor(json: readonly JsonValue[], schema: Schema, conversion: Conversion) {
    super();
    this.#json = json;
    this.#values = new Array<Value | undefined>(json.length);
    this.#schema = schema;
    this.#conversion = conversion;
  }

  get length(): number {
    return this.#json.length;
  }

  at(index: number): Value | undefined {
    const cached = this.#values[index];
    const item = this.#json[index];
    if (cached !== undefined || item === undefined) return cached;
    const value = isIntegralFloat(this.#conversion.floats, this.#json, index)
      ? convertedFloat(Number(item), this.#schema)
      : counted(converted(item, this.#schema, this.#conversion), this.#conversion);
    this.#values[index] = value;
    return value;
  }
}

/** Converts a number that Go decodes as a float: as such, unless its schema requires an integer. */
export function floatToValue(json: number, schema: Schema): Value {
  return readable(convertedFloat(json, schema));
}

function convertedFloat(json: number, declaredSchema: Schema): Value {
  const { type, intOrString } = visibleSchema(declaredSchema);
  if (intOrString === true) return new Unreadable(noIntOrString);
  return type === 'integer' ? new Unreadable('invalid data, expected int, got float64') : json;
}

const isIntOrString = (json: JsonValue) =>
  json === null ||
  typeof json === 'string' ||
  typeof json === 'bigint' ||
  (typeof json === 'number' && Number.isInteger(json));

const noIntOrString = 'invalid data, expected XIntOrString value to be either a string or integer';

/** Go decodes an integer beyond 64 bits as a float. */
const int64Bound = 2 ** 63;

function integerOf(json: bigint, { type }: Schema): Value {
  return type === 'number' || BigInt.asIntN(64, json) !== json ? Number(json) : json;
}

function numberOf(json: number, schema: Schema): Value {
  const isInt64 = Number.isInteger(json) && json >= -int64Bound && json < int64Bound;
  return schema.type === 'number' || !isInt64 ? json : BigInt(json);
}

function textOf(json: string, { format, type }: Schema): Value {
  if (type !== 'string' || format === undefined) return json;
  if (format === 'byte') return bytesOf(json);
  if (format === 'duration') {
    const nanos = parseDurationFormat(json);
    if (typeof nanos === 'string') return new Unreadable(`Invalid duration ${json}: ${nanos}`);
    return new Duration(nanos);
  }
  if (format !== 'date' && format !== 'date-time') return json;
  const nanos = parseTimestamp(format === 'date' ? `${json}T00:00:00Z` : json);
  if (nanos === undefined) return new Unreadable(`Invalid ${format} formatted string ${json}`);
  return new Timestamp(nanos, zoneOf(json));
}

/** Rules read base64url, although validation accepts only standard base64, as in kube-apiserver. */
function bytesOf(base64: string): Value {
  const at = base64ErrorAt(base64, 'url');
  if (at === undefined) return new Uint8Array(Buffer.from(base64, 'base64url'));
  const why = problemText({ code: 'base64', at });
  return new Unreadable(`Invalid byte formatted string ${base64}: ${why}`);
}

function listKindOf({ listType, listMapKeys }: Schema): ListKind | undefined {
  if (listType === 'set') return 'set';
  return listType === 'map' ? { keys: listMapKeys ?? [] } : undefined;
}

const escapes = new WeakMap<Schema, ReadonlyMap<string, string>>();

/** Maps names in expressions to names of members. */
function membersOf(schema: Schema): ReadonlyMap<string, string> {
  const cachedNames = escapes.get(schema);
  if (cachedNames !== undefined) return cachedNames;
  const names = new Map<string, string>();
  for (const name of schema.properties?.keys() ?? []) {
    // An index into a value of unknown type also finds a name as it is.
    if (!name.includes('__')) names.set(name, name);
    for (const alias of namesOf(name)) names.set(alias, name);
  }
  escapes.set(schema, names);
  return names;
}

class JsonMap implements MapValue {
  readonly isMap = true;
  readonly objectType = undefined;
  readonly #json: JsonObject;
  readonly #schema: Schema;
  readonly #conversion: Conversion;
  #values: Map<string, Value> | undefined;
  #keys: readonly Value[] | undefined;
  #size: number | undefined;

  constructor(json: JsonObject, schema: Schema, conversion: Conversion) {
    this.#json = json;
    this.#schema = schema;
    this.#conversion = conversion;
  }

  get isDeclared(): boolean {
    return this.#schema.type !== undefined;
  }

  undeclared(): Value {
    return this.#schema.type === undefined ? this : new JsonMap(this.#json, {}, this.#conversion);
  }

  /** A null member counts as absent, except in a map. */
  get(key: Value): Value | undefined {
    if (typeof key !== 'string') return undefined;
    const cachedValue = this.#values?.get(key);
    if (cachedValue !== undefined) return cachedValue;
    const { properties } = this.#schema;
    const name = properties === undefined ? key : membersOf(this.#schema).get(key);
    const value = name === undefined ? undefined : this.named(name);
    if (value === undefined) return undefined;
    this.#values ??= new Map();
    this.#values.set(key, value);
    return value;
  }

  keys(): readonly Value[] {
    this.#keys ??= this.#readKeys();
    return this.#keys;
  }

  #readKeys(): readonly Value[] {
    if (this.#schema.properties === undefined) {
      const isSeen = (name: string) => this.#schemaOf(name) !== undefined;
      return Object.keys(this.#json).filter(
        (name) => this.#json[name] !== undefined && isSeen(name),
      );
    }
    return [...this.#schema.properties.keys()].flatMap((name) => {
      const [escaped] = namesOf(name);
      const isSeen = escaped !== undefined && (member(this.#json, name) ?? null) !== null;
      return isSeen ? [escaped] : [];
    });
  }

  /** Null members count, although expressions do not see them. */
  get size(): number {
    this.#size ??= Object.values(this.#json).filter((value) => value !== undefined).length;
    return this.#size;
  }

  /** Rules do not see undeclared members. */
  named(name: Value): Value | undefined {
    if (typeof name !== 'string') return undefined;
    const schema = this.#schemaOf(name);
    const json = member(this.#json, name);
    if (schema === undefined || json === undefined) return undefined;
    const counts = json !== null || this.#schema.properties === undefined;
    return counts ? this.#valueOf(name, json, schema) : undefined;
  }

  #valueOf(name: string, json: JsonValue, schema: Schema): Value {
    return isIntegralFloat(this.#conversion.floats, this.#json, name)
      ? floatToValue(Number(json), schema)
      : jsonToValue(json, schema, this.#conversion);
  }

  /**
   * Equality as in kube-apiserver: a null member is not found in the other object, so an object
   * with one equals no object, not even itself. Undeclared members count if both objects have them.
   */
  *pairsWith(
    other: MapValue,
    tally?: (values: number, stepsEach?: number) => void,
  ): Generator<readonly [Value, Value] | undefined> {
    for (const name of Object.keys(this.#json)) {
      const json = member(this.#json, name);
      if (json === undefined) continue;
      const schema = this.#schemaOf(name);
      if (schema === undefined) {
        tally?.(valuesOf(json));
        if (!this.#equalsUnknown(name, json, other)) yield undefined;
        continue;
      }
      const otherValue = memberOf(other, name);
      yield otherValue === undefined ? undefined : [this.#valueOf(name, json, schema), otherValue];
    }
  }

  /** The schema of a member; without a schema, all members are untyped. */
  #schemaOf(name: string): Schema | undefined {
    const { properties, additionalProperties, type } = this.#schema;
    if (properties !== undefined) return properties.get(name)?.schema;
    if (additionalProperties !== undefined) {
      return isBooleanSchema(additionalProperties) ? undefined : additionalProperties;
    }
    return type === undefined ? {} : undefined;
  }

  #equalsUnknown(name: string, json: JsonValue, other: MapValue): boolean {
    if (!(other instanceof JsonMap) || other.#schema.type === undefined) {
      throw new CelError('no such overload');
    }
    const otherValue = member(other.#json, name);
    return otherValue === undefined || jsonEqual(json, otherValue);
  }
}

/**
 * An old value that may be missing (`optionalOldSelf`), for which kube-apiserver converts
 * collections without their schema.
 */
export function optionalValue(json: JsonValue, schema: Schema, conversion: Conversion): Value {
  return jsonToValue(json, typeof json === 'object' ? {} : schema, conversion);
}

/** Number of values in a JSON value, including itself. */
function valuesOf(json: JsonValue): number {
  if (typeof json !== 'object' || json === null) return 1;
  let count = 1;
  for (const value of Object.values(json)) if (value !== undefined) count += valuesOf(value);
  return count;
}

/** Maximum number of values in the result of an expression. */
const jsonValuesMax = 100_000;

/** Values that one step reads. */
const readPerStep = 1_000;

/**
 * Reads results of an expression in steps (TRUST-2). A value counts as often as it occurs. Throws
 * CelError for too many values.
 */
export class ResultReader {
  #left = jsonValuesMax;

  /** Counts a value, and returns whether the step is over. */
  count(): boolean {
    this.#left -= 1;
    if (this.#left < 0) throw new CelError(`the value has more than ${jsonValuesMax} values`);
    return this.#left % readPerStep === 0;
  }

  /** Converts a value to JSON. Throws CelError if JSON cannot represent it. */
  *toJson(value: Value): Generator<void, JsonValue> {
    if (this.count()) yield;
    if (value instanceof List) {
      const list: JsonValue[] = [];
      for (const item of value.items) list.push(yield* this.toJson(item));
      return list;
    }
    if (value instanceof Optional && value.value !== undefined) {
      return yield* this.toJson(value.value);
    }
    if (!isMapValue(value)) return scalarToJson(value);
    const object: JsonObject = {};
    for (const key of value.keys()) {
      if (typeof key !== 'string') {
        throw new CelError(`map key ${String(key)} is of type ${kindOf(key)}, not string`);
      }
      const entryValue = value.get(key);
      if (entryValue !== undefined) setMember(object, key, yield* this.toJson(entryValue));
    }
    return object;
  }
}

function scalarToJson(value: Value): JsonValue {
  const json = scalarAsJson(value, narrowed);
  if (json === undefined) throw new CelError(`unsupported type in JSON: ${kindOf(value)}`);
  return json;
}

/**
 * Returns the JSON of a value that is neither a list nor a map; undefined if it has none.
 * @param integerAsJson returns the JSON of an integer
 */
export function scalarAsJson<Integer>(
  value: Value,
  integerAsJson: (integer: bigint) => Integer,
): Integer | string | number | boolean | null | undefined {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value;
  if (typeof value === 'number') return value;
  if (typeof value === 'bigint') return integerAsJson(value);
  if (value instanceof Uint) return integerAsJson(value.value);
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
  if (value instanceof Timestamp) return showTimestamp(value);
  return value instanceof Duration ? showDuration(value.nanos) : undefined;
}

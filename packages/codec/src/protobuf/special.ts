import { isUtf8 } from 'node:buffer';
import {
  isObject,
  type JsonObject,
  type JsonValue,
  jsonObject,
  parseQuantity,
  type Stride,
} from '@wheelhouse/machinery';
import {
  type Alternatives,
  type Property,
  parseGoDuration,
  printGoDuration,
  type Schema,
} from '@wheelhouse/schema';
import { decodeJson, encodeJson, encodeJsonSteps, JsonError, scanJson } from '../json.ts';
import {
  countValues,
  ProtobufError,
  WireReader,
  type WireWriter,
  wireBytes,
  wireFixed64,
  wireVarint,
} from './wire.ts';

/** The state of a read in steps. */
export interface SteppedRead {
  readonly depth: number;
  readonly stride: Stride;
  /** See `ValueCodec.read`. */
  readonly before?: JsonValue | undefined;
}

/** Writes and reads values of one schema; cached per schema. */
export interface ValueCodec {
  readonly wireType: number;
  /** Writes a value without its key; undefined stands for the zero value. */
  write(writer: WireWriter, value: JsonValue | undefined): void;
  /**
   * Reads a value at a depth of nesting.
   * @param before the value of an earlier occurrence of the field; a message adds to it
   */
  read(reader: WireReader, depth: number, before?: JsonValue): JsonValue;
  /** Does the work of `write` in steps, for values that contain others. */
  writeSteps?(
    writer: WireWriter,
    value: JsonValue | undefined,
    stride: Stride,
  ): Generator<void, void>;
  /** Does the work of `read` in steps, for values that contain others. */
  readSteps?(reader: WireReader, at: SteppedRead): Generator<void, JsonValue>;
}

/**
 * Returns the codec of a scalar, or of a type whose protobuf form does not follow from its JSON
 * form; undefined for other types.
 */
export function specialCodec(schema: Schema): ValueCodec | undefined {
  if (schema.typeName !== undefined && Object.hasOwn(byName, schema.typeName)) {
    return byName[schema.typeName];
  }
  if (schema.type === 'string') return schema.format === 'byte' ? base64Bytes : text;
  if (schema.type === 'boolean') return boolean;
  if (schema.type === 'number') return double;
  if (schema.type === 'integer') return schema.format === 'int64' ? int64 : int32;
  return undefined;
}

const text: ValueCodec = {
  wireType: wireBytes,
  write: (writer, value) => writer.text(typeof value === 'string' ? value : ''),
  read: (reader) => textOf(reader.bytes()),
};

const base64Bytes: ValueCodec = {
  wireType: wireBytes,
  write: (writer, value) => writer.bytes(Buffer.from(String(value ?? ''), 'base64')),
  read: (reader) => reader.bytes().toString('base64'),
};

const boolean: ValueCodec = {
  wireType: wireVarint,
  write: (writer, value) => writer.boolean(value === true),
  read: (reader) => reader.boolean(),
};

const double: ValueCodec = {
  wireType: wireFixed64,
  write: (writer, value) => writer.double(Number(value ?? 0)),
  read: (reader) => reader.double(),
};

const integerOf = (value: JsonValue | undefined): number | bigint =>
  typeof value === 'number' || typeof value === 'bigint' ? value : 0;

const int32: ValueCodec = {
  wireType: wireVarint,
  write: (writer, value) => writer.int64(integerOf(value)),
  read: (reader) => reader.int32(),
};

const int64: ValueCodec = {
  wireType: wireVarint,
  write: (writer, value) => writer.int64(integerOf(value)),
  read: (reader) => reader.int64(),
};

/** Decodes a string; throws ProtobufError for invalid UTF-8. */
export function textOf(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw new ProtobufError('proto: string field contains invalid UTF-8');
  return bytes.toString('utf8');
}

/** The fields of a small message by number: each with its name in Go and its wire type. */
type SmallFields = Readonly<Record<number, readonly [name: string, wireType: number]>>;

/** Reads the fields of a small message by number; other fields are skipped. */
function fieldsOf(
  bytes: Buffer,
  message: string,
  { fields, each }: { readonly fields: SmallFields; readonly each?: (value: Buffer) => void },
) {
  const values = new Map<number, number | bigint | Buffer>();
  const reader = new WireReader(bytes);
  while (!reader.isDone) {
    const { number, wireType } = reader.key(message);
    const field = fields[number];
    if (field === undefined) {
      reader.skip(wireType);
      continue;
    }
    expectWire(wireType, field[1], field[0]);
    const value = wireType === wireBytes ? reader.bytes() : reader.int64();
    if (Buffer.isBuffer(value)) each?.(value);
    values.set(number, value);
  }
  return values;
}

/** Throws ProtobufError for a field of another wire type. */
export function expectWire(actual: number, expected: number, field: string): void {
  if (actual === expected) return;
  const place = field === '' ? '' : ` for field ${field}`;
  throw new ProtobufError(`proto: wrong wireType = ${actual}${place}`);
}

/** Returns the codec of a message, which precedes its content with the length. */
function message(codec: {
  write: (writer: WireWriter, value: JsonValue | undefined) => void;
  writeSteps?: ValueCodec['writeSteps'];
  /** @param before see `ValueCodec.read` */
  read: (bytes: Buffer, before: JsonValue | undefined) => JsonValue;
}): ValueCodec {
  const { writeSteps } = codec;
  return {
    wireType: wireBytes,
    ...(writeSteps !== undefined && {
      *writeSteps(writer, value, stride) {
        const before = writer.length;
        yield* writeSteps(writer, value, stride);
        writer.lengthSince(before);
      },
    }),
    write(writer, value) {
      const before = writer.length;
      codec.write(writer, value);
      writer.lengthSince(before);
    },
    read: (reader, _depth, before) => codec.read(reader.bytes(), before),
  };
}

/** Returns the codec of times. A zero time is an empty message, which is read as null. */
function time(digits: 0 | 6): ValueCodec {
  return message({
    write(writer, value) {
      if (typeof value !== 'string' || value === '') return;
      const { seconds, nanos } = instantOf(value);
      writer.int64(nanos);
      writer.key(2, wireVarint);
      writer.int64(seconds);
      writer.key(1, wireVarint);
    },
    read(bytes) {
      if (bytes.length === 0) return null;
      const values = fieldsOf(bytes, 'Timestamp', { fields: timeFields });
      const seconds = Number(values.get(1) ?? 0);
      const nanos = Number(BigInt.asIntN(32, BigInt(asInteger(values.get(2)))));
      return formatInstant({ seconds, nanos, digits });
    },
  });
}

const timeFields: SmallFields = { 1: ['Seconds', wireVarint], 2: ['Nanos', wireVarint] };

const wholeSecondsLength = '2006-01-02T15:04:05Z'.length;

function instantOf(value: string): { seconds: number; nanos: number } {
  if (value.length === wholeSecondsLength) {
    return { seconds: Math.floor(Date.parse(value) / 1000), nanos: 0 };
  }
  const fraction = /\.(\d{1,9})/.exec(value)?.[1] ?? '';
  const whole = value.replace(/\.\d+/, '');
  const seconds = Math.floor(Date.parse(whole) / 1000);
  return { seconds, nanos: Number(fraction.padEnd(9, '0')) };
}

const secondsMax = 253_402_300_799;
const secondsMin = -62_135_596_800;
const nanosPerSecond = 1_000_000_000;

/**
 * Formats an instant. Nanoseconds, which count only with microseconds, may be outside of a second,
 * and are cut towards zero.
 */
function formatInstant(at: { seconds: number; nanos: number; digits: 0 | 6 }): string {
  const nanos = at.digits === 0 ? 0 : at.nanos - (at.nanos % 1000);
  const overflow = Math.floor(nanos / nanosPerSecond);
  const seconds = at.seconds + overflow;
  if (!(seconds >= secondsMin && seconds <= secondsMax)) {
    throw new ProtobufError('a time is out of range');
  }
  const whole = new Date(seconds * 1000).toISOString().slice(0, 19);
  if (at.digits === 0) return `${whole}Z`;
  const micros = Math.floor((nanos - overflow * nanosPerSecond) / 1000);
  return `${whole}.${String(micros).padStart(6, '0')}Z`;
}

const duration = message({
  write(writer, value) {
    writer.int64(typeof value === 'string' ? (parseGoDuration(value) ?? 0n) : 0);
    writer.key(1, wireVarint);
  },
  read(bytes, before) {
    const value = fieldsOf(bytes, 'Duration', { fields: { 1: ['Duration', wireVarint] } }).get(1);
    if (value === undefined && before !== undefined) return before;
    return printGoDuration(BigInt(asInteger(value)));
  },
});

const asInteger = (value: number | bigint | Buffer | undefined): number | bigint =>
  typeof value === 'number' || typeof value === 'bigint' ? value : 0;

const quantity = message({
  write(writer, value) {
    writer.text(value === undefined || value === null ? '0' : String(value));
    writer.key(1, wireBytes);
  },
  read(bytes, before) {
    const value = fieldsOf(bytes, 'Quantity', {
      fields: { 1: ['String_', wireBytes] },
      each: checkQuantity,
    }).get(1);
    return value === undefined ? (before ?? '0') : textField(value);
  },
});

/** Throws ProtobufError unless a text is a quantity, as the parser of each occurrence does. */
function checkQuantity(value: Buffer): void {
  const parsed = parseQuantity(textOf(value));
  if ('error' in parsed) throw new ProtobufError(String(parsed.error));
}

const textField = (value: number | bigint | Buffer | undefined): string =>
  Buffer.isBuffer(value) ? textOf(value) : '';

const intOrString = message({
  write(writer, value) {
    const isText = typeof value === 'string';
    writer.text(isText ? value : '');
    writer.key(3, wireBytes);
    writer.int64(isText ? 0 : integerOf(value));
    writer.key(2, wireVarint);
    writer.int64(isText ? 1 : 0);
    writer.key(1, wireVarint);
  },
  read(bytes, before) {
    const values = fieldsOf(bytes, 'IntOrString', { fields: intOrStringFields });
    const isTextBefore = typeof before === 'string';
    const isText = values.has(1) ? asInteger(values.get(1)) !== 0 : isTextBefore;
    if (isText) return values.has(3) ? textField(values.get(3)) : isTextBefore ? before : '';
    const value = values.get(2) ?? (isTextBefore ? 0 : integerOf(before));
    return Number(BigInt.asIntN(32, BigInt(asInteger(value))));
  },
});

const intOrStringFields: SmallFields = {
  1: ['Type', wireVarint],
  2: ['IntVal', wireVarint],
  3: ['StrVal', wireBytes],
};

/** The codec of JSON inside protobuf: a raw extension, a set of fields, or a default. */
const rawJson = (name: string): ValueCodec =>
  message({
    write(writer, value) {
      if (value === undefined) return;
      writer.bytes(encodeJson(value));
      writer.key(1, wireBytes);
    },
    *writeSteps(writer, value) {
      if (value === undefined) return;
      writer.bytes(yield* encodeJsonSteps(value));
      writer.key(1, wireBytes);
    },
    read(bytes, before) {
      const raw = fieldsOf(bytes, name, { fields: { 1: ['Raw', wireBytes] } }).get(1);
      if (raw === undefined && before !== undefined) return before;
      if (!Buffer.isBuffer(raw) || raw.length === 0) return null;
      countValues(scanJson(raw).values);
      try {
        return decodeJson(raw).value;
      } catch (error) {
        if (error instanceof JsonError) throw new ProtobufError(error.message);
        throw error;
      }
    },
  });

const byName: Readonly<Record<string, ValueCodec>> = {
  'meta.v1.Time': time(0),
  'meta.v1.MicroTime': time(6),
  'meta.v1.Duration': duration,
  'meta.v1.FieldsV1': rawJson('FieldsV1'),
  'resource.Quantity': quantity,
  'intstr.IntOrString': intOrString,
  'runtime.RawExtension': rawJson('RawExtension'),
  'apiextensions.v1.JSON': rawJson('JSON'),
  'apiextensions.v1beta1.JSON': rawJson('JSON'),
};

/**
 * Returns the codec of a value of one of several types in JSON (a schema, a list of schemas, a
 * boolean): a message with a field for each type.
 * @param compile returns the codec of the message
 */
export function alternativesCodec(
  { object, list, boolean }: Alternatives,
  compile: (message: Schema) => ValueCodec,
): ValueCodec {
  const members: [string, Property][] = [];
  const addObject = (number: number): void => {
    if (object !== undefined) members.push(['object', { schema: object, number, pointer: true }]);
  };
  if (boolean === true) {
    members.push(['allows', { schema: { type: 'boolean', typed: true }, number: 1 }]);
    addObject(2);
  } else {
    addObject(1);
    if (list !== undefined) members.push(['list', { schema: list, number: 2 }]);
  }
  const codec = compile({ type: 'object', typed: true, properties: new Map(members) });
  return {
    wireType: codec.wireType,
    write: (writer, value) => codec.write(writer, messageOf(value)),
    read(reader, depth, before) {
      const message = before === undefined ? undefined : messageOf(before);
      return valueIn(jsonObject(codec.read(reader, depth, message)), boolean === true);
    },
    *writeSteps(writer, value, stride) {
      if (codec.writeSteps === undefined) codec.write(writer, messageOf(value));
      else yield* codec.writeSteps(writer, messageOf(value), stride);
    },
    *readSteps(reader, at) {
      if (codec.readSteps === undefined) throw new Error('a message is read in steps');
      const before = at.before === undefined ? undefined : messageOf(at.before);
      const message = yield* codec.readSteps(reader, { ...at, before });
      return valueIn(jsonObject(message), boolean === true);
    },
  };
}

function messageOf(value: JsonValue | undefined): JsonObject {
  if (Array.isArray(value)) return { list: value };
  // kube-apiserver sets `allows` for a schema too.
  return isObject(value) ? { allows: true, object: value } : { allows: value === true };
}

function valueIn({ allows, object, list }: JsonObject, isBoolean: boolean): JsonValue {
  if (object !== undefined) return object;
  if (isBoolean) return allows === true;
  return list ?? null;
}

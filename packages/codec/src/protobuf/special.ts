import { isUtf8 } from 'node:buffer';
import {
  isObject,
  type JsonObject,
  type JsonValue,
  jsonObject,
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

/** Reads the fields of a small message by number; other fields are skipped. */
function fieldsOf(bytes: Buffer, wireTypes: Readonly<Record<number, number>>) {
  const fields = new Map<number, number | bigint | Buffer>();
  const reader = new WireReader(bytes);
  while (!reader.isDone) {
    const { number, wireType } = reader.key();
    const expected = wireTypes[number];
    if (expected === undefined) reader.skip(wireType);
    else if (expected !== wireType) throw new ProtobufError(`proto: wrong wireType = ${wireType}`);
    else fields.set(number, wireType === wireBytes ? reader.bytes() : reader.int64());
  }
  return fields;
}

/** Returns the codec of a message, which precedes its content with the length. */
function message(codec: {
  write: (writer: WireWriter, value: JsonValue | undefined) => void;
  writeSteps?: ValueCodec['writeSteps'];
  read: (bytes: Buffer) => JsonValue;
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
    read: (reader) => codec.read(reader.bytes()),
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
      const fields = fieldsOf(bytes, { 1: wireVarint, 2: wireVarint });
      const seconds = Number(fields.get(1) ?? 0);
      const nanos = Number(fields.get(2) ?? 0);
      return formatInstant({ seconds, nanos, digits });
    },
  });
}

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

/** Formats an instant; nanoseconds outside of a second count as whole seconds, too. */
function formatInstant(at: { seconds: number; nanos: number; digits: 0 | 6 }): string {
  const overflow = Math.floor(at.nanos / nanosPerSecond);
  const seconds = at.seconds + overflow;
  if (!(seconds >= secondsMin && seconds <= secondsMax)) {
    throw new ProtobufError('a time is out of range');
  }
  const whole = new Date(seconds * 1000).toISOString().slice(0, 19);
  if (at.digits === 0) return `${whole}Z`;
  const micros = Math.floor((at.nanos - overflow * nanosPerSecond) / 1000);
  return `${whole}.${String(micros).padStart(6, '0')}Z`;
}

const duration = message({
  write(writer, value) {
    writer.int64(typeof value === 'string' ? (parseGoDuration(value) ?? 0n) : 0);
    writer.key(1, wireVarint);
  },
  read: (bytes) => printGoDuration(BigInt(asInteger(fieldsOf(bytes, { 1: wireVarint }).get(1)))),
});

const asInteger = (value: number | bigint | Buffer | undefined): number | bigint =>
  typeof value === 'number' || typeof value === 'bigint' ? value : 0;

const quantity = message({
  write(writer, value) {
    writer.text(value === undefined || value === null ? '0' : String(value));
    writer.key(1, wireBytes);
  },
  read: (bytes) => textField(fieldsOf(bytes, { 1: wireBytes }).get(1)) || '0',
});

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
  read(bytes) {
    const fields = fieldsOf(bytes, { 1: wireVarint, 2: wireVarint, 3: wireBytes });
    return asInteger(fields.get(1)) === 0 ? asInteger(fields.get(2)) : textField(fields.get(3));
  },
});

/** The codec of JSON inside protobuf: a raw extension, a set of fields, or a default. */
const rawJson = message({
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
  read(bytes) {
    const raw = fieldsOf(bytes, { 1: wireBytes }).get(1);
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
  'meta.v1.FieldsV1': rawJson,
  'resource.Quantity': quantity,
  'intstr.IntOrString': intOrString,
  'runtime.RawExtension': rawJson,
  'apiextensions.v1.JSON': rawJson,
  'apiextensions.v1beta1.JSON': rawJson,
};

/**
 * Returns the codec of a value with several shapes in JSON (a schema, a list of schemas, a
 * boolean): a message with a field for each shape.
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
    read: (reader, depth) => valueIn(jsonObject(codec.read(reader, depth)), boolean === true),
    *writeSteps(writer, value, stride) {
      if (codec.writeSteps === undefined) codec.write(writer, messageOf(value));
      else yield* codec.writeSteps(writer, messageOf(value), stride);
    },
    *readSteps(reader, at) {
      if (codec.readSteps === undefined) throw new Error('a message is read in steps');
      return valueIn(jsonObject(yield* codec.readSteps(reader, at)), boolean === true);
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

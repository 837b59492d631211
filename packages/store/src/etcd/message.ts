import { WireReader, WireWriter, wireBytes, wireFixed64, wireVarint } from '@wheelhouse/codec';

/**
 * Protobuf messages declared as tables of numbered fields. Supports what etcd's protocol needs:
 * integers, booleans, bytes, strings, messages, and lists of them.
 */

/**
 * The encoding of one type of value. Values for which `isUnset` holds are omitted, as in proto3.
 */
export interface ValueForm<Value> {
  readonly wireType: number;
  readonly unset: Value;
  isUnset(value: Value): boolean;
  write(writer: WireWriter, value: Value): void;
  read(reader: WireReader): Value;
}

interface Field<Value> {
  readonly number: number;
  readonly wireType: number;
  write(writer: WireWriter, value: Value): void;
  /** Returns the value after one more occurrence of the field. */
  read(reader: WireReader, before: Value): Value;
  initial(): Value;
}

type Fields = Readonly<Record<string, Field<unknown>>>;

type ValueOf<F> = F extends Field<infer Value> ? Value : never;

/** Encodes and decodes a message as a plain object. */
export interface MessageForm<Values> {
  encode(values: Partial<Values>): Buffer;
  /** Writes the message in front of the bytes written so far. */
  write(writer: WireWriter, values: Partial<Values>): void;
  /** Skips unknown fields. Throws ProtobufError. */
  decode(bytes: Buffer): Values;
}

/** A 64-bit integer that fits a number: a revision, a count, or seconds. */
export const integer: ValueForm<number> = {
  wireType: wireVarint,
  unset: 0,
  isUnset: (value) => value === 0,
  write: (writer, value) => writer.int64(value),
  read: (reader) => Number(reader.int64()),
};

/** A 64-bit identifier with arbitrary bits. */
export const identifier: ValueForm<number | bigint> = {
  wireType: wireVarint,
  unset: 0,
  isUnset: (value) => value === 0,
  write: (writer, value) => writer.int64(value),
  read: (reader) => reader.int64(),
};

/** A boolean. */
export const boolean: ValueForm<boolean> = {
  wireType: wireVarint,
  unset: false,
  isUnset: (value) => !value,
  write: (writer, value) => writer.boolean(value),
  read: (reader) => reader.boolean(),
};

/** A 64-bit number of fixed length, such as a time in nanoseconds. */
export const fixed64: ValueForm<bigint> = {
  wireType: wireFixed64,
  unset: 0n,
  isUnset: (value) => value === 0n,
  write: (writer, value) => writer.fixed64(value),
  read: (reader) => reader.fixed64(),
};

const nothing = Buffer.alloc(0);

/** Bytes, which share memory with the decoded message. */
export const bytes: ValueForm<Buffer> = {
  wireType: wireBytes,
  unset: nothing,
  isUnset: (value) => value.length === 0,
  write: (writer, value) => writer.bytes(value),
  read: (reader) => reader.bytes(),
};

/** A string. */
export const text: ValueForm<string> = {
  wireType: wireBytes,
  unset: '',
  isUnset: (value) => value === '',
  write: (writer, value) => writer.text(value),
  read: (reader) => reader.bytes().toString('utf8'),
};

/** A nested message; undefined if it is absent. */
export function nested<Values>(form: MessageForm<Values>): ValueForm<Values | undefined> {
  return {
    wireType: wireBytes,
    unset: undefined,
    isUnset: (value) => value === undefined,
    write(writer, value) {
      const before = writer.length;
      form.write(writer, value ?? {});
      writer.lengthSince(before);
    },
    read: (reader) => form.decode(reader.bytes()),
  };
}

/** Like `nested`, for messages to send, of which only some fields are set. */
export function sent<Values>(form: MessageForm<Values>): ValueForm<Partial<Values> | undefined> {
  return nested(form) as ValueForm<Partial<Values> | undefined>;
}

/** A singular field. */
export function one<Value>(number: number, form: ValueForm<Value>): Field<Value> {
  return {
    number,
    wireType: form.wireType,
    write(writer, value) {
      if (form.isUnset(value)) return;
      form.write(writer, value);
      writer.key(number, form.wireType);
    },
    read: (reader) => form.read(reader),
    initial: () => form.unset,
  };
}

/** A field of a `oneof`, which is written even if its value is the default. */
export function chosen<Value>(number: number, form: ValueForm<Value>): Field<Value | undefined> {
  return {
    number,
    wireType: form.wireType,
    write(writer, value) {
      if (value === undefined) return;
      form.write(writer, value);
      writer.key(number, form.wireType);
    },
    read: (reader) => form.read(reader),
    initial: () => undefined,
  };
}

/** A repeated field. */
export function many<Value>(
  number: number,
  form: ValueForm<Value>,
): Field<Exclude<Value, undefined>[]> {
  return {
    number,
    wireType: form.wireType,
    write(writer, values) {
      for (const value of values.toReversed()) {
        form.write(writer, value);
        writer.key(number, form.wireType);
      }
    },
    read(reader, before) {
      before.push(form.read(reader) as Exclude<Value, undefined>);
      return before;
    },
    initial: () => [],
  };
}

/** Declares a message by its fields. */
export function message<Declared extends Fields>(
  declared: Declared,
): MessageForm<{ [Name in keyof Declared]: ValueOf<Declared[Name]> }> {
  type Values = { [Name in keyof Declared]: ValueOf<Declared[Name]> };
  const fields = Object.entries(declared) as [keyof Declared & string, Field<unknown>][];
  const backwards = fields.toReversed();
  const byNumber = new Map(fields.map(([name, field]) => [field.number, { name, field }]));
  const write = (writer: WireWriter, values: Partial<Values>): void => {
    for (const [name, field] of backwards) {
      const value = values[name];
      if (value !== undefined) field.write(writer, value);
    }
  };
  return {
    write,
    encode(values) {
      const writer = new WireWriter();
      write(writer, values);
      return writer.finish();
    },
    decode(encoded) {
      const values: Record<string, unknown> = {};
      for (const [name, field] of fields) values[name] = field.initial();
      const reader = new WireReader(encoded);
      while (!reader.isDone) {
        const { number, wireType } = reader.key();
        const entry = byNumber.get(number);
        if (entry === undefined || entry.field.wireType !== wireType) reader.skip(wireType);
        else values[entry.name] = entry.field.read(reader, values[entry.name]);
      }
      return values as Values;
    },
  };
}

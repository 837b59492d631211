import { isUtf8 } from 'node:buffer';
import {
  isObject,
  type JsonObject,
  type JsonValue,
  member,
  setMember,
} from '@wheelhouse/machinery';
import { type Property, resolved, type Schema } from '@wheelhouse/schema';
import { alternativesCodec } from './alternatives.ts';
import { specialCodec } from './special.ts';
import type { ValueCodec } from './value-codec.ts';
import { countValues } from './value-count.ts';
import {
  ProtobufError,
  WireReader as Reader,
  type WireReader,
  type WireWriter,
  wireBytes,
} from './wire.ts';

/** Messages inside each other that a reader follows; types that contain themselves have no bound. */
const depthMax = 250;

const codecs = new WeakMap<Schema, ValueCodec>();

/** The codec of a built-in type, compiled from its schema's field numbers (CODEC-3). */
export function codecOf(schema: Schema): ValueCodec {
  const at = resolved(schema);
  const cachedCodec = codecs.get(at);
  if (cachedCodec !== undefined) return cachedCodec;
  const made = build(at);
  codecs.set(at, made);
  return made;
}

function build(schema: Schema): ValueCodec {
  const special = specialCodec(schema);
  if (special !== undefined) return special;
  if (schema.alternatives !== undefined) return alternativesCodec(schema.alternatives, codecOf);
  if (schema.type === 'array') return listMessage(schema);
  if (schema.properties !== undefined) return structMessage(schema);
  throw new Error(
    `no protobuf form for ${schema.typeName ?? schema.type ?? 'a value of any type'}`,
  );
}

/** A named list is a message of its own, the list in field 1. */
function listMessage(schema: Schema): ValueCodec {
  const items: FieldCodec = repeatedField(1, () => codecOf(schema.items as Schema));
  return {
    wireType: wireBytes,
    write(writer, value) {
      const before = writer.length;
      items.write(writer, value);
      writer.lengthSince(before);
    },
    read(reader, depth) {
      const list: JsonValue[] = [];
      eachField(reader.bytes(), depth, (inner, key) => {
        if (key.number !== 1) return inner.skip(key.wireType);
        list.push(codecOf(schema.items as Schema).read(inner, depth + 1));
      });
      return list;
    },
  };
}

/** One member of a message. */
interface FieldCodec {
  readonly number: number;
  write(writer: WireWriter, value: JsonValue | undefined): void;
  read(into: Slot, reader: WireReader, at: { wireType: number; depth: number }): void;
}

interface Slot {
  readonly target: JsonObject;
  readonly name: string;
}

interface NamedField {
  readonly name: string;
  readonly field: FieldCodec;
}

/** The fields of a message by number; an embedded struct is a group of fields inside one number. */
interface Layout {
  readonly fields: NamedField[];
  readonly groups: Map<number, Layout>;
  /** The groups by descending number. */
  descending: readonly (readonly [number, Layout])[];
}

function structMessage(schema: Schema): ValueCodec {
  const layout = layoutOf(schema);
  return {
    wireType: wireBytes,
    write(writer, value) {
      writeLayout(writer, layout, isObject(value) ? value : {});
    },
    read(reader, depth) {
      const target: JsonObject = {};
      readLayout(reader.bytes(), { layout, target, depth });
      return target;
    },
  };
}

function layoutOf(schema: Schema): Layout {
  const root: Layout = emptyLayout();
  for (const [name, property] of schema.properties ?? []) {
    if (property.number === undefined) continue;
    let layout = root;
    for (const number of property.inlineIn ?? []) {
      let group = layout.groups.get(number);
      if (group === undefined) {
        group = emptyLayout();
        layout.groups.set(number, group);
      }
      layout = group;
    }
    layout.fields.push({ name, field: fieldCodec(property, property.number) });
  }
  sortDescending(root);
  return root;
}

const emptyLayout = (): Layout => ({ fields: [], groups: new Map(), descending: [] });

function sortDescending(layout: Layout): void {
  layout.fields.sort((one, other) => other.field.number - one.field.number);
  layout.descending = [...layout.groups].sort(([one], [other]) => other - one);
  for (const group of layout.groups.values()) sortDescending(group);
}

function writeLayout(writer: WireWriter, layout: Layout, value: JsonObject): void {
  const before = writer.length;
  const groups = layout.descending;
  let next = 0;
  for (const { name, field } of layout.fields) {
    while (next < groups.length && (groups[next] as (typeof groups)[number])[0] > field.number) {
      writeGroup(writer, groups[next] as (typeof groups)[number], value);
      next += 1;
    }
    field.write(writer, member(value, name));
  }
  for (; next < groups.length; next += 1) {
    writeGroup(writer, groups[next] as (typeof groups)[number], value);
  }
  writer.lengthSince(before);
}

function writeGroup(
  writer: WireWriter,
  [number, layout]: readonly [number, Layout],
  value: JsonObject,
): void {
  writeLayout(writer, layout, value);
  writer.key(number, wireBytes);
}

function readLayout(
  bytes: Buffer,
  into: { layout: Layout; target: JsonObject; depth: number },
): void {
  const { layout, target, depth } = into;
  eachField(bytes, depth, (reader, { number, wireType }) => {
    const group = layout.groups.get(number);
    if (group !== undefined) {
      expectWire(wireType, wireBytes);
      return readLayout(reader.bytes(), { layout: group, target, depth: depth + 1 });
    }
    const found = layout.fields.find(({ field }) => field.number === number);
    if (found === undefined) return reader.skip(wireType);
    found.field.read({ target, name: found.name }, reader, { wireType, depth });
  });
}

function eachField(
  bytes: Buffer,
  depth: number,
  visit: (reader: WireReader, key: { number: number; wireType: number }) => void,
): void {
  if (depth > depthMax) throw new ProtobufError('proto: message is nested too deeply');
  const reader = new Reader(bytes);
  while (!reader.isDone) {
    countValues();
    visit(reader, reader.key());
  }
}

function expectWire(actual: number, wanted: number): void {
  if (actual !== wanted) throw new ProtobufError(`proto: wrong wireType = ${actual}`);
}

/** Which form a field has is looked at when it is first used: its type may refer to itself. */
function fieldCodec(property: Property, number: number): FieldCodec {
  let codec: FieldCodec | undefined;
  const get = () => {
    codec ??= chooseField(property, number);
    return codec;
  };
  return {
    number,
    write: (writer, value) => get().write(writer, value),
    read: (into, reader, at) => get().read(into, reader, at),
  };
}

function chooseField(property: Property, number: number): FieldCodec {
  const schema = resolved(property.schema);
  if (schema.type === 'array' && schema.typeName === undefined) {
    return repeatedField(number, () => codecOf(schema.items as Schema));
  }
  if (schema.additionalProperties !== undefined) {
    return mapField(number, schema.additionalProperties);
  }
  return singleField(property, number);
}

function singleField(property: Property, number: number): FieldCodec {
  let codec: ValueCodec | undefined;
  const get = () => {
    codec ??= codecOf(property.schema);
    return codec;
  };
  const isOptional = property.pointer === true || isNilable(property.schema);
  return {
    number,
    write(writer, value) {
      if ((value === undefined || value === null) && isOptional) return;
      get().write(writer, value ?? undefined);
      writer.key(number, get().wireType);
    },
    read({ target, name }, reader, { wireType, depth }) {
      expectWire(wireType, get().wireType);
      const value = get().read(reader, depth + 1);
      const before = member(target, name);
      setMember(
        target,
        name,
        isObject(before) && isObject(value) ? { ...before, ...value } : value,
      );
    },
  };
}

/** Bytes and named lists are nil when absent, whether or not they are pointers. */
function isNilable(schema: Schema): boolean {
  const at = resolved(schema);
  return at.format === 'byte' || at.type === 'array' || at.additionalProperties !== undefined;
}

function repeatedField(number: number, codec: () => ValueCodec): FieldCodec {
  return {
    number,
    write(writer, value) {
      if (!Array.isArray(value)) return;
      for (let index = value.length - 1; index >= 0; index -= 1) {
        codec().write(writer, value[index]);
        writer.key(number, codec().wireType);
      }
    },
    read({ target, name }, reader, { wireType, depth }) {
      let list = member(target, name);
      if (!Array.isArray(list)) {
        list = [];
        setMember(target, name, list);
      }
      const isPacked = wireType === wireBytes && codec().wireType !== wireBytes;
      if (!isPacked) {
        expectWire(wireType, codec().wireType);
        list.push(codec().read(reader, depth + 1));
        return;
      }
      const packed = new Reader(reader.bytes());
      while (!packed.isDone) {
        countValues();
        list.push(codec().read(packed, depth + 1));
      }
    },
  };
}

/** A map is a list of entries, key in field 1 and value in 2; sorted by key. */
function mapField(number: number, valueSchema: Schema): FieldCodec {
  const codec = () => codecOf(valueSchema);
  return {
    number,
    write(writer, value) {
      if (!isObject(value)) return;
      const names = Object.keys(value).sort(byBytes);
      for (const name of names.reverse()) {
        const before = writer.length;
        codec().write(writer, value[name]);
        writer.key(2, codec().wireType);
        writer.text(name);
        writer.key(1, wireBytes);
        writer.lengthSince(before);
        writer.key(number, wireBytes);
      }
    },
    read({ target, name }, reader, { wireType, depth }) {
      expectWire(wireType, wireBytes);
      let map = member(target, name);
      if (!isObject(map)) {
        map = {};
        setMember(target, name, map);
      }
      const entry = readEntry(reader.bytes(), { codec: codec(), depth: depth + 1 });
      setMember(map, entry.name, entry.value);
    },
  };
}

function readEntry(
  bytes: Buffer,
  options: { codec: ValueCodec; depth: number },
): { name: string; value: JsonValue } {
  const { codec, depth } = options;
  let name = '';
  let value: JsonValue | undefined;
  eachField(bytes, depth, (reader, { number, wireType }) => {
    if (number === 1) {
      expectWire(wireType, wireBytes);
      name = textOf(reader.bytes());
    } else if (number === 2) {
      expectWire(wireType, codec.wireType);
      value = codec.read(reader, depth + 1);
    } else reader.skip(wireType);
  });
  return { name, value: value ?? codec.read(emptyReader(codec), depth + 1) };
}

/** What a map entry without a value holds: the type's zero. */
function emptyReader(codec: ValueCodec): WireReader {
  return new Reader(codec.wireType === 1 ? Buffer.alloc(8) : Buffer.from([0]));
}

/** A proto string; refused when it is not UTF-8. */
export function textOf(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw new ProtobufError('proto: string field contains invalid UTF-8');
  return bytes.toString('utf8');
}

function byBytes(one: string, other: string): number {
  return Buffer.compare(Buffer.from(one), Buffer.from(other));
}

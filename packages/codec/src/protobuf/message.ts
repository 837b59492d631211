import {
  compareText,
  isObject,
  itemAt,
  type JsonObject,
  type JsonValue,
  member,
  type Stride,
  setMember,
  sortSteps,
} from '@wheelhouse/machinery';
import { type Property, resolved, type Schema } from '@wheelhouse/schema';
import { goFieldName } from './go-names.ts';
import {
  alternativesCodec,
  expectWire,
  type SteppedRead,
  specialCodec,
  textOf,
  type ValueCodec,
} from './special.ts';
import {
  countValues,
  type FieldKey,
  ProtobufError,
  WireReader as Reader,
  type WireReader,
  type WireWriter,
  wireBytes,
} from './wire.ts';

/** Maximum nesting depth of messages, because recursive types have no limit. */
const depthMax = 250;

const codecs = new WeakMap<Schema, ValueCodec>();

/** Returns the codec of a type, compiled from the field numbers of its schema (CODEC-3). */
export function codecOf(schema: Schema): ValueCodec {
  const at = resolved(schema);
  const cachedCodec = codecs.get(at);
  if (cachedCodec !== undefined) return cachedCodec;
  const codec = build(at);
  codecs.set(at, codec);
  return codec;
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

/** Returns the codec of a named list type: a message with the list in field 1. */
function listMessage(schema: Schema): ValueCodec {
  const items: FieldCodec = repeatedField({ number: 1, name: 'Items' }, () =>
    codecOf(schema.items as Schema),
  );
  return {
    wireType: wireBytes,
    write(writer, value) {
      const before = writer.length;
      items.write(writer, value);
      writer.lengthSince(before);
    },
    *writeSteps(writer, value, stride) {
      const before = writer.length;
      if (items.writeSteps === undefined) items.write(writer, value);
      else yield* items.writeSteps(writer, value, stride);
      writer.lengthSince(before);
    },
    read(reader, depth) {
      const list: JsonValue[] = [];
      eachField(reader.bytes(), { depth, message: nameOf(schema) }, (inner, key) => {
        if (key.number !== 1) return inner.skip(key.wireType);
        list.push(codecOf(schema.items as Schema).read(inner, depth + 1));
      });
      return list;
    },
  };
}

/** A field of a message. */
interface FieldCodec {
  readonly number: number;
  write(writer: WireWriter, value: JsonValue | undefined): void;
  read(into: Slot, reader: WireReader, at: { wireType: number; depth: number }): void;
  /** See `ValueCodec`. */
  writeSteps?: ValueCodec['writeSteps'];
  /** See `ValueCodec`; for a length-delimited value. */
  readSteps?(into: Slot, reader: WireReader, at: SteppedRead): Generator<void, void>;
}

/** The member that a field is read into. */
interface Slot {
  readonly target: JsonObject;
  readonly name: string;
}

interface NamedField {
  readonly name: string;
  readonly field: FieldCodec;
}

/** The fields of a message by number. An embedded struct is a group of fields inside one field. */
interface Layout {
  /** The name of the message in errors. */
  readonly name: string;
  readonly fields: NamedField[];
  readonly groups: Map<number, Layout>;
  /** Groups by descending number. */
  descending: readonly (readonly [number, Layout])[];
}

function structMessage(schema: Schema): ValueCodec {
  const layout = layoutOf(schema);
  return {
    wireType: wireBytes,
    write(writer, value) {
      writeLayout(writer, layout, isObject(value) ? value : {});
    },
    read(reader, depth, before) {
      const target: JsonObject = isObject(before) ? before : {};
      readLayout(reader.bytes(), { layout, target, depth });
      return target;
    },
    writeSteps: (writer, value, stride) =>
      writeLayoutSteps(writer, { layout, value: isObject(value) ? value : {}, stride }),
    *readSteps(reader, { depth, stride, before }) {
      const target: JsonObject = isObject(before) ? before : {};
      yield* readLayoutSteps(reader.bytes(), { layout, target, depth, stride });
      return target;
    },
  };
}

function layoutOf(schema: Schema): Layout {
  const root: Layout = emptyLayout(nameOf(schema));
  for (const [name, property] of schema.properties ?? []) {
    if (property.number === undefined) continue;
    let layout = root;
    for (const number of property.inlineIn ?? []) {
      let group = layout.groups.get(number);
      if (group === undefined) {
        group = emptyLayout(root.name);
        layout.groups.set(number, group);
      }
      layout = group;
    }
    layout.fields.push({ name, field: fieldCodec(property, { number: property.number, name }) });
  }
  sortDescending(root);
  return root;
}

const emptyLayout = (name: string): Layout => ({
  name,
  fields: [],
  groups: new Map(),
  descending: [],
});

/** The name of a message in errors. */
const nameOf = ({ typeName = '' }: Schema) => typeName.slice(typeName.lastIndexOf('.') + 1);

function sortDescending(layout: Layout): void {
  layout.fields.sort((left, right) => right.field.number - left.field.number);
  layout.descending = [...layout.groups].sort(([left], [right]) => right - left);
  for (const group of layout.groups.values()) sortDescending(group);
}

function writeLayout(writer: WireWriter, layout: Layout, value: JsonObject): void {
  const before = writer.length;
  const groups = layout.descending;
  let next = 0;
  for (const { name, field } of layout.fields) {
    for (let group = groups[next]; group !== undefined && group[0] > field.number; ) {
      writeGroup(writer, group, value);
      next += 1;
      group = groups[next];
    }
    field.write(writer, member(value, name));
  }
  for (let group = groups[next]; group !== undefined; group = groups[next]) {
    writeGroup(writer, group, value);
    next += 1;
  }
  writer.lengthSince(before);
}

/** Does the work of `writeLayout` in steps. */
function* writeLayoutSteps(
  writer: WireWriter,
  of: { readonly layout: Layout; readonly value: JsonObject; readonly stride: Stride },
): Generator<void, void> {
  const { layout, value, stride } = of;
  const before = writer.length;
  const groups = layout.descending;
  let next = 0;
  for (const { name, field } of layout.fields) {
    for (let group = groups[next]; group !== undefined && group[0] > field.number; ) {
      yield* writeGroupSteps(writer, group, { value, stride });
      next += 1;
      group = groups[next];
    }
    const part = member(value, name);
    const { writeSteps } = field;
    if (stride.weigh(part) === 'light' || writeSteps === undefined) field.write(writer, part);
    else yield* writeSteps(writer, part, stride);
    if (stride.isOver) yield;
  }
  for (; next < groups.length; next += 1) {
    yield* writeGroupSteps(writer, itemAt(groups, next), { value, stride });
  }
  writer.lengthSince(before);
}

function* writeGroupSteps(
  writer: WireWriter,
  [number, layout]: readonly [number, Layout],
  of: { readonly value: JsonObject; readonly stride: Stride },
): Generator<void, void> {
  yield* writeLayoutSteps(writer, { ...of, layout });
  writer.key(number, wireBytes);
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
  eachField(bytes, { depth, message: layout.name }, (reader, { number, wireType }) => {
    const group = layout.groups.get(number);
    if (group !== undefined) {
      expectWire(wireType, wireBytes, '');
      return readLayout(reader.bytes(), { layout: group, target, depth: depth + 1 });
    }
    const layoutField = layout.fields.find(({ field }) => field.number === number);
    if (layoutField === undefined) return reader.skip(wireType);
    layoutField.field.read({ target, name: layoutField.name }, reader, { wireType, depth });
  });
}

/** Fields of at most this size in bytes are read in one piece. */
const pieceBytes = 4096;

/** Does the work of `readLayout` in steps. */
function* readLayoutSteps(
  bytes: Buffer,
  into: { layout: Layout; target: JsonObject } & SteppedRead,
): Generator<void, void> {
  const { layout, target, depth, stride } = into;
  checkDepth(depth);
  const reader = new Reader(bytes);
  while (!reader.isDone) {
    countValues();
    const { number, wireType } = reader.key(layout.name);
    const isLong = wireType === wireBytes && reader.nextLength > pieceBytes;
    const group = layout.groups.get(number);
    const layoutField = layout.fields.find(({ field }) => field.number === number);
    const inside: SteppedRead = { depth: depth + 1, stride };
    if (group !== undefined) {
      expectWire(wireType, wireBytes, '');
      yield* readLayoutSteps(reader.bytes(), { layout: group, target, ...inside });
    } else if (layoutField === undefined) reader.skip(wireType);
    else if (isLong && layoutField.field.readSteps !== undefined) {
      yield* layoutField.field.readSteps({ target, name: layoutField.name }, reader, {
        depth,
        stride,
      });
    } else layoutField.field.read({ target, name: layoutField.name }, reader, { wireType, depth });
    // A field that is read in one piece may contain several values.
    stride.count(isLong ? 1 : 4);
    if (stride.isOver) yield;
  }
}

function checkDepth(depth: number): void {
  if (depth > depthMax) throw new ProtobufError('proto: message is nested too deeply');
}

function eachField(
  bytes: Buffer,
  { depth, message }: { readonly depth: number; readonly message: string },
  visit: (reader: WireReader, key: { number: number; wireType: number }) => void,
): void {
  checkDepth(depth);
  const reader = new Reader(bytes);
  while (!reader.isDone) {
    countValues();
    visit(reader, reader.key(message));
  }
}

/** Returns the codec of a field, which is compiled on first use because types are recursive. */
function fieldCodec(property: Property, key: FieldName): FieldCodec {
  const { number } = key;
  let codec: FieldCodec | undefined;
  const get = () => {
    codec ??= chooseField(property, { ...key, name: goFieldName(key.name) });
    return codec;
  };
  return {
    number,
    write: (writer, value) => get().write(writer, value),
    read: (into, reader, at) => get().read(into, reader, at),
    *writeSteps(writer, value, stride) {
      const field = get();
      if (field.writeSteps === undefined) field.write(writer, value);
      else yield* field.writeSteps(writer, value, stride);
    },
    *readSteps(into, reader, at) {
      const field = get();
      if (field.readSteps !== undefined) yield* field.readSteps(into, reader, at);
      else field.read(into, reader, { wireType: wireBytes, depth: at.depth });
    },
  };
}

/** The number of a field, and its name in errors. */
interface FieldName {
  readonly number: number;
  readonly name: string;
}

function chooseField(property: Property, key: FieldName): FieldCodec {
  const schema = resolved(property.schema);
  if (schema.type === 'array' && schema.typeName === undefined) {
    return repeatedField(key, () => codecOf(schema.items as Schema));
  }
  if (schema.additionalProperties !== undefined) return mapField(key, schema.additionalProperties);
  return singleField(property, key);
}

function singleField(property: Property, { number, name: fieldName }: FieldName): FieldCodec {
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
      expectWire(wireType, get().wireType, fieldName);
      setMember(target, name, get().read(reader, depth + 1, member(target, name)));
    },
    *writeSteps(writer, value, stride) {
      const { writeSteps, wireType } = get();
      if (writeSteps === undefined || value === undefined || value === null) {
        this.write(writer, value);
        return;
      }
      yield* writeSteps(writer, value, stride);
      writer.key(number, wireType);
    },
    *readSteps({ target, name }, reader, { depth, stride }) {
      const { read, readSteps, wireType } = get();
      expectWire(wireBytes, wireType, fieldName);
      const before = member(target, name);
      const value =
        readSteps === undefined
          ? read(reader, depth + 1, before)
          : yield* readSteps(reader, { depth: depth + 1, stride, before });
      setMember(target, name, value);
    },
  };
}

/** Whether an absent value is nil without a pointer: bytes, lists, and maps are. */
function isNilable(schema: Schema): boolean {
  const at = resolved(schema);
  return at.format === 'byte' || at.type === 'array' || at.additionalProperties !== undefined;
}

function repeatedField(
  { number, name: fieldName }: FieldName,
  codec: () => ValueCodec,
): FieldCodec {
  return {
    number,
    write(writer, value) {
      if (!Array.isArray(value)) return;
      for (let index = value.length - 1; index >= 0; index -= 1) {
        codec().write(writer, value[index]);
        writer.key(number, codec().wireType);
      }
    },
    *writeSteps(writer, value, stride) {
      if (!Array.isArray(value)) return;
      const { write, writeSteps, wireType } = codec();
      for (let index = value.length - 1; index >= 0; index -= 1) {
        const item = value[index];
        if (stride.weigh(item) === 'light' || writeSteps === undefined) write(writer, item);
        else yield* writeSteps(writer, item, stride);
        writer.key(number, wireType);
        if (stride.isOver) yield;
      }
    },
    *readSteps({ target, name }, reader, { depth, stride }) {
      const { readSteps, wireType } = codec();
      if (wireType !== wireBytes || readSteps === undefined) {
        this.read({ target, name }, reader, { wireType: wireBytes, depth });
        return;
      }
      listAt(target, name).push(yield* readSteps(reader, { depth: depth + 1, stride }));
    },
    read({ target, name }, reader, { wireType, depth }) {
      const list = listAt(target, name);
      const isPacked = wireType === wireBytes && codec().wireType !== wireBytes;
      if (!isPacked) {
        expectWire(wireType, codec().wireType, fieldName);
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

/** Returns the list in a member, which is created if absent. */
function listAt(target: JsonObject, name: string): JsonValue[] {
  const present = member(target, name);
  if (Array.isArray(present)) return present;
  const list: JsonValue[] = [];
  setMember(target, name, list);
  return list;
}

/** Returns the codec of a map: entries with the key in field 1 and the value in field 2, sorted. */
function mapField({ number, name: fieldName }: FieldName, valueSchema: Schema): FieldCodec {
  const codec = () => codecOf(valueSchema);
  return {
    number,
    write(writer, value) {
      if (!isObject(value)) return;
      const names = Object.keys(value).sort(compareText);
      for (const name of names.reverse()) {
        const before = writer.length;
        codec().write(writer, value[name]);
        writeEntryHead(writer, { name, wireType: codec().wireType, before });
        writer.key(number, wireBytes);
      }
    },
    *writeSteps(writer, value, stride) {
      if (!isObject(value)) return;
      const { write, writeSteps, wireType } = codec();
      const names = yield* sortSteps(Object.keys(value), compareText);
      for (let at = names.length - 1; at >= 0; at -= 1) {
        const name = itemAt(names, at);
        const part = value[name];
        const before = writer.length;
        if (stride.weigh(part) === 'light' || writeSteps === undefined) write(writer, part);
        else yield* writeSteps(writer, part, stride);
        writeEntryHead(writer, { name, wireType, before });
        writer.key(number, wireBytes);
        if (stride.isOver) yield;
      }
    },
    read({ target, name }, reader, { wireType, depth }) {
      expectWire(wireType, wireBytes, fieldName);
      const entry = readEntry(reader.bytes(), { codec: codec(), depth: depth + 1 });
      setEntry(target, name, entry);
    },
    *readSteps({ target, name }, reader, at) {
      const entry = yield* readEntrySteps(reader.bytes(), { codec: codec(), ...at });
      setEntry(target, name, entry);
    },
  };
}

/** Writes the part of an entry that precedes its value. */
function writeEntryHead(
  writer: WireWriter,
  entry: { readonly name: string; readonly wireType: number; readonly before: number },
): void {
  writer.key(2, entry.wireType);
  writer.text(entry.name);
  writer.key(1, wireBytes);
  writer.lengthSince(entry.before);
}

/** An entry of a map. */
interface MapEntry {
  name: string;
  value: JsonValue | undefined;
}

/** Adds an entry to the map in a member, which is created if absent. */
function setEntry(target: JsonObject, name: string, entry: MapEntry): void {
  let map = member(target, name);
  if (!isObject(map)) {
    map = {};
    setMember(target, name, map);
  }
  setMember(map, entry.name, entry.value ?? null);
}

function readEntry(bytes: Buffer, options: { codec: ValueCodec; depth: number }): MapEntry {
  const { codec, depth } = options;
  const entry: MapEntry = { name: '', value: undefined };
  checkDepth(depth);
  const reader = new Reader(bytes);
  while (!reader.isDone) {
    countValues();
    readEntryField(reader, { key: reader.entryKey(), codec, depth, entry });
  }
  return withZero(entry, options);
}

/** Reads a field of an entry. kube-apiserver ignores the wire types of the key and the value. */
function readEntryField(
  reader: WireReader,
  of: { key: FieldKey; codec: ValueCodec; depth: number; entry: MapEntry },
): void {
  const { key, codec, depth, entry } = of;
  if (key.number === 1) {
    entry.name = textOf(reader.bytes());
  } else if (key.number === 2) {
    entry.value = codec.read(reader, depth + 1);
  } else reader.skip(key.wireType);
}

/** Sets the value of an entry without one to the zero value. */
function withZero(entry: MapEntry, { codec, depth }: { codec: ValueCodec; depth: number }) {
  entry.value ??= codec.read(emptyReader(codec), depth + 1);
  return entry;
}

/** Does the work of `readEntry` in steps. */
function* readEntrySteps(
  bytes: Buffer,
  options: { codec: ValueCodec } & SteppedRead,
): Generator<void, MapEntry> {
  const { codec, depth, stride } = options;
  checkDepth(depth + 1);
  const entry: MapEntry = { name: '', value: undefined };
  const reader = new Reader(bytes);
  while (!reader.isDone) {
    countValues();
    const key = reader.entryKey();
    if (key.number === 2 && codec.readSteps !== undefined) {
      entry.value = yield* codec.readSteps(reader, { depth: depth + 2, stride });
    } else readEntryField(reader, { key, codec, depth: depth + 1, entry });
    stride.count();
    if (stride.isOver) yield;
  }
  return withZero(entry, { codec, depth: depth + 1 });
}

/** Returns a reader from which a codec reads its zero value. */
function emptyReader(codec: ValueCodec): WireReader {
  return new Reader(codec.wireType === 1 ? Buffer.alloc(8) : Buffer.from([0]));
}

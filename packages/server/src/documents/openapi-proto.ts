import { encodeYaml } from '@wheelhouse/codec';
import { isObject, type JsonObject, type JsonValue } from '@wheelhouse/machinery';

/**
 * Encodes OpenAPI documents as protobuf, which some clients request, by tables of message descriptors.
 * Messages are written backward, so that the length of each is known when its header is written.
 */

/** `string`, `bool`, `int`, `double`, `any` (YAML in a string), or the name of a message. */
export type FieldType = string;

/** How a JSON value maps to a message. Members without a field are omitted. */
export interface MessageDescriptor {
  /** The number and type of each member's field; a type that ends with `*` is repeated. */
  readonly fields?: Readonly<Record<string, readonly [number: number, type: FieldType]>>;
  /** The field for all other members, as pairs of name (1) and value (2). */
  readonly named?: readonly [number: number, type: FieldType];
  /** The number of the field for members that begin with `x-`, as pairs of name and YAML. */
  readonly extensions?: number;
  /** Returns the field for the value itself; undefined to omit the value. */
  readonly wrap?: (value: JsonValue) => readonly [number: number, type: FieldType] | undefined;
}

/** Message descriptors by name. The descriptor of a whole document is named `Document`. */
export type MessageDescriptors = Readonly<Record<string, MessageDescriptor>>;

/** Encodes a document as protobuf with the messages of its OpenAPI version, in steps (TRUST-2). */
export function* openApiProto(
  messages: MessageDescriptors,
  document: JsonObject,
): Generator<void, Buffer> {
  const writer = new BackwardWriter(messages);
  yield* documentSteps(writer, document);
  return writer.bytes();
}

/** Number of definitions or paths in one step, one or two milliseconds of work. */
const namedPerStep = 8;

/** The members of a document, in each of which the named messages are written in steps. */
function* documentSteps(writer: BackwardWriter, document: JsonObject): Generator<void> {
  const descriptor = descriptorOf(writer, 'Document');
  for (const member of Object.keys(document).reverse()) {
    const memberValue = document[member];
    const [number = 0, type = ''] = fieldOf(descriptor, member);
    const isWide = isObject(memberValue) && Object.hasOwn(writer.messages, type);
    if (!isWide) {
      if (memberValue !== undefined) writeMember(writer, descriptor, { member, memberValue });
      continue;
    }
    const end = writer.begin();
    yield* wideSteps(writer, type, memberValue);
    writer.end(number, end);
  }
}

/** A message whose members are written in steps, and so are those of its components. */
function* wideSteps(writer: BackwardWriter, type: string, value: JsonObject): Generator<void> {
  const descriptor = descriptorOf(writer, type);
  if (descriptor.wrap !== undefined) {
    writeMessage(writer, type, value);
    return;
  }
  let written = 0;
  for (const member of Object.keys(value).reverse()) {
    const memberValue = value[member];
    if (memberValue === undefined) continue;
    const [number = 0, inner = ''] = fieldOf(descriptor, member);
    if (isObject(memberValue) && inner.startsWith('Schemas')) {
      const end = writer.begin();
      yield* wideSteps(writer, inner, memberValue);
      writer.end(number, end);
    } else writeMember(writer, descriptor, { member, memberValue });
    written += 1;
    if (written % namedPerStep === 0) yield;
  }
}

/** The field of a member that the descriptor names; an empty list for other members. */
function fieldOf({ fields }: MessageDescriptor, member: string): readonly [number, FieldType] | [] {
  return fields !== undefined && Object.hasOwn(fields, member) ? (fields[member] ?? []) : [];
}

function descriptorOf(writer: BackwardWriter, name: string): MessageDescriptor {
  const descriptor = writer.messages[name];
  if (descriptor === undefined) throw new Error(`unknown message ${name}`);
  return descriptor;
}

function writeMessage(writer: BackwardWriter, name: string, value: JsonValue): void {
  const descriptor = descriptorOf(writer, name);
  if (descriptor.wrap !== undefined) {
    const field = descriptor.wrap(value);
    if (field !== undefined) writeOneOf(writer, { number: field[0], type: field[1] }, value);
    return;
  }
  if (!isObject(value)) return;
  for (const member of Object.keys(value).reverse()) {
    const memberValue = value[member];
    if (memberValue !== undefined) writeMember(writer, descriptor, { member, memberValue });
  }
}

function writeMember(
  writer: BackwardWriter,
  descriptor: MessageDescriptor,
  { member, memberValue }: { member: string; memberValue: JsonValue },
): void {
  const [number, type] = fieldOf(descriptor, member);
  if (number !== undefined && type !== undefined) {
    writeField(writer, { number, type }, memberValue);
  } else if (member.startsWith('x-') && descriptor.extensions !== undefined) {
    writeNamed(writer, { number: descriptor.extensions, type: 'any' }, { member, memberValue });
  } else if (descriptor.named !== undefined) {
    const [number, type] = descriptor.named;
    writeNamed(writer, { number, type }, { member, memberValue });
  }
}

interface Field {
  readonly number: number;
  readonly type: FieldType;
}

function writeNamed(
  writer: BackwardWriter,
  { number, type }: Field,
  { member, memberValue }: { member: string; memberValue: JsonValue },
): void {
  writer.delimited(number, () => {
    writeField(writer, { number: 2, type }, memberValue);
    writeField(writer, { number: 1, type: 'string' }, member);
  });
}

/** Members of a `oneof` are also written when zero, which says which of them is set. */
function writeOneOf(writer: BackwardWriter, field: Field, value: JsonValue): void {
  switch (field.type) {
    case 'bool':
      writer.varint(field.number, value === true ? 1 : 0);
      return;
    case 'double':
      writer.double(field.number, Number(value));
      return;
    default:
      writeField(writer, field, value);
  }
}

function writeField(writer: BackwardWriter, { number, type }: Field, value: JsonValue): void {
  if (type.endsWith('*')) {
    const items = Array.isArray(value) ? value : [];
    for (const item of [...items].reverse()) {
      writeField(writer, { number, type: type.slice(0, -1) }, item);
    }
    return;
  }
  switch (type) {
    case 'string':
      writer.delimited(number, () => writer.text(String(value)));
      return;
    case 'any':
      writer.delimited(number, () => {
        writer.delimited(2, () => writer.text(encodeYaml(value)));
      });
      return;
    case 'bool':
      if (value === true) writer.varint(number, 1);
      return;
    case 'int':
      if (Number(value) !== 0) writer.varint(number, Number(value));
      return;
    case 'double':
      if (Number(value) !== 0) writer.double(number, Number(value));
      return;
    default:
      writer.delimited(number, () => writeMessage(writer, type, value));
  }
}

/** Writes protobuf's wire format from the last byte to the first. */
class BackwardWriter {
  readonly messages: MessageDescriptors;
  #buffer = Buffer.allocUnsafe(64 * 1024);
  /** Offset of the first written byte. */
  #start = this.#buffer.length;

  constructor(messages: MessageDescriptors) {
    this.messages = messages;
  }

  bytes(): Buffer {
    return Buffer.from(this.#buffer.subarray(this.#start));
  }

  text(value: string): void {
    const length = Buffer.byteLength(value);
    this.#reserve(length);
    this.#start -= length;
    this.#buffer.write(value, this.#start);
  }

  double(field: number, value: number): void {
    this.#reserve(8);
    this.#start -= 8;
    this.#buffer.writeDoubleLE(value, this.#start);
    this.#number((field << 3) | 1);
  }

  varint(field: number, value: number): void {
    this.#number(value);
    this.#number(field << 3);
  }

  /** Writes a length-delimited field; `write` writes its content. */
  delimited(field: number, write: () => void): void {
    const end = this.begin();
    write();
    this.end(field, end);
  }

  /** Begins the content of a length-delimited field; returns its end for `end`. */
  begin(): number {
    return this.#buffer.length - this.#start;
  }

  /** Ends the content of a length-delimited field. */
  end(field: number, end: number): void {
    this.#number(this.#buffer.length - this.#start - end);
    this.#number((field << 3) | 2);
  }

  /** Writes a varint. Negative numbers are written as 64-bit two's complement. */
  #number(value: number): void {
    const groups: number[] = [];
    let rest = BigInt.asUintN(64, BigInt(Math.trunc(value)));
    if (value >= 0 && value < 128) groups.push(value);
    else {
      for (; rest > 127n; rest >>= 7n) groups.push(Number(rest & 127n) | 128);
      groups.push(Number(rest));
    }
    this.#reserve(groups.length);
    this.#start -= groups.length;
    for (const [index, group] of groups.entries()) this.#buffer[this.#start + index] = group;
  }

  #reserve(length: number): void {
    if (length <= this.#start) return;
    const done = this.#buffer.length - this.#start;
    const grown = Buffer.allocUnsafe(Math.max(this.#buffer.length * 2, done + length));
    this.#buffer.copy(grown, grown.length - done, this.#start);
    this.#buffer = grown;
    this.#start = grown.length - done;
  }
}

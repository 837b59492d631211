import { type JsonObject, jsonObject, Stride } from '@wheelhouse/machinery';
import type { Schema } from '@wheelhouse/schema';
import { codecOf } from './message.ts';
import {
  countingValues,
  countingValuesSteps,
  messageValuesMax,
  ProtobufError,
  WireReader,
  WireWriter,
  wireBytes,
} from './wire.ts';

/** `k8s` and a zero byte, the prefix of every protobuf body in every dialect. */
const magic = Buffer.from([0x6b, 0x38, 0x73, 0x00]);

/** The parts of an envelope, before the object in it is decoded. */
interface Envelope {
  readonly apiVersion: string;
  readonly kind: string;
  /** The encoded object. */
  readonly raw: Buffer;
}

/** Whether bytes have the prefix of protobuf bodies and stored values. */
export function isEnvelope(bytes: Buffer): boolean {
  return bytes.subarray(0, magic.length).equals(magic);
}

/**
 * Decodes the envelope of a body: the magic prefix and an `Unknown` message (CODEC-3).
 * @throws ProtobufError
 */
export function openEnvelope(body: Buffer): Envelope {
  if (body.length === 0) throw new ProtobufError('empty data');
  if (!isEnvelope(body)) {
    throw new ProtobufError(
      'provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]',
    );
  }
  if (body.length === magic.length) throw new ProtobufError('empty body');
  const unknown = lengthDelimited(body.subarray(magic.length), 'Unknown', unknownFields);
  const type = lengthDelimited(unknown[0] ?? noBytes, 'TypeMeta', typeFields);
  return { apiVersion: textIn(type[0]), kind: textIn(type[1]), raw: unknown[1] ?? noBytes };
}

const noBytes: Buffer = Buffer.alloc(0);
/** The fields of an `Unknown` message by number, from 1, as kube-apiserver names them. */
const unknownFields = ['TypeMeta', 'Raw', 'ContentEncoding', 'ContentType'];
/** The fields of a `TypeMeta` message. */
const typeFields = ['APIVersion', 'Kind'];

const textIn = (bytes: Buffer = noBytes): string => bytes.toString('utf8');

/**
 * The values of the named fields, which are length-delimited, of a message. An embedded message
 * that occurs repeatedly continues itself.
 */
function lengthDelimited(
  bytes: Buffer,
  message: string,
  names: readonly string[],
): readonly (Buffer | undefined)[] {
  const values: (Buffer | undefined)[] = names.map(() => undefined);
  const reader = new WireReader(bytes);
  while (!reader.isDone) {
    const { number, wireType } = reader.key(message);
    const name = names[number - 1];
    if (name === undefined) countingValues(messageValuesMax, () => reader.skip(wireType));
    else if (wireType !== wireBytes) {
      throw new ProtobufError(`proto: wrong wireType = ${wireType} for field ${name}`);
    } else {
      const before = name === 'TypeMeta' ? values[number - 1] : undefined;
      const value = reader.bytes();
      values[number - 1] = before === undefined ? value : Buffer.concat([before, value]);
    }
  }
  return values;
}

/**
 * Decodes an object without its envelope. The typed decoder must still apply the rules for zero
 * values.
 * @param options.valuesMax maximum number of values in the message; an entry of a map counts as
 *   three
 * @throws ProtobufError or TooManyValues
 */
export function decodeMessage(
  schema: Schema,
  raw: Buffer,
  { valuesMax = messageValuesMax }: { readonly valuesMax?: number } = {},
): JsonObject {
  return countingValues(valuesMax, () => jsonObject(codecOf(schema).read(delimited(raw), 0)));
}

/** Does the work of `decodeMessage` in steps (TRUST-2). */
export function* decodeMessageSteps(
  schema: Schema,
  raw: Buffer,
  { valuesMax = messageValuesMax }: { readonly valuesMax?: number } = {},
): Generator<void, JsonObject> {
  const { readSteps } = codecOf(schema);
  if (readSteps === undefined) return decodeMessage(schema, raw, { valuesMax });
  const work = readSteps(delimited(raw), { depth: 0, stride: new Stride() });
  return jsonObject(yield* countingValuesSteps(valuesMax, work));
}

/** Returns a reader of a message with its length, as inside another message. */
function delimited(raw: Buffer): WireReader {
  const writer = new WireWriter(raw.length + 16);
  writer.bytes(raw);
  return new WireReader(writer.finish());
}

/** Encodes an object without an envelope, for lists and watch frames. */
export function encodeMessage(schema: Schema, object: JsonObject): Buffer {
  return written((writer) => writeMessage(writer, schema, object));
}

/** Returns the bytes that `write` writes, in a buffer of exactly their size. */
function written(write: (writer: WireWriter) => void): Buffer {
  const writer = spareWriter ?? new WireWriter();
  spareWriter = undefined;
  write(writer);
  const bytes = writer.finish();
  const own = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(own);
  if (writer.clear()) spareWriter = writer;
  return own;
}

/** Does the work of `encodeMessage` in steps (TRUST-2). */
export function* encodeMessageSteps(schema: Schema, object: JsonObject): Generator<void, Buffer> {
  const { write, writeSteps } = codecOf(schema);
  // A separate writer, because the spare one may be used between steps.
  const writer = new WireWriter();
  if (writeSteps === undefined) write(writer, object);
  else yield* writeSteps(writer, object, new Stride());
  const own = withoutLength(writer, 0);
  const bytes = Buffer.allocUnsafeSlow(own.length);
  own.copy(bytes);
  return bytes;
}

/** Removes the length of a message that was written before the last `before` bytes. */
function withoutLength(writer: WireWriter, before: number): Buffer {
  const length = new WireReader(writer.finish()).bytes().length;
  writer.drop(writer.length - before - length);
  return writer.finish();
}

/** Writes an object without the length that its codec adds. */
function writeMessage(writer: WireWriter, schema: Schema, object: JsonObject): void {
  const before = writer.length;
  codecOf(schema).write(writer, object);
  withoutLength(writer, before);
}

/** An idle writer, whose memory is reused for consecutive messages. */
let spareWriter: WireWriter | undefined;

/** Encodes an object with its envelope; the bytes are those of kube-apiserver. */
export function encodeEnvelope(schema: Schema, object: JsonObject): Buffer {
  const type = { apiVersion: String(object.apiVersion ?? ''), kind: String(object.kind ?? '') };
  return written((writer) => {
    writer.raw(sealTail);
    const before = writer.length;
    writeMessage(writer, schema, object);
    writeHead(writer, type, writer.length - before);
  });
}

/** Does the work of `encodeEnvelope` in steps (TRUST-2). */
export function* encodeEnvelopeSteps(schema: Schema, object: JsonObject): Generator<void, Buffer> {
  const type = { apiVersion: String(object.apiVersion ?? ''), kind: String(object.kind ?? '') };
  return seal(type, yield* encodeMessageSteps(schema, object));
}

/** The type names in an envelope. */
export interface EnvelopeType {
  readonly apiVersion: string;
  readonly kind: string;
}

/** Wraps an encoded object in an envelope. */
export function seal(type: EnvelopeType, raw: Buffer): Buffer {
  return Buffer.concat([sealHead(type, raw.length), raw, sealTail]);
}

/** The empty fields at the end of an envelope. */
const sealTail = Buffer.from([0x1a, 0x00, 0x22, 0x00]);

/** Capacity that suffices for most heads. */
const headBytesMax = 128;

/** Returns the part of an envelope before an object of `length` bytes. */
function sealHead(type: EnvelopeType, length: number): Buffer {
  const writer = new WireWriter(headBytesMax);
  writeHead(writer, type, length);
  return writer.finish();
}

function writeHead(writer: WireWriter, type: EnvelopeType, length: number): void {
  writer.int64(length);
  writer.key(2, wireBytes);
  const before = writer.length;
  writer.text(type.kind);
  writer.key(2, wireBytes);
  writer.text(type.apiVersion);
  writer.key(1, wireBytes);
  writer.lengthSince(before);
  writer.key(1, wireBytes);
  writer.raw(magic);
}

/** Field numbers of a list. */
interface ListFields {
  readonly metadata: number;
  readonly items: number;
}

/** The field numbers of nearly all lists. */
export const usualListFields: ListFields = { metadata: 1, items: 2 };

/** The parts of a list around its items, which are encoded separately. */
export interface ListSeal {
  readonly type: EnvelopeType;
  /** The encoded list metadata. */
  readonly metadata: Buffer;
  readonly fields?: ListFields;
  /** Total size of the fields of the items: the sum of `itemFieldBytes`. */
  readonly itemsBytes: number;
}

/** Yields a list with its envelope in pieces; each item is a piece and is taken on demand. */
export function* sealedListPieces(list: ListSeal, items: Iterable<Buffer>): Generator<Buffer> {
  const { type, metadata, itemsBytes, fields = usualListFields } = list;
  const metadataField = [fieldHead(fields.metadata, metadata.length), metadata];
  const metadataBytes = metadataField.reduce((sum, { length }) => sum + length, 0);
  yield sealHead(type, metadataBytes + itemsBytes);
  const isMetadataFirst = fields.metadata < fields.items;
  if (isMetadataFirst) yield* metadataField;
  for (const item of items) {
    yield fieldHead(fields.items, item.length);
    yield item;
  }
  if (!isMetadataFirst) yield* metadataField;
  yield sealTail;
}

/** Returns the size of the field of an item in bytes. Its field number must be below 16. */
export function itemFieldBytes(messageBytes: number): number {
  let length = 2;
  for (let rest = messageBytes; rest >= 0x80; rest = Math.floor(rest / 0x80)) length += 1;
  return length + messageBytes;
}

/** Encodes an empty list with its envelope. */
export function sealEmptyList(type: EnvelopeType): Buffer {
  const seal = { type, metadata: Buffer.alloc(0), itemsBytes: 0 };
  return Buffer.concat([...sealedListPieces(seal, [])]);
}

function fieldHead(number: number, length: number): Buffer {
  const writer = new WireWriter(fieldHeadBytesMax);
  writer.int64(length);
  writer.key(number, wireBytes);
  return writer.finish();
}

/** Maximum size of a key and a length. */
const fieldHeadBytesMax = 10;

/**
 * Encodes a watch event as a frame: four bytes of length, then the type and the object in its
 * envelope (WATCH-9).
 */
export function watchFrame(type: string, sealed: Buffer): Buffer {
  const writer = new WireWriter();
  const before = writer.length;
  writer.bytes(sealed);
  writer.key(1, wireBytes);
  writer.lengthSince(before);
  writer.key(2, wireBytes);
  writer.text(type);
  writer.key(1, wireBytes);
  const event = writer.finish();
  const length = Buffer.allocUnsafe(4);
  length.writeUInt32BE(event.length);
  return Buffer.concat([length, event]);
}

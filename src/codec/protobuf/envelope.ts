import type { JsonObject } from '../../base/json.ts';
import type { Schema } from '../../engines/schema/schema.ts';
import { codecOf } from './message.ts';
import { ProtobufError, WireReader, WireWriter, wireBytes } from './wire.ts';

/** `k8s` and a zero byte: what every protobuf body begins with, in every dialect. */
const magic = Buffer.from([0x6b, 0x38, 0x73, 0x00]);

/** What an envelope says of the object in it, before it is decoded. */
export interface Envelope {
  readonly apiVersion: string;
  readonly kind: string;
  /** The object's own bytes. */
  readonly raw: Buffer;
}

/** Opens a body: magic, then `Unknown` (CODEC-3). Throws ProtobufError. */
export function openEnvelope(body: Buffer): Envelope {
  if (body.length < magic.length || !body.subarray(0, magic.length).equals(magic)) {
    throw new ProtobufError(
      'provided data does not appear to be a protobuf message, expected prefix 6b387300',
    );
  }
  let apiVersion = '';
  let kind = '';
  let raw: Buffer = Buffer.alloc(0);
  let contentEncoding = '';
  forEachBytes(body.subarray(magic.length), (number, bytes) => {
    if (number === 1) {
      forEachBytes(bytes, (inner, text) => {
        if (inner === 1) apiVersion = text.toString('utf8');
        if (inner === 2) kind = text.toString('utf8');
      });
    } else if (number === 2) raw = bytes;
    else if (number === 3) contentEncoding = bytes.toString('utf8');
  });
  if (contentEncoding !== '') {
    throw new ProtobufError(`content encoding ${JSON.stringify(contentEncoding)} is not supported`);
  }
  return { apiVersion, kind, raw };
}

function forEachBytes(bytes: Buffer, visit: (number: number, bytes: Buffer) => void): void {
  const reader = new WireReader(bytes);
  while (!reader.isDone) {
    const { number, wireType } = reader.key();
    if (wireType === wireBytes) visit(number, reader.bytes());
    else reader.skip(wireType);
  }
}

/** Decodes an object's own bytes; the result still wants the typed decoder's zero-value rules. */
export function decodeMessage(schema: Schema, raw: Buffer): JsonObject {
  const writer = new WireWriter();
  writer.bytes(raw);
  return codecOf(schema).read(new WireReader(writer.finish()), 0) as JsonObject;
}

/** An object in its envelope, byte for byte as upstream writes it. */
export function encodeEnvelope(schema: Schema, object: JsonObject): Buffer {
  const writer = new WireWriter();
  writer.text('');
  writer.key(4, wireBytes);
  writer.text('');
  writer.key(3, wireBytes);
  codecOf(schema).write(writer, object);
  writer.key(2, wireBytes);
  const before = writer.length;
  writer.text(String(object.kind ?? ''));
  writer.key(2, wireBytes);
  writer.text(String(object.apiVersion ?? ''));
  writer.key(1, wireBytes);
  writer.lengthSince(before);
  writer.key(1, wireBytes);
  writer.raw(magic);
  return writer.finish();
}

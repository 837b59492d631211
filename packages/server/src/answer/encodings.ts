import {
  type EncodingDescriptor,
  encodeCbor,
  encodeCborSteps,
  encodeEnvelope,
  encodeEnvelopeSteps,
  encodeJson,
  encodeMessage,
  encodeMessageSteps,
  indentedPieces,
  loadYaml,
  parseAhead,
  parseWrittenJson,
  seal,
} from '@wheelhouse/codec';
import { apiVersionIn, type ResourceDef, schemaOfKind } from '@wheelhouse/kinds';
import {
  type Dialect,
  firstPieces,
  type JsonValue,
  jsonObject,
  type MaybePromise,
  pacedBytesMin,
  type ResponseBody,
  StatusError,
  wholeBytes,
} from '@wheelhouse/machinery';
import type { Schema } from '@wheelhouse/schema';
import type { Target } from '../registry/contract.ts';
import { objectIn } from '../registry/object-codec.ts';
import { type Entry, keepEncoding } from '../watchcache/entry.ts';

/** The encodings by name. */
export type Form = 'json' | 'yaml' | 'protobuf' | 'cbor';

/** One encoding of answers and bodies: what negotiation needs, and the encoder. */
export interface ServedEncoding extends EncodingDescriptor {
  readonly form: Form;
  /** What it can encode: objects, or only the server's own types, such as bare metadata. */
  readonly covers: 'objects' | 'metadata';
  /** Content-Type of a watch in this encoding. */
  readonly watchType: string;
  encode(value: JsonValue): MaybePromise<Buffer>;
  /** `encode` in steps; absent if it has none. */
  encodeSteps?(value: JsonValue): Generator<void, Buffer>;
}

/** JSON, the default: it encodes every object, streams lists, and needs no schema (CODEC-2). */
export const jsonEncoding: ServedEncoding = {
  form: 'json',
  covers: 'objects',
  mediaType: 'application/json',
  watchType: 'application/json',
  streams: true,
  tables: true,
  encode: encodeJson,
};

const yamlEncoding: ServedEncoding = {
  form: 'yaml',
  covers: 'objects',
  mediaType: 'application/yaml',
  watchType: 'application/yaml',
  streams: false,
  tables: true,
  async encode(value) {
    // Loaded with the first request for YAML.
    const { encodeYaml } = await loadYaml();
    return Buffer.from(encodeYaml(value));
  },
};

const cborEncoding: ServedEncoding = {
  form: 'cbor',
  covers: 'objects',
  mediaType: 'application/cbor',
  watchType: 'application/cbor-seq',
  streams: true,
  tables: true,
  encode: encodeCbor,
  encodeSteps: encodeCborSteps,
};

function protobufEncoding(dialect: Dialect): ServedEncoding {
  const mediaType = dialect.protobufMediaType as ServedEncoding['mediaType'];
  return {
    form: 'protobuf',
    covers: 'objects',
    mediaType,
    watchType: `${mediaType};stream=watch`,
    streams: true,
    tables: false,
    encode: (value) => encodeEnvelope(protobufSchema(dialect, value), jsonObject(value)),
    encodeSteps: (value) => encodeEnvelopeSteps(protobufSchema(dialect, value), jsonObject(value)),
  };
}

/** The schema of an object of a built-in type. Throws 406 for another one. */
function protobufSchema(dialect: Dialect, value: JsonValue): Schema {
  const { apiVersion, kind } = jsonObject(value);
  const type = { apiVersion: String(apiVersion ?? ''), kind: String(kind ?? '') };
  const schema = schemaOfKind(dialect, type);
  if (schema !== undefined) return schema;
  const message = `${type.kind} in version ${JSON.stringify(type.apiVersion)} has no protobuf form`;
  throw new StatusError({ code: 406, reason: 'NotAcceptable', message });
}

/** The encodings that a server offers (CODEC-1, CODEC-3, CODEC-4), the default first. */
export interface Encodings {
  readonly of: (def: ResourceDef) => readonly ServedEncoding[];
  /** Encodings of documents that are not objects, such as discovery. */
  readonly documents: readonly ServedEncoding[];
  /** Encodings of a Status: all in which a request could have been answered. */
  readonly failures: readonly ServedEncoding[];
  readonly cbor: 'served' | 'off';
}

/**
 * Creates the encodings of a server. Custom kinds and built-in kinds without field numbers have no
 * protobuf form, but their bare metadata does.
 */
export function createEncodings(options: {
  readonly dialect: Dialect;
  readonly cbor: 'served' | 'off';
}): Encodings {
  const { dialect } = options;
  const cbor = options.cbor === 'served' ? [cborEncoding] : [];
  const metadata: ServedEncoding = { ...protobufEncoding(dialect), covers: 'metadata' };
  const plain = [jsonEncoding, yamlEncoding, metadata, ...cbor];
  const typed = [jsonEncoding, yamlEncoding, protobufEncoding(dialect), ...cbor];
  const encodingsByKind = new WeakMap<ResourceDef, readonly ServedEncoding[]>();
  return {
    documents: [jsonEncoding, yamlEncoding, protobufEncoding(dialect)],
    failures: typed,
    cbor: options.cbor,
    of(def) {
      const cached = encodingsByKind.get(def);
      if (cached !== undefined) return cached;
      const served = hasNumbers(dialect, def) ? typed : plain;
      encodingsByKind.set(def, served);
      return served;
    },
  };
}

function hasNumbers(dialect: Dialect, def: ResourceDef): boolean {
  if (!def.behavior.offersProtobuf) return false;
  const [first] = def.versions;
  if (first === undefined) return false;
  const type = { apiVersion: apiVersionIn(def, first), kind: def.kind };
  return schemaOfKind(dialect, type) !== undefined;
}

/** The media types of answers, for error messages. */
export function mediaTypes(encodings: readonly ServedEncoding[]): string[] {
  return encodings.map(({ mediaType }) => mediaType);
}

/** The media types of watches, for error messages. */
export function watchTypes(encodings: readonly ServedEncoding[]): string[] {
  return encodings
    .filter((encoding) => encoding.streams)
    .map(({ form, mediaType, watchType }) =>
      form === 'cbor' ? watchType : `${mediaType};stream=watch`,
    );
}

/** The part of a `Rendering` that encoding needs. */
interface WrittenForm {
  readonly encoding: ServedEncoding;
  readonly pretty: boolean;
}

/** Bytes above which a body is sent while it is produced. */
const wholeBytesMax = 128 * 1024;

/** Encodes a decoded value. Long texts are produced as they are consumed (TRUST-2). */
export function encodeValue(form: WrittenForm, value: JsonValue): MaybePromise<ResponseBody> {
  const { encoding, pretty } = form;
  if (encoding.form === 'json') return jsonBody(encodeJson(value), pretty);
  return encoding.form === 'yaml' ? yaml(() => value) : encoding.encode(value);
}

/** Encodes compact JSON bytes: unchanged if the answer is compact JSON too. */
export function encodeBytes(form: WrittenForm, json: Buffer): MaybePromise<ResponseBody> {
  const { encoding, pretty } = form;
  if (encoding.form === 'json') return jsonBody(json, pretty);
  const value = () => parseWrittenJson(json);
  return encoding.form === 'yaml' ? yaml(value) : encoding.encode(value());
}

/** `encodeBytes` in steps, for a large object. */
export function* encodeBytesSteps(
  form: WrittenForm,
  json: Buffer,
): Generator<void, MaybePromise<ResponseBody>> {
  const { encoding, pretty } = form;
  if (encoding.form === 'json') return jsonBody(json, pretty);
  yield* parseAhead(json);
  const value = parseWrittenJson(json);
  yield;
  if (encoding.form === 'yaml') return yaml(() => value);
  return encoding.encodeSteps === undefined
    ? encoding.encode(value)
    : yield* encoding.encodeSteps(value);
}

const newline = 0x0a;

/** A newline ends compact JSON and none ends indented JSON, as with Go's encoder. */
function jsonBody(json: Buffer, pretty: boolean): ResponseBody {
  if (pretty) return indented(json);
  const body = Buffer.allocUnsafe(json.length + 1);
  json.copy(body);
  body[json.length] = newline;
  return body;
}

function indented(json: Buffer): ResponseBody {
  return bodyOf(indentedPieces([json]));
}

async function yaml(value: () => JsonValue): Promise<ResponseBody> {
  // Loaded with the first request for YAML.
  const { yamlPieces } = await loadYaml();
  return bodyOf(encodedTexts(yamlPieces(value())));
}

/** Encodes texts as UTF-8. */
export function* encodedTexts(texts: Iterable<string>): Generator<Buffer> {
  for (const text of texts) yield Buffer.from(text);
}

/** Returns a short body whole, so that it is sent in one write with a Content-Length. */
function bodyOf(pieces: Iterable<Buffer>): ResponseBody {
  const first = firstPieces(pieces, wholeBytesMax);
  return Array.isArray(first) ? wholeBytes(first) : first;
}

/** The part of a call that the protobuf of its objects depends on. */
interface Addressed {
  readonly target: Target;
  readonly entryKind: ResourceDef;
}

/**
 * The protobuf message of an entry, without the envelope (CODEC-3). It is encoded once and kept with
 * the entry, so later gets, lists, and watches cost the same as JSON.
 */
export function messageOf(call: Addressed, entry: Entry): Buffer {
  const memoKey = memoKeyOf(call);
  const cached = entry.memo?.get(memoKey);
  if (cached !== undefined) return cached;
  const { version } = call.target;
  const message = encodeMessage(version.schema, objectIn(call.entryKind, version, entry));
  return keepEncoding(entry, memoKey, message);
}

function memoKeyOf({ target }: Addressed): string {
  return `${target.def.group}/${target.version.version};protobuf`;
}

/** Encodes the message of a large entry in steps, unless it is already kept with the entry. */
export function* messageAhead(call: Addressed, entry: Entry): Generator<void, void> {
  const memoKey = memoKeyOf(call);
  if (entry.json.length < pacedBytesMin || entry.memo?.has(memoKey) === true) return;
  const { version } = call.target;
  yield* parseAhead(entry.json);
  const object = objectIn(call.entryKind, version, entry);
  yield;
  keepEncoding(entry, memoKey, yield* encodeMessageSteps(version.schema, object));
}

/** One object in its envelope. */
export function protobufObject(call: Addressed, entry: Entry): Buffer {
  const { def, version } = call.target;
  const type = { apiVersion: apiVersionIn(def, version), kind: def.kind };
  return seal(type, messageOf(call, entry));
}

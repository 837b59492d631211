import {
  type EncodingDescriptor,
  encodeCbor,
  encodeEnvelope,
  encodeJson,
  loadYaml,
} from '@wheelhouse/codec';
import { type ResourceDef, schemaOfKind } from '@wheelhouse/kinds';
import {
  type Dialect,
  type JsonObject,
  type JsonValue,
  type MaybePromise,
  StatusError,
} from '@wheelhouse/machinery';

export type Form = 'json' | 'yaml' | 'protobuf' | 'cbor';

/** One encoding of answers and bodies: what negotiation knows of it, and how it is written. */
export interface ServedEncoding extends EncodingDescriptor {
  readonly form: Form;
  /** What comes in it: objects, or only what has types of the server's own, such as metadata alone. */
  readonly covers: 'objects' | 'metadata';
  /** Content-Type of a watch in it. */
  readonly watchType: string;
  encode(value: JsonValue): MaybePromise<Buffer>;
}

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
    // The YAML library is loaded by the first who asks for YAML.
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
    encode: (value) => encodeProtobuf(dialect, value as JsonObject),
  };
}

function encodeProtobuf(dialect: Dialect, value: JsonObject): Buffer {
  const type = { apiVersion: String(value.apiVersion ?? ''), kind: String(value.kind ?? '') };
  const schema = schemaOfKind(dialect, type);
  if (schema !== undefined) return encodeEnvelope(schema, value);
  const message = `${type.kind} in version ${JSON.stringify(type.apiVersion)} has no protobuf form`;
  throw new StatusError({ code: 406, reason: 'NotAcceptable', message });
}

/** What a server serves where (CODEC-1, CODEC-3, CODEC-4), the default first. */
export interface Encodings {
  readonly of: (def: ResourceDef) => readonly ServedEncoding[];
  /** Documents that are no objects: discovery. */
  readonly documents: readonly ServedEncoding[];
  /** A Status comes in whatever the request could have been answered in. */
  readonly failures: readonly ServedEncoding[];
  readonly cbor: 'served' | 'off';
}

/**
 * Custom kinds have no protobuf form, nor have built-in ones without a table of numbers; but their
 * metadata has.
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
  const known = new WeakMap<ResourceDef, readonly ServedEncoding[]>();
  return {
    documents: [jsonEncoding, yamlEncoding, protobufEncoding(dialect)],
    failures: typed,
    cbor: options.cbor,
    of(def) {
      const found = known.get(def);
      if (found !== undefined) return found;
      const served = hasNumbers(dialect, def) ? typed : plain;
      known.set(def, served);
      return served;
    },
  };
}

function hasNumbers(dialect: Dialect, def: ResourceDef): boolean {
  if (!def.behavior.offersProtobuf) return false;
  const [version] = def.versions;
  const group = def.group === '' ? '' : `${def.group}/`;
  const apiVersion = `${group}${version?.version ?? ''}`;
  return schemaOfKind(dialect, { apiVersion, kind: def.kind }) !== undefined;
}

/** Media types for messages: of answers, or with `;stream=watch` of those a watch comes in. */
export function mediaTypes(encodings: readonly EncodingDescriptor[], isWatch = false): string[] {
  if (!isWatch) return encodings.map((one) => one.mediaType);
  return encodings.filter((one) => one.streams).map((one) => `${one.mediaType};stream=watch`);
}

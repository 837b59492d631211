import { isObject, type JsonObject, type JsonValue, textOf } from '../base/json.ts';
import { decodeCborMap } from '../codec/cbor/decode.ts';
import { encodeCbor, isSelfDescribedCbor } from '../codec/cbor/encode.ts';
import { encodeJsonBriefly, parseWrittenJson } from '../codec/json.ts';
import {
  decodeMessage,
  encodeEnvelope,
  isEnvelope,
  openEnvelope,
} from '../codec/protobuf/envelope.ts';
import type { Dialect } from '../dialect.ts';
import { decodeTyped } from '../engines/schema/decode-typed.ts';
import type { Schema } from '../engines/schema/schema.ts';
import { schemaOfKind } from '../kinds/kind-schema.ts';
import type { ApiObject } from '../meta/types.ts';
import type { PutRequest, Store } from '../storage/contract.ts';
import { mappedStore } from '../storage/mapped-store.ts';
import { EntryHint } from '../watchcache/contract.ts';
import { encodeStored, withoutVersion } from './object-codec.ts';

/** The encodings in which a store keeps new values. */
export interface StoredEncodings {
  /** Of built-in kinds that have a protobuf form; the others are kept as JSON. */
  readonly builtin: 'json' | 'protobuf';
  readonly custom: 'json' | 'cbor';
}

type Encoding = 'json' | 'protobuf' | 'cbor';

/** A store of canonical JSON whose values are kept in other encodings. */
export interface EncodedStore {
  readonly store: Store;
  /** Whether the value of a key would be written in another encoding now. */
  isStale(key: string): Promise<boolean>;
}

/**
 * Keeps objects in the given encodings, and reads what is stored in any of them: values are
 * recognized by how they begin. Users of the store read and write canonical JSON in the version
 * that is stored (STORE-2). A value that cannot be decoded is reported as unreadable.
 *
 * @param options.store keys are those of objects alone
 * @param options.isBuiltin whether a key is that of a built-in kind's object
 */
export function encodedStore(options: {
  readonly store: Store;
  readonly dialect: Dialect;
  readonly encodings: StoredEncodings;
  readonly isBuiltin: (key: string) => boolean;
}): EncodedStore {
  const { dialect, encodings, isBuiltin } = options;
  /** Set once a value is read that is not in the encoding it would be written in. */
  let hasOthers = false;
  const isCurrent = (key: string, value: Buffer): boolean => {
    const encoding = encodingOf(value);
    if (!isBuiltin(key)) return encoding === encodings.custom;
    if (encoding === encodings.builtin) return true;
    return encoding === 'json' && protobufSchema(dialect, parsed(value)) === undefined;
  };
  const read = (value: Buffer, key: string): Buffer => {
    if (!hasOthers) hasOthers = !isCurrent(key, value);
    return isBuiltin(key) ? readBuiltin(dialect, value) : readCustom(value);
  };
  const write = (request: PutRequest): Buffer => {
    const encoding = isBuiltin(request.key) ? encodings.builtin : encodings.custom;
    if (encoding === 'json') return request.value;
    return encoding === 'cbor'
      ? encodeCbor(parsed(request.value))
      : writeProtobuf(dialect, request);
  };
  const isPlain = encodings.builtin === 'json' && encodings.custom === 'json';
  const isRead = (hint: unknown) => hint instanceof EntryHint;
  const store = mappedStore(options.store, isPlain ? { read, isRead } : { read, write });
  return {
    store,
    async isStale(key) {
      if (!hasOthers) return false;
      const record = await options.store.get(key);
      return record?.unreadable === undefined && record !== undefined
        ? !isCurrent(key, record.value)
        : false;
    },
  };
}

function encodingOf(value: Buffer): Encoding {
  if (isEnvelope(value)) return 'protobuf';
  return isSelfDescribedCbor(value) ? 'cbor' : 'json';
}

const parsed = (value: Buffer) => parseWrittenJson(value) as JsonObject;

/** How the values begin that this server itself stores as JSON. */
const canonicalStart = Buffer.from('{"apiVersion":');
const closingBrace = 0x7d;

const isCanonical = (value: Buffer): boolean =>
  value.at(-1) === closingBrace && value.subarray(0, canonicalStart.length).equals(canonicalStart);

function readBuiltin(dialect: Dialect, value: Buffer): Buffer {
  switch (encodingOf(value)) {
    case 'protobuf':
      return readProtobuf(dialect, value);
    case 'cbor':
      return canonical(dialect, decodeCborMap(value));
    case 'json':
      return isCanonical(value) ? value : canonical(dialect, parseWrittenJson(value));
  }
}

function readProtobuf(dialect: Dialect, value: Buffer): Buffer {
  const { apiVersion, kind, raw } = openEnvelope(value);
  const schema = schemaOfKind(dialect, { apiVersion, kind });
  if (schema === undefined) {
    throw new Error(`no kind ${JSON.stringify(kind)} is registered for version "${apiVersion}"`);
  }
  return typed(schema, { ...decodeMessage(schema, raw), apiVersion, kind });
}

/** The canonical form of an object that another server wrote. Throws for what is no object. */
function canonical(dialect: Dialect, object: JsonValue): Buffer {
  if (!isObject(object)) throw new Error('the stored value is no object');
  const schema = schemaOfObject(dialect, object);
  return schema === undefined ? encodeObject(object) : typed(schema, object);
}

/** The same of a type's value, with a zero value for each absent member that the type requires. */
function typed(schema: Schema, object: JsonObject): Buffer {
  return encodeObject(decodeTyped(schema)(object));
}

function encodeObject(object: JsonObject): Buffer {
  const { metadata } = object;
  if (!isObject(metadata) || Object.keys(metadata).length === 0) {
    throw new Error('the stored object has no metadata');
  }
  return encodeStored(object as ApiObject);
}

/** Custom objects get their form from their definition, which reads any JSON. */
function readCustom(value: Buffer): Buffer {
  switch (encodingOf(value)) {
    case 'protobuf':
      throw new Error('an object of a custom kind has no protobuf form');
    case 'cbor':
      return encodeJsonBriefly(decodeCborMap(value));
    case 'json':
      return value;
  }
}

/** Kinds of these groups are kept as JSON, as upstream keeps them. */
const jsonGroups = ['apiextensions', 'apiregistration'] as const;

/** The schema by which an object is written as protobuf; undefined for what is kept as JSON. */
function protobufSchema(dialect: Dialect, object: JsonObject): Schema | undefined {
  const apiVersion = textOf(object.apiVersion);
  const isJson = jsonGroups.some((stem) => apiVersion.startsWith(`${dialect.group(stem)}/`));
  return isJson ? undefined : schemaOfObject(dialect, object);
}

function schemaOfObject(dialect: Dialect, { apiVersion, kind }: JsonObject): Schema | undefined {
  return schemaOfKind(dialect, { apiVersion: textOf(apiVersion), kind: textOf(kind) });
}

function writeProtobuf(dialect: Dialect, { value, hint }: PutRequest): Buffer {
  const object = objectOf(hint) ?? (parsed(value) as ApiObject);
  const schema = protobufSchema(dialect, object);
  return schema === undefined
    ? value
    : withoutVersion(object, () => encodeEnvelope(schema, object));
}

/** The writer's object, taken out of its hint. */
function objectOf(hint: unknown): ApiObject | undefined {
  if (!(hint instanceof EntryHint)) return undefined;
  const { object } = hint;
  hint.object = undefined;
  return object;
}

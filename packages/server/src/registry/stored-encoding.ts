import {
  decodeCborMap,
  decodeMessage,
  encodeCbor,
  encodeCborSteps,
  encodeEnvelope,
  encodeEnvelopeSteps,
  encodeJsonBriefly,
  isEnvelope,
  isSelfDescribedCbor,
  openEnvelope,
  parseWrittenJson,
} from '@wheelhouse/codec';
import { schemaOfKind } from '@wheelhouse/kinds';
import {
  type ApiObject,
  asApiObject,
  type Dialect,
  isObject,
  type JsonObject,
  jsonEqual,
  jsonObject,
  textOf,
} from '@wheelhouse/machinery';
import type { Schema } from '@wheelhouse/schema';
import { mappedStore, type PutRequest, type Store } from '@wheelhouse/store';
import { EntryHint } from '../watchcache/contract.ts';
import { encodeStored, withoutVersion } from './object-codec.ts';
import type { EncodedAhead, Registry } from './registry.ts';
import { type StoredVersion, type StoredVersions, typeOf, upToDate } from './stored-version.ts';

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
  /** As of a registry. */
  readonly encodeAhead: Registry['encodeAhead'];
}

/**
 * Keeps objects in the given encodings, and reads what is stored in any of them: values are
 * recognized by how they begin. Users of the store read and write canonical JSON: objects of
 * built-in kinds in the version that this server stores, converted and defaulted whoever wrote them
 * and when (STORE-2). A value that cannot be brought to that form is reported as unreadable.
 *
 * @param options.store keys are those of objects alone
 */
export function encodedStore(options: {
  readonly store: Store;
  readonly dialect: Dialect;
  readonly encodings: StoredEncodings;
  readonly versions: StoredVersions;
  /** `this`: nobody but servers like this one writes, so that what they wrote is not converted. */
  readonly writers: 'this' | 'any';
}): EncodedStore {
  const { dialect, encodings, versions, writers } = options;
  const isPlain = encodings.builtin === 'json' && encodings.custom === 'json';
  const isOwn = (key: string, value: Buffer) =>
    writers === 'this' && encodings.builtin === 'json' && versions.isCanonical(key, value);
  const { isBuiltin } = versions;
  /** Set once a value is read that would be written in another form. */
  let hasOthers = false;
  const readAny = (value: Buffer, key: string): ReadValue => {
    const encoding = encodingOf(value);
    if (!isBuiltin(key)) {
      return { shown: readCustom(value), isCurrent: encoding === encodings.custom };
    }
    const { shown, isSame } = readBuiltin(versions, { value, key });
    if (encoding === encodings.builtin) return { shown, isCurrent: isSame };
    const isJson = encoding === 'json' && protobufSchema(dialect, parsed(shown)) === undefined;
    return { shown, isCurrent: isSame && isJson };
  };
  const read = (value: Buffer, key: string): Buffer => {
    if (isOwn(key, value)) return value;
    const { shown, isCurrent } = readAny(value, key);
    if (!isCurrent) hasOthers = true;
    return shown;
  };
  const ahead = new WeakMap<Buffer, Buffer>();
  const write = (request: PutRequest): Buffer => {
    const made = ahead.get(request.value);
    if (made !== undefined) return made;
    const encoding = isBuiltin(request.key) ? encodings.builtin : encodings.custom;
    if (encoding === 'json') return request.value;
    return encoding === 'cbor'
      ? encodeCbor(parsed(request.value))
      : writeProtobuf(dialect, request);
  };
  const isRead = (hint: unknown) => hint instanceof EntryHint;
  const store = mappedStore(options.store, isPlain ? { read, isRead } : { read, write });
  function* encodeAhead({ storeKey, value, object }: EncodedAhead): Generator<void, void> {
    const encoding = isBuiltin(storeKey) ? encodings.builtin : encodings.custom;
    const bare = { ...object, metadata: { ...object.metadata, resourceVersion: undefined } };
    const schema = encoding === 'protobuf' ? protobufSchema(dialect, object) : undefined;
    if (schema !== undefined) ahead.set(value, yield* encodeEnvelopeSteps(schema, bare));
    else if (encoding === 'cbor') ahead.set(value, yield* encodeCborSteps(bare));
  }
  return {
    store,
    encodeAhead: isPlain ? undefined : encodeAhead,
    async isStale(key) {
      if (!hasOthers) return false;
      const record = await options.store.get(key);
      if (record === undefined || record.unreadable !== undefined) return false;
      return !readAny(record.value, key).isCurrent;
    },
  };
}

function encodingOf(value: Buffer): Encoding {
  if (isEnvelope(value)) return 'protobuf';
  return isSelfDescribedCbor(value) ? 'cbor' : 'json';
}

const parsed = (value: Buffer) => jsonObject(parseWrittenJson(value));

interface ReadValue {
  readonly shown: Buffer;
  /** Whether the value would be written as it is. */
  readonly isCurrent: boolean;
}

/** `isSame`: the value says what is shown of it; of other encodings than JSON, the version alone. */
function readBuiltin(
  versions: StoredVersions,
  { value, key }: { readonly value: Buffer; readonly key: string },
): { readonly shown: Buffer; readonly isSame: boolean } {
  const { stored, object } = decoded(versions, { value, key });
  const isVersion = versions.current(stored) === stored;
  const made = upToDate(versions, { stored, object });
  const shown = encodeStored(made);
  if (encodingOf(value) !== 'json') return { shown, isSame: isVersion };
  // The order of members is that in which they were filled in.
  return { shown, isSame: shown.equals(value) || jsonEqual(made, object) };
}

function decoded(
  versions: StoredVersions,
  { value, key }: { readonly value: Buffer; readonly key: string },
): { readonly stored: StoredVersion; readonly object: JsonObject } {
  if (encodingOf(value) === 'protobuf') {
    const { apiVersion, kind, raw } = openEnvelope(value);
    const stored = versions.of(key, { apiVersion, kind });
    return { stored, object: { ...decodeMessage(stored.version.schema, raw), apiVersion, kind } };
  }
  const object = isSelfDescribedCbor(value)
    ? decodeCborMap(value, { source: 'store' })
    : parseWrittenJson(value);
  if (!isObject(object)) throw new Error('the stored value is no object');
  return { stored: versions.of(key, typeOf(object)), object };
}

/** Custom objects get their form from their definition, which reads any JSON. */
function readCustom(value: Buffer): Buffer {
  switch (encodingOf(value)) {
    case 'protobuf':
      throw new Error('an object of a custom kind has no protobuf form');
    case 'cbor':
      return encodeJsonBriefly(decodeCborMap(value, { source: 'store' }));
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
  const object = objectOf(hint) ?? asApiObject(parsed(value));
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

import {
  decodeMessage,
  decodeMessageSteps,
  decodeStoredCborSteps,
  encodeCbor,
  encodeCborSteps,
  encodeEnvelope,
  encodeEnvelopeSteps,
  encodeJsonSteps,
  isEnvelope,
  isSelfDescribedCbor,
  openEnvelope,
  parseAhead,
  parseWrittenJson,
} from '@wheelhouse/codec';
import {
  apiVersionIn,
  type ResourceDef,
  type StorageDef,
  schemaOfKind,
  toStorage,
  type VersionDef,
} from '@wheelhouse/kinds';
import {
  type ApiObject,
  asApiObject,
  type Clock,
  type Dialect,
  isObject,
  type JsonObject,
  jsonEqualSteps,
  jsonObject,
  pacedBytesMin,
  runInOnePiece,
  runInSlices,
  textOf,
} from '@wheelhouse/machinery';
import { decodeTyped, decodeTypedSteps, type Schema } from '@wheelhouse/schema';
import { mappedStore, type PutRequest, type Store } from '@wheelhouse/store';
import { EntryHint } from '../watchcache/entry.ts';
import { encodeStored, encodeStoredSteps, withoutVersion } from './object-codec.ts';
import type { EncodedAhead, Registry } from './registry.ts';

/** A built-in kind in one of the versions in which its objects may be stored. */
interface StoredVersion {
  readonly def: ResourceDef;
  readonly version: VersionDef;
}

/** The built-in kinds by the keys and types under which their objects are stored. */
interface StoredVersions {
  /** Whether a key belongs to an object of a built-in kind. */
  isBuiltin(key: string): boolean;
  /**
   * The kind and version of a stored object. Throws an error that names the type if no release
   * stored it under that key.
   */
  of(key: string, type: { readonly apiVersion: string; readonly kind: string }): StoredVersion;
  /**
   * Whether a value starts like this server's own JSON for the key's kind, so that at most newer
   * defaults could be missing.
   */
  isCanonical(key: string, value: Buffer): boolean;
  /** The version in which objects of the same kind are stored now. */
  current(stored: StoredVersion): StoredVersion;
}

type Forms = ReadonlyMap<string, StoredVersion>;

/**
 * Creates the table of stored versions.
 * @param options.kinds the kinds of this server
 * @param options.everyRelease the same kinds with the versions of every release; called when an
 *   object is stored in a version that this server does not have
 */
export function storedVersions(options: {
  readonly kinds: readonly ResourceDef[];
  readonly everyRelease: () => readonly ResourceDef[];
}): StoredVersions {
  const own = formsByPrefix(options.kinds);
  let all: ReadonlyMap<string, Forms> | undefined;
  const prefixOf = (key: string): string | undefined => {
    const first = key.indexOf('/', '/registry/'.length) + 1;
    const short = key.slice(0, first);
    if (own.has(short)) return short;
    const long = key.slice(0, key.indexOf('/', first) + 1);
    return own.has(long) ? long : undefined;
  };
  const find = (prefix: string, name: string): StoredVersion | undefined => {
    const ownVersion = own.get(prefix)?.get(name);
    if (ownVersion !== undefined) return ownVersion;
    all ??= formsByPrefix(options.everyRelease());
    return all.get(prefix)?.get(name);
  };
  const starts = new Map(options.kinds.map(({ storage }) => [storage.prefix, startOf(storage)]));
  return {
    isCanonical(key, value) {
      const start = starts.get(prefixOf(key) ?? '');
      if (start === undefined || value.at(-1) !== closingBrace) return false;
      return start.compare(value, 0, start.length) === 0;
    },
    isBuiltin: (key) => prefixOf(key) !== undefined,
    of(key, { apiVersion, kind }) {
      const found = find(prefixOf(key) ?? '', nameOf(apiVersion, kind));
      if (found !== undefined) return found;
      const stated = `no kind ${JSON.stringify(kind)} is registered for version`;
      throw new Error(`${stated} ${JSON.stringify(apiVersion)} under this key`);
    },
    current({ def }) {
      const { prefix, apiVersion, kind } = def.storage;
      const found = find(prefix, nameOf(apiVersion, kind));
      if (found === undefined) throw new Error(`${kind} is not stored as ${apiVersion}`);
      return found;
    },
  };
}

const closingBrace = 0x7d;

/**
 * The start of this server's own JSON; undefined for kinds whose stored objects need completion.
 */
function startOf({ apiVersion, kind, complete }: StorageDef): Buffer | undefined {
  if (complete !== undefined) return undefined;
  const type = JSON.stringify({ apiVersion, kind }).slice(0, -1);
  return Buffer.from(`${type},"metadata":{`);
}

const nameOf = (apiVersion: string, kind: string) => `${apiVersion} ${kind}`;

function formsByPrefix(kinds: readonly ResourceDef[]): ReadonlyMap<string, Forms> {
  const prefixes = new Map<string, Map<string, StoredVersion>>();
  for (const def of kinds) {
    const { prefix } = def.storage;
    const forms = prefixes.get(prefix) ?? new Map<string, StoredVersion>();
    prefixes.set(prefix, forms);
    for (const version of def.versions) {
      forms.set(nameOf(apiVersionIn(def, version), def.kind), { def, version });
    }
  }
  return prefixes;
}

/** The apiVersion and kind of an object, as stated in it. */
function typeOf(object: JsonObject): { readonly apiVersion: string; readonly kind: string } {
  return { apiVersion: textOf(object.apiVersion), kind: textOf(object.kind) };
}

/** A stored object with its kind and version, and the pace of the work on it. */
interface DecodedValue {
  readonly stored: StoredVersion;
  readonly object: JsonObject;
  /** `steps`: the work on the object is divided, which costs small objects more (TRUST-2). */
  readonly work: 'whole' | 'steps';
}

/**
 * Brings an object stored by any writer to the form that this server stores: typed and defaulted by
 * the version in which it is stored, converted, and completed. Throws `DecodeError` for a member of
 * the wrong type, and an Error for an object without metadata. May modify the given object.
 */
function* upToDate(
  versions: StoredVersions,
  { stored, object, work }: DecodedValue,
): Generator<void, ApiObject> {
  const { def, version } = stored;
  const { metadata } = object;
  if (metadata === undefined || metadata === null) {
    throw new Error('the stored object has no metadata');
  }
  function* typed({ schema }: VersionDef, value: JsonObject): Generator<void, JsonObject> {
    return work === 'whole' ? decodeTyped(schema)(value) : yield* decodeTypedSteps(schema, value);
  }
  const decoded = asApiObject(yield* typed(version, object));
  version.defaults?.(decoded);
  yield;
  const current = versions.current(stored);
  let newest = toStorage(def, version, decoded);
  if (current.version.version !== version.version || current.def.group !== def.group) {
    const { apiVersion, kind } = newest;
    newest = asApiObject({ ...(yield* typed(current.version, newest)), apiVersion, kind });
  }
  def.storage.complete?.(newest);
  return newest;
}

/** The encodings in which a store keeps new values. */
interface StoredEncodings {
  /** For built-in kinds with a protobuf form; others are kept as JSON. */
  readonly builtin: 'json' | 'protobuf';
  readonly custom: 'json' | 'cbor';
}

type Encoding = 'json' | 'protobuf' | 'cbor';

/** A store of canonical JSON that keeps its values in other encodings. */
interface EncodedStore {
  readonly store: Store;
  /** Whether the value of a key would be written in another encoding now. */
  isStale(key: string): Promise<boolean>;
  /** See `Registry.encodeAhead`. */
  readonly encodeAhead: Registry['encodeAhead'];
}

/**
 * Keeps objects in the given encodings and reads any of them: values are recognized by their first
 * bytes. Users of the store read and write canonical JSON: objects of built-in kinds in the version
 * that this server stores, converted and defaulted, whoever wrote them (STORE-2). A value that
 * cannot be brought to that form is reported as unreadable.
 *
 * @param options.store its keys are all keys of objects
 */
export function encodedStore(options: {
  readonly store: Store;
  readonly dialect: Dialect;
  readonly encodings: StoredEncodings;
  readonly versions: StoredVersions;
  /** `this`: only servers like this one write, so their values need no conversion. */
  readonly writers: 'this' | 'any';
  readonly clock: Pick<Clock, 'monotonic'>;
}): EncodedStore {
  const { dialect, encodings, versions, writers, clock } = options;
  const isPlain = encodings.builtin === 'json' && encodings.custom === 'json';
  const isOwn = (key: string, value: Buffer) =>
    writers === 'this' && encodings.builtin === 'json' && versions.isCanonical(key, value);
  const { isBuiltin } = versions;
  /** Set once a value has been read that this server would write differently. */
  let hasOthers = false;
  function* readAny(value: Buffer, key: string): Generator<void, ReadValue> {
    const encoding = encodingOf(value);
    if (!isBuiltin(key)) {
      return { shown: yield* readCustom(value), isCurrent: encoding === encodings.custom };
    }
    const { shown, isSame, type } = yield* readBuiltin(versions, { value, key });
    if (encoding === encodings.builtin) return { shown, isCurrent: isSame };
    const isJson = encoding === 'json' && protobufSchema(dialect, type) === undefined;
    return { shown, isCurrent: isSame && isJson };
  }
  function* readSteps(value: Buffer, key: string): Generator<void, Buffer> {
    if (isOwn(key, value)) return value;
    const { shown, isCurrent } = yield* readAny(value, key);
    if (!isCurrent) hasOthers = true;
    yield* parseAhead(shown);
    return shown;
  }
  const read = (value: Buffer, key: string): Buffer =>
    isOwn(key, value) ? value : runInOnePiece(readSteps(value, key));
  const ahead = new WeakMap<Buffer, Buffer>();
  const write = (request: PutRequest): Buffer => {
    const encoded = ahead.get(request.value);
    if (encoded !== undefined) return encoded;
    const encoding = isBuiltin(request.key) ? encodings.builtin : encodings.custom;
    if (encoding === 'json') return request.value;
    return encoding === 'cbor'
      ? encodeCbor(parsed(request.value))
      : writeProtobuf(dialect, request);
  };
  const isMapped = (hint: unknown) => hint instanceof EntryHint;
  const reading = { read, readSteps, clock };
  const store = mappedStore(
    options.store,
    isPlain ? { ...reading, isMapped } : { ...reading, write },
  );
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
      return !(await runInSlices(readAny(record.value, key), clock)).isCurrent;
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
  /** Whether the value would be written the same way. */
  readonly isCurrent: boolean;
}

/**
 * `isSame`: the stored value equals the returned one; for encodings other than JSON, only the
 * version is compared. `type`: apiVersion and kind of the returned value.
 */
function* readBuiltin(
  versions: StoredVersions,
  { value, key }: { readonly value: Buffer; readonly key: string },
): Generator<void, Pick<ReadValue, 'shown'> & { isSame: boolean; type: ApiObject }> {
  const found = yield* decoded(versions, { value, key });
  const { stored, object, work } = found;
  const isVersion = versions.current(stored) === stored;
  const type = yield* upToDate(versions, found);
  const shown = work === 'whole' ? encodeStored(type) : yield* encodeStoredSteps(type);
  if (encodingOf(value) !== 'json') return { shown, isSame: isVersion, type };
  // The order of members may differ.
  const isSame = shown.equals(value) || (yield* jsonEqualSteps(type, object));
  return { shown, isSame, type };
}

function* decoded(
  versions: StoredVersions,
  { value, key }: { readonly value: Buffer; readonly key: string },
): Generator<void, DecodedValue> {
  const work = value.length < pacedBytesMin ? 'whole' : 'steps';
  if (encodingOf(value) === 'protobuf') {
    const { apiVersion, kind, raw } = openEnvelope(value);
    const stored = versions.of(key, { apiVersion, kind });
    const { schema } = stored.version;
    const message =
      work === 'whole' ? decodeMessage(schema, raw) : yield* decodeMessageSteps(schema, raw);
    return { stored, object: { ...message, apiVersion, kind }, work };
  }
  const isCbor = isSelfDescribedCbor(value);
  if (!isCbor) yield* parseAhead(value);
  const object = isCbor ? yield* decodeStoredCborSteps(value) : parseWrittenJson(value);
  if (!isObject(object)) throw new Error('the stored value is not an object');
  return { stored: versions.of(key, typeOf(object)), object, work };
}

/** Decodes a custom object to JSON; its definition gives it its form. */
function* readCustom(value: Buffer): Generator<void, Buffer> {
  switch (encodingOf(value)) {
    case 'protobuf':
      throw new Error('an object of a custom kind has no protobuf form');
    case 'cbor':
      return yield* encodeJsonSteps(yield* decodeStoredCborSteps(value));
    case 'json':
      return value;
  }
}

/** Groups whose kinds are kept as JSON, as in kube-apiserver. */
const jsonGroups = ['apiextensions', 'apiregistration'] as const;

/** The schema to encode an object as protobuf; undefined if it is kept as JSON. */
function protobufSchema(dialect: Dialect, object: JsonObject): Schema | undefined {
  const apiVersion = textOf(object.apiVersion);
  const isJson = jsonGroups.some((stem) => apiVersion.startsWith(`${dialect.group(stem)}/`));
  return isJson ? undefined : schemaOfObject(dialect, object);
}

function schemaOfObject(dialect: Dialect, { apiVersion, kind }: JsonObject): Schema | undefined {
  return schemaOfKind(dialect, { apiVersion: textOf(apiVersion), kind: textOf(kind) });
}

function writeProtobuf(dialect: Dialect, { value, hint }: PutRequest): Buffer {
  const written = hint instanceof EntryHint ? hint.object : undefined;
  const object = written ?? asApiObject(parsed(value));
  const schema = protobufSchema(dialect, object);
  return schema === undefined
    ? value
    : withoutVersion(object, () => encodeEnvelope(schema, object));
}

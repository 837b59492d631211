import { type ResourceDef, type StorageDef, toStorage, type VersionDef } from '@wheelhouse/kinds';
import {
  type ApiObject,
  apiVersionOf,
  asApiObject,
  type JsonObject,
  textOf,
} from '@wheelhouse/machinery';
import { decodeTyped } from '@wheelhouse/schema';

/** A built-in kind in one of the versions in which its objects may be stored. */
export interface StoredVersion {
  readonly def: ResourceDef;
  readonly version: VersionDef;
}

/** The built-in kinds by where and as what their objects are stored. */
export interface StoredVersions {
  /** Whether a key is that of a built-in kind's object. */
  isBuiltin(key: string): boolean;
  /**
   * The kind and version of a stored object. Throws for a type that no release stored under that
   * key; the message names the type.
   */
  of(key: string, type: { readonly apiVersion: string; readonly kind: string }): StoredVersion;
  /**
   * Whether a value begins as this server itself stores the objects of the key's kind as JSON, and
   * nothing but its version's defaults could have come later.
   */
  isCanonical(key: string, value: Buffer): boolean;
  /** The version in which objects of the same kind are stored now. */
  current(stored: StoredVersion): StoredVersion;
}

type Forms = ReadonlyMap<string, StoredVersion>;

/**
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
    const found = own.get(prefix)?.get(name);
    if (found !== undefined) return found;
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

/** How this server's own JSON begins; undefined for kinds whose stored objects need completion. */
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
      const apiVersion = apiVersionOf({ group: def.group, version: version.version });
      forms.set(nameOf(apiVersion, def.kind), { def, version });
    }
  }
  return prefixes;
}

/** What an object says that it is. */
export function typeOf(object: JsonObject): { readonly apiVersion: string; readonly kind: string } {
  return { apiVersion: textOf(object.apiVersion), kind: textOf(object.kind) };
}

/**
 * Makes of a stored object, whoever wrote it, what this server stores: typed and defaulted by the
 * version in which it is stored, converted, and completed. Throws `DecodeError` for a member of the
 * wrong type, and for an object without metadata. The given object may change.
 */
export function upToDate(
  versions: StoredVersions,
  { stored, object }: { readonly stored: StoredVersion; readonly object: JsonObject },
): ApiObject {
  const { def, version } = stored;
  const { metadata } = object;
  if (metadata === undefined || metadata === null) {
    throw new Error('the stored object has no metadata');
  }
  const shaped = asApiObject(decodeTyped(version.schema)(object));
  version.defaults?.(shaped);
  const current = versions.current(stored);
  let made = toStorage(def, version, shaped);
  if (current.version.version !== version.version || current.def.group !== def.group) {
    const { apiVersion, kind } = made;
    made = asApiObject({ ...decodeTyped(current.version.schema)(made), apiVersion, kind });
  }
  def.storage.complete?.(made);
  return made;
}

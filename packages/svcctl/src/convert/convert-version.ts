import {
  builtinKinds,
  fromStorage,
  groupStems,
  kindsOfAllReleases,
  type ResourceDef,
  toStorage,
  type VersionDef,
} from '@wheelhouse/kinds';
import {
  type ApiObject,
  apiVersionOf,
  asApiObject,
  type Dialect,
  type JsonObject,
  parseApiVersion,
} from '@wheelhouse/machinery';
import { decodeTyped } from '@wheelhouse/schema';

/** A built-in kind in one of its versions. */
export interface KnownKind {
  readonly def: ResourceDef;
  readonly version: VersionDef;
}

/** The kind has no such version; the message is kubectl's. */
export class UnsuitableVersionError extends Error {}

const kindsByDialect = new WeakMap<Dialect, readonly ResourceDef[]>();

function allKinds(dialect: Dialect): readonly ResourceDef[] {
  let kinds = kindsByDialect.get(dialect);
  if (kinds === undefined) {
    kinds = kindsOfAllReleases(builtinKinds(dialect), dialect);
    kindsByDialect.set(dialect, kinds);
  }
  return kinds;
}

/** The built-in kind of an object, from any release; undefined for other kinds. */
export function knownKind(
  dialect: Dialect,
  type: { readonly apiVersion: string; readonly kind: string },
): KnownKind | undefined {
  const parsed = parseApiVersion(type.apiVersion);
  if (parsed === undefined) return undefined;
  return kindIn(allKinds(dialect), { ...parsed, kind: type.kind });
}

function kindIn(
  kinds: readonly ResourceDef[],
  type: { readonly group: string; readonly version: string; readonly kind: string },
): KnownKind | undefined {
  const def = kinds.find((one) => one.group === type.group && one.kind === type.kind);
  const version = def?.versions.find((one) => one.version === type.version);
  return def === undefined || version === undefined ? undefined : { def, version };
}

/**
 * Converts an object of a built-in kind to another version (VER-8), by default the storage version,
 * after filling in the defaults of its own version. The version may belong to another group that
 * serves the same objects (`extensions/v1beta1` to `apps/v1`). Throws UnsuitableVersionError if the
 * kind has no such version.
 */
export function inVersion(
  object: JsonObject,
  at: { readonly dialect: Dialect; readonly from: KnownKind; readonly outputVersion?: string },
): JsonObject {
  const { dialect, from } = at;
  const outputVersion = at.outputVersion ?? from.def.storage.apiVersion;
  if (outputVersion === apiVersionOf({ group: from.def.group, ...from.version })) {
    return defaulted(object, from);
  }
  const wanted = parseApiVersion(outputVersion);
  const kin = allKinds(dialect).filter(
    (one) => one.storage.prefix === from.def.storage.prefix && one.kind === from.def.kind,
  );
  const to = wanted === undefined ? undefined : kindIn(kin, { ...wanted, kind: from.def.kind });
  if (to === undefined) {
    const text = `${internalName(dialect, from)} is not suitable for converting to`;
    throw new UnsuitableVersionError(
      `${text} ${JSON.stringify(outputVersion)} in scheme "builtin"`,
    );
  }
  const copy = defaulted(object, from);
  const result = fromStorage(to.def, to.version, toStorage(from.def, from.version, copy));
  return shaped(result, to);
}

function defaulted(object: JsonObject, { version }: KnownKind): ApiObject {
  const copy = asApiObject(structuredClone(object));
  version.defaults?.(copy);
  return copy;
}

function shaped(object: ApiObject, { version }: KnownKind): JsonObject {
  const { apiVersion, kind } = object;
  return { apiVersion, kind, ...decodeTyped(version.schema)(object) };
}

/** The name of a kind in error messages, without its version: `apps.Deployment`. */
function internalName(dialect: Dialect, { def }: KnownKind): string {
  const { group } = parseApiVersion(def.storage.apiVersion) ?? { group: '' };
  const found = Object.entries(groupStems).find(([, stem]) => dialect.group(stem) === group);
  return `${found?.[0] ?? group}.${def.kind}`;
}

import {
  builtinKinds,
  directoryOfGroup,
  fromStorage,
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
interface BuiltinKind {
  readonly def: ResourceDef;
  readonly version: VersionDef;
}

/** A kind has no such version; the message is kubectl's. */
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

/** Finds the built-in kind of an object in any release. Returns undefined for other kinds. */
export function findBuiltinKind(
  dialect: Dialect,
  type: { readonly apiVersion: string; readonly kind: string },
): BuiltinKind | undefined {
  const parsed = parseApiVersion(type.apiVersion);
  if (parsed === undefined) return undefined;
  return kindIn(allKinds(dialect), { ...parsed, kind: type.kind });
}

function kindIn(
  kinds: readonly ResourceDef[],
  type: { readonly group: string; readonly version: string; readonly kind: string },
): BuiltinKind | undefined {
  const def = kinds.find((kind) => kind.group === type.group && kind.kind === type.kind);
  const version = def?.versions.find((candidate) => candidate.version === type.version);
  return def === undefined || version === undefined ? undefined : { def, version };
}

/**
 * Converts an object of a built-in kind to another version (VER-8), by default the storage version,
 * after setting the defaults of its own version. The version may belong to another group that
 * serves the same objects (`extensions/v1beta1` to `apps/v1`). Throws UnsuitableVersionError if the
 * kind has no such version.
 */
export function convertToVersion(
  object: JsonObject,
  options: {
    readonly dialect: Dialect;
    readonly from: BuiltinKind;
    readonly outputVersion?: string;
  },
): JsonObject {
  const { dialect, from } = options;
  const outputVersion = options.outputVersion ?? from.def.storage.apiVersion;
  if (outputVersion === apiVersionOf({ group: from.def.group, ...from.version })) {
    return withDefaults(object, from);
  }
  const groupVersion = parseApiVersion(outputVersion);
  const sharedKinds = allKinds(dialect).filter(
    (kind) => kind.storage.prefix === from.def.storage.prefix && kind.kind === from.def.kind,
  );
  const to =
    groupVersion === undefined
      ? undefined
      : kindIn(sharedKinds, { ...groupVersion, kind: from.def.kind });
  if (to === undefined) {
    const text = `${internalName(dialect, from)} is not suitable for converting to`;
    throw new UnsuitableVersionError(
      `${text} ${JSON.stringify(outputVersion)} in scheme "builtin"`,
    );
  }
  const copy = withDefaults(object, from);
  const result = fromStorage(to.def, to.version, toStorage(from.def, from.version, copy));
  return decodeAs(result, to);
}

function withDefaults(object: JsonObject, { version }: BuiltinKind): ApiObject {
  const copy = asApiObject(structuredClone(object));
  version.defaults?.(copy);
  return copy;
}

function decodeAs(object: ApiObject, { version }: BuiltinKind): JsonObject {
  const { apiVersion, kind } = object;
  return { apiVersion, kind, ...decodeTyped(version.schema)(object) };
}

/** The name of a kind in error messages, without its version: `apps.Deployment`. */
function internalName(dialect: Dialect, { def }: BuiltinKind): string {
  const { group } = parseApiVersion(def.storage.apiVersion) ?? { group: '' };
  return `${directoryOfGroup(dialect, group) ?? group}.${def.kind}`;
}

import {
  type CatalogueSnapshot,
  fromStorage,
  type ResourceDef,
  toStorage,
  type VersionDef,
} from '@wheelhouse/kinds';
import {
  type ApiObject,
  apiVersionOf,
  asApiObject,
  cloneJson,
  internalError,
  type MaybePromise,
} from '@wheelhouse/machinery';
import { ConversionFailure } from '../../registry/conversion/failure.ts';

/** How a resource is served in one version. */
export interface Served {
  readonly def: ResourceDef;
  readonly version: VersionDef;
}

/**
 * The object as a resource serves it, as a new object. It may be given in any of its versions, the
 * stored one included; what is of another kind (a Scale, an Eviction) has no other versions here.
 * Where a webhook has to convert it, its failure is an internal error, as upstream.
 */
export function convertTo(
  object: ApiObject,
  wanted: Served,
  snapshot: CatalogueSnapshot,
): MaybePromise<ApiObject> {
  const { def, version } = wanted;
  const copy = cloneJson(object);
  const apiVersion = apiVersionOf({ group: def.group, version: version.version });
  if (copy.apiVersion === apiVersion) return copy;
  const { storage } = def;
  if (copy.kind !== def.kind && copy.kind !== storage.kind) return copy;
  const converter = def.behavior.converter;
  if (converter !== undefined) {
    return converter.convert([copy], apiVersion).then(([made]) => asApiObject(made), asInternal);
  }
  if (copy.apiVersion === storage.apiVersion) return fromStorage(def, version, copy);
  const from = servedAs(copy, def, snapshot);
  return fromStorage(def, version, toStorage(from.def, from.version, copy));
}

function asInternal(error: unknown): never {
  throw error instanceof ConversionFailure ? internalError(error.message, error) : error;
}

function servedAs(object: ApiObject, like: ResourceDef, snapshot: CatalogueSnapshot): Served {
  for (const def of snapshot.defs) {
    if (def.storage.prefix !== like.storage.prefix) continue;
    const version = def.versions.find(
      (one) => apiVersionOf({ group: def.group, version: one.version }) === object.apiVersion,
    );
    if (version !== undefined) return { def, version };
  }
  throw internalError(`unable to convert from ${object.apiVersion}: unknown kind ${object.kind}`);
}

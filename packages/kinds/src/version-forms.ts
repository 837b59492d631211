import { type ApiObject, apiVersionOf } from '@wheelhouse/machinery';
import type { ResourceDef, VersionDef } from './resource-def.ts';

/**
 * Converts an object of a request's version to the stored version, in place, and returns it. As in
 * kube-apiserver, the stored version's schema then prunes and defaults an object of a custom kind.
 */
export function toStorage(def: ResourceDef, version: VersionDef, object: ApiObject): ApiObject {
  if (object.apiVersion !== def.storage.apiVersion) refuseUnconverted(def);
  const converted = version.toStorage?.(object) ?? object;
  converted.apiVersion = def.storage.apiVersion;
  converted.kind = def.storage.kind;
  if (def.behavior.reshapesStored && !servesStoredForm(def, version)) {
    versionNamed(def, def.storage.apiVersion)?.decode?.(converted);
  }
  return converted;
}

/**
 * Throws if the kind has a conversion webhook, which has converted every object that reaches these
 * functions; only changing its apiVersion would lose members.
 */
function refuseUnconverted(def: ResourceDef): void {
  if (def.behavior.converter === undefined) return;
  throw new Error(`an object of ${def.resource}.${def.group} was not converted`);
}

/**
 * Converts an object of the stored version to a served version, in place, and returns it. An
 * object of a custom kind is pruned by that version's schema but not defaulted, because defaults
 * apply only to client input.
 */
export function fromStorage(def: ResourceDef, version: VersionDef, object: ApiObject): ApiObject {
  if (!servesStoredForm(def, version)) refuseUnconverted(def);
  const converted = version.fromStorage?.(object) ?? object;
  converted.apiVersion = apiVersionIn(def, version);
  converted.kind = def.kind;
  if (!servesStoredForm(def, version)) version.prune?.(converted);
  return converted;
}

/** The apiVersion of a kind's objects in one of its versions. */
export function apiVersionIn(
  { group }: Pick<ResourceDef, 'group'>,
  { version }: Pick<VersionDef, 'version'>,
): string {
  return apiVersionOf({ group, version });
}

/** The kind's version with this full apiVersion. */
export function versionNamed(def: ResourceDef, apiVersion: string): VersionDef | undefined {
  return def.versions.find((version) => apiVersionIn(def, version) === apiVersion);
}

/** Whether this version serves the stored form of objects unchanged. */
export function servesStoredForm(def: ResourceDef, version: VersionDef): boolean {
  return def.storage.kind === def.kind && def.storage.apiVersion === apiVersionIn(def, version);
}

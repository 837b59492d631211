import { type ApiObject, apiVersionOf } from '@wheelhouse/machinery';
import type { ResourceDef, VersionDef } from './resource-def.ts';

/**
 * Converts a request-version object in place to the stored version; returns it. A custom kind's
 * object then gets the form that version's schema has, as upstream.
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
 * Passing an object off as another version would lose what it holds. The webhook of the kind has
 * converted every object that gets here.
 */
function refuseUnconverted(def: ResourceDef): void {
  if (def.behavior.converter === undefined) return;
  throw new Error(`an object of ${def.resource}.${def.group} was not converted`);
}

/**
 * Converts a stored-version object in place to a served version; returns it. A custom kind's object
 * keeps what that version's schema has, without the defaults: those are for what clients send.
 */
export function fromStorage(def: ResourceDef, version: VersionDef, object: ApiObject): ApiObject {
  if (!servesStoredForm(def, version)) refuseUnconverted(def);
  const converted = version.fromStorage?.(object) ?? object;
  converted.apiVersion = apiVersionOf({ group: def.group, version: version.version });
  converted.kind = def.kind;
  if (!servesStoredForm(def, version)) version.prune?.(converted);
  return converted;
}

/** The kind's version of a full apiVersion. */
export function versionNamed(def: ResourceDef, apiVersion: string): VersionDef | undefined {
  const { group } = def;
  return def.versions.find(({ version }) => apiVersionOf({ group, version }) === apiVersion);
}

/** Whether the stored form of an object is what this version serves. */
export function servesStoredForm(def: ResourceDef, version: VersionDef): boolean {
  return (
    def.storage.kind === def.kind &&
    def.storage.apiVersion === apiVersionOf({ group: def.group, version: version.version })
  );
}

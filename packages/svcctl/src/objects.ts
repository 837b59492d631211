import type { ApiResource } from '@wheelhouse/client';
import {
  isObject,
  type JsonObject,
  type JsonValue,
  parseApiVersion,
  parseQuantity,
  textAt,
  memberAt as valueAt,
} from '@wheelhouse/machinery';

export { textAt, valueAt };

/** The object at a path; empty if there is none. */
export function objectAt(object: JsonObject | undefined, ...path: readonly string[]): JsonObject {
  const value = valueAt(object, ...path);
  return isObject(value) ? value : {};
}

/** The objects of the list at a path; empty if there is none. */
export function listAt(object: JsonObject | undefined, ...path: readonly string[]): JsonObject[] {
  const value = valueAt(object, ...path);
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** The strings of the list at a path; empty if there is none. */
export function textsAt(object: JsonObject | undefined, ...path: readonly string[]): string[] {
  const value = valueAt(object, ...path);
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}

/** A quantity in units of `nanoUnit` billionths, rounded up; 0 if it is absent or malformed. */
export function amountRoundedUp(value: JsonValue | undefined, nanoUnit: bigint): bigint {
  const quantity = parseQuantity(String(value ?? '0'));
  return 'error' in quantity ? 0n : (quantity.nano + nanoUnit - 1n) / nanoUnit;
}

/** The name of an object; empty if it has none. */
export const nameOf = (object: JsonObject): string => textAt(object, 'metadata', 'name');

/** The namespace of an object; empty if it has none. */
export const namespaceOf = (object: JsonObject): string => textAt(object, 'metadata', 'namespace');

/** `deployments.apps`: a name with its API group; the core group is omitted. */
export const withGroup = (name: string, group: string): string =>
  group === '' ? name : `${name}.${group}`;

/** `configmap`, `deployment.apps`: the prefix of an object's name in reports. */
function kindLabel(object: JsonObject): string {
  const group = parseApiVersion(textAt(object, 'apiVersion'))?.group ?? '';
  return withGroup(textAt(object, 'kind').toLowerCase(), group);
}

/** `configmap/x`, `deployment.apps/x`: an object in reports, which may have no name yet. */
export function objectLabel(object: JsonObject): string {
  return `${kindLabel(object)}/${nameOf(object) || '<unknown>'}`;
}

/** `configmap`, `deployment.apps`: the prefix of an object's name, from discovery. */
export const resourceLabel = ({ kind, group }: ApiResource): string =>
  withGroup(kind.toLowerCase(), group);

/** `deployments.apps "x"`: an object in error messages. */
export const quotedLabel = ({ resource, group }: ApiResource, name: string): string =>
  `${withGroup(resource, group)} ${JSON.stringify(name)}`;

/** Labels, annotations, or parameters in one text, sorted and complete: `a=b,c=d`, or `<none>`. */
export function pairsText(map: JsonObject): string {
  const names = Object.keys(map).sort();
  return names.map((name) => `${name}=${String(map[name])}`).join(',') || '<none>';
}

/** The owner reference to an object's controller, if any. */
export const controllerOf = (object: JsonObject): JsonObject | undefined =>
  listAt(object, 'metadata', 'ownerReferences').find((owner) => owner['controller'] === true);

import type { ApiResource } from '@wheelhouse/client';
import {
  isObject,
  type JsonObject,
  type JsonValue,
  member,
  parseApiVersion,
} from '@wheelhouse/machinery';

/** A member read as text; empty when it is none. */
export function textAt(object: JsonObject | undefined, ...path: readonly string[]): string {
  const value = valueAt(object, ...path);
  return typeof value === 'string' ? value : '';
}

/** The member at a path of own members. */
export function valueAt(
  object: JsonObject | undefined,
  ...path: readonly string[]
): JsonValue | undefined {
  let value: JsonValue | undefined = object;
  for (const name of path) value = isObject(value) ? member(value, name) : undefined;
  return value;
}

/** The object at a path, or an empty one. */
export function objectAt(object: JsonObject | undefined, ...path: readonly string[]): JsonObject {
  const value = valueAt(object, ...path);
  return isObject(value) ? value : {};
}

/** The objects of a list at a path. */
export function listAt(object: JsonObject | undefined, ...path: readonly string[]): JsonObject[] {
  const value = valueAt(object, ...path);
  return Array.isArray(value) ? value.filter(isObject) : [];
}

export const nameOf = (object: JsonObject): string => textAt(object, 'metadata', 'name');
export const namespaceOf = (object: JsonObject): string => textAt(object, 'metadata', 'namespace');

/** `configmap`, `deployment.apps`: how an object's kind is written before its name. */
export function kindLabel(object: JsonObject): string {
  const group = parseApiVersion(textAt(object, 'apiVersion'))?.group ?? '';
  const kind = textAt(object, 'kind').toLowerCase();
  return group === '' ? kind : `${kind}.${group}`;
}

/** `configmap/x`, `deployment.apps/x`. */
export function objectLabel(object: JsonObject): string {
  return `${kindLabel(object)}/${nameOf(object)}`;
}

/** As `kindLabel`, from discovery. */
export function resourceLabel(resource: ApiResource): string {
  const name = resource.kind.toLowerCase();
  return resource.group === '' ? name : `${name}.${resource.group}`;
}

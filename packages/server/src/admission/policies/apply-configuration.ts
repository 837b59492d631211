import { schemaOf } from '@wheelhouse/kinds';
import {
  type ApiObject,
  isObject,
  type JsonObject,
  type JsonValue,
  member,
} from '@wheelhouse/machinery';
import type { Schema } from '@wheelhouse/schema';
import {
  fitting,
  memberType,
  merge,
  resourceType,
  TypedError,
  type ValueType,
  validateTyped,
} from '@wheelhouse/structured-merge';

/** A change that cannot be made; the message says why, in upstream's words. */
export class MutationError extends Error {}

/**
 * The object with an apply configuration merged into it, as server-side apply merges but without
 * owners. Throws MutationError for one that does not fit, or would replace something as a whole.
 */
export function withConfiguration(
  object: ApiObject,
  configuration: JsonObject,
  schema: Schema,
): JsonObject {
  const { apiVersion, kind } = object;
  const patch: JsonObject = { ...configuration, apiVersion, kind };
  const type = resourceType(schema, schemaOf('meta.v1.ObjectMeta'));
  explained('failed to convert patch object to typed object', () =>
    validateTyped(type, patch, { allowDuplicates: false }),
  );
  const atomics = atomicsIn(type, patch, '');
  if (atomics.length > 0) {
    const what = 'may not mutate atomic arrays, maps or structs';
    throw new MutationError(
      `error applying patch: invalid ApplyConfiguration: ${what}: ${atomics.join(', ')}`,
    );
  }
  const merged = explained('failed to merge patch', () => merge(type, object, patch));
  return isObject(merged) ? merged : object;
}

function explained<T>(what: string, step: () => T): T {
  try {
    return step();
  } catch (error) {
    if (!(error instanceof TypedError)) throw error;
    throw new MutationError(`error applying patch: ${what}: ${error.message}`);
  }
}

/** Paths of what an apply would replace as a whole. */
function atomicsIn(type: ValueType, value: JsonValue, path: string): readonly string[] {
  const fitted = fitting(type, value);
  if (isObject(value) && fitted.map !== undefined) {
    const { map } = fitted;
    const own = map.atomic ? [path] : [];
    const inside = Object.keys(value).flatMap((name) => {
      const child = member(value, name);
      if (child === undefined || !map.fields.has(name)) return [];
      return atomicsIn(memberType(map, name) ?? {}, child, `${path}.${name}`);
    });
    return [...own, ...inside];
  }
  if (!Array.isArray(value) || fitted.list === undefined) return [];
  const { list } = fitted;
  const inside = value.flatMap((item, index) =>
    atomicsIn(list.element.get(), item, `${path}[${index}]`),
  );
  return [...(list.atomic ? [path] : []), ...inside];
}

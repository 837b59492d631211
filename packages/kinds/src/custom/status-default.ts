import type { ApiObject, JsonObject } from '@wheelhouse/machinery';
import { applyDefaults, resolved, type Schema } from '@wheelhouse/schema';

/**
 * Returns a function that adds the schema's default of `status` to an object without one; undefined
 * if the schema has none. The result shares all other members with the object.
 */
export function statusDefaulter(schema: Schema): ((object: ApiObject) => ApiObject) | undefined {
  const status = resolved(schema).properties?.get('status');
  if (status === undefined || (resolved(status.schema).default ?? undefined) === undefined) {
    return undefined;
  }
  const onlyStatus: Schema = { type: 'object', properties: new Map([['status', status]]) };
  // Compiled on first use: there are many definitions, most with few objects.
  let fill: ReturnType<typeof applyDefaults> | undefined;
  return (object) => {
    if (object['status'] !== undefined) return object;
    const defaults: JsonObject = {};
    fill ??= applyDefaults(onlyStatus);
    fill(defaults, { beyond: 'left out' });
    return { ...object, ...defaults };
  };
}

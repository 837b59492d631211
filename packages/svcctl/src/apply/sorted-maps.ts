import { isObject, type JsonValue } from '@wheelhouse/machinery';
import { resolved, type Schema } from '@wheelhouse/schema';

/**
 * A copy in which maps have their keys in byte order, as Go writes them; the members of a struct
 * stay in the order of their declaration, and what no type describes stays as it is. Without a
 * schema every object is a map.
 */
export function sortMaps(value: JsonValue, schema: Schema | undefined): JsonValue {
  const at = schema === undefined ? undefined : resolved(schema);
  if (Array.isArray(value)) {
    if (at !== undefined && at.items === undefined) return value;
    return value.map((item) => sortMaps(item, at?.items));
  }
  if (!isObject(value)) return value;
  const inner = at?.additionalProperties;
  if (at !== undefined && typeof inner !== 'object' && at.properties === undefined) return value;
  const isMap = at?.properties === undefined;
  const names = isMap ? Object.keys(value).sort(byBytes) : Object.keys(value);
  const members = names.map((name): [string, JsonValue] => {
    const item = value[name] ?? null;
    if (at === undefined) return [name, sortMaps(item, undefined)];
    const memberSchema = at.properties?.get(name)?.schema ?? (isMap ? inner : undefined);
    return [name, memberSchema === undefined ? item : sortMaps(item, memberSchema)];
  });
  return Object.fromEntries(members);
}

function byBytes(one: string, other: string): number {
  return Buffer.compare(Buffer.from(one), Buffer.from(other));
}

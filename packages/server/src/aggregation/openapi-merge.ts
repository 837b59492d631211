import {
  isObject,
  type JsonObject,
  type JsonValue,
  jsonEqual,
  jsonEqualBut,
} from '@wheelhouse/machinery';
import {
  keepPaths,
  type OpenApiParts,
  partsOf,
  type Referable,
  referable,
  renamed,
} from './openapi-parts.ts';

/** Says which kinds a definition is of. */
const kindsMember = 'x-kubernetes-group-version-kind';

type Merged = Record<'paths' | Referable, Map<string, JsonValue>>;

/**
 * One OpenAPI 2 document of this server's own and others'. A path that is there already stays as it
 * is; a definition or parameter of a name that means something else gets another (`name_v2`).
 */
export function mergeOpenApi(own: JsonObject, others: readonly OpenApiParts[]): JsonObject {
  const { paths, definitions, parameters } = partsOf(own);
  const merged: Merged = {
    paths: new Map(paths),
    definitions: new Map(definitions),
    parameters: new Map(parameters),
  };
  for (const other of others) addParts(merged, other);
  return {
    ...own,
    paths: Object.fromEntries(merged.paths),
    definitions: Object.fromEntries(merged.definitions),
    ...(merged.parameters.size === 0 ? {} : { parameters: Object.fromEntries(merged.parameters) }),
  };
}

function addParts(merged: Merged, all: OpenApiParts): void {
  const other = keepPaths(all, (path) => !merged.paths.has(path));
  const names = {
    definitions: newNames(merged.definitions, other.definitions, isSameDefinition),
    parameters: newNames(merged.parameters, other.parameters, jsonEqual),
  };
  for (const [path, item] of other.paths) merged.paths.set(path, renamed(item, names));
  for (const of of referable) {
    for (const [name, value] of other[of]) {
      const target = names[of].get(name) ?? name;
      const present = merged[of].get(target);
      if (present === undefined) merged[of].set(target, renamed(value, names));
      else if (of === 'definitions') merged[of].set(target, withKindsOf(present, value));
    }
  }
}

/** New names for those that mean something else in `present`. */
function newNames(
  present: ReadonlyMap<string, JsonValue>,
  added: ReadonlyMap<string, JsonValue>,
  isSame: (one: JsonValue, other: JsonValue) => boolean,
): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  const taken = new Set<string>();
  for (const [name, value] of added) {
    const found = present.get(name);
    if (found === undefined || isSame(found, value)) continue;
    for (let count = 2; ; count += 1) {
      const candidate = `${name}_v${count}`;
      const there = present.get(candidate);
      const isFree = there === undefined && !added.has(candidate) && !taken.has(candidate);
      if (!isFree && (there === undefined || !isSame(there, value))) continue;
      names.set(name, candidate);
      taken.add(candidate);
      break;
    }
  }
  return names;
}

function isSameDefinition(one: JsonValue, other: JsonValue): boolean {
  if (!isObject(one) || !isObject(other)) return jsonEqual(one, other);
  return jsonEqualBut(one, other, kindsMember);
}

/** The definition with the kinds of both. */
function withKindsOf(present: JsonValue, added: JsonValue): JsonValue {
  if (!isObject(present) || !isObject(added)) return present;
  const own = kindsOf(present);
  const more = kindsOf(added).filter((one) => !own.some((existing) => jsonEqual(existing, one)));
  if (more.length === 0) return present;
  const all = [...own, ...more].sort((one, other) => (keyOf(one) < keyOf(other) ? -1 : 1));
  return { ...present, [kindsMember]: all };
}

function kindsOf(definition: JsonObject): readonly JsonValue[] {
  const kinds = definition[kindsMember];
  return Array.isArray(kinds) ? kinds : [];
}

function keyOf(kind: JsonValue): string {
  if (!isObject(kind)) return '';
  return `${kind['group']}/${kind['version']}.${kind['kind']}`;
}

import { isObject, type JsonObject, type JsonValue, member } from '@wheelhouse/machinery';

/** What an OpenAPI 2 document says, as far as it is merged with others'. */
export interface OpenApiParts {
  /** Title and version. */
  readonly info: JsonObject;
  readonly paths: ReadonlyMap<string, JsonValue>;
  readonly definitions: ReadonlyMap<string, JsonValue>;
  readonly parameters: ReadonlyMap<string, JsonValue>;
}

/** What references lead to: a member of the document, by name. */
export const referable = ['definitions', 'parameters'] as const;
export type Referable = (typeof referable)[number];

/** Documents nest no deeper than this; one that does is refused. */
const depthMax = 200;

/** The parts of a document. Throws when they are no objects. */
export function partsOf(document: JsonObject): OpenApiParts {
  const info = member(document, 'info');
  return {
    info: isObject(info) ? info : {},
    paths: membersOf(document, 'paths'),
    definitions: membersOf(document, 'definitions'),
    parameters: membersOf(document, 'parameters'),
  };
}

function membersOf(document: JsonObject, name: string): ReadonlyMap<string, JsonValue> {
  const value = member(document, name) ?? {};
  if (!isObject(value)) throw new Error(`${name} of an OpenAPI document is no object`);
  return new Map(entriesOf(value));
}

function entriesOf(object: JsonObject): [string, JsonValue][] {
  return Object.entries(object).filter((entry): entry is [string, JsonValue] => {
    return entry[1] !== undefined;
  });
}

/** The paths that `isKept` wants, and all that they refer to. Throws when it nests too deep. */
export function keepPaths(parts: OpenApiParts, isKept: (path: string) => boolean): OpenApiParts {
  const paths = new Map([...parts.paths].filter(([path]) => isKept(path)));
  const used: Record<Referable, Set<string>> = { definitions: new Set(), parameters: new Set() };
  const waiting: JsonValue[] = [...paths.values()];
  for (let value = waiting.pop(); value !== undefined; value = waiting.pop()) {
    for (const { of, name } of referencesIn(value)) {
      const found = parts[of].get(name);
      if (found === undefined || used[of].has(name)) continue;
      used[of].add(name);
      waiting.push(found);
    }
  }
  const only = (of: Referable) => new Map([...parts[of]].filter(([name]) => used[of].has(name)));
  const { info } = parts;
  return { info, paths, definitions: only('definitions'), parameters: only('parameters') };
}

function referencesIn(value: JsonValue): { readonly of: Referable; readonly name: string }[] {
  const found: { of: Referable; name: string }[] = [];
  walk(value, (text) => {
    const reference = referenceOf(text);
    if (reference !== undefined) found.push(reference);
    return text;
  });
  return found;
}

/** What a reference leads to; undefined: nothing that is merged. */
function referenceOf(text: string): { of: Referable; name: string } | undefined {
  const of = referable.find((one) => text.startsWith(`#/${one}/`));
  return of === undefined ? undefined : { of, name: text.slice(of.length + 3) };
}

/** A copy in which references lead to the new names. */
export function renamed(
  value: JsonValue,
  names: Readonly<Record<Referable, ReadonlyMap<string, string>>>,
): JsonValue {
  return walk(value, (text) => {
    const reference = referenceOf(text);
    const name = reference && names[reference.of].get(reference.name);
    return name === undefined ? text : `#/${reference?.of}/${name}`;
  });
}

/** A copy with every reference changed. */
function walk(value: JsonValue, change: (reference: string) => string, depth = 0): JsonValue {
  if (depth > depthMax) throw new Error('an OpenAPI document nests too deep');
  if (Array.isArray(value)) return value.map((one) => walk(one, change, depth + 1));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    entriesOf(value).map(([name, child]) => [
      name,
      name === '$ref' && typeof child === 'string' ? change(child) : walk(child, change, depth + 1),
    ]),
  );
}

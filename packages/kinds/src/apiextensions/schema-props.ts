import { goEscapes, type JsonObject, type JsonValue } from '@wheelhouse/machinery';
import type { CelRule } from '@wheelhouse/schema';

/** JSONSchemaProps as the typed decoder returns it: members that are present have their type. */
export interface SchemaProps extends JsonObject {
  id?: string;
  $schema?: string;
  $ref?: string;
  type?: string;
  default?: JsonValue;
  pattern?: string;
  required?: string[];
  nullable?: boolean;
  uniqueItems?: boolean;
  items?: SchemaProps | SchemaProps[];
  allOf?: SchemaProps[];
  oneOf?: SchemaProps[];
  anyOf?: SchemaProps[];
  not?: SchemaProps;
  properties?: { [name: string]: SchemaProps };
  additionalProperties?: boolean | SchemaProps;
  patternProperties?: { [name: string]: SchemaProps };
  dependencies?: { [name: string]: SchemaProps | string[] | null };
  additionalItems?: boolean | SchemaProps;
  definitions?: { [name: string]: SchemaProps };
  'x-kubernetes-preserve-unknown-fields'?: boolean;
  'x-kubernetes-embedded-resource'?: boolean;
  'x-kubernetes-int-or-string'?: boolean;
  'x-kubernetes-list-map-keys'?: string[];
  'x-kubernetes-list-type'?: string;
  'x-kubernetes-map-type'?: string;
  'x-kubernetes-validations'?: (CelRule & JsonObject)[];
}

/** The schema at the end of a path and the names that lead to it, or the error in the path. */
type FieldPathTarget =
  | { readonly names: readonly string[]; readonly schema: SchemaProps }
  | { readonly error: string };

const unexpectedEnd = 'unexpected end of JSON path';

/**
 * Follows a path in the notation of rules and selectable fields: `.spec.replicas`, and with
 * `brackets` also `.spec['a.b']`. A path names one field, so it cannot enter lists.
 */
export function fieldPathTarget(
  path: string,
  root: SchemaProps,
  options: { readonly brackets: boolean },
): FieldPathTarget {
  const names: string[] = [];
  const tokens = tokensOf(path);
  let schema = root;
  for (let at = 0; at < tokens.length; ) {
    const step = stepAt(tokens, at, options);
    if ('error' in step) return step;
    const child = childOf(schema, step.name);
    if (child === undefined) return { error: 'does not refer to a valid field' };
    names.push(step.name);
    schema = child;
    at = step.next;
  }
  return names.length === 0 ? { error: unexpectedEnd } : { names, schema };
}

/** Splits a path into delimiters, quoted texts, and the texts between them. */
function tokensOf(path: string): string[] {
  return path.match(/[.[\]]|'(?:[^'\\]|\\[\s\S])*'|[^.[\]]+/g) ?? [];
}

type Step = { readonly name: string; readonly next: number } | { readonly error: string };

function stepAt(
  tokens: readonly string[],
  at: number,
  options: { readonly brackets: boolean },
): Step {
  const name = tokens[at + 1];
  if (tokens[at] === '.')
    return name === undefined ? { error: unexpectedEnd } : { name, next: at + 2 };
  if (tokens[at] !== '[') return { error: `expected [ or . but got: ${tokens[at]}` };
  if (!options.brackets) return { error: 'array notation is not allowed' };
  if (name === undefined) return { error: unexpectedEnd };
  if (name.length < 2 || !name.startsWith("'") || !name.endsWith("'")) {
    return { error: `expected single quoted string but got ${name}` };
  }
  const quoted = unescaped(name.slice(1, -1));
  const close = tokens[at + 2];
  if (typeof quoted !== 'string') return quoted;
  if (close === undefined) return { error: unexpectedEnd };
  return close === ']' ? { name: quoted, next: at + 3 } : { error: `expected ] but got ${close}` };
}

const escapes: Readonly<Record<string, string>> = { ...goEscapes, "'": "'" };

/** Quoted names use Go's escape sequences. */
function unescaped(text: string): string | { readonly error: string } {
  const wrong = [...text.matchAll(/\\(.)/g)].find(
    ([, escaped = '']) => escapes[escaped] === undefined,
  );
  if (wrong !== undefined) {
    return { error: `invalid string literal: invalid escape char ${wrong[0]}` };
  }
  return text.replace(/\\(.)/g, (_, escaped: string) => escapes[escaped] ?? escaped);
}

/** Whether maps of properties are empty, which takes long to find out for a large map. */
const emptiness = new WeakMap<object, boolean>();

/**
 * Whether a map of properties has no members. The result is cached by the map, which must not
 * change.
 */
export function isEmpty(properties: object): boolean {
  let empty = emptiness.get(properties);
  if (empty === undefined) {
    empty = Object.keys(properties).length === 0;
    emptiness.set(properties, empty);
  }
  return empty;
}

/** The schema of a member; declared properties hide additional properties. */
function childOf(schema: SchemaProps, name: string): SchemaProps | undefined {
  const { properties } = schema;
  if (properties === undefined || isEmpty(properties)) {
    return schema.additionalProperties === true ? {} : additionalOf(schema);
  }
  return Object.hasOwn(properties, name) ? properties[name] : undefined;
}

/**
 * Yields the own entries of a map of schemas. `Object.entries` takes three times as long to list
 * the names of thousands of members.
 */
export function* entriesOf(
  map: { [name: string]: SchemaProps } | undefined,
): Generator<readonly [string, SchemaProps], void> {
  if (map === undefined) return;
  for (const name of Object.keys(map)) {
    const schema = map[name];
    if (schema !== undefined) yield [name, schema];
  }
}

/** The schema of additional properties; undefined without one. */
export function additionalOf(props: SchemaProps): SchemaProps | undefined {
  return typeof props.additionalProperties === 'object' ? props.additionalProperties : undefined;
}

/** The single schema of all items; undefined if there is none or a list of schemas. */
export function itemsOf(props: SchemaProps): SchemaProps | undefined {
  return Array.isArray(props.items) ? undefined : props.items;
}

/** Yields a schema and all schemas nested in it, including those in `allOf`, `anyOf`, and `not`. */
export function* everySchema(props: SchemaProps): Generator<SchemaProps> {
  yield props;
  const lists = [props.allOf, props.anyOf, props.oneOf].flatMap((list) => list ?? []);
  const items = Array.isArray(props.items) ? props.items : [];
  const single = [itemsOf(props), props.not, additionalOf(props)];
  const maps = [props.properties, props.patternProperties, props.definitions];
  const named = maps.flatMap((map) => Object.values(map ?? {}));
  for (const child of [...lists, ...items, ...single, ...named]) {
    if (child !== undefined) yield* everySchema(child);
  }
}

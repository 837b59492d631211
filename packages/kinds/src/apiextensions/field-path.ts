import { goEscapes } from '@wheelhouse/machinery';
import { additionalOf, entriesOf, type SchemaProps } from './schema-props.ts';

/** The schema a path leads to, and the names on the way; or why it leads nowhere. */
export type FieldPathTarget =
  | { readonly names: readonly string[]; readonly schema: SchemaProps }
  | { readonly error: string };

/**
 * Follows a path as rules and selectable fields write it: `.spec.replicas`, and with `brackets`
 * also `.spec['a.b']`. Lists cannot be entered: a path names one field.
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
  return names.length === 0 ? { error: endedEarly } : { names, schema };
}

/** Declared members hide those of any name. */
function childOf(schema: SchemaProps, name: string): SchemaProps | undefined {
  const declared = entriesOf(schema.properties);
  return declared.length === 0 ? additionalOf(schema) : new Map(declared).get(name);
}

/** Delimiters, texts in single quotes and what is between them. */
function tokensOf(path: string): string[] {
  return path.match(/[.[\]]|'(?:[^'\\]|\\[\s\S])*'|[^.[\]]+/g) ?? [];
}

const endedEarly = 'unexpected end of JSON path';

type Step = { readonly name: string; readonly next: number } | { readonly error: string };

function stepAt(
  tokens: readonly string[],
  at: number,
  options: { readonly brackets: boolean },
): Step {
  const name = tokens[at + 1];
  if (tokens[at] === '.')
    return name === undefined ? { error: endedEarly } : { name, next: at + 2 };
  if (tokens[at] !== '[') return { error: `expected [ or . but got: ${tokens[at]}` };
  if (!options.brackets) return { error: 'array notation is not allowed' };
  if (name === undefined) return { error: endedEarly };
  if (name.length < 2 || !name.startsWith("'") || !name.endsWith("'")) {
    return { error: `expected single quoted string but got ${name}` };
  }
  const quoted = unescaped(name.slice(1, -1));
  const close = tokens[at + 2];
  if (typeof quoted !== 'string') return quoted;
  if (close === undefined) return { error: endedEarly };
  return close === ']' ? { name: quoted, next: at + 3 } : { error: `expected ] but got ${close}` };
}

const escapes: Readonly<Record<string, string>> = { ...goEscapes, "'": "'" };

/** Quoted names have Go's escapes. */
function unescaped(text: string): string | { readonly error: string } {
  const wrong = [...text.matchAll(/\\(.)/g)].find(([, one = '']) => escapes[one] === undefined);
  if (wrong !== undefined) {
    return { error: `invalid string literal: invalid escape char ${wrong[0]}` };
  }
  return text.replace(/\\(.)/g, (_, one: string) => escapes[one] ?? one);
}

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
  let schema = root;
  let rest = path;
  while (rest !== '') {
    const step = stepOf(rest, options);
    if (step === undefined) return { error: `expected [ or . but got: ${rest[0] ?? ''}` };
    const child: SchemaProps | undefined =
      new Map(entriesOf(schema.properties)).get(step.name) ?? additionalOf(schema);
    if (child === undefined) return { error: 'does not refer to a valid field' };
    names.push(step.name);
    schema = child;
    rest = rest.slice(step.length);
  }
  return names.length === 0 ? { error: 'unexpected end of JSON path' } : { names, schema };
}

function stepOf(
  text: string,
  options: { readonly brackets: boolean },
): { name: string; length: number } | undefined {
  const dotted = /^\.([^.[\]'"\s]+)/.exec(text);
  const match = dotted ?? (options.brackets ? /^\['((?:[^'\\]|\\.)*)'\]/.exec(text) : null);
  if (match === null) return undefined;
  return { name: unescaped(match[1] ?? ''), length: match[0].length };
}

const escapes: Readonly<Record<string, string>> = {
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
};

/** Quoted names have Go's escapes. */
function unescaped(text: string): string {
  return text.replace(/\\(.)/g, (_, character: string) => escapes[character] ?? character);
}

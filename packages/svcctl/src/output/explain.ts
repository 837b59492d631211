import {
  descriptionOf,
  isObject,
  itemOf,
  type JsonObject,
  member,
  propertiesOf,
  schemaOfKind,
  typeName,
} from '@wheelhouse/machinery';
import { CliError } from '../io.ts';

/** One kind's part of an OpenAPI v3 document, and the types it refers to. */
export interface ExplainedKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  /** `components.schemas` of the document. */
  readonly schemas: JsonObject;
}

const lineWidth = 80;

/**
 * Tells of a kind, or of one of its fields, what the server's schema knows. Throws CliError for a
 * kind the document has not, and for a field the kind has not.
 */
export function explainText(
  of: ExplainedKind,
  options: { readonly path: readonly string[]; readonly recursive: boolean },
): string {
  const { group, version, kind, schemas } = of;
  let schema = schemaOfKind(schemas, of);
  if (schema === undefined) {
    throw new CliError(`couldn't find resource for "${group}/${version}, Kind=${kind}"`);
  }
  let shown = schema;
  for (const name of options.path) {
    const property = member(propertiesOf(itemOf(schemas, schema)), name);
    if (!isObject(property)) throw new CliError(`field ${JSON.stringify(name)} does not exist`);
    shown = property;
    schema = property;
  }
  const head = [
    ...(group === '' ? [] : [`GROUP:      ${group}`]),
    `KIND:       ${kind}`,
    `VERSION:    ${version}`,
    '',
  ];
  const field = options.path.at(-1);
  if (field !== undefined) head.push(`FIELD: ${field} <${typeName(schemas, shown)}>`, '', '');
  const target = itemOf(schemas, shown);
  const text = descriptionOf(shown) || descriptionOf(target);
  const about =
    text === ''
      ? ['DESCRIPTION:', '    <empty>', '']
      : ['DESCRIPTION:', ...wrapped(text, '    '), '    '];
  const names = Object.keys(propertiesOf(target));
  const fields =
    names.length === 0
      ? ['']
      : [
          'FIELDS:',
          ...fieldLines(target, { schemas, recursive: options.recursive, within: [] }),
          '',
        ];
  return `${[...head, ...about, ...fields].join('\n')}\n`;
}

function fieldLines(
  schema: JsonObject,
  at: {
    readonly schemas: JsonObject;
    readonly recursive: boolean;
    readonly within: readonly JsonObject[];
  },
): string[] {
  const { schemas, recursive } = at;
  // A type that holds itself is told once.
  const within = [...at.within, schema];
  const required = Array.isArray(schema.required) ? schema.required : [];
  const indent = '  '.repeat(within.length);
  const properties = propertiesOf(schema);
  return Object.keys(properties)
    .sort()
    .flatMap((name) => {
      const property = properties[name];
      if (!isObject(property)) return [];
      const mark = required.includes(name) ? ' -required-' : '';
      const line = `${indent}${name}\t<${typeName(schemas, property)}>${mark}`;
      const values = Array.isArray(property.enum)
        ? [`${indent}enum: ${property.enum.join(', ')}`]
        : [];
      const target = itemOf(schemas, property);
      if (!recursive) {
        const text = descriptionOf(property) || descriptionOf(target);
        return [line, ...values, ...wrapped(text, `${indent}  `), ''];
      }
      const inner = within.includes(target) ? [] : fieldLines(target, { ...at, within });
      return [line, ...values, ...inner];
    });
}

function wrapped(text: string, indent: string): string[] {
  if (text === '') return [`${indent}<no description>`];
  return text.split('\n').flatMap((paragraph) => {
    const lines: string[] = [];
    let line = '';
    for (const word of paragraph.split(' ')) {
      const longer = line === '' ? word : `${line} ${word}`;
      if (line === '' || longer.length + indent.length <= lineWidth) {
        line = longer;
        continue;
      }
      lines.push(indent + line);
      line = word;
    }
    return [...lines, indent + line];
  });
}

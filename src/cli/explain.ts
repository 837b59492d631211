import { isObject, type JsonObject, type JsonValue, member } from '../base/json.ts';
import { CliError } from './io.ts';

/** One kind's part of an OpenAPI v3 document, and the types it refers to. */
export interface ExplainedKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  /** `components.schemas` of the document. */
  readonly schemas: JsonObject;
}

/** Lists and maps within each other that are looked through. */
const depthMax = 20;
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
  let schema = schemaOfKind(of);
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

function schemaOfKind({ group, version, kind, schemas }: ExplainedKind): JsonObject {
  for (const schema of Object.values(schemas)) {
    if (!isObject(schema)) continue;
    const types = schema['x-kubernetes-group-version-kind'];
    const isIt = (type: JsonValue) =>
      isObject(type) && type.group === group && type.version === version && type.kind === kind;
    if (Array.isArray(types) && types.some(isIt)) return schema;
  }
  throw new CliError(`couldn't find resource for "${group}/${version}, Kind=${kind}"`);
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

/** The schema a schema stands for: the one it refers to, alone or in an `allOf` of one. */
function dereferenced(schemas: JsonObject, schema: JsonObject): JsonObject {
  const name = refOf(schema);
  const target = name === undefined ? schema : schemas[name];
  return isObject(target) ? target : {};
}

function refOf(schema: JsonObject): string | undefined {
  const { allOf } = schema;
  const [only] = Array.isArray(allOf) ? allOf : [];
  const ref = schema.$ref ?? (isObject(only) ? only.$ref : undefined);
  return typeof ref === 'string' ? ref.slice(ref.lastIndexOf('/') + 1) : undefined;
}

/** What a list or a map holds, at its innermost; an object itself. */
function itemOf(schemas: JsonObject, schema: JsonObject): JsonObject {
  let at = dereferenced(schemas, schema);
  for (let depth = 0; depth < depthMax; depth += 1) {
    const inner = at.items ?? at.additionalProperties;
    if (!isObject(inner)) return at;
    at = dereferenced(schemas, inner);
  }
  return at;
}

function propertiesOf(schema: JsonObject): JsonObject {
  return isObject(schema.properties) ? schema.properties : {};
}

function typeName(schemas: JsonObject, schema: JsonObject): string {
  const ref = refOf(schema);
  if (ref !== undefined) return ref.slice(ref.lastIndexOf('.') + 1);
  if (isObject(schema.items)) return `[]${typeName(schemas, schema.items)}`;
  if (isObject(schema.additionalProperties)) {
    return `map[string]${typeName(schemas, schema.additionalProperties)}`;
  }
  if (schema['x-kubernetes-int-or-string'] === true) return 'IntOrString';
  return typeof schema.type === 'string' && schema.type !== 'object' ? schema.type : 'Object';
}

function descriptionOf(schema: JsonObject): string {
  return typeof schema.description === 'string' ? schema.description : '';
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

import {
  descriptionOf,
  isObject,
  type JsonObject,
  member,
  objectOf,
  propertiesOf,
} from '@wheelhouse/machinery';
import { CliError } from '../io.ts';

/** A kind and its schema. */
export interface ExplainedKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly schema: JsonObject;
  /** All schemas of the document, which the kind's schema references. */
  readonly schemas: JsonObject;
}

/** What to explain of a kind. */
interface ExplainOptions {
  /** The path of the field to explain; empty for the kind itself. */
  readonly path: readonly string[];
  readonly recursive: boolean;
}

const lineWidth = 80;
/** Maximum number of enumeration values in the list of fields. */
const valuesMax = 4;

/**
 * Explains a kind or one of its fields from an OpenAPI v3 document, in the format of kubectl 1.32.
 * Throws CliError if the kind has no such field.
 */
export function explainText(explained: ExplainedKind, { path, recursive }: ExplainOptions): string {
  const { group, version, kind, schemas } = explained;
  const document = new Document(schemas);
  let schema = explained.schema;
  for (const name of path) {
    const property = document.field(schema, name);
    if (property === undefined) {
      throw new CliError(`field ${JSON.stringify(path.at(-1))} does not exist`);
    }
    schema = property;
  }
  const field = path.at(-1);
  const head = [
    ...(group === '' ? [] : [`GROUP:      ${group}`]),
    `KIND:       ${kind}`,
    `VERSION:    ${version}`,
    '',
    ...(field === undefined
      ? []
      : [`FIELD: ${field} <${document.typeName(schema)}>`, ...enumBlock(schema), '']),
  ];
  const text = document.descriptions(schema).join('');
  const description = [
    'DESCRIPTION:',
    ...wrapText(text === '' ? '<empty>' : text, 4, lineWidth - 4),
  ];
  const fields = document.fieldLines(schema, { recursive, level: 1, within: [] });
  const list = fields.length === 0 ? [] : ['FIELDS:', ...fields];
  return `${[...head, ...description, ...list, ''].join('\n')}\n`;
}

/** The enumeration values of the explained field, one per line, or a blank line. */
function enumBlock(schema: JsonObject): string[] {
  const values = enumValues(schema);
  if (values.length === 0) return [''];
  return ['ENUM:', ...values.map((value) => `    ${value}`)];
}

function enumValues(schema: JsonObject): string[] {
  if (!Array.isArray(schema.enum)) return [];
  return schema.enum.map((value) => {
    if (typeof value === 'string') return value === '' ? '""' : value;
    return JSON.stringify(value);
  });
}

/** The schemas of an OpenAPI v3 document. */
class Document {
  readonly #schemas: JsonObject;

  constructor(schemas: JsonObject) {
    this.#schemas = schemas;
  }

  /** Follows the reference of a schema, if it has one. */
  #resolve(schema: JsonObject): JsonObject {
    const name = refOf(schema)?.split('/').at(-1);
    const target = name === undefined ? undefined : member(this.#schemas, name);
    return isObject(target) ? target : schema;
  }

  /** Finds a field of a schema, of its items, or of the schemas in `allOf`. */
  field(schema: JsonObject, name: string, within: readonly JsonObject[] = []): Field {
    const resolved = this.#resolve(schema);
    if (within.includes(resolved)) return undefined;
    const property = member(propertiesOf(resolved), name);
    if (isObject(property)) return property;
    const [only] = partsOf(resolved).inner;
    const deeper = [...within, resolved];
    if (only !== undefined) return this.field(only, name, deeper);
    for (const part of partsOf(resolved).allOf) {
      const match = this.field(part, name, deeper);
      if (match !== undefined) return match;
    }
    return undefined;
  }

  /** The descriptions of a schema and of its parts, each ending with a newline. */
  descriptions(schema: JsonObject, within: readonly JsonObject[] = []): string[] {
    const resolved = this.#resolve(schema);
    if (within.includes(resolved)) return [];
    const own = descriptionOf(resolved);
    const { allOf, inner } = partsOf(resolved);
    return [
      ...(own === '' ? [] : [`${own}\n`]),
      ...[...allOf, ...inner].flatMap((part) => this.descriptions(part, [...within, resolved])),
    ];
  }

  /** The type in Go notation: `string`, `[]Container`, `map[string]Quantity`, `Object`. */
  typeName(schema: JsonObject): string {
    if (isObject(schema.items)) return `[]${this.typeName(schema.items)}`;
    if (isObject(schema.additionalProperties)) {
      return `map[string]${this.typeName(schema.additionalProperties)}`;
    }
    const [only, ...others] = partsOf(schema).allOf;
    if (only !== undefined && others.length === 0 && schema.properties === undefined) {
      return this.typeName(only);
    }
    const ref = refOf(schema);
    const { type } = ref === undefined ? schema : this.#resolve(schema);
    if (typeof type === 'string' && type !== 'object') return type;
    return ref?.split(/[./]/).at(-1) ?? 'Object';
  }

  /** The list of a schema's fields, with those of nested schemas if `recursive`. */
  fieldLines(
    schema: JsonObject,
    options: {
      readonly recursive: boolean;
      readonly level: number;
      /** The references on the path to this schema, so that a recursive type is listed once. */
      readonly within: readonly string[];
    },
  ): string[] {
    const { recursive, level } = options;
    const ref = refOf(schema);
    if (ref !== undefined && options.within.includes(ref)) return [];
    const within = ref === undefined ? options.within : [...options.within, ref];
    const resolved = this.#resolve(schema);
    const lines = Object.entries(propertiesOf(resolved))
      .toSorted(([left], [right]) => (left < right ? -1 : 1))
      .flatMap(([name, property]) => {
        if (!isObject(property)) return [];
        const line = this.#fieldLine(resolved, { name, property, recursive, level });
        if (!recursive) return line;
        return [...line, ...this.fieldLines(property, { recursive, level: level + 1, within })];
      });
    const { allOf, inner } = partsOf(resolved);
    const more = [...allOf, ...inner].flatMap((part) =>
      this.fieldLines(part, { ...options, within }),
    );
    return [...lines, ...more];
  }

  #fieldLine(
    schema: JsonObject,
    field: {
      readonly name: string;
      readonly property: JsonObject;
      readonly recursive: boolean;
      readonly level: number;
    },
  ): string[] {
    const { name, property, recursive, level } = field;
    const indent = '  '.repeat(level);
    const isRequired = Array.isArray(schema.required) && schema.required.includes(name);
    const values = enumValues(property);
    const shown = [...values.slice(0, valuesMax), ...(values.length > valuesMax ? ['....'] : [])];
    const lines = [
      `${indent}${name}\t<${this.typeName(property)}>${isRequired ? ' -required-' : ''}`,
      ...(shown.length === 0 ? [] : [`${indent}enum: ${shown.join(', ')}`]),
    ];
    if (recursive) return lines;
    const text = descriptionOf(property) || '<no description>';
    const width = lineWidth - 2 - indent.length;
    return [...lines, ...wrapText(text, indent.length + 2, width), ''];
  }
}

type Field = JsonObject | undefined;

const refOf = ({ $ref }: JsonObject): string | undefined =>
  typeof $ref === 'string' && $ref !== '' ? $ref : undefined;

/** The schemas in `allOf`, and those of list items and map values. */
function partsOf(schema: JsonObject): {
  readonly allOf: JsonObject[];
  readonly inner: JsonObject[];
} {
  const { additionalProperties, allOf, items } = schema;
  return {
    allOf: (Array.isArray(allOf) ? allOf : []).filter(isObject),
    inner: [items, additionalProperties].filter((part): part is JsonObject => isObject(part)),
  };
}

/** Wraps text into indented lines of at most `width` columns. A longer word has its own line. */
function wrapText(text: string, indent: number, width: number): string[] {
  const pad = ' '.repeat(indent);
  return text.split('\n').flatMap((paragraph) => {
    const lines: string[] = [];
    let line = '';
    for (const [, space = '', word = ''] of paragraph.matchAll(/(\s*)(\S+|$)/g)) {
      // The length from which a word overflows the line. The first word of a line always fits.
      const tooLong = width - line.length - space.length + 1;
      if (word.length >= tooLong && tooLong < width) {
        lines.push(line);
        line = word;
      } else {
        line += space + word;
      }
    }
    return [...lines, line].map((row) => pad + row);
  });
}

const indents = { description: 5, fields: 3, fieldText: 2 };

/**
 * Explains a kind or one of its fields from an OpenAPI v2 document, in the format of kubectl 1.32.
 * Throws CliError if the kind has no such field.
 */
export function explainTextOfV2(
  explained: ExplainedKind,
  { path, recursive }: ExplainOptions,
): string {
  const definitions = new Definitions(explained.schemas);
  const schema = definitions.fieldAt(explained.schema, path);
  const { descriptions, innermost } = definitions.within(schema);
  const apiVersion =
    explained.group === '' ? explained.version : `${explained.group}/${explained.version}`;
  const name = path.at(-1);
  const form = formOf(innermost);
  const type = `${name} <${definitions.typeName(schema)}>`;
  const lines = [`KIND:     ${explained.kind}`, `VERSION:  ${apiVersion}`, ''];
  if (form === 'primitive') lines.push(`FIELD:    ${type}`, '');
  if (form === 'kind' && name !== undefined) lines.push(`RESOURCE: ${type}`, '');
  lines.push('DESCRIPTION:');
  const texts = descriptions.flatMap((text, at) => {
    if (text === '') return [];
    const block = fillText(text, indents.description);
    return at === 0 ? block : ['', ...block];
  });
  const isBare = descriptions.every((text) => text === '');
  const descriptionLines = isBare ? fillText('<empty>', indents.description) : texts;
  const fields =
    form === 'kind'
      ? ['', 'FIELDS:', ...definitions.fieldLines(innermost, { recursive, within: [] })]
      : [];
  return `${[...lines, ...descriptionLines, ...fields].join('\n')}\n`;
}

/** The form of a schema without a reference. */
function formOf(schema: JsonObject): 'kind' | 'map' | 'list' | 'primitive' | 'anything' {
  const hasProperties = isObject(schema.properties);
  if (schema.type === undefined) return hasProperties ? 'kind' : 'anything';
  if (schema.type === 'object') return hasProperties ? 'kind' : 'map';
  return schema.type === 'array' ? 'list' : 'primitive';
}

/** The definitions of an OpenAPI v2 document. */
class Definitions {
  readonly #schemas: JsonObject;

  constructor(schemas: JsonObject) {
    this.#schemas = schemas;
  }

  /** The schema behind a reference, list, or map, one level down; undefined for other schemas. */
  #inner(schema: JsonObject): JsonObject | undefined {
    const { $ref, additionalProperties, items } = schema;
    if (typeof $ref === 'string') {
      return objectOf(member(this.#schemas, $ref.slice($ref.lastIndexOf('/') + 1)));
    }
    const form = formOf(schema);
    if (form === 'list') return objectOf(items);
    if (form === 'map' && isObject(additionalProperties)) return additionalProperties;
    // The values of an untyped map have its description.
    if (form === 'map') return { description: descriptionOf(schema) };
    return undefined;
  }

  /** Follows references, lists, and maps to the innermost schema, collecting descriptions. */
  within(schema: JsonObject): { descriptions: readonly string[]; innermost: JsonObject } {
    const visited = new Set([schema]);
    let innermost = schema;
    for (;;) {
      const inner = this.#inner(innermost);
      if (inner === undefined || visited.has(inner)) break;
      visited.add(inner);
      innermost = inner;
    }
    return { descriptions: [...visited].map(descriptionOf), innermost };
  }

  /** The field at a path; the search ends at a schema without fields. Throws CliError. */
  fieldAt(schema: JsonObject, path: readonly string[]): JsonObject {
    let at = schema;
    for (const name of path) {
      const { innermost } = this.within(at);
      if (formOf(innermost) !== 'kind') return innermost;
      const property = member(propertiesOf(innermost), name);
      if (!isObject(property)) throw new CliError(`field ${JSON.stringify(name)} does not exist`);
      at = property;
    }
    return at;
  }

  /** `string`, `[]Object`, `map[string]Object`; empty for an untyped schema. */
  typeName(schema: JsonObject): string {
    let prefix = '';
    const visited = new Set<JsonObject>();
    for (let at = schema; !visited.has(at); ) {
      visited.add(at);
      const form = formOf(at);
      const inner = this.#inner(at);
      if (inner === undefined) {
        if (form === 'kind') return `${prefix}Object`;
        return prefix + (typeof at.type === 'string' ? at.type : '');
      }
      if (at.$ref === undefined) prefix += form === 'list' ? '[]' : 'map[string]';
      at = inner;
    }
    return prefix;
  }

  /** The list of a schema's fields, with those of nested schemas if `recursive`. */
  fieldLines(
    schema: JsonObject,
    options: { readonly recursive: boolean; readonly within: readonly JsonObject[] },
  ): string[] {
    const within = [...options.within, schema];
    const indent = ' '.repeat(indents.fields * within.length);
    const required = Array.isArray(schema.required) ? schema.required : [];
    return Object.entries(propertiesOf(schema))
      .toSorted(([left], [right]) => (left < right ? -1 : 1))
      .flatMap(([name, property]) => {
        if (!isObject(property)) return [];
        const line = `${indent}${name}\t<${this.typeName(property)}>`;
        if (!options.recursive) {
          const text = fillText(descriptionOf(property), indent.length + indents.fieldText);
          return [line + (required.includes(name) ? ' -required-' : ''), ...text, ''];
        }
        const { innermost } = this.within(property);
        if (formOf(innermost) !== 'kind' || within.includes(innermost)) return [line];
        return [line, ...this.fieldLines(innermost, { ...options, within })];
      });
  }
}

/** Fills text into lines; indented lines, blank lines, and list items start a new line. */
function fillText(text: string, indent: number): string[] {
  const lines: string[] = [];
  let words: string[] = [];
  let lineLength = -1;
  const flush = () => {
    if (words.length > 0) lines.push(words.join(' '));
    words = [];
    lineLength = -1;
  };
  for (const line of text.split('\n')) {
    const isVerbatim = line.startsWith('    ');
    const isBlank = line.trim() === '';
    const keepsBlank = isBlank && lines.length > 0;
    if (
      isVerbatim ||
      isBlank ||
      words.at(-1)?.endsWith(':') ||
      /^(\d+\.?|-|\*)\s/.test(line.trim())
    ) {
      flush();
    }
    if (isVerbatim || keepsBlank) {
      lines.push(isVerbatim ? line : '');
      continue;
    }
    for (const word of line.split(/\s+/).filter((part) => part !== '')) {
      if (lineLength + 1 + word.length > lineWidth - indent) flush();
      words.push(word);
      lineLength += 1 + word.length;
    }
  }
  flush();
  return lines.map((line) => (line === '' ? line : ' '.repeat(indent) + line));
}

import {
  descriptionOf,
  isObject,
  type JsonObject,
  type JsonValue,
  member,
  propertiesOf,
} from '@wheelhouse/machinery';
import { CliError } from '../io.ts';

/** A kind, and what an OpenAPI document says about it. */
export interface ExplainedKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly schema: JsonObject;
  /** All schemas of the document, to which the kind's schema refers. */
  readonly schemas: JsonObject;
}

export interface ExplainOptions {
  /** The names of fields that lead to the one to explain; empty for the kind itself. */
  readonly path: readonly string[];
  readonly recursive: boolean;
}

/** Columns of a line, and values of an enumeration in the list of fields. */
const lineWidth = 80;
const valuesMax = 4;

/**
 * Explains a kind, or one of its fields, by an OpenAPI v3 document, as kubectl 1.32 prints it.
 * Throws CliError for a field that the kind does not have.
 */
export function explainText(of: ExplainedKind, { path, recursive }: ExplainOptions): string {
  const { group, version, kind, schemas } = of;
  const document = new Document(schemas);
  let shown = of.schema;
  for (const name of path) {
    const property = document.field(shown, name);
    if (property === undefined) {
      throw new CliError(`field ${JSON.stringify(path.at(-1))} does not exist`);
    }
    shown = property;
  }
  const field = path.at(-1);
  const head = [
    ...(group === '' ? [] : [`GROUP:      ${group}`]),
    `KIND:       ${kind}`,
    `VERSION:    ${version}`,
    '',
    ...(field === undefined
      ? []
      : [`FIELD: ${field} <${document.typeName(shown)}>`, ...enumBlock(shown), '']),
  ];
  const text = document.descriptions(shown).join('');
  const about = ['DESCRIPTION:', ...wrapped(text === '' ? '<empty>' : text, 4, lineWidth - 4)];
  const fields = document.fieldLines(shown, { recursive, level: 1, within: [] });
  const list = fields.length === 0 ? [] : ['FIELDS:', ...fields];
  return `${[...head, ...about, ...list, ''].join('\n')}\n`;
}

/** The values of the field that is explained, one a line; a blank line where it has none. */
function enumBlock(schema: JsonObject): string[] {
  const values = valuesOf(schema);
  if (values.length === 0) return [''];
  return ['ENUM:', ...values.map((value) => `    ${value}`)];
}

function valuesOf(schema: JsonObject): string[] {
  if (!Array.isArray(schema.enum)) return [];
  return schema.enum.map((value) => {
    if (typeof value === 'string') return value === '' ? '""' : value;
    return JSON.stringify(value);
  });
}

/** A document of OpenAPI v3, whose schemas refer to each other. */
class Document {
  readonly #schemas: JsonObject;

  constructor(schemas: JsonObject) {
    this.#schemas = schemas;
  }

  /** The schema that another refers to; itself where it refers to none. */
  #resolved(schema: JsonObject): JsonObject {
    const name = refOf(schema)?.split('/').at(-1);
    const target = name === undefined ? undefined : member(this.#schemas, name);
    return isObject(target) ? target : schema;
  }

  /** A field of an object, of what a list or a map has, or of one of several types. */
  field(schema: JsonObject, name: string, within: readonly JsonObject[] = []): Field {
    const resolved = this.#resolved(schema);
    if (within.includes(resolved)) return undefined;
    const property = member(propertiesOf(resolved), name);
    if (isObject(property)) return property;
    const [only] = partsOf(resolved).inner;
    const deeper = [...within, resolved];
    if (only !== undefined) return this.field(only, name, deeper);
    for (const one of partsOf(resolved).allOf) {
      const found = this.field(one, name, deeper);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** The descriptions of a schema and of those it consists of, each with the end of its line. */
  descriptions(schema: JsonObject, within: readonly JsonObject[] = []): string[] {
    const resolved = this.#resolved(schema);
    if (within.includes(resolved)) return [];
    const own = descriptionOf(resolved);
    const { allOf, inner } = partsOf(resolved);
    return [
      ...(own === '' ? [] : [`${own}\n`]),
      ...[...allOf, ...inner].flatMap((one) => this.descriptions(one, [...within, resolved])),
    ];
  }

  /** The type as people read it: `string`, `[]Container`, `map[string]Quantity`, `Object`. */
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
    const { type } = ref === undefined ? schema : this.#resolved(schema);
    if (typeof type === 'string' && type !== 'object') return type;
    return ref?.split(/[./]/).at(-1) ?? 'Object';
  }

  fieldLines(
    schema: JsonObject,
    at: {
      readonly recursive: boolean;
      readonly level: number;
      /** The references that led here; a type that holds itself is listed once. */
      readonly within: readonly string[];
    },
  ): string[] {
    const { recursive, level } = at;
    const ref = refOf(schema);
    if (ref !== undefined && at.within.includes(ref)) return [];
    const within = ref === undefined ? at.within : [...at.within, ref];
    const resolved = this.#resolved(schema);
    const lines = Object.entries(propertiesOf(resolved))
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
      .flatMap(([name, property]) => {
        if (!isObject(property)) return [];
        const line = this.#fieldLine(resolved, { name, property, recursive, level });
        if (!recursive) return line;
        return [...line, ...this.fieldLines(property, { recursive, level: level + 1, within })];
      });
    const { allOf, inner } = partsOf(resolved);
    const more = [...allOf, ...inner].flatMap((one) => this.fieldLines(one, { ...at, within }));
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
    const values = valuesOf(property);
    const shown = [...values.slice(0, valuesMax), ...(values.length > valuesMax ? ['....'] : [])];
    const lines = [
      `${indent}${name}\t<${this.typeName(property)}>${isRequired ? ' -required-' : ''}`,
      ...(shown.length === 0 ? [] : [`${indent}enum: ${shown.join(', ')}`]),
    ];
    if (recursive) return lines;
    const text = descriptionOf(property) || '<no description>';
    const width = lineWidth - 2 - indent.length;
    return [...lines, ...wrapped(text, indent.length + 2, width), ''];
  }
}

type Field = JsonObject | undefined;

const refOf = ({ $ref }: JsonObject): string | undefined =>
  typeof $ref === 'string' && $ref !== '' ? $ref : undefined;

/** The schemas that a schema consists of, and those of the members of a list or a map. */
function partsOf(schema: JsonObject): {
  readonly allOf: JsonObject[];
  readonly inner: JsonObject[];
} {
  const { additionalProperties, allOf, items } = schema;
  return {
    allOf: (Array.isArray(allOf) ? allOf : []).filter(isObject),
    inner: [items, additionalProperties].filter((one): one is JsonObject => isJsonObject(one)),
  };
}

const isJsonObject = (value: JsonValue | undefined): value is JsonObject => isObject(value);

/** Text in lines of at most `width` columns after the indent; longer words stand alone. */
function wrapped(text: string, indent: number, width: number): string[] {
  const pad = ' '.repeat(indent);
  return text.split('\n').flatMap((paragraph) => {
    const lines: string[] = [];
    let line = '';
    for (const [, space = '', word = ''] of paragraph.matchAll(/(\s*)(\S+|$)/g)) {
      // Where a word would not fit, counted in its letters; at the start of a line it always fits.
      const tooLong = width - line.length - space.length + 1;
      if (word.length >= tooLong && tooLong < width) {
        lines.push(line);
        line = word;
      } else {
        line += space + word;
      }
    }
    return [...lines, line].map((one) => pad + one);
  });
}

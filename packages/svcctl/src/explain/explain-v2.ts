import {
  descriptionOf,
  isObject,
  type JsonObject,
  member,
  propertiesOf,
} from '@wheelhouse/machinery';
import { CliError } from '../io.ts';
import type { ExplainedKind, ExplainOptions } from './explain-text.ts';

const lineWidth = 80;
const indents = { description: 5, fields: 3, fieldText: 2 };

/**
 * Explains a kind, or one of its fields, by an OpenAPI v2 document, as kubectl 1.32 prints it.
 * Throws CliError for a field that the kind does not have.
 */
export function explainTextOfV2(of: ExplainedKind, { path, recursive }: ExplainOptions): string {
  const definitions = new Definitions(of.schemas);
  const shown = definitions.fieldAt(of.schema, path);
  const { descriptions, innermost } = definitions.within(shown);
  const apiVersion = of.group === '' ? of.version : `${of.group}/${of.version}`;
  const name = path.at(-1);
  const form = formOf(innermost);
  const type = `${name} <${definitions.typeName(shown)}>`;
  const lines = [`KIND:     ${of.kind}`, `VERSION:  ${apiVersion}`, ''];
  if (form === 'primitive') lines.push(`FIELD:    ${type}`, '');
  if (form === 'kind' && name !== undefined) lines.push(`RESOURCE: ${type}`, '');
  lines.push('DESCRIPTION:');
  const texts = descriptions.flatMap((text, at) => {
    if (text === '') return [];
    const block = wrappedText(text, indents.description);
    return at === 0 ? block : ['', ...block];
  });
  const isBare = descriptions.every((text) => text === '');
  const about = isBare ? wrappedText('<empty>', indents.description) : texts;
  const fields =
    form === 'kind'
      ? ['', 'FIELDS:', ...definitions.fieldLines(innermost, { recursive, within: [] })]
      : [];
  return `${[...lines, ...about, ...fields].join('\n')}\n`;
}

/** What a schema without a reference describes. */
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

  /** What a reference, a list, or a map leads to in one step; undefined for what has no parts. */
  #inner(schema: JsonObject): JsonObject | undefined {
    const { $ref, additionalProperties, items } = schema;
    if (typeof $ref === 'string') {
      const target = member(this.#schemas, $ref.slice($ref.lastIndexOf('/') + 1));
      return isObject(target) ? target : {};
    }
    const form = formOf(schema);
    if (form === 'list') return isObject(items) ? items : {};
    if (form === 'map' && isObject(additionalProperties)) return additionalProperties;
    // The members of other maps may be anything, and are described as the map is.
    if (form === 'map') return { description: descriptionOf(schema) };
    return undefined;
  }

  /** What references, lists, and maps hold at last, and the descriptions on the way there. */
  within(schema: JsonObject): { descriptions: readonly string[]; innermost: JsonObject } {
    const passed = new Set([schema]);
    let innermost = schema;
    for (;;) {
      const inner = this.#inner(innermost);
      if (inner === undefined || passed.has(inner)) break;
      passed.add(inner);
      innermost = inner;
    }
    return { descriptions: [...passed].map(descriptionOf), innermost };
  }

  /** The field that a path leads to. A path ends at what has no fields. Throws CliError. */
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

  /** `string`, `[]Object`, `map[string]Object`; empty for what may be anything. */
  typeName(schema: JsonObject): string {
    let prefix = '';
    const passed = new Set<JsonObject>();
    for (let at = schema; !passed.has(at); ) {
      passed.add(at);
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

  fieldLines(
    schema: JsonObject,
    at: { readonly recursive: boolean; readonly within: readonly JsonObject[] },
  ): string[] {
    const within = [...at.within, schema];
    const indent = ' '.repeat(indents.fields * within.length);
    const required = Array.isArray(schema.required) ? schema.required : [];
    return Object.entries(propertiesOf(schema))
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
      .flatMap(([name, property]) => {
        if (!isObject(property)) return [];
        const line = `${indent}${name}\t<${this.typeName(property)}>`;
        if (!at.recursive) {
          const text = wrappedText(descriptionOf(property), indent.length + indents.fieldText);
          return [line + (required.includes(name) ? ' -required-' : ''), ...text, ''];
        }
        const { innermost } = this.within(property);
        if (formOf(innermost) !== 'kind' || within.includes(innermost)) return [line];
        return [line, ...this.fieldLines(innermost, { ...at, within })];
      });
  }
}

/** Text filled into lines; what is indented, empty, or an item of a list begins a line of its own. */
function wrappedText(text: string, indent: number): string[] {
  const lines: string[] = [];
  let words: string[] = [];
  let lengthOfLine = -1;
  const flush = () => {
    if (words.length > 0) lines.push(words.join(' '));
    words = [];
    lengthOfLine = -1;
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
    for (const word of line.split(/\s+/).filter((one) => one !== '')) {
      if (lengthOfLine + 1 + word.length > lineWidth - indent) flush();
      words.push(word);
      lengthOfLine += 1 + word.length;
    }
  }
  flush();
  return lines.map((line) => (line === '' ? line : ' '.repeat(indent) + line));
}

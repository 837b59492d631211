import {
  dereference,
  isObject,
  type JsonObject,
  type JsonValue,
  propertiesOf,
} from '@wheelhouse/machinery/browser';
import { type FailureCause, textsOf } from '../failure.ts';
import { apiVersionOf, type Kind } from '../kinds.ts';
import { type ExplainedField, explain, type KindSchema } from '../schema.ts';

/** The context of a position in a YAML text. */
interface YamlContext {
  /** Path of the enclosing fields, without list items. */
  readonly path: readonly string[];
  readonly at: 'key' | 'value';
  /** The field whose value is at the position; empty at a key. */
  readonly name: string;
  /** The text before the position that belongs to the key or value, and its offset. */
  readonly prefix: string;
  readonly from: number;
  /** Indentation of the key. */
  readonly indent: number;
  /** Keys of the same object. */
  readonly siblings: readonly string[];
}

interface Line {
  /** Column of the text after `- ` markers. */
  readonly column: number;
  readonly isItem: boolean;
  /** Undefined if the line has no key. */
  readonly key: string | undefined;
}

/** Matches a key with the spaces after it; reads a character once, since lines may be long. */
const keyPattern = /^("(?:[^"\\]|\\.)*"\s*|'[^']*'\s*|[^\s#'"[\]{},&*!|>%@`-][^:#]*):(?=\s|$)/;

/**
 * Determines the context of an offset from indentation, since text that is being typed is seldom
 * valid YAML.
 */
export function contextAt(text: string, offset: number): YamlContext {
  const start = text.lastIndexOf('\n', offset - 1) + 1;
  const before = text.slice(start, offset);
  const [, marks = '', typed = ''] = /^(\s*(?:-\s+)*)(.*)$/s.exec(before) ?? [];
  const indent = marks.length;
  const lines = text.split('\n');
  const at = text.slice(0, start).split('\n').length - 1;
  const context = contextOfLine(lines, at, { indent, isItem: marks.includes('-') });
  const key = keyPattern.exec(typed)?.[1];
  if (key === undefined) {
    return {
      ...context,
      at: 'key',
      name: '',
      prefix: typed,
      from: offset - typed.length,
      indent,
    };
  }
  const value = typed.slice(typed.indexOf(':', key.length) + 1);
  const prefix = value.trimStart();
  const from = offset - prefix.length;
  return { ...context, at: 'value', name: unquote(key), prefix, from, indent };
}

function contextOfLine(
  lines: readonly string[],
  at: number,
  field: { readonly indent: number; readonly isItem: boolean },
): Pick<YamlContext, 'path' | 'siblings'> {
  const path: string[] = [];
  const siblings: string[] = [];
  let limit = field.indent;
  let isBeside = !field.isItem;
  for (let index = at - 1; index >= 0 && limit > 0; index -= 1) {
    const line = readLine(lines[index]);
    if (line === undefined) continue;
    if (line.column < limit && line.key !== undefined) {
      path.unshift(line.key);
      limit = line.column;
      isBeside = false;
    } else if (isBeside && line.column === limit) {
      if (line.key !== undefined) siblings.push(line.key);
      isBeside = !line.isItem;
    }
  }
  const above = limit === 0 && path.length === 0 ? keysOf(lines.slice(0, at), 0) : siblings;
  return { path, siblings: [...above, ...keysBelow(lines.slice(at + 1), field.indent)] };
}

function keysOf(lines: readonly string[], column: number): string[] {
  return lines.flatMap((text) => {
    const line = readLine(text);
    return line?.key !== undefined && line.column === column ? [line.key] : [];
  });
}

/**
 * Keys of the same object in one direction, up to a line that is indented less or begins an item.
 */
function keysBelow(lines: readonly string[], indent: number): string[] {
  const keys: string[] = [];
  for (const text of lines) {
    const line = readLine(text);
    if (line === undefined) continue;
    if (line.column < indent || (line.column === indent && line.isItem)) break;
    if (line.column === indent && line.key !== undefined) keys.push(line.key);
  }
  return keys;
}

function readLine(text: string | undefined): Line | undefined {
  const [, spaces = '', marks = '', rest = ''] =
    /^(\s*)((?:-\s+|-$)*)(.*)$/s.exec(text ?? '') ?? [];
  if ((rest === '' && marks === '') || rest.startsWith('#')) return undefined;
  const key = keyPattern.exec(rest)?.[1];
  return {
    column: spaces.length + marks.length,
    isItem: marks !== '',
    key: key === undefined ? undefined : unquote(key),
  };
}

function unquote(text: string): string {
  const key = text.trimEnd();
  return /^(["']).*\1$/.test(key) ? key.slice(1, -1) : key;
}

/** A completion. */
interface Completion {
  readonly label: string;
  /** `[]Container`, `required` */
  readonly detail: string;
  readonly description: string;
  /** The text to insert. */
  readonly text: string;
  readonly type: 'field' | 'value';
  readonly isRequired: boolean;
}

/** The completions at an offset; they replace the text between `from` and the offset. */
export interface Completions {
  readonly from: number;
  readonly options: readonly Completion[];
}

/** Completes missing fields or allowed values from the schema of the kind. */
export function completionsAt(
  of: { readonly kind: Kind; readonly schema: KindSchema },
  text: string,
  offset: number,
): Completions {
  const context = contextAt(text, offset);
  const { from } = context;
  if (context.at === 'value') return { from, options: valuesAt(of, context) };
  const enclosing = explain(of.schema, context.path);
  const typed = new Set(context.siblings);
  const fields = (enclosing?.fields ?? []).filter(({ name }) => !typed.has(name));
  const options = fields.map((field) => fieldOption(field, context.indent));
  // The items of a list may have allowed values, too.
  const values = fields.length === 0 ? (enclosing?.field?.values ?? []) : [];
  return { from, options: [...options, ...values.map((value) => valueOption(value))] };
}

function fieldOption(field: ExplainedField, indent: number): Completion {
  const { name, type, isRequired, description, isNested } = field;
  const inner = ' '.repeat(indent + 2);
  const isList = type.startsWith('[]');
  const isMap = type.startsWith('map[') || type === 'Object' || isNested;
  const suffix = isList ? `\n${' '.repeat(indent)}- ` : isMap ? `\n${inner}` : ' ';
  return {
    label: name,
    detail: isRequired ? `${type}, required` : type,
    description,
    text: `${name}:${suffix}`,
    type: 'field',
    isRequired,
  };
}

function valuesAt(
  { kind, schema }: { readonly kind: Kind; readonly schema: KindSchema },
  { path, name }: YamlContext,
): Completion[] {
  if (path.length === 0 && name === 'apiVersion') return [valueOption(apiVersionOf(kind))];
  if (path.length === 0 && name === 'kind') return [valueOption(kind.kind)];
  const field = explain(schema, [...path, name])?.field;
  if (field === undefined) return [];
  const { values, defaultValue } = field;
  const defaultText = defaultValue?.replace(/^"(.*)"$/, '$1');
  const candidates = field.type === 'boolean' ? ['true', 'false'] : values;
  const all = defaultText === undefined ? candidates : [defaultText, ...candidates];
  return [...new Set(all)].map((value) =>
    valueOption(value, value === defaultText ? 'default' : ''),
  );
}

function valueOption(text: string, detail = ''): Completion {
  return { label: text, detail, description: '', text, type: 'value', isRequired: false };
}

/** Maximum number of errors; the server reports the rest. */
const faultsMax = 50;
const depthMax = 60;

/**
 * Checks a value against the published schema while the user types: unknown and missing fields,
 * wrong types, and values outside an enum. The server checks more rules.
 */
export function schemaFaults({ root, schemas }: KindSchema, value: JsonValue): FailureCause[] {
  const faults: FailureCause[] = [];
  check({ schemas, faults }, { schema: root, value, path: '', depth: 0 });
  return faults;
}

interface CheckContext {
  readonly schemas: JsonObject;
  readonly faults: FailureCause[];
}

interface Place {
  readonly schema: JsonObject;
  readonly value: JsonValue;
  readonly path: string;
  readonly depth: number;
}

function check(context: CheckContext, { schema: declared, value, path, depth }: Place): void {
  const { schemas, faults } = context;
  if (faults.length >= faultsMax || depth > depthMax || value === null) return;
  const schema = dereference(schemas, declared);
  const report = (message: string): void => {
    faults.push({ field: path, reason: '', message });
  };
  if (!hasType(schema, value)) {
    report(`must be of type ${String(schema['type'])}`);
    return;
  }
  const allowed = declared['enum'] ?? schema['enum'];
  if (Array.isArray(allowed) && typeof value === 'string' && !allowed.includes(value)) {
    report(`must be one of ${allowed.map(String).join(', ')}`);
    return;
  }
  if (Array.isArray(value)) {
    const { items } = schema;
    if (!isObject(items)) return;
    value.forEach((item, index) => {
      check(context, { schema: items, value: item, path: `${path}[${index}]`, depth: depth + 1 });
    });
    return;
  }
  if (isObject(value)) checkMembers(context, { schema, value, path, depth });
}

function checkMembers(
  context: CheckContext,
  { schema, value, path, depth }: Place & { readonly value: JsonObject },
): void {
  const { faults } = context;
  const properties = propertiesOf(schema);
  const { additionalProperties: others } = schema;
  const isOpen =
    isObject(others) ||
    others === true ||
    schema['x-kubernetes-preserve-unknown-fields'] === true ||
    Object.keys(properties).length === 0;
  for (const [name, member] of Object.entries(value)) {
    const at = pathTo(path, name);
    const property = Object.hasOwn(properties, name) ? properties[name] : others;
    if (isObject(property)) {
      check(context, { schema: property, value: member ?? null, path: at, depth: depth + 1 });
    } else if (!isOpen)
      faults.push({ field: at, reason: '', message: 'is not a field of the kind' });
  }
  for (const name of textsOf(schema, 'required')) {
    if (Object.hasOwn(value, name)) continue;
    faults.push({ field: pathTo(path, name), reason: '', message: 'is required' });
  }
}

function pathTo(path: string, name: string): string {
  if (!/^[\w-]+$/.test(name)) return `${path}["${name}"]`;
  return path === '' ? name : `${path}.${name}`;
}

function hasType(schema: JsonObject, value: JsonValue): boolean {
  const { type } = schema;
  const isLoose =
    schema['x-kubernetes-int-or-string'] === true ||
    schema['format'] === 'int-or-string' ||
    schema['oneOf'] !== undefined ||
    schema['anyOf'] !== undefined;
  if (isLoose || typeof type !== 'string') return true;
  switch (type) {
    case 'object':
      return isObject(value);
    case 'array':
      return Array.isArray(value);
    case 'string':
      return typeof value === 'string';
    case 'boolean':
      return typeof value === 'boolean';
    case 'integer':
      return typeof value === 'bigint' || (typeof value === 'number' && Number.isInteger(value));
    case 'number':
      return typeof value === 'number' || typeof value === 'bigint';
    default:
      return true;
  }
}

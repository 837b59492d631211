import {
  type DocumentOptions,
  type ParseOptions,
  parse,
  parseAllDocuments,
  type SchemaOptions,
  stringify,
  type ToJSOptions,
} from 'yaml';
import type { JsonValue } from '../base/json.ts';

/** YAML 1.1 as Go's library reads it, without turning dates into objects. */
const readOptions: ParseOptions & DocumentOptions & SchemaOptions & ToJSOptions = {
  version: '1.1',
  merge: true,
  customTags: (tags) =>
    tags.filter((tag) => !isTag(tag, ['timestamp', 'binary', 'set', 'omap', 'pairs'])),
  maxAliasCount: 100,
};

function isTag(tag: unknown, names: readonly string[]): boolean {
  const text = typeof tag === 'string' ? tag : ((tag as { tag?: string }).tag ?? '');
  return names.some((name) => text === name || text === `tag:yaml.org,2002:${name}`);
}

/** The one document of a text, null when it is empty. Throws the library's error, with position. */
export function parseYaml(text: string): JsonValue {
  return (parse(text, readOptions) ?? null) as JsonValue;
}

/** Every document of a stream, empty ones left out; JSON is YAML. Throws on the first bad one. */
export function parseYamlDocuments(text: string): JsonValue[] {
  const documents = parseAllDocuments(text, readOptions);
  const values: JsonValue[] = [];
  for (const document of documents) {
    const [error] = document.errors;
    if (error !== undefined) throw error;
    const value = document.toJS({ maxAliasCount: 100 }) as JsonValue | undefined;
    if (value !== undefined && value !== null) values.push(value);
  }
  return values;
}

/** Block style with sorted members and flush sequences, the way kubectl's users know it. */
export function toYaml(value: unknown): string {
  return stringify(value, {
    version: '1.1',
    indentSeq: false,
    lineWidth: 0,
    sortMapEntries: true,
    aliasDuplicateObjects: false,
  });
}

import { decodeJson, decodeYaml, encodeYaml } from '@wheelhouse/codec';
import type { JsonValue } from '@wheelhouse/machinery';

/**
 * Parses a text with one document. Resolves with null for an empty text. Parses JSON without
 * loading the YAML library, since generated kubeconfigs and manifests often are JSON. Rejects with
 * the parser's error, which includes the line.
 */
export async function parseYaml(text: string): Promise<JsonValue> {
  const bytes = Buffer.from(text, 'utf8');
  if (/^\s*[{[]/.test(text)) {
    try {
      return decodeJson(bytes).value;
    } catch {
      // Flow-style YAML may begin like JSON.
    }
  }
  return (await decodeYaml(bytes)).value;
}

/** Parses the nonempty documents of a YAML or JSON stream. Rejects at the first invalid one. */
export async function parseYamlDocuments(text: string): Promise<JsonValue[]> {
  const values: JsonValue[] = [];
  for (const document of text.split(/^---(?=\s|$)/m)) {
    for (const part of splitJson(document)) {
      const value = await parseYaml(part);
      if (value !== null) values.push(value);
    }
  }
  return values;
}

/** Splits consecutive JSON objects. Any other text is returned whole. */
function splitJson(text: string): string[] {
  if (!/^\s*\{/.test(text)) return [text];
  const parts: string[] = [];
  let depth = 0;
  let start = 0;
  for (const { 0: token, index } of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}]|[^\s{}"]+/gs)) {
    // Text between two objects belongs to a YAML document.
    if (depth === 0 && token !== '{') return [text];
    if (token === '{') depth += 1;
    if (token === '}') depth -= 1;
    if (token !== '}' || depth > 0) continue;
    parts.push(text.slice(start, index + 1));
    start = index + 1;
  }
  return depth === 0 ? parts : [text];
}

/**
 * Formats a value as kubectl does: block-style YAML with sorted members and unindented sequences.
 */
export function toYaml(value: JsonValue): string {
  return encodeYaml(value);
}

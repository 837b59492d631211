import { decodeJson, decodeYaml, encodeYaml } from '@wheelhouse/codec';
import type { JsonValue } from '@wheelhouse/machinery';

/**
 * Parses the only document of a text; null for an empty text. Parses JSON directly, which avoids
 * loading the YAML library: kubeconfigs that the server writes and most generated manifests are
 * JSON. Rejects with the parser's error, which includes the line.
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

/** Parses all nonempty documents of a stream; JSON is YAML. Rejects at the first invalid one. */
export async function parseYamlDocuments(text: string): Promise<JsonValue[]> {
  const values: JsonValue[] = [];
  for (const document of text.split(/^---(?=\s|$)/m)) {
    const value = await parseYaml(document);
    if (value !== null) values.push(value);
  }
  return values;
}

/** Serializes as block-style YAML with sorted members and unindented sequences, like kubectl. */
export function toYaml(value: JsonValue): string {
  return encodeYaml(value);
}

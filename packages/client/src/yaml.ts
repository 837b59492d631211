import { decodeJson, decodeYaml, encodeYaml } from '@wheelhouse/codec';
import type { JsonValue } from '@wheelhouse/machinery';

/**
 * The one document of a text, null when it is empty. JSON is read as such, which spares loading a
 * YAML library: kubeconfigs that the server writes and most manifests of programs are JSON. Rejects
 * with the decoder's error, which tells the line.
 */
export async function parseYaml(text: string): Promise<JsonValue> {
  const bytes = Buffer.from(text, 'utf8');
  if (/^\s*[{[]/.test(text)) {
    try {
      return decodeJson(bytes).value;
    } catch {
      // Flow style YAML begins like JSON.
    }
  }
  return (await decodeYaml(bytes)).value;
}

/** Every document of a stream, empty ones left out; JSON is YAML. Rejects at the first bad one. */
export async function parseYamlDocuments(text: string): Promise<JsonValue[]> {
  const values: JsonValue[] = [];
  for (const document of text.split(/^---(?=\s|$)/m)) {
    const value = await parseYaml(document);
    if (value !== null) values.push(value);
  }
  return values;
}

/** Block style with sorted members and flush sequences, the way kubectl's users know it. */
export function toYaml(value: JsonValue): string {
  return encodeYaml(value);
}

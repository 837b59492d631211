import {
  decodeJson,
  decodeYaml,
  encodeYaml,
  type JsonError,
  syntaxErrorOf,
} from '@wheelhouse/codec';
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

/**
 * Parses the nonempty documents of a stream, which separators (`---`) divide. A document consists
 * of JSON values if it begins with a brace and the stream does, too; otherwise, of YAML or of JSON
 * objects. Throws at the first invalid document, in the wording of Go's decoders.
 */
export async function* parseYamlDocuments(text: string): AsyncGenerator<JsonValue> {
  const plain = text.replace(/^\uFEFF/, '');
  const begins = (document: string) => /^\s*\{/.test(document);
  const isJson = begins(plain);
  for (const { document, start } of splitDocuments(plain)) {
    if (isJson && begins(document)) {
      yield* parseJsonStream(document, () => Buffer.byteLength(plain.slice(0, start)));
      continue;
    }
    for (const part of splitJson(document)) {
      // kubectl's reader ends every line, which shows in the lines of errors.
      const value = await parseYaml(part.endsWith('\n') ? part : `${part}\n`);
      if (value !== null) yield value;
    }
  }
}

/** Maximum depth of values in a JSON stream. */
const depthMax = 10_000;

/**
 * Parses consecutive JSON values. Anything else among them is malformed.
 * @param bytesBefore returns the number of bytes before the text, for errors
 */
function* parseJsonStream(text: string, bytesBefore: () => number): Generator<JsonValue> {
  const bytes = Buffer.from(text, 'utf8');
  for (const [from, to] of jsonValuePlaces(bytes)) {
    const part = bytes.subarray(from, to);
    let value: JsonValue;
    try {
      value = decodeJson(part).value;
    } catch (error) {
      const { at, message } = syntaxErrorOf(part, depthMax) ?? (error as JsonError);
      if (at === undefined && !message.startsWith('unexpected end')) throw error;
      if (at === undefined || from + at >= bytes.length) throw new Error('unexpected EOF');
      throw new Error(`json: offset ${bytesBefore() + from + at + 1}: ${message}`);
    }
    if (value !== null) yield value;
  }
}

/**
 * The start and end of each value in a stream of JSON values. The end of a malformed value is any
 * place after its error, or the end of the stream.
 */
function* jsonValuePlaces(bytes: Buffer): Generator<readonly [from: number, to: number]> {
  let depth = 0;
  let start = 0;
  const tokens = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\]]|[^\s{}[\]"]+|"/gs;
  for (const { 0: token, index } of bytes.toString('latin1').matchAll(tokens)) {
    if (depth === 0) start = index;
    if (token === '"') break;
    if (token === '{' || token === '[') depth += 1;
    if (token === '}' || token === ']') depth -= 1;
    if (depth > 0) continue;
    // The byte after a literal shows whether it is complete.
    const end = index + token.length;
    yield [start, /^[-\w]/.test(token) ? Math.min(end + 1, bytes.length) : end];
    depth = 0;
    start = end;
  }
  if (bytes.subarray(start).toString('latin1').trim() !== '') yield [start, bytes.length];
}

/** Splits YAML at its separators. Throws for one with content, which YAML would allow. */
function* splitDocuments(text: string): Generator<{ document: string; start: number }> {
  let start = 0;
  for (const { 0: separator, 1: rest = '', index } of text.matchAll(/^---(.*)(?:\r?\n|$)/gm)) {
    const content = rest.trim();
    if (content !== '' && !content.startsWith('#')) {
      throw new Error(`invalid Yaml document separator: ${content}`);
    }
    yield { document: text.slice(start, index), start };
    start = index + separator.length;
  }
  yield { document: text.slice(start), start };
}

/** Splits consecutive JSON objects. Any other text is returned whole. */
function splitJson(text: string): string[] {
  if (!/^\s*\{/.test(text)) return [text];
  const parts: string[] = [];
  let depth = 0;
  let start = 0;
  for (const { 0: token, index } of text.matchAll(/"[^"\\]*(?:\\.[^"\\]*)*"|[{}]|[^\s{}"]+/gs)) {
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

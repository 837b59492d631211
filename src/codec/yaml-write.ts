import type { JsonArray, JsonObject, JsonValue } from '../base/json.ts';
import { compareNaturally } from './natural-order.ts';
import { readsAsOther } from './yaml-scalar.ts';

const simpleKeyMax = 128;

/**
 * A value as block YAML the way upstream writes it (CODEC-2): two spaces an indent, members sorted,
 * sequences level with their key, strings quoted where they would read as something else, texts of
 * several lines as literal blocks. Long lines are not folded.
 */
export function encodeYaml(value: JsonValue): string {
  const out: string[] = [];
  if (isContainer(value) && isEmpty(value)) out.push(Array.isArray(value) ? '[]\n' : '{}\n');
  else if (isContainer(value)) writeBlock(out, value, '');
  else out.push(`${scalar(value, '  ')}\n`);
  return out.join('');
}

function isContainer(value: JsonValue): value is JsonObject | JsonArray {
  return typeof value === 'object' && value !== null;
}

function isEmpty(value: JsonObject | JsonArray): boolean {
  if (Array.isArray(value)) return value.length === 0;
  for (const name of Object.keys(value)) if (value[name] !== undefined) return false;
  return true;
}

/** Lines of a container that is not empty; the first is written where the text stands. */
function writeBlock(out: string[], value: JsonObject | JsonArray, indent: string): void {
  let isFirst = true;
  if (Array.isArray(value)) {
    for (const item of value) {
      if (!isFirst) out.push(indent);
      isFirst = false;
      out.push('-');
      writeItem(out, item, indent);
    }
    return;
  }
  for (const name of Object.keys(value).sort(compareNaturally)) {
    const member = value[name];
    if (member === undefined) continue;
    if (!isFirst) out.push(indent);
    isFirst = false;
    writeKey(out, name, indent);
    writeMember(out, member, indent);
  }
}

/** A key too long to stand before a colon gets a line of its own behind a question mark. */
function writeKey(out: string[], name: string, indent: string): void {
  const key = name.includes('\n') ? doubleQuoted(name) : scalar(name, '');
  if (isSimpleKey(key)) out.push(key, ':');
  else out.push('? ', key, '\n', indent, ':');
}

function isSimpleKey(key: string): boolean {
  // Nothing takes more than three bytes a unit: short ones need not be counted.
  return key.length * 3 <= simpleKeyMax || new TextEncoder().encode(key).length <= simpleKeyMax;
}

function writeItem(out: string[], item: JsonValue, indent: string): void {
  if (isContainer(item) && !isEmpty(item)) {
    out.push(' ');
    writeBlock(out, item, `${indent}  `);
  } else writeInline(out, item, indent);
}

function writeMember(out: string[], member: JsonValue, indent: string): void {
  if (!isContainer(member) || isEmpty(member)) {
    writeInline(out, member, indent);
    return;
  }
  const inner = Array.isArray(member) ? indent : `${indent}  `;
  out.push('\n', inner);
  writeBlock(out, member, inner);
}

function writeInline(out: string[], value: JsonValue, indent: string): void {
  if (isContainer(value)) out.push(Array.isArray(value) ? ' []\n' : ' {}\n');
  else out.push(' ', scalar(value, `${indent}  `), '\n');
}

/** @param indent of the lines of a literal block; empty where none may stand (keys) */
function scalar(value: JsonValue, indent: string): string {
  if (typeof value !== 'string') return value === null ? 'null' : String(value);
  if (readsAsOther(value)) return doubleQuoted(value);
  if (value.includes('\n')) return indent === '' ? doubleQuoted(value) : literal(value, indent);
  if (needsEscapes.test(value)) return doubleQuoted(value);
  return plainIsUnsafe(value) ? `'${value.replaceAll("'", "''")}'` : value;
}

const needsEscapes =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: those are the ones to be escaped
  /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]/;
const indicators = new Set('#,[]{}&*!|>\'"%@`?:');

function plainIsUnsafe(text: string): boolean {
  const first = text[0] as string;
  if (first === ' ' || text.endsWith(' ')) return true;
  if (text.startsWith('---') || text.startsWith('...')) return true;
  if (text.includes(' #') || text.includes(': ') || text.endsWith(':')) return true;
  if (first === '-') return text.length === 1 || text[1] === ' ';
  if (first === '?' || first === ':') return text.length === 1 || text[1] === ' ';
  return indicators.has(first);
}

/** A literal block, unless something in the text cannot stand in one. */
function literal(text: string, indent: string): string {
  const cannot = / $| \n/.test(text) || needsEscapes.test(text);
  if (cannot) return doubleQuoted(text);
  const hint = /^[ \n]/.test(text) ? '2' : '';
  const chomp = text.endsWith('\n') ? (/(?:^|\n)\n$/.test(text) ? '+' : '') : '-';
  const body = text.endsWith('\n') ? text.slice(0, -1) : text;
  const lines = body.split('\n').map((line) => (line === '' ? '' : indent + line));
  return `|${hint}${chomp}\n${lines.join('\n')}`;
}

const shortEscapes: Readonly<Record<string, string>> = {
  '\0': '\\0',
  '\x07': '\\a',
  '\b': '\\b',
  '\t': '\\t',
  '\n': '\\n',
  '\v': '\\v',
  '\f': '\\f',
  '\r': '\\r',
  '\x1b': '\\e',
  '"': '\\"',
  '\\': '\\\\',
  '\x85': '\\N',
  '\u2028': '\\L',
  '\u2029': '\\P',
};

function doubleQuoted(text: string): string {
  const escaped = text.replace(
    // biome-ignore lint/suspicious/noControlCharactersInRegex: those are the ones to be escaped
    /[\u0000-\u001f"\\\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]|\p{Surrogate}/gu,
    (character) => shortEscapes[character] ?? hexEscape(character.codePointAt(0) ?? 0),
  );
  return `"${escaped}"`;
}

function hexEscape(code: number): string {
  const hex = code.toString(16).toUpperCase();
  return code < 0x100 ? `\\x${hex.padStart(2, '0')}` : `\\u${hex.padStart(4, '0')}`;
}

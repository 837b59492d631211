import { cut } from '@wheelhouse/machinery';
/** An encoding that a client can negotiate (CODEC-1). */
export interface EncodingDescriptor {
  readonly mediaType: `${string}/${string}`;
  /** Whether the encoding supports watches. */
  readonly streams: boolean;
  /** Whether the encoding supports tables and other transformations. */
  readonly tables: boolean;
}

/** One clause of an `Accept` header. */
export interface MediaRange {
  readonly type: string;
  readonly subtype: string;
  /** Parameters by lower-case name, without `q`. */
  readonly parameters: ReadonlyMap<string, string>;
  /** Quality from 0 to 1; clauses with 0 are omitted. */
  readonly quality: number;
}

const rangesMax = 100;
/** Maximum number of characters of an `Accept` header that are read. */
const acceptLengthMax = 8_192;

/**
 * Parses the first 8,192 characters of an `Accept` header into at most 100 clauses, in order of
 * preference. Omits malformed media ranges.
 */
export function parseAccept(header: string): readonly MediaRange[] {
  const ranges: MediaRange[] = [];
  for (const clause of splitOutsideQuotes(header.slice(0, acceptLengthMax), ',')) {
    const range = rangeOf(clause);
    if (range !== undefined && range.quality > 0) ranges.push(range);
    if (ranges.length >= rangesMax) break;
  }
  return ranges.sort((left, right) => rank(right) - rank(left));
}

/** Returns the rank of a clause: by quality, then specific types before `*`. */
function rank(range: MediaRange): number {
  const named = (range.type === '*' ? 0 : 2) + (range.subtype === '*' ? 0 : 1);
  return range.quality * 1e6 + named;
}

function rangeOf(clause: string): MediaRange | undefined {
  const [name = '', ...rest] = splitOutsideQuotes(clause, ';');
  const [type = '', subtype, ...more] = name.trim().toLowerCase().split('/');
  if (type === '' || subtype === '' || more.length > 0) return undefined;
  if (subtype === undefined && type !== '*') return undefined;
  const parameters = new Map<string, string>();
  let quality = 1;
  for (const part of rest) {
    const parameter = parameterOf(part);
    if (parameter === undefined) continue;
    if (parameter.name === 'q') quality = qualityOf(parameter.value);
    else parameters.set(parameter.name, parameter.value);
  }
  return { type, subtype: subtype ?? '*', parameters, quality };
}

function parameterOf(text: string): { name: string; value: string } | undefined {
  const [key, value] = cut(text, '=');
  const name = key.trim().toLowerCase();
  return name === '' || value === undefined ? undefined : { name, value: unquoted(value.trim()) };
}

function unquoted(value: string): string {
  if (value.length < 2 || !value.startsWith('"') || !value.endsWith('"')) return value;
  return value.slice(1, -1).replace(/\\(.)/g, '$1');
}

/** The quality of a clause whose own is malformed: preferred last, but not refused. */
const unknownQuality = 1e-7;

function qualityOf(text: string): number {
  if (!/^(?:\d{1,6}(?:\.\d{0,6})?|\.\d{1,6})$/.test(text)) return unknownQuality;
  return Math.min(1, Number(text));
}

function splitOutsideQuotes(text: string, separator: string): string[] {
  if (!text.includes('"')) return text.split(separator);
  const parts: string[] = [];
  let start = 0;
  let isQuoted = false;
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at];
    if (isQuoted && character === '\\') at += 1;
    else if (character === '"') isQuoted = !isQuoted;
    else if (character === separator && !isQuoted) {
      parts.push(text.slice(start, at));
      start = at + 1;
    }
  }
  parts.push(text.slice(start));
  return parts;
}

/** Whether a media range, possibly with wildcards, covers an encoding. */
export function covers(range: MediaRange, encoding: EncodingDescriptor): boolean {
  const [type, subtype] = encoding.mediaType.split('/');
  if (range.type === '*') return range.subtype === '*';
  return range.type === type && (range.subtype === '*' || range.subtype === subtype);
}

const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/**
 * Returns the media type of a `Content-Type` header, in lower case and without parameters, whose
 * syntax is checked; undefined if the header is malformed.
 */
export function contentMediaType(header: string): string | undefined {
  const [name = '', ...parameters] = splitOutsideQuotes(header, ';');
  const values = new Map<string, string>();
  for (const [index, text] of parameters.entries()) {
    if (text.trim() === '' && index === parameters.length - 1) continue;
    const parameter = parameterOf(text);
    if (parameter === undefined || !token.test(parameter.name)) return undefined;
    const value = values.get(parameter.name) ?? parameter.value;
    if (value !== parameter.value) return undefined;
    values.set(parameter.name, value);
  }
  const mediaType = name.trim().toLowerCase();
  const [type = '', subtype = '', ...more] = mediaType.split('/');
  const isValid = token.test(type) && token.test(subtype) && more.length === 0;
  return isValid ? mediaType : undefined;
}

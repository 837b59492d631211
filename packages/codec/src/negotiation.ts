/**
 * Which encoding a header asks for (CODEC-1). Encodings are descriptors, so that a further one is a
 * further entry of a list.
 */
export interface EncodingDescriptor {
  readonly mediaType: `${string}/${string}`;
  /** Whether a watch can be written in it. */
  readonly streams: boolean;
  /** Whether tables and the like come in it. */
  readonly tables: boolean;
}

/** One clause of an `Accept` header. */
export interface MediaRange {
  readonly type: string;
  readonly subtype: string;
  /** By lower-case name, `q` left out. */
  readonly parameters: ReadonlyMap<string, string>;
  /** 0 to 1; clauses of 0 are left out. */
  readonly quality: number;
}

const rangesMax = 100;

/** Clauses of an `Accept` header, the most wanted first; what is no media range is left out. */
export function parseAccept(header: string): readonly MediaRange[] {
  const ranges: MediaRange[] = [];
  for (const clause of splitOutsideQuotes(header, ',')) {
    const range = rangeOf(clause);
    if (range !== undefined && range.quality > 0) ranges.push(range);
    if (ranges.length >= rangesMax) break;
  }
  return ranges.sort((one, other) => rank(other) - rank(one));
}

/** By quality, then a named type before `*`, as upstream's parser sorts. */
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
  for (const one of rest) {
    const parameter = parameterOf(one);
    if (parameter === undefined) continue;
    if (parameter.name === 'q') quality = qualityOf(parameter.value);
    else parameters.set(parameter.name, parameter.value);
  }
  return { type, subtype: subtype ?? '*', parameters, quality };
}

function parameterOf(text: string): { name: string; value: string } | undefined {
  const at = text.indexOf('=');
  if (at < 0) return undefined;
  const name = text.slice(0, at).trim().toLowerCase();
  return name === '' ? undefined : { name, value: unquoted(text.slice(at + 1).trim()) };
}

function unquoted(value: string): string {
  if (value.length < 2 || !value.startsWith('"') || !value.endsWith('"')) return value;
  return value.slice(1, -1).replace(/\\(.)/g, '$1');
}

function qualityOf(text: string): number {
  if (!/^(?:[01](?:\.[0-9]{0,6})?|\.[0-9]{1,6})$/.test(text)) return 0;
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

/** Whether a range covers an encoding, wildcards considered. */
export function covers(range: MediaRange, encoding: EncodingDescriptor): boolean {
  const [type, subtype] = encoding.mediaType.split('/');
  if (range.type === '*') return range.subtype === '*';
  return range.type === type && (range.subtype === '*' || range.subtype === subtype);
}

const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/**
 * The bare media type of a `Content-Type`, in lower case; undefined when it is malformed. `; charset`
 * and other parameters are read for their form only.
 */
export function contentMediaType(header: string): string | undefined {
  const [name = '', ...parameters] = splitOutsideQuotes(header, ';');
  for (const [index, text] of parameters.entries()) {
    if (text.trim() === '' && index === parameters.length - 1) continue;
    const parameter = parameterOf(text);
    if (parameter === undefined || !token.test(parameter.name)) return undefined;
  }
  const mediaType = name.trim().toLowerCase();
  const [type = '', subtype = '', ...more] = mediaType.split('/');
  const isSound = token.test(type) && token.test(subtype) && more.length === 0;
  return isSound ? mediaType : undefined;
}

import { isUtf8 } from 'node:buffer';
import {
  inOnePiece,
  isObject,
  type JsonArray,
  type JsonObject,
  type JsonValue,
  parseJson,
  Slab,
  Stride,
  setMember,
} from '@wheelhouse/machinery';
import { JsonError } from './json-error.ts';
import { exactJsonSteps, parseExactJson, syntaxErrorSteps } from './json-exact.ts';
import { countMembers, parseInPieces } from './json-pieces.ts';
import { hasWiderObject, type JsonScan, mayHaveLongNumber, scanJson } from './json-scan.ts';
import { TooManyValues } from './too-many-values.ts';

export { JsonError } from './json-error.ts';

export interface JsonLimits {
  /** Objects and lists inside each other. */
  readonly depthMax: number;
  /** Values altogether, containers among them. */
  readonly valuesMax: number;
  /** Members of one object. */
  readonly membersMax?: number;
}

/** Upstream's nesting bound; the other keeps a text of commas from filling the memory. */
export const defaultJsonLimits: JsonLimits = { depthMax: 10_000, valuesMax: 2_000_000 };

export interface DecodedJson {
  readonly value: JsonValue;
  /** Paths of members given twice, as upstream writes them: `spec.list[0].a`; the last one won. */
  readonly duplicates: string[];
  /** YAML's own way to tell them instead: `line 4: key "a" already set in map`. */
  readonly repeated?: readonly string[];
}

/**
 * Decodes a JSON text. Integers of 64 bits come exactly, as bigint where a number cannot hold them
 * (CODEC-8). Throws JsonError in the words of upstream's decoder, and TooManyValues.
 */
export function decodeJson(bytes: Buffer, limits: JsonLimits = defaultJsonLimits): DecodedJson {
  const scan = scanWithin(bytes, limits);
  const text = bytes.toString('utf8');
  return parsedWhole(text, scan) ?? inOnePiece(exactSteps({ bytes, text, limits }));
}

/** Most values that `decodeJsonSteps` parses in one step; a millisecond or two of work. */
const wholeValuesMax = 5_000;

/**
 * `decodeJson` in steps, for texts whose size is the client's to choose: no step is longer than
 * parsing some thousand values (TRUST-2).
 */
export function* decodeJsonSteps(bytes: Buffer, limits: JsonLimits): Generator<void, DecodedJson> {
  const scan = scanWithin(bytes, limits);
  yield;
  const text = bytes.toString('utf8');
  const whole =
    scan.values > wholeValuesMax ? yield* parsedSteps(text, scan) : parsedWhole(text, scan);
  return whole ?? (yield* exactSteps({ bytes, text, limits }));
}

function scanWithin(bytes: Buffer, limits: JsonLimits): JsonScan {
  if (!isUtf8(bytes)) throw new JsonError('invalid UTF-8 in JSON text');
  const scan = scanJson(bytes);
  if (scan.depth > limits.depthMax) throw new JsonError('exceeded max depth');
  if (scan.values > limits.valuesMax) throw new TooManyValues(limits.valuesMax);
  const { membersMax = scan.members } = limits;
  if (scan.members > membersMax && hasWiderObject(bytes, membersMax)) {
    throw new TooManyValues(membersMax, 'members of one object');
  }
  return scan;
}

/** Undefined for what only the exact parser reads: long numbers, repeated members, invalid text. */
function parsedWhole(text: string, scan: JsonScan): DecodedJson | undefined {
  if (scan.hasLongNumber) return undefined;
  const value = parsedFast(text);
  const isExact = value !== undefined && membersOf(value) === scan.members;
  return isExact ? { value, duplicates: [] } : undefined;
}

/** Undefined where a number overflowed. */
function membersOf(value: JsonValue): number | undefined {
  try {
    return countMembers(value);
  } catch {
    return undefined;
  }
}

/** As `parsedWhole`, in steps. */
function* parsedSteps(text: string, scan: JsonScan): Generator<void, DecodedJson | undefined> {
  if (scan.hasLongNumber) return undefined;
  const parsed = yield* parseInPieces(text);
  return parsed?.members === scan.members ? { value: parsed.value, duplicates: [] } : undefined;
}

function* exactSteps(of: {
  readonly bytes: Buffer;
  readonly text: string;
  readonly limits: JsonLimits;
}): Generator<void, DecodedJson> {
  const { bytes, text, limits } = of;
  try {
    return yield* exactJsonSteps(text, limits);
  } catch (error) {
    if (!(error instanceof JsonError) || bytes.length === text.length) throw error;
    throw (yield* syntaxErrorSteps(bytes, limits.depthMax)) ?? error;
  }
}

/** undefined for invalid text: the exact parser then finds the words for it. */
function parsedFast(text: string): JsonValue | undefined {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

/** Parses JSON that this server wrote itself, 64-bit integers exactly (CODEC-8). */
export function parseWrittenJson(bytes: Buffer): JsonValue {
  const value = bytes.length < dividedBytesMin ? undefined : parsedAhead.get(bytes);
  if (value === undefined) return parseWrittenText(bytes.toString('utf8'));
  parsedAhead.delete(bytes);
  return value;
}

/** Bytes of JSON from which on it is worth it to parse in steps, which takes somewhat longer. */
const dividedBytesMin = 131_072;

/** Values for whoever parses these very bytes next. */
const parsedAhead = new WeakMap<Buffer, JsonValue>();

/**
 * Parses large JSON that this server wrote itself in steps (TRUST-2): the next `parseWrittenJson` of
 * the same bytes returns the value at once. Does nothing for JSON that is parsed quickly in one piece.
 */
export function* parseAhead(bytes: Buffer): Generator<void, void> {
  if (bytes.length < dividedBytesMin || parsedAhead.has(bytes)) return;
  const scan = scanJson(bytes);
  if (scan.values < wholeValuesMax) return;
  yield;
  const text = bytes.toString('utf8');
  const parsed =
    (yield* parsedSteps(text, scan)) ?? (yield* exactJsonSteps(text, defaultJsonLimits));
  parsedAhead.set(bytes, parsed.value);
}

/** `parseWrittenJson` of what has been decoded to text already. */
export function parseWrittenText(text: string): JsonValue {
  if (!mayHaveLongNumber(text)) return parseJson(text);
  return parseExactJson(text, defaultJsonLimits).value;
}

/** Compact JSON bytes; bigints are written as the integers they are. */
export function encodeJson(value: unknown): Buffer {
  return Buffer.from(jsonText(value));
}

/** The text of `encodeJson`. */
export function jsonText(value: unknown): string {
  try {
    const text: string | undefined = JSON.stringify(value);
    return text ?? 'null';
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    return written(value) ?? 'null';
  }
}

/** Texts are encoded in pieces of about this length, in UTF-16 units. */
const encodedUnits = 64 * 1024;

/** `encodeJson` in steps, for large values. */
export function* encodeJsonSteps(value: JsonValue): Generator<void, Buffer> {
  const pieces: Buffer[] = [];
  let text = '';
  for (const part of textParts(value, new Stride())) {
    text += part;
    if (text.length >= encodedUnits) {
      pieces.push(Buffer.from(text));
      text = '';
    }
    yield;
  }
  pieces.push(Buffer.from(text));
  return Buffer.concat(pieces);
}

/** The text of a value in parts of some hundred values. */
function* textParts(value: JsonValue, stride: Stride): Generator<string> {
  if (Array.isArray(value)) yield* listParts(value, stride);
  else if (isObject(value)) yield* objectParts(value, stride);
  else yield jsonText(value);
}

const inside = (run: JsonValue) => jsonText(run).slice(1, -1);

function* listParts(list: JsonArray, stride: Stride): Generator<string> {
  let separator = '[';
  let from = 0;
  for (let at = 0; at < list.length; at += 1) {
    const isHeavy = stride.weigh(list[at]) === 'heavy';
    if (!isHeavy && !stride.isOver) continue;
    const to = isHeavy ? at : at + 1;
    if (to > from) {
      yield separator + inside(list.slice(from, to));
      separator = ',';
    }
    from = at + 1;
    if (!isHeavy) continue;
    yield separator;
    yield* textParts(list[at] ?? null, stride);
    separator = ',';
  }
  if (from < list.length) yield `${separator}${inside(list.slice(from))}]`;
  else yield separator === '[' ? '[]' : ']';
}

function* objectParts(object: JsonObject, stride: Stride): Generator<string> {
  let separator = '{';
  let run: JsonObject = {};
  let isEmpty = true;
  for (const name of Object.keys(object)) {
    const part = object[name];
    if (part === undefined) continue;
    const isHeavy = stride.weigh(part) === 'heavy';
    if (!isHeavy) {
      setMember(run, name, part);
      isEmpty = false;
    }
    if (!isEmpty && (isHeavy || stride.isOver)) {
      yield separator + inside(run);
      separator = ',';
      run = {};
      isEmpty = true;
    }
    if (!isHeavy) continue;
    yield `${separator}${JSON.stringify(name)}:`;
    yield* textParts(part, stride);
    separator = ',';
  }
  if (!isEmpty) yield `${separator}${inside(run)}}`;
  else yield separator === '{' ? '{}' : '}';
}

/** Like JSON.stringify, for values in which a bigint occurs. */
function written(value: unknown): string | undefined {
  if (typeof value === 'bigint') return value.toString();
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map((item) => written(item) ?? 'null').join(',')}]`;
  const members: string[] = [];
  for (const [name, item] of Object.entries(value)) {
    const text = written(item);
    if (text !== undefined) members.push(`${JSON.stringify(name)}:${text}`);
  }
  return `{${members.join(',')}}`;
}

/** Longest text that goes into shared memory, in UTF-16 units. */
const briefTextMax = 5 * 1024;
const brief = new Slab();

/**
 * Like `encodeJson`, for bytes that are soon copied elsewhere: small ones share memory, which is
 * kept as long as any of them.
 */
export function encodeJsonBriefly(value: unknown): Buffer {
  const text = jsonText(value);
  return text.length > briefTextMax ? Buffer.from(text) : brief.write(text);
}

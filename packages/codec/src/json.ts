import { isAscii, isUtf8 } from 'node:buffer';
import {
  type Clock,
  concatSteps,
  isObject,
  type JsonArray,
  type JsonObject,
  type JsonValue,
  type MaybePromise,
  pacedBytesMin,
  parseJson,
  runInOnePiece,
  runInSlices,
  Slab,
  Stride,
  setMember,
} from '@wheelhouse/machinery';
import type { EarlierValues } from '@wheelhouse/schema';
import { bodyValuesMax, JsonError, TooManyValues } from './decode-limits.ts';
import { exactJsonSteps, parseExactJson, syntaxErrorSteps } from './json-exact.ts';
import { countMembers, pairedSurrogatesSteps, parseInPieces, stringEnd } from './json-pieces.ts';
import { isUtf8Steps } from './text-windows.ts';

export { JsonError } from './decode-limits.ts';

/** Limits on a JSON text. */
export interface JsonLimits {
  /** Maximum nesting depth of objects and lists. */
  readonly depthMax: number;
  /** Maximum number of values, including containers. */
  readonly valuesMax: number;
  /** Maximum number of members of one object. */
  readonly membersMax?: number;
  /** Maximum number of bytes of one text, which is decoded in one step. */
  readonly textBytesMax?: number;
}

/** kube-apiserver's limit on nesting, and a limit on the memory that a text can take. */
const defaultJsonLimits: JsonLimits = { depthMax: 10_000, valuesMax: 2_000_000 };

/** Limits of a response of another service that contains at most one object or patch. */
export const answerLimits: JsonLimits = {
  depthMax: defaultJsonLimits.depthMax,
  valuesMax: bodyValuesMax,
};

/** A decoded text. */
export interface DecodedJson {
  readonly value: JsonValue;
  /** Paths of duplicate members, such as `spec.list[0].a`; the last one wins. */
  readonly duplicates: string[];
  /** The earlier values of duplicate members of JSON by object and name; none if absent. */
  readonly earlier?: EarlierValues;
  /** Messages about duplicate members of YAML, instead: `line 4: key "a" already set in map`. */
  readonly repeated?: readonly string[];
  /**
   * Set if a number is spelled with a fraction or an exponent, such as `1.5`, `1.0`, or `1e2`.
   */
  readonly hasFraction?: true;
  /** Approximate number of bytes of a YAML text without aliases, if it has any. */
  readonly expandedBytes?: number;
}

/**
 * Decodes a JSON text. 64-bit integers are exact: bigints if a number cannot represent them
 * (CODEC-8). Lone surrogates become U+FFFD.
 * @throws JsonError with the message of kube-apiserver's decoder, or TooManyValues
 */
export function decodeJson(json: Buffer, limits: JsonLimits = defaultJsonLimits): DecodedJson {
  const bytes = runInOnePiece(pairedSurrogatesSteps(json));
  const scan = scanWithin(bytes, limits);
  const text = bytes.toString('utf8');
  const decoded = parseWhole(text, scan) ?? runInOnePiece(exactSteps(bytes, limits));
  return scan.hasFraction ? { ...decoded, hasFraction: true } : decoded;
}

/** Maximum number of values that one step parses, in one or two milliseconds. */
const wholeValuesMax = 5_000;

/** Maximum number of bytes that one step decodes. */
const wholeBytesMax = 2 * 1024 * 1024;

/**
 * Does the work of `decodeJson` in steps, which parse at most a few thousand values each, and
 * decode a few megabytes unless one text has more (TRUST-2).
 */
export function* decodeJsonSteps(
  json: Buffer,
  limits: JsonLimits = defaultJsonLimits,
): Generator<void, DecodedJson> {
  const bytes = yield* pairedSurrogatesSteps(json);
  const isText = yield* isUtf8Steps(bytes);
  const scan = yield* scanJsonSteps(bytes);
  checkScan(bytes, scan, limits);
  if (!isText) throw yield* notUtf8Steps(bytes, limits);
  yield;
  const isLarge = scan.values > wholeValuesMax || bytes.length > wholeBytesMax;
  const whole = isLarge ? yield* parseSteps(bytes, scan) : parseWhole(bytes.toString('utf8'), scan);
  const decoded = whole ?? (yield* exactSteps(bytes, limits));
  return scan.hasFraction ? { ...decoded, hasFraction: true } : decoded;
}

/**
 * `decodeJson` in slices, for texts of other services, a large one over several turns of the event
 * loop (TRUST-2). Throws or rejects like `decodeJson`.
 */
export function decodeJsonInSlices(
  bytes: Buffer,
  options: { readonly clock: Pick<Clock, 'monotonic'>; readonly limits?: JsonLimits },
): MaybePromise<DecodedJson> {
  const { clock, limits = defaultJsonLimits } = options;
  if (bytes.length < pacedBytesMin) return decodeJson(bytes, limits);
  return runInSlices(decodeJsonSteps(bytes, limits), clock);
}

function scanWithin(bytes: Buffer, limits: JsonLimits): JsonScan {
  const scan = scanJson(bytes);
  checkScan(bytes, scan, limits);
  if (!isUtf8(bytes)) throw runInOnePiece(notUtf8Steps(bytes, limits));
  return scan;
}

/** The error of a text that is not UTF-8, which may be malformed for another reason, too. */
function* notUtf8Steps(bytes: Buffer, { depthMax }: JsonLimits): Generator<void, JsonError> {
  const malformed = yield* syntaxErrorSteps(bytes, depthMax);
  return malformed ?? new JsonError('invalid UTF-8 in JSON text');
}

/** Checks the limits of a text. Throws JsonError or TooManyValues. */
function checkScan(bytes: Buffer, scan: JsonScan, limits: JsonLimits): void {
  if (scan.depth > limits.depthMax) throw new JsonError('exceeded max depth');
  if (scan.values > limits.valuesMax) throw new TooManyValues(limits.valuesMax);
  const { membersMax = scan.members, textBytesMax = scan.textBytes } = limits;
  if (scan.textBytes > textBytesMax) throw new TooManyValues(textBytesMax, 'bytes of one text');
  if (scan.members > membersMax && hasWiderObject(bytes, membersMax)) {
    throw new TooManyValues(membersMax, 'members of one object');
  }
}

/**
 * Parses a text with the built-in parser; undefined if the exact parser is needed, which is so for
 * long numbers, duplicate members, and invalid text.
 */
function parseWhole(text: string, scan: JsonScan): DecodedJson | undefined {
  if (scan.hasLongNumber) return undefined;
  const value = tryParse(text);
  const isExact = value !== undefined && membersOf(value) === scan.members;
  return isExact ? { value, duplicates: [] } : undefined;
}

/** Returns the number of members in a value; undefined if a number overflowed. */
function membersOf(value: JsonValue): number | undefined {
  try {
    return countMembers(value);
  } catch {
    return undefined;
  }
}

/** Does the work of `parseWhole` in steps. */
function* parseSteps(bytes: Buffer, scan: JsonScan): Generator<void, DecodedJson | undefined> {
  if (scan.hasLongNumber) return undefined;
  const parsed = yield* parseInPieces(bytes);
  return parsed?.members === scan.members ? { value: parsed.value, duplicates: [] } : undefined;
}

/** @param bytes valid UTF-8 */
function* exactSteps(bytes: Buffer, limits: JsonLimits): Generator<void, DecodedJson> {
  try {
    return yield* exactJsonSteps(bytes, limits);
  } catch (error) {
    if (!(error instanceof JsonError) || isAscii(bytes)) throw error;
    throw (yield* syntaxErrorSteps(bytes, limits.depthMax)) ?? error;
  }
}

/** Parses a text with the built-in parser; undefined if it is invalid. */
function tryParse(text: string): JsonValue | undefined {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

/** Parses JSON that this server has written, with exact 64-bit integers (CODEC-8). */
export function parseWrittenJson(bytes: Buffer): JsonValue {
  const value = bytes.length < dividedBytesMin ? undefined : parsedAhead.get(bytes);
  if (value === undefined) return parseWrittenText(bytes.toString('utf8'));
  parsedAhead.delete(bytes);
  return value;
}

/** Size in bytes from which stored JSON is parsed in steps, which takes somewhat longer. */
const dividedBytesMin = 131_072;

/** Parsed values for the next reader of the same bytes. */
const parsedAhead = new WeakMap<Buffer, JsonValue>();

/**
 * Parses large JSON that this server has written in steps (TRUST-2) and caches the value for the
 * next `parseWrittenJson` of the same bytes. Does nothing for small JSON.
 */
export function* parseAhead(bytes: Buffer): Generator<void, void> {
  if (bytes.length < dividedBytesMin || parsedAhead.has(bytes)) return;
  const scan = scanJson(bytes);
  if (scan.values < wholeValuesMax) return;
  yield;
  const parsed =
    (yield* parseSteps(bytes, scan)) ?? (yield* exactJsonSteps(bytes, defaultJsonLimits));
  parsedAhead.set(bytes, parsed.value);
}

/** Parses JSON text that this server has written, as `parseWrittenJson` does. */
export function parseWrittenText(text: string): JsonValue {
  if (!mayHaveLongNumber(text)) return parseJson(text);
  return parseExactJson(text, defaultJsonLimits).value;
}

/** Encodes compact JSON; bigints become integers. */
export function encodeJson(value: unknown): Buffer {
  return Buffer.from(jsonText(value));
}

/** Returns compact JSON; bigints become integers. */
export function jsonText(value: unknown): string {
  try {
    const text: string | undefined = JSON.stringify(value);
    return text ?? 'null';
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    return stringify(value) ?? 'null';
  }
}

/** Target size of the text that is encoded at once, in UTF-16 units. */
const encodedUnits = 64 * 1024;

/** Does the work of `encodeJson` in steps (TRUST-2). */
export function* encodeJsonSteps(value: JsonValue): Generator<void, Buffer> {
  return yield* encodeTextSteps(textParts(value, new Stride()));
}

/** The UTF-8 of text that comes in parts, none of which ends within a character. In steps. */
export function* encodeTextSteps(parts: Iterable<string>): Generator<void, Buffer> {
  const pieces: Buffer[] = [];
  let text = '';
  for (const part of parts) {
    text += part;
    if (text.length >= encodedUnits) {
      pieces.push(Buffer.from(text));
      text = '';
    }
    yield;
  }
  pieces.push(Buffer.from(text));
  return yield* concatSteps(pieces);
}

/** Yields the text of a value in parts of several hundred values. */
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

/** Does the work of JSON.stringify for values that contain a bigint. */
function stringify(value: unknown): string | undefined {
  if (typeof value === 'bigint') return value.toString();
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map((item) => stringify(item) ?? 'null').join(',')}]`;
  const members: string[] = [];
  for (const [name, item] of Object.entries(value)) {
    const text = stringify(item);
    if (text !== undefined) members.push(`${JSON.stringify(name)}:${text}`);
  }
  return `{${members.join(',')}}`;
}

/** Maximum length of a text that is encoded into a slab, in UTF-16 units. */
const briefTextMax = 5 * 1024;
const brief = new Slab();

/**
 * Encodes JSON into bytes that the caller copies soon: small ones share a slab, which occupies
 * memory as long as any of them is in use.
 */
export function encodeJsonBriefly(value: unknown): Buffer {
  const text = jsonText(value);
  return text.length > briefTextMax ? Buffer.from(text) : brief.write(text);
}

const quote = 0x22;
const point = 0x2e;
const exponent = 0x65;
const lowerCase = 0x20;
const exactDigits = 16;

/** What one pass over the bytes of a JSON text finds out before it is parsed. */
interface JsonScan {
  /** Number of colons outside strings: in valid JSON, of all members, including duplicates. */
  readonly members: number;
  /** Upper bound of the number of values, including containers, in valid JSON. */
  readonly values: number;
  readonly depth: number;
  /** Number of bytes of the longest text. */
  readonly textBytes: number;
  /** Whether 16 or more consecutive digits occur outside strings. */
  readonly hasLongNumber: boolean;
  /** Whether a number has a fraction or an exponent, in valid JSON. */
  readonly hasFraction: boolean;
}

/** The state of a scan, which has passed the bytes before `at`. */
interface ScanState {
  members: number;
  values: number;
  depth: number;
  textBytes: number;
  hasLongNumber: boolean;
  hasFraction: boolean;
  at: number;
  open: number;
  digits: number;
  /** Index of the quote that opened the string in which `at` is; -1 outside strings. */
  stringStart: number;
}

const newScan = (): ScanState => ({
  members: 0,
  values: 1,
  depth: 0,
  textBytes: 0,
  hasLongNumber: false,
  hasFraction: false,
  at: 0,
  open: 0,
  digits: 0,
  stringStart: -1,
});

/** Scans a JSON text, which may be invalid. */
export function scanJson(bytes: Buffer): JsonScan {
  const state = newScan();
  while (state.at < bytes.length) scanTo(bytes, state, bytes.length);
  return state;
}

/** Bytes that one step scans, in about a millisecond, and the least that a step is worth. */
const scannedPerStep = { max: 262_144, min: 4_096 };

/** Does the work of `scanJson` in steps. */
export function* scanJsonSteps(bytes: Buffer): Generator<void, JsonScan> {
  const state = newScan();
  while (state.at < bytes.length) {
    if (state.at > 0 && bytes.length - state.at > scannedPerStep.min) yield;
    scanTo(bytes, state, Math.min(bytes.length, state.at + scannedPerStep.max));
  }
  return state;
}

/** Continues a scan to an index, to the end of a string there, or into a string of many quotes. */
function scanTo(bytes: Buffer, state: ScanState, end: number): void {
  let { members, values, depth, textBytes, hasLongNumber, hasFraction, at, open, digits } = state;
  if (state.stringStart >= 0) {
    const ended = stringEnd(bytes, state.stringStart, at);
    if (ended < 0) {
      state.at = ~ended;
      return;
    }
    textBytes = Math.max(textBytes, ended - state.stringStart);
    at = ended + 1;
    state.stringStart = -1;
  }
  for (; at < end; at += 1) {
    const byte = bytes[at] ?? 0;
    if (byte >= 0x30 && byte <= 0x39) {
      digits += 1;
      if (digits === exactDigits) hasLongNumber = true;
      continue;
    }
    if (digits > 0) {
      digits = 0;
      if (byte === point || (byte | lowerCase) === exponent) hasFraction = true;
    }
    if (byte === quote) {
      const ended = stringEnd(bytes, at, at + 1);
      if (ended < 0) {
        state.stringStart = at;
        at = ~ended;
        break;
      }
      if (ended - at > textBytes) textBytes = ended - at;
      at = ended;
    } else if (byte === 0x3a) members += 1;
    else if (byte === 0x2c) values += 1;
    else if (byte === 0x7b || byte === 0x5b) {
      open += 1;
      values += 1;
      if (open > depth) depth = open;
    } else if (byte === 0x7d || byte === 0x5d) open -= 1;
  }
  state.members = members;
  state.values = values;
  state.depth = depth;
  state.textBytes = textBytes;
  state.hasLongNumber = hasLongNumber;
  state.hasFraction = hasFraction;
  state.at = at;
  state.open = open;
  state.digits = digits;
}

/** Whether any object in a valid JSON text has more than `max` members. */
function hasWiderObject(bytes: Buffer, membersMax: number): boolean {
  const counts: number[] = [];
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at] ?? 0;
    if (byte === quote) {
      const start = at;
      at = stringEnd(bytes, start, at + 1);
      while (at < 0) at = stringEnd(bytes, start, ~at);
    } else if (byte === 0x7b || byte === 0x5b) counts.push(0);
    else if (byte === 0x7d || byte === 0x5d) counts.pop();
    else if (byte === 0x3a) {
      const count = (counts.pop() ?? 0) + 1;
      if (count > membersMax) return true;
      counts.push(count);
    }
  }
  return false;
}

/**
 * Whether a text contains 16 consecutive digits, without which no number exceeds the precision of a
 * float. Checks every 16th character, because each such run contains one of them.
 */
function mayHaveLongNumber(text: string): boolean {
  for (let at = exactDigits - 1; at < text.length; at += exactDigits) {
    if (isDigitAt(text, at) && digitsAround(text, at) >= exactDigits) return true;
  }
  return false;
}

function digitsAround(text: string, at: number): number {
  let from = at;
  let to = at + 1;
  while (isDigitAt(text, from - 1)) from -= 1;
  while (isDigitAt(text, to)) to += 1;
  return to - from;
}

function isDigitAt(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code >= 0x30 && code <= 0x39;
}

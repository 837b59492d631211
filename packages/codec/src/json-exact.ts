import {
  int64Min,
  type JsonArray,
  type JsonObject,
  type JsonValue,
  parseJson,
  problemText,
  runInOnePiece,
  setMember,
  uint64Max,
} from '@wheelhouse/machinery';
import { JsonError } from './decode-limits.ts';
import { pairedSurrogatesSteps } from './json-pieces.ts';
import { TextWindows } from './text-windows.ts';

const numberPattern = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const stringPattern =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: JSON forbids them bare in strings
  /"[^"\\\u0000-\u001f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\u0000-\u001f]*)*"/y;
const duplicatesMax = 100;

/** Number of values that one step parses, in less than a millisecond. */
const valuesPerStep = 500;

/** Maximum total length of the paths of one text, because many members may have a long parent. */
const pathCharactersMax = 8 * 1024 * 1024;

/** An open object or list. */
interface Frame {
  readonly container: JsonObject | JsonArray;
  /** The name of the current member; empty in a list. */
  name: string;
  /** Whether the current member occurred before. */
  isRepeated: boolean;
}

/** A parsed text. */
interface ParsedJson {
  readonly value: JsonValue;
  /** The paths of duplicate members. */
  readonly duplicates: string[];
  /** The earlier values of duplicate members by object and name, in their order; none if absent. */
  readonly earlier?: Map<JsonObject, Map<string, JsonValue[]>>;
}

/**
 * Parses JSON with exact 64-bit integers and records the paths of duplicate members. Not recursive,
 * because clients choose the depth.
 * @throws JsonError with the message of kube-apiserver's decoder
 */
export function parseExactJson(text: string, limits: { readonly depthMax: number }): ParsedJson {
  return runInOnePiece(new ExactParser({ text, ...limits }).steps());
}

/** Does the work of `parseExactJson` in steps of several hundred values, for valid UTF-8. */
export function exactJsonSteps(
  bytes: Buffer,
  limits: { readonly depthMax: number },
): Generator<void, ParsedJson> {
  return new ExactParser({ text: '', rest: new TextWindows(bytes, 'utf8'), ...limits }).steps();
}

/** A JSON value with a placeholder for each number that has a fraction or an exponent. */
export interface SpelledJson {
  /** Placeholders are tiny numbers, of which each occurs once and none is an integer. */
  readonly value: JsonValue;
  /** The text of the number of each placeholder, such as `1.0`. */
  readonly spellings: ReadonlyMap<number, string>;
}

/**
 * Parses valid JSON in steps with a placeholder for each number that is not spelled as an integer:
 * Go decodes `1` into an integer, but not `1.0`.
 */
export function* spelledJsonSteps(
  bytes: Buffer,
  limits: { readonly depthMax: number },
): Generator<void, SpelledJson> {
  const spellings = new Map<number, string>();
  const rest = new TextWindows(yield* pairedSurrogatesSteps(bytes), 'utf8');
  const { depthMax } = limits;
  const { value } = yield* new ExactParser({ text: '', rest, depthMax, spellings }).steps();
  return { value, spellings };
}

/** Replaces the placeholders in encoded JSON with the numbers for which they stand. */
export function withSpellings(text: string, spellings: SpelledJson['spellings']): string {
  return text.replace(placeholderPattern, (shown) => spellings.get(Number(shown)) ?? shown);
}

/** Matches the placeholders as JSON.stringify writes them. */
const placeholderPattern = /(?<![\w.+-])[0-9.]+e-3[0-9]{2}\b/g;

/**
 * Returns the syntax error that kube-apiserver's decoder, which reads byte by byte, reports for a
 * text; undefined if there is none.
 */
export function syntaxErrorOf(bytes: Buffer, depthMax: number): JsonError | undefined {
  return runInOnePiece(syntaxErrorSteps(bytes, depthMax));
}

/** Does the work of `syntaxErrorOf` in steps of several hundred values. */
export function* syntaxErrorSteps(
  bytes: Buffer,
  depthMax: number,
): Generator<void, JsonError | undefined> {
  try {
    const rest = new TextWindows(bytes, 'latin1');
    yield* new ExactParser({ text: '', rest, depthMax }).steps();
    return undefined;
  } catch (error) {
    if (error instanceof JsonError) return error;
    throw error;
  }
}

/**
 * Returns the positions of members in a valid JSON text: for each path, the index of its first and
 * second occurrence among all members; -1 if there is no second one. Undefined if the paths of the
 * text are too long.
 */
export function memberPlaces(
  text: string,
  paths: ReadonlySet<string>,
  limits: { readonly depthMax: number },
): ReadonlyMap<string, { readonly first: number; readonly second: number }> | undefined {
  const places = new Map<string, { first: number; second: number }>();
  let count = 0;
  const onMember = (path: string) => {
    count += 1;
    if (!paths.has(path)) return;
    const place = places.get(path);
    if (place === undefined) places.set(path, { first: count, second: -1 });
    else if (place.second < 0) place.second = count;
  };
  const parser = new ExactParser({ text, ...limits, onMember });
  runInOnePiece(parser.steps());
  return parser.hasAllPaths ? places : undefined;
}

/** Number of characters after a number that determine where it ends. */
const numberEnd = 8;

/**
 * Characters that the parser has before it reads a token, more than any token except strings and
 * numbers needs.
 */
const lookahead = 1024;

class ExactParser {
  /** The decoded part of the text from some token on. */
  #text: string;
  readonly #rest: TextWindows | undefined;
  readonly #depthMax: number;
  readonly #onMember: ((path: string) => void) | undefined;
  readonly #spellings: Map<number, string> | undefined;
  readonly #duplicates = new Set<string>();
  readonly #earlier = new Map<JsonObject, Map<string, JsonValue[]>>();
  readonly #open: Frame[] = [];
  #at = 0;
  /** The length of the text before `#text`. */
  #before = 0;
  #pathCharactersLeft = pathCharactersMax;

  constructor(of: {
    readonly text: string;
    /** The rest of the text, not decoded yet. */
    readonly rest?: TextWindows;
    readonly depthMax: number;
    readonly onMember?: (path: string) => void;
    /** Collects the numbers that are replaced with placeholders; absent if none are. */
    readonly spellings?: Map<number, string>;
  }) {
    this.#text = of.text;
    this.#rest = of.rest;
    this.#depthMax = of.depthMax;
    this.#onMember = of.onMember;
    this.#spellings = of.spellings;
  }

  *steps(): Generator<void, ParsedJson> {
    let value = this.#begin();
    for (let values = 1; this.#open.length > 0; values += 1) {
      if (values % valuesPerStep === 0) yield;
      if (value !== undefined) this.#store(value);
      value = this.#next(value !== undefined);
    }
    this.#blanks();
    if (this.#at < this.#text.length) throw this.#unexpected('after top-level value');
    const parsed = { value: value as JsonValue, duplicates: [...this.#duplicates] };
    return this.#earlier.size === 0 ? parsed : { ...parsed, earlier: this.#earlier };
  }

  /** Reads a scalar, or opens a container and returns undefined. */
  #begin(): JsonValue | undefined {
    this.#blanks();
    const char = this.#text[this.#at];
    if (char === '{' || char === '[') {
      if (this.#open.length >= this.#depthMax) throw new JsonError('exceeded max depth');
      this.#at += 1;
      this.#open.push({ container: char === '{' ? {} : [], name: '', isRepeated: false });
      return undefined;
    }
    if (char === '"') return this.#string();
    if (char === '-' || (char !== undefined && char >= '0' && char <= '9')) return this.#number();
    return this.#literal();
  }

  /**
   * Continues in the innermost container: reads its next value, or returns the container itself if
   * it closes.
   */
  #next(hasItem: boolean): JsonValue | undefined {
    const frame = this.#open.at(-1) as Frame;
    const isList = Array.isArray(frame.container);
    this.#blanks();
    const isFirst = !hasItem;
    if (this.#text[this.#at] === (isList ? ']' : '}')) {
      this.#at += 1;
      this.#open.pop();
      return frame.container;
    }
    if (!isFirst) {
      const place = isList ? 'after array element' : 'after object key:value pair';
      if (this.#text[this.#at] !== ',') throw this.#unexpected(place);
      this.#at += 1;
    }
    if (!isList) this.#key(frame, isFirst);
    return this.#begin();
  }

  #key(frame: Frame, isFirst: boolean): void {
    this.#blanks();
    if (this.#text[this.#at] !== '"') {
      throw this.#unexpected(`looking for beginning of object key string`);
    }
    frame.name = this.#string();
    this.#blanks();
    if (this.#text[this.#at] !== ':') throw this.#unexpected('after object key');
    this.#at += 1;
    if (this.hasAllPaths) this.#onMember?.(this.#path());
    frame.isRepeated = !isFirst && Object.hasOwn(frame.container, frame.name);
    if (!frame.isRepeated) return;
    if (this.#duplicates.size < duplicatesMax && this.hasAllPaths) {
      this.#duplicates.add(this.#path());
    }
  }

  /** Whether the paths of all members were short enough to be built. */
  get hasAllPaths(): boolean {
    return this.#pathCharactersLeft >= 0;
  }

  #store(value: JsonValue): void {
    const frame = this.#open.at(-1) as Frame;
    const { container, name } = frame;
    if (Array.isArray(container)) {
      container.push(value);
      return;
    }
    if (frame.isRepeated) this.#keepEarlier(container, name);
    setMember(container, name, value);
  }

  #keepEarlier(container: JsonObject, name: string): void {
    let byName = this.#earlier.get(container);
    if (byName === undefined) {
      byName = new Map();
      this.#earlier.set(container, byName);
    }
    const values = byName.get(name) ?? [];
    values.push(container[name] ?? null);
    byName.set(name, values);
  }

  #path(): string {
    let path = '';
    for (const { container, name } of this.#open) {
      if (Array.isArray(container)) path += `[${container.length}]`;
      else path += path === '' ? name : `.${name}`;
    }
    this.#pathCharactersLeft -= path.length;
    return path;
  }

  #string(): string {
    for (;;) {
      stringPattern.lastIndex = this.#at;
      const found = stringPattern.exec(this.#text)?.[0];
      if (found !== undefined) {
        this.#at += found.length;
        return String(parseJson(found));
      }
      const start = this.#at;
      const error = this.#badString();
      if (this.#text.length - this.#at > lookahead || !this.#hasMore) throw error;
      this.#at = start;
      this.#decodeMore();
    }
  }

  /** Whether a part of the text is not decoded yet. */
  get #hasMore(): boolean {
    return this.#rest?.isOver === false;
  }

  /** Decodes at least as much again as there is, so that long tokens take linear time. */
  #decodeMore(): void {
    const left = this.#text.slice(this.#at);
    this.#text = left + (this.#rest?.next(left.length) ?? '');
    this.#before += this.#at;
    this.#at = 0;
  }

  #badString(): JsonError {
    for (let at = this.#at + 1; at < this.#text.length; at += 1) {
      const char = this.#text.charAt(at);
      this.#at = at;
      if (char < ' ') return this.#unexpected('in string literal');
      if (char !== '\\') continue;
      at += 1;
      this.#at = at;
      const escaped = this.#text[at];
      if (escaped === undefined || !'"\\/bfnrtu'.includes(escaped)) {
        return this.#unexpected('in string escape code');
      }
      if (escaped !== 'u') continue;
      for (let digit = 0; digit < 4; digit += 1) {
        at += 1;
        this.#at = at;
        if (!/^[0-9a-fA-F]$/.test(this.#text[at] ?? '')) {
          return this.#unexpected('in \\u hexadecimal character escape');
        }
      }
    }
    return new JsonError('unexpected end of JSON input');
  }

  #number(): JsonValue {
    const found = this.#digits();
    if (found === undefined) {
      this.#at += 1;
      throw this.#unexpected('in numeric literal');
    }
    this.#at += found.length;
    const next = this.#text[this.#at];
    const continues =
      next === '.' ? !/[.eE]/.test(found) : /^[eE]$/.test(next ?? '') && !/[eE]/.test(found);
    if (continues) {
      this.#at += 1;
      const isSigned = next !== '.' && /[+-]/.test(this.#text[this.#at] ?? '');
      if (isSigned) this.#at += 1;
      const part =
        next === '.' ? 'after decimal point in numeric literal' : 'in exponent of numeric literal';
      throw this.#unexpected(part);
    }
    const spellings = this.#spellings;
    if (spellings === undefined || !/[.eE]/.test(found)) return exactNumber(found);
    const placeholder = (spellings.size + 1) * Number.MIN_VALUE;
    spellings.set(placeholder, found);
    return placeholder;
  }

  #digits(): string | undefined {
    for (;;) {
      numberPattern.lastIndex = this.#at;
      const found = numberPattern.exec(this.#text)?.[0];
      const left = this.#text.length - this.#at - (found?.length ?? 0);
      if (left > numberEnd || !this.#hasMore) return found;
      this.#decodeMore();
    }
  }

  #literal(): JsonValue {
    const start = this.#at;
    for (const [word, value] of [
      ['true', true],
      ['false', false],
      ['null', null],
    ] as const) {
      if (this.#text[start] !== word[0]) continue;
      for (let index = 1; index < word.length; index += 1) {
        this.#at = start + index;
        if (this.#text[this.#at] !== word[index]) {
          throw this.#unexpected(`in literal ${word} (expecting '${word[index]}')`);
        }
      }
      this.#at += 1;
      return value;
    }
    throw this.#unexpected('looking for beginning of value');
  }

  /** Skips blanks, and decodes more of the text if the next token may need it. */
  #blanks(): void {
    for (;;) {
      for (; this.#at < this.#text.length; this.#at += 1) {
        const code = this.#text.charCodeAt(this.#at);
        if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) break;
      }
      if (this.#text.length - this.#at > lookahead || !this.#hasMore) return;
      this.#decodeMore();
    }
  }

  #unexpected(place: string): JsonError {
    const code = this.#text.codePointAt(this.#at) ?? (readsBlank.test(place) ? 0x20 : undefined);
    if (code === undefined) return new JsonError('unexpected end of JSON input');
    const message = `invalid character ${quotedCharacter(code)} ${place}`;
    return new JsonError(message, this.#before + this.#at);
  }
}

const shortEscapes: Readonly<Record<number, string>> = {
  7: 'a',
  8: 'b',
  9: 't',
  10: 'n',
  11: 'v',
  12: 'f',
  13: 'r',
  39: "'",
  92: '\\',
};

/** Matches the errors for which Go reads a blank at the end of the text. */
const readsBlank = /^(?:in (?!string literal)|after decimal)/;

/** Quotes a character in an error as Go does. */
function quotedCharacter(code: number): string {
  const short = shortEscapes[code];
  if (short !== undefined) return `'\\${short}'`;
  if (code < 0x20 || code === 0x7f) return `'\\x${code.toString(16).padStart(2, '0')}'`;
  const isShown = code < 0x7f || (code > 0xa0 && code !== 0xad);
  return isShown ? `'${String.fromCodePoint(code)}'` : `'\\u${code.toString(16).padStart(4, '0')}'`;
}

/** Parses a number: integers of 64 bits exactly, and others as the nearest float. */
function exactNumber(text: string): JsonValue {
  const value = Number(text);
  if (!Number.isFinite(value)) {
    throw new JsonError(
      problemText({ code: 'misfit', what: `number ${text.slice(0, 64)}`, type: 'float64' }),
    );
  }
  if (Number.isSafeInteger(value) || text.length > 20 || /[.eE]/.test(text)) return value;
  const exact = BigInt(text);
  return exact >= int64Min && exact <= uint64Max ? exact : value;
}

import { errorText, runInOnePiece, WorkBudget, WorkExceeded } from '@wheelhouse/machinery';
import { checkPatternParts, isLargePattern, Pattern, type PatternAge } from '@wheelhouse/schema';
import { unpausedMax } from '../meter.ts';
import {
  type CallContext,
  divided,
  type Library,
  noSuchOverload,
  oneStepEach,
  type Run,
  seldomLong,
} from '../types/functions.ts';
import { CelError, List, type Value } from '../values.ts';
import { asInt, asList, asText } from './arguments.ts';
import { callCost, patternCost, sizeCost, textSize, traversalCost } from './arithmetic.ts';
import { showValue } from './conversions.ts';
import { formatSteps } from './format-text.ts';
import { indexInSteps, isShortSearch, lastIndexInSteps } from './search.ts';

const number = (value: Value | undefined) => Number(asInt(value));

function outOfRange(index: number | bigint): CelError {
  return new CelError(`index out of range: ${index}`);
}

/** Characters that count as one elementary step of a function that divides a text. */
const charactersPerStep = 10;

function countText([text]: readonly Value[], context: CallContext): void {
  context.work(Math.ceil(asText(text).length / charactersPerStep));
}

/** A function that reads a text of limited length in one step. */
const readsText = (run: Run) => oneStepEach(countText, run);

/** A function that costs as much as reading its text. */
const costsText =
  (run: Run): Run =>
  (args, context) => {
    context.spend(callCost(textSize(asText(args[0]))));
    return run(args, context);
  };

/** Number of code points of a text before an index. */
function pointsBefore(text: string, index: number): bigint {
  return BigInt([...text.slice(0, index)].length);
}

/** The index in UTF-16 of a code point. */
const unitIndex = (points: readonly string[], index: number) =>
  points.slice(0, index).join('').length;

function charAt([value, index]: readonly Value[]): Value {
  const points = [...asText(value)];
  const at = number(index);
  if (at < 0 || at > points.length) throw outOfRange(asInt(index));
  return points[at] ?? '';
}

function substring([value, from, to]: readonly Value[]): Value {
  const points = [...asText(value)];
  const start = number(from);
  const end = to === undefined ? points.length : number(to);
  if (start > end && to !== undefined) {
    throw new CelError(`invalid substring range. start: ${from}, end: ${to}`);
  }
  if (start < 0 || start > points.length) throw outOfRange(asInt(from));
  if (end < 0 || end > points.length) throw outOfRange(to === undefined ? end : asInt(to));
  return points.slice(start, end).join('');
}

/**
 * Where a search starts: an index in UTF-16, or the result if there is nothing to search. As in
 * cel-go, an empty text is found at any offset.
 */
function startOf([value, part, from]: readonly Value[], absent: 'start' | 'end'): number | bigint {
  const text = asText(value);
  const isEmpty = asText(part) === '';
  if (from === undefined) {
    if (absent === 'end' && text === '' && !isEmpty) throw outOfRange(-1);
    return absent === 'start' ? 0 : text.length;
  }
  if (isEmpty) return asInt(from);
  const points = [...text];
  const start = number(from);
  if (start < 0) throw outOfRange(asInt(from));
  return start >= points.length ? -1n : unitIndex(points, start);
}

/** A search of a text, in steps where the engine's search could take long. */
function searches(
  absent: 'start' | 'end',
  search: (text: string, part: string, start: number) => number,
  steps: (
    texts: readonly [text: string, part: string],
    start: number,
    context: CallContext,
  ) => Generator<void, number>,
) {
  const pointIndex = (text: string, at: number) => (at < 0 ? -1n : pointsBefore(text, at));
  const divide: Parameters<typeof seldomLong>[1] = function* (args, context) {
    context.spend(traversalCost(asText(args[0])) - 1);
    countText(args, context);
    if (context.isStepOver()) yield;
    const [text, part] = [asText(args[0]), asText(args[1])];
    const start = startOf(args, absent);
    if (typeof start === 'bigint') return start;
    return pointIndex(text, yield* steps([text, part], start, context));
  };
  return seldomLong((args, context) => {
    const [text, part] = [asText(args[0]), asText(args[1])];
    if (!isShortSearch(text, part)) return runInOnePiece(divide(args, context.atOnce));
    context.spend(traversalCost(text) - 1);
    countText(args, context);
    const start = startOf(args, absent);
    return typeof start === 'bigint' ? start : pointIndex(text, search(text, part, start));
  }, divide);
}

const indexOf = searches(
  'start',
  (text, part, start) => text.indexOf(part, start),
  ([text, part], from, context) => indexInSteps(text, part, { from, context }),
);

const lastIndexOf = searches(
  'end',
  (text, part, start) => text.lastIndexOf(part, start),
  ([text, part], limit, context) => lastIndexInSteps(text, part, { limit, context }),
);

/** kube-apiserver multiplies the costs of both texts; the search itself is faster. */
const searchCost = (text: string, part: string) =>
  sizeCost(textSize(text)) * sizeCost(textSize(part)) - 1;

const contains = seldomLong(
  ([value, part], context) => {
    const [text, substring] = [asText(value), asText(part)];
    context.spend(searchCost(text, substring));
    if (!isShortSearch(text, substring)) {
      return (
        runInOnePiece(indexInSteps(text, substring, { from: 0, context: context.atOnce })) >= 0
      );
    }
    if (text.length > searchedPerStep) context.work(Math.ceil(text.length / searchedPerStep));
    return text.includes(substring);
  },
  function* ([value, part], context) {
    const [text, substring] = [asText(value), asText(part)];
    context.spend(searchCost(text, substring));
    if (text.length > searchedPerStep) context.work(Math.ceil(text.length / searchedPerStep));
    if (context.isStepOver()) yield;
    return (yield* indexInSteps(text, substring, { from: 0, context })) >= 0;
  },
);

/** Characters that the engine's search reads in the time of one elementary step. */
const searchedPerStep = 50;

/** Positions of a substring, up to a limit; an empty one occurs between all code points. */
function* places(
  [value, search]: readonly [string, string],
  limit: number,
  context: CallContext,
): Generator<void, number[]> {
  const indexes: number[] = [];
  let at = 0;
  while (indexes.length < limit) {
    context.work(1);
    if (context.isStepOver()) yield;
    at = yield* indexInSteps(value, search, { from: at, context });
    if (at < 0) break;
    indexes.push(at);
    const code = value.codePointAt(at);
    if (search === '' && code === undefined) break;
    at += search === '' ? (Number(code) > 0xffff ? 2 : 1) : search.length;
  }
  return indexes;
}

const replace = divided(function* ([value, search, by, most], context) {
  const limit = most === undefined || number(most) < 0 ? Number.POSITIVE_INFINITY : number(most);
  const source = asText(value);
  const indexes = yield* places([source, asText(search)], limit, context);
  context.spend(callCost(textSize(source) * 2));
  // The cost ignores what is inserted, which may be far longer than the text.
  context.work(indexes.length * asText(by).length);
  const parts: string[] = [];
  let last = 0;
  for (const at of indexes) {
    context.work(2);
    if (context.isStepOver()) yield;
    parts.push(source.slice(last, at), asText(by));
    last = at + asText(search).length;
  }
  parts.push(source.slice(last));
  return yield* joined(parts, '', context);
});

/** Number of items that are joined at once. */
const joinedItems = 1000;

/** Joins texts in steps. */
function* joined(
  texts: readonly string[],
  separator: string,
  context: CallContext,
): Generator<void, string> {
  let result = '';
  for (let at = 0; at < texts.length; at += joinedItems) {
    const part = texts.slice(at, at + joinedItems);
    context.work(part.length);
    if (context.isStepOver()) yield;
    result += (at === 0 ? '' : separator) + part.join(separator);
  }
  return result;
}

const split = seldomLong(
  (args, context) => {
    const [source, separator] = [asText(args[0]), asText(args[1])];
    if (!isShortSearch(source, separator)) return runInOnePiece(splitSteps(args, context.atOnce));
    countText(args, context);
    context.spend(callCost(textSize(source) * 2));
    return parted(source, separator, args[2]);
  },
  (args, context) => splitSteps(args, context),
);

function* splitSteps(args: readonly Value[], context: CallContext): Generator<void, Value> {
  const [source, separator] = [asText(args[0]), asText(args[1])];
  countText(args, context);
  context.spend(callCost(textSize(source) * 2));
  if (context.isStepOver()) yield;
  if (separator === '') return parted(source, separator, args[2]);
  const limit = args[2] === undefined ? -1 : number(args[2]);
  if (limit === 0) return new List([]);
  const most = limit < 0 ? Number.POSITIVE_INFINITY : limit - 1;
  const parts: string[] = [];
  let last = 0;
  for (const at of yield* places([source, separator], most, context)) {
    context.work(1);
    if (context.isStepOver()) yield;
    parts.push(source.slice(last, at));
    last = at + separator.length;
  }
  parts.push(source.slice(last));
  return new List(parts);
}

function parted(source: string, separator: string, most: Value | undefined): List {
  const limit = most === undefined ? -1 : number(most);
  if (limit === 0) return new List([]);
  const parts = separator === '' ? [...source] : source.split(separator);
  if (limit < 0 || parts.length <= limit) return new List(parts);
  const rest = parts.slice(limit - 1).join(separator);
  return new List([...parts.slice(0, limit - 1), rest]);
}

const join = divided(function* (args, context) {
  const [list, separator = ''] = args;
  const first = asList(list).items.at(0);
  if (first !== undefined && typeof first !== 'string')
    throw noSuchOverload({ name: 'join', args });
  const texts: string[] = [];
  const gap = textSize(asText(separator));
  let size = -gap;
  for (const item of asList(list).items) {
    context.work(1);
    if (context.isStepOver()) yield;
    if (typeof item !== 'string') throw new CelError(`join: invalid input: ${showValue(item)}`);
    size += textSize(item) + gap;
    texts.push(item);
  }
  context.spend(callCost(Math.max(size, 0) * 2));
  return yield* joined(texts, asText(separator), context);
});

const quoted: Readonly<Record<string, string>> = {
  '\u0007': '\\a',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
  '\\': '\\\\',
  '"': '\\"',
};

/** Characters that are quoted at once. */
const quotedAtOnce = 10_000;

const quote = divided(function* ([value], context) {
  const source = asText(value);
  context.spend(callCost(textSize(source)));
  let escaped = '';
  for (let from = 0; from < source.length; ) {
    context.work(Math.ceil(Math.min(source.length - from, quotedAtOnce) / 2));
    if (context.isStepOver()) yield;
    const end = from + quotedAtOnce;
    // The halves of a surrogate pair stay together.
    const to = (source.codePointAt(end - 1) ?? 0) > 0xffff ? end + 1 : end;
    escaped += Array.from(source.slice(from, to), quotedPoint).join('');
    from = to;
  }
  return `"${escaped}"`;
});

function quotedPoint(point: string): string {
  if (Object.hasOwn(quoted, point)) return quoted[point] ?? point;
  return /^[\ud800-\udfff]$/.test(point) ? '\ufffd' : point;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are ASCII, too
const isAscii = (text: string) => /^[\x00-\x7f]*$/.test(text);

const whitespace =
  '[\\t-\\r\\u0020\\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]+';
const leading = new RegExp(`^${whitespace}`);
const trailing = new RegExp(`(?<!${whitespace.slice(0, -1)})${whitespace}$`);

function reading(run: (value: string) => Value) {
  return readsText(costsText(([value]) => run(asText(value))));
}

const patterns = new Map<string, Pattern>();
const patternsMax = 500;

/** Maximum memory of these patterns, in instructions of about 100 bytes. */
const patternsWeightMax = 500_000;

let patternsWeight = 0;

/**
 * Parses a literal pattern, which may have any number of parts unless the expression is new. Throws
 * `CelError` if it is invalid or too large.
 * @returns whether it has more parts than a new pattern may have; see `CallContext.storedPattern`
 */
export function checkLiteralPattern(
  source: string,
  at: { readonly patterns?: PatternAge },
): { readonly exceedsParts: boolean } {
  let exceedsParts = false;
  try {
    checkParts(source);
  } catch (error) {
    if (at.patterns === 'new') throw error;
    exceedsParts = true;
  }
  patternOf(source);
  return { exceedsParts };
}

/** Throws `CelError` if a pattern that is not stored takes too long to parse. */
function checkParts(source: string): void {
  refusing(() => checkPatternParts(source));
}

function refusing<T>(run: () => T): T {
  try {
    return run();
  } catch (error) {
    throw new CelError(errorText(error));
  }
}

/** Parses an RE2 pattern. Throws `CelError` if it is invalid or too large. */
function patternOf(source: string): Pattern {
  const cachedPattern = patterns.get(source);
  if (cachedPattern !== undefined) return cachedPattern;
  const pattern = refusing(() => new Pattern(source));
  if (patterns.size >= patternsMax || patternsWeight + pattern.weight > patternsWeightMax) {
    patterns.clear();
    patternsWeight = 0;
  }
  patterns.set(source, pattern);
  patternsWeight += pattern.weight;
  return pattern;
}

/** Work of parsing a large pattern, which only an evaluation with every function in steps does. */
const parsingWork = unpausedMax.work + 1;

/** Parses and compiles a pattern, in steps if it is large (TRUST-2). */
function* patternSteps(source: string, context: CallContext): Generator<void, Pattern> {
  if (!patterns.has(source) && isLargePattern(source)) {
    if (context.storedPattern !== source) checkParts(source);
    context.work(parsingWork);
    yield;
  }
  const pattern = patternOf(source);
  yield* pattern.compileSteps();
  return pattern;
}

/** Elementary steps of a match, whose cost assumes ten characters and four instructions. */
const stepsPerMatchCost = 2;

/**
 * Charges for a match. The cost knows only the length of the pattern. Counted repetition compiles to
 * more instructions, which are counted as work.
 */
function spendMatch(
  [value, source]: readonly [string, string],
  pattern: { readonly size: number },
  context: CallContext,
): void {
  const reading = sizeCost(1 + textSize(value));
  const perReading = patternCost(textSize(source));
  context.spend(reading * perReading - 1);
  countInstructions(reading * (patternCost(pattern.size) - perReading), context);
}

function countInstructions(cost: number, context: CallContext): void {
  if (cost > 0) context.work(cost * stepsPerMatchCost);
}

const matches = divided(function* ([value, source], context) {
  const pattern = yield* patternSteps(asText(source), context);
  spendMatch([asText(value), asText(source)], pattern, context);
  if (context.isStepOver()) yield;
  return yield* pattern.testSteps(asText(value));
});

/** As in kube-apiserver, the function costs as much as any call; only the method has a cost. */
const matchesFunction = divided(function* ([value, source], context) {
  const pattern = yield* patternSteps(asText(source), context);
  const instructions = Math.max(asText(source).length, pattern.size);
  countInstructions(sizeCost(1 + asText(value).length) * patternCost(instructions), context);
  if (context.isStepOver()) yield;
  return yield* pattern.testSteps(asText(value));
});

function* patternToFind(source: string, context: CallContext): Generator<void, Pattern> {
  try {
    return yield* patternSteps(source, context);
  } catch (error) {
    if (!(error instanceof CelError)) throw error;
    throw new CelError(`Illegal regex: ${error.message}`);
  }
}

/**
 * Maximum number of instructions of a search for all matches, each of which may scan the rest of
 * the text.
 */
const findStepsMax = 20_000_000;

function* findSteps(
  args: readonly Value[],
  limit: number,
  context: CallContext,
): Generator<void, string[]> {
  const [value, source] = [asText(args[0]), asText(args[1])];
  const pattern = yield* patternToFind(source, context);
  spendMatch([value, source], pattern, context);
  if (context.isStepOver()) yield;
  const budget = new WorkBudget({ what: 'the search for matches', steps: findStepsMax });
  try {
    return yield* pattern.findSteps(value, limit, budget);
  } catch (error) {
    if (!(error instanceof WorkExceeded)) throw error;
    throw new CelError(error.message);
  }
}

const find = divided(function* (args, context) {
  return (yield* findSteps(args, 1, context))[0] ?? '';
});

const findAll = divided(function* (args, context) {
  const limit = args[2] === undefined ? -1 : number(args[2]);
  return new List(yield* findSteps(args, limit < 0 ? Number.POSITIVE_INFINITY : limit, context));
});

const regularExpressions: Library = [
  ['matches(string, string): bool', matchesFunction],
  ['string.matches(string): bool', matches],
  ['string.find(string): string', find],
  ['string.findAll(string): list(string)', findAll],
  ['string.findAll(string, int): list(string)', findAll],
];

const format = divided(function* ([value, args], context) {
  context.spend(callCost(textSize(asText(value))));
  const result = yield* formatSteps(asText(value), asList(args).items, context);
  // The cost ignores the arguments, which may be far longer than the format.
  context.work(result.length);
  return result;
});

/** The library for strings. */
export const strings: Library = [
  ['string.contains(string): bool', contains],
  [
    'string.startsWith(string): bool',
    costsText(([value, part]) => asText(value).startsWith(asText(part))),
  ],
  [
    'string.endsWith(string): bool',
    costsText(([value, part]) => asText(value).endsWith(asText(part))),
  ],
  ['string.charAt(int): string', readsText(charAt)],
  ['string.indexOf(string): int', indexOf],
  ['string.indexOf(string, int): int', indexOf],
  ['string.lastIndexOf(string): int', lastIndexOf],
  ['string.lastIndexOf(string, int): int', lastIndexOf],
  [
    'string.lowerAscii(): string',
    reading((value) =>
      isAscii(value) ? value.toLowerCase() : value.replace(/[A-Z]+/g, (part) => part.toLowerCase()),
    ),
  ],
  [
    'string.upperAscii(): string',
    reading((value) =>
      isAscii(value) ? value.toUpperCase() : value.replace(/[a-z]+/g, (part) => part.toUpperCase()),
    ),
  ],
  ['string.replace(string, string): string', replace],
  ['string.replace(string, string, int): string', replace],
  ['string.split(string): list(string)', split],
  ['string.split(string, int): list(string)', split],
  ['string.substring(int): string', readsText(costsText(substring))],
  ['string.substring(int, int): string', readsText(costsText(substring))],
  ['string.trim(): string', reading((value) => value.replace(leading, '').replace(trailing, ''))],
  ['list(string).join(): string', join],
  ['list(string).join(string): string', join],
  ['strings.quote(string): string', quote],
  ['string.format(list(dyn)): string', format],
  ...regularExpressions,
];

import { WorkBudget, WorkExceeded } from '@wheelhouse/machinery';
import { Pattern } from '@wheelhouse/schema';
import { type CallContext, divided, type Library } from '../types/functions.ts';
import { CelError, List, type Value } from '../values.ts';
import { asInt, asList, asText } from './arguments.ts';
import { sizeCost } from './arithmetic.ts';
import { formatText } from './format-text.ts';

const number = (value: Value | undefined) => Number(asInt(value));

function outOfRange(index: number): CelError {
  return new CelError(`index out of range: ${index}`);
}

function charAt([value, index]: readonly Value[]): Value {
  const points = [...asText(value)];
  const at = number(index);
  if (at < 0 || at > points.length) throw outOfRange(at);
  return points[at] ?? '';
}

function substring([value, from, to]: readonly Value[]): Value {
  const points = [...asText(value)];
  const start = number(from);
  const end = to === undefined ? points.length : number(to);
  if (start < 0 || start > points.length) throw outOfRange(start);
  if (end < 0 || end > points.length) throw outOfRange(end);
  if (start > end) throw new CelError(`invalid substring range. start: ${start}, end: ${end}`);
  return points.slice(start, end).join('');
}

function indexOf([value, search, from]: readonly Value[]): Value {
  const points = [...asText(value)];
  const start = from === undefined ? 0 : number(from);
  if (start < 0) throw outOfRange(start);
  if (start > points.length) return -1n;
  const skipped = points.slice(0, start).join('').length;
  const at = asText(value).indexOf(asText(search), skipped);
  return at < 0 ? -1n : BigInt([...asText(value).slice(0, at)].length);
}

function lastIndexOf([value, search, from]: readonly Value[]): Value {
  const points = [...asText(value)];
  const start = from === undefined ? points.length : number(from);
  if (start < 0) throw outOfRange(start);
  if (start > points.length) return -1n;
  const limit = points.slice(0, start).join('').length;
  const at = asText(value).lastIndexOf(asText(search), limit);
  return at < 0 ? -1n : BigInt([...asText(value).slice(0, at)].length);
}

/** Positions of a substring, up to a limit; an empty one occurs between all code points. */
function* places(
  [value, search]: readonly [string, string],
  limit: number,
  context: CallContext,
): Generator<void, number[]> {
  const found: number[] = [];
  let at = 0;
  while (found.length < limit) {
    context.work(1);
    if (context.isStepOver()) yield;
    at = value.indexOf(search, at);
    if (at < 0) break;
    found.push(at);
    const code = value.codePointAt(at);
    if (search === '' && code === undefined) break;
    at += search === '' ? (Number(code) > 0xffff ? 2 : 1) : search.length;
  }
  return found;
}

const replace = divided(function* ([value, search, by, most], context) {
  const limit = most === undefined || number(most) < 0 ? Number.POSITIVE_INFINITY : number(most);
  const source = asText(value);
  const found = yield* places([source, asText(search)], limit, context);
  context.spend(sizeCost(source.length, found.length * asText(by).length));
  const parts: string[] = [];
  let last = 0;
  for (const at of found) {
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

function split([value, separator, most]: readonly Value[], { spend }: CallContext): Value {
  const source = asText(value);
  spend(sizeCost(source.length));
  const limit = most === undefined ? -1 : number(most);
  if (limit === 0) return new List([]);
  const parts = asText(separator) === '' ? [...source] : source.split(asText(separator));
  if (limit < 0 || parts.length <= limit) return new List(parts);
  const rest = parts.slice(limit - 1).join(asText(separator));
  return new List([...parts.slice(0, limit - 1), rest]);
}

const join = divided(function* ([list, separator = ''], context) {
  const texts: string[] = [];
  let size = 0;
  for (const item of asList(list).items) {
    context.work(1);
    if (context.isStepOver()) yield;
    if (typeof item !== 'string') throw new CelError('no such overload: join');
    size += item.length + asText(separator).length;
    texts.push(item);
  }
  context.spend(sizeCost(size));
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

function quote(value: string): string {
  const escaped = [...value].map((point) => {
    if (Object.hasOwn(quoted, point)) return quoted[point] ?? point;
    return /^[\ud800-\udfff]$/.test(point) ? '\ufffd' : point;
  });
  return `"${escaped.join('')}"`;
}

const whitespace =
  '[\\t-\\r\\u0020\\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]+';
const leading = new RegExp(`^${whitespace}`);
const trailing = new RegExp(`(?<!${whitespace.slice(0, -1)})${whitespace}$`);

function reading(run: (value: string) => Value) {
  return ([value]: readonly Value[], { spend }: CallContext) => {
    spend(sizeCost(asText(value).length));
    return run(asText(value));
  };
}

const patterns = new Map<string, Pattern>();
const patternsMax = 500;

/** Compiles an RE2 pattern. Throws `CelError` if it is invalid or too large. */
export function patternOf(source: string): Pattern {
  const cachedPattern = patterns.get(source);
  if (cachedPattern !== undefined) return cachedPattern;
  let compiled: Pattern;
  try {
    compiled = new Pattern(source);
  } catch (error) {
    throw new CelError(String(error instanceof Error ? error.message : error));
  }
  if (patterns.size >= patternsMax) patterns.clear();
  patterns.set(source, compiled);
  return compiled;
}

/** kube-apiserver's cost of a match, or that of the compiled pattern if it is higher. */
const matchCost = (value: string, pattern: { readonly size: number }, source: string) =>
  sizeCost(value.length) * Math.ceil(Math.max(source.length, pattern.size) * 0.25);

const matches = divided(function* ([value, source], context) {
  const pattern = patternOf(asText(source));
  context.spend(matchCost(asText(value), pattern, asText(source)));
  if (context.isStepOver()) yield;
  return yield* pattern.testSteps(asText(value));
});

function patternToFind(source: string): Pattern {
  try {
    return patternOf(source);
  } catch (error) {
    if (!(error instanceof CelError)) throw error;
    throw new CelError(`Illegal regex: ${error.message}`);
  }
}

/**
 * Maximum number of steps of a search for all matches, each of which may scan the rest of the text.
 */
const findStepsMax = 20_000_000;

function findAll(args: readonly Value[], limit: number, { spend }: CallContext): string[] {
  const [value, source] = args;
  const pattern = patternToFind(asText(source));
  spend(matchCost(asText(value), pattern, asText(source)));
  const budget = new WorkBudget({ what: 'the search for matches', steps: findStepsMax });
  try {
    return pattern.findAll(asText(value), limit, budget);
  } catch (error) {
    if (!(error instanceof WorkExceeded)) throw error;
    throw new CelError(error.message);
  }
}

const regularExpressions: Library = [
  ['matches(string, string): bool', matches],
  ['string.matches(string): bool', matches],
  ['string.find(string): string', (args, context) => findAll(args, 1, context)[0] ?? ''],
  [
    'string.findAll(string): list(string)',
    (args, context) => new List(findAll(args, Number.POSITIVE_INFINITY, context)),
  ],
  [
    'string.findAll(string, int): list(string)',
    (args, context) => {
      const limit = number(args[2]);
      return new List(findAll(args, limit < 0 ? Number.POSITIVE_INFINITY : limit, context));
    },
  ],
];

/** The library for strings. */
export const strings: Library = [
  [
    'string.contains(string): bool',
    ([value, part], { spend }) => {
      spend(sizeCost(asText(value).length));
      return asText(value).includes(asText(part));
    },
  ],
  ['string.startsWith(string): bool', ([value, part]) => asText(value).startsWith(asText(part))],
  ['string.endsWith(string): bool', ([value, part]) => asText(value).endsWith(asText(part))],
  ['string.charAt(int): string', charAt],
  ['string.indexOf(string): int', indexOf],
  ['string.indexOf(string, int): int', indexOf],
  ['string.lastIndexOf(string): int', lastIndexOf],
  ['string.lastIndexOf(string, int): int', lastIndexOf],
  [
    'string.lowerAscii(): string',
    reading((value) => value.replace(/[A-Z]+/g, (part) => part.toLowerCase())),
  ],
  [
    'string.upperAscii(): string',
    reading((value) => value.replace(/[a-z]+/g, (part) => part.toUpperCase())),
  ],
  ['string.replace(string, string): string', replace],
  ['string.replace(string, string, int): string', replace],
  ['string.split(string): list(string)', split],
  ['string.split(string, int): list(string)', split],
  ['string.substring(int): string', substring],
  ['string.substring(int, int): string', substring],
  ['string.trim(): string', reading((value) => value.replace(leading, '').replace(trailing, ''))],
  ['list(string).join(): string', join],
  ['list(string).join(string): string', join],
  ['strings.quote(string): string', reading(quote)],
  [
    'string.format(list(dyn)): string',
    ([value, args], { spend }) => {
      const result = formatText(asText(value), asList(args).items);
      spend(sizeCost(result.length));
      return result;
    },
  ],
  ...regularExpressions,
];

import type { Overload } from '../types/functions.ts';
import type { Type } from '../types/types.ts';

/**
 * Ranges of sizes and costs as cel-go's checker computes them. Counts are unsigned 64-bit integers
 * there; here they are numbers that saturate at the same maximum.
 */
export interface Range {
  readonly min: number;
  readonly max: number;
}

/** The maximum count, which stands for no limit. */
const unbounded = 2 ** 64;

const saturated = (value: number): number => Math.min(value, unbounded);

/** The range of one count. */
export const exactly = (count: number): Range => ({ min: count, max: count });
/** The size of a value whose schema and type set no limit. */
export const unknownSize: Range = { min: 0, max: unbounded };
/** The cost of what is free, such as a constant, and the neutral element of `plus`. */
export const nothing: Range = exactly(0);

/** Adds the bounds; the sums saturate. */
export function plus(left: Range, right: Range): Range {
  return { min: saturated(left.min + right.min), max: saturated(left.max + right.max) };
}

function times(left: Range, right: Range): Range {
  return { min: product(left.min, right.min), max: product(left.max, right.max) };
}

/** Multiplies counts; zero times no limit is zero. */
export function product(left: number, right: number): number {
  return left === 0 || right === 0 ? 0 : saturated(left * right);
}

/** Multiplies both bounds by a cost per unit and rounds up. */
function scaled(range: Range, perUnit: number): Range {
  const scale = (count: number) => saturated(Math.ceil(count * perUnit));
  return { min: scale(range.min), max: scale(range.max) };
}

/** The smallest range that contains both. */
export function hull(left: Range, right: Range): Range {
  return { min: Math.min(left.min, right.min), max: Math.max(left.max, right.max) };
}

/** Adds the bounds of all ranges. */
export function sumOf(ranges: readonly Range[]): Range {
  return ranges.reduce(plus, nothing);
}

/** Cost of reading a character. */
const perCharacter = 0.1;
/** Cost factor of a character of a pattern. */
const perPatternCharacter = 0.25;

/** Static knowledge of a subexpression. */
export interface Sized {
  readonly type: Type | undefined;
  readonly size: Range;
  /** The size of a literal or of a result, as opposed to a declared one. */
  readonly computedSize?: Range | undefined;
  /** Size of a list's items. */
  readonly item?: Sized | undefined;
  /** Value of an integer literal. */
  readonly integer?: number | undefined;
}

/** A call with one of its candidate overloads. */
interface SizedCall {
  readonly name: string;
  readonly overload: Overload;
  readonly target: Sized | undefined;
  readonly args: readonly Sized[];
  /** Cost of evaluating each argument. */
  readonly costs: readonly Range[];
}

/** The cost of a call including its arguments, and the size of its result, if known. */
interface CallCost {
  readonly cost: Range;
  readonly size?: Range;
}

/** The cost of a call by the rules for Kubernetes' functions, or else by CEL's own. */
export function callCost(call: SizedCall): CallCost {
  const { name, args } = call;
  const estimate = Object.hasOwn(byName, name) ? byName[name]?.(call) : undefined;
  if (name === '_&&_' || name === '_||_') return shortCircuit(call.costs);
  if (name === '_?_:_') return conditional(call);
  const { cost, size } = estimate ?? { cost: exactly(1) };
  const whole = plus(cost, sumOf(call.costs.slice(0, args.length)));
  return size === undefined ? { cost: whole } : { cost: whole, size };
}

type Estimate = (call: SizedCall) => CallCost | undefined;

const free: Range = exactly(1);
const constant: Estimate = () => ({ cost: free });
const readingArg: Estimate = ({ args: [text] }) =>
  text === undefined ? undefined : { cost: scaled(text.size, perCharacter) };

/** A text of a size that the formatted values determine. */
const formatting: Estimate = ({ target }) =>
  target === undefined ? undefined : { cost: scaled(target.size, perCharacter) };

/** A string of the same size as the target. */
const readingTarget: Estimate = ({ target }) =>
  target === undefined ? undefined : { cost: scaled(target.size, perCharacter), size: target.size };

const isText = (type: Type | undefined) => type?.name === 'string' || type?.name === 'bytes';

/** Visits each item once, including the characters of strings; a string is read once. */
const walkingList: Estimate = ({ target }) => {
  if (target === undefined) return undefined;
  if (target.item === undefined) return { cost: scaled(target.size, perCharacter) };
  const reading = isText(target.item.type) ? scaled(target.item.size, perCharacter) : exactly(0);
  return { cost: times(target.size, plus(free, reading)) };
};

/** Matches a pattern: each character of the pattern for each of the text. */
const matching = (text: Range, pattern: Range): Range =>
  times(scaled(plus(text, free), perCharacter), scaled(pattern, perPatternCharacter));

const finding: Estimate = ({ target, args: [pattern] }) =>
  target === undefined || pattern === undefined
    ? undefined
    : { cost: matching(target.size, pattern.size), size: { min: 0, max: target.size.max } };

/** Only the member function has a specific cost; the global one counts as 1 in kube-apiserver. */
const matches: Estimate = ({ target, args: [pattern] }) =>
  target === undefined || pattern === undefined
    ? undefined
    : { cost: matching(target.size, pattern.size) };

const containing: Estimate = ({ target, args: [part] }) =>
  target === undefined || part === undefined
    ? undefined
    : { cost: times(scaled(target.size, perCharacter), scaled(part.size, perCharacter)) };

const splitting: Estimate = ({ target, args }) => {
  if (target === undefined) return undefined;
  const limit = args[1]?.integer;
  // A negative limit is a large unsigned number.
  const max = limit === undefined ? target.size.max : limit < 0 ? unbounded + limit : limit;
  return { cost: scaled(target.size, 2 * perCharacter), size: { min: 0, max } };
};

const joining: Estimate = ({ target, args: [separator] }) => {
  if (target === undefined) return undefined;
  let size = target.item === undefined ? exactly(0) : times(target.size, target.item.size);
  if (separator !== undefined) {
    const less = (count: number) => (count === unbounded ? unbounded : Math.max(count - 1, 0));
    const gaps = { min: less(target.size.min), max: less(target.size.max) };
    size = plus(size, times(separator.size, gaps));
  }
  return { cost: scaled(size, perCharacter), size };
};

/** The range of sizes of the result of `replace`. */
const replacing: Estimate = ({ target, args: [from, to] }) => {
  if (target === undefined || from === undefined || to === undefined) return undefined;
  const { size } = target;
  const most = bound(size.max, { from: from.size.min, grows: to.size.max > from.size.min });
  const least = bound(size.min, { from: from.size.max, grows: from.size.max > to.size.min });
  const result = {
    min: Math.min(product(least.count, to.size.min) + least.kept, unbounded),
    max: Math.min(product(most.count, to.size.max) + most.kept, unbounded),
  };
  return { cost: scaled(size, 2 * perCharacter), size: result };
};

/** Maximum number of replacements, and the remaining size. */
function bound(
  length: number,
  { from, grows }: { from: number; grows: boolean },
): { count: number; kept: number } {
  // An empty string occurs between all characters.
  if (from === 0) return { count: Math.min(length + 1, unbounded), kept: length };
  return grows ? { count: Math.ceil(length / from), kept: 0 } : { count: 0, kept: length };
}

/** Size of an address in bytes. */
const addressSize: Range = { min: 4, max: 16 };

const holding =
  (extra: Range): Estimate =>
  ({ overload, args: [argument] }) => {
    const compared = plus(scaled(plus(addressSize, addressSize), perCharacter), extra);
    const isParsed = overload.params[1]?.name === 'string' && argument !== undefined;
    return { cost: isParsed ? plus(compared, scaled(argument.size, perCharacter)) : compared };
  };

/** Maximum length of a named format's pattern, characters. */
const formatPatternMax = 128;

const validating: Estimate = ({ args: [text] }) => {
  if (text === undefined) return undefined;
  const reading = scaled(text.size, perCharacter);
  return { cost: scaled(reading, formatPatternMax * perPatternCharacter) };
};

const adding: Estimate = ({ overload, args: [left, right] }) => {
  if (left === undefined || right === undefined) return undefined;
  const size = plus(left.size, right.size);
  const [type] = overload.params;
  if (type?.name === 'list') return { cost: free, size };
  return isText(type) ? { cost: scaled(size, perCharacter), size } : undefined;
};

/** Compares both up to the length of the shorter one. */
function comparing([left, right]: readonly Sized[]): CallCost | undefined {
  if (left === undefined || right === undefined) return undefined;
  const max = Math.min(left.size.max, right.size.max);
  return { cost: scaled({ min: max > 0 ? 1 : 0, max }, perCharacter) };
}

const ordering: Estimate = ({ overload, args }) =>
  overload.params.every(isText) ? comparing(args) : undefined;

const ofFixedSize = new Set(['net.IP', 'net.CIDR', 'kubernetes.Quantity', 'kubernetes.Semver']);
/** Maximum length of a named format, characters. */
const formatSizeMax = 64;

const equality: Estimate = ({ args }) => {
  const [left, right] = args;
  const name = left?.type?.name ?? '';
  if (name !== right?.type?.name) return comparing(args);
  if (ofFixedSize.has(name)) return { cost: free };
  if (name === 'kubernetes.NamedFormat') {
    return { cost: scaled({ min: 1, max: formatSizeMax }, perCharacter) };
  }
  if (name !== 'kubernetes.URL') return comparing(args);
  return { cost: scaled({ min: 1, max: right.computedSize?.max ?? 1 }, perCharacter) };
};

const inequality: Estimate = ({ args }) => comparing(args);

const containment: Estimate = ({ overload, args: [, list] }) =>
  overload.params[1]?.name === 'list' && list !== undefined ? { cost: list.size } : undefined;

const converting =
  (to: 'string' | 'bytes'): Estimate =>
  ({ overload, args: [value] }) => {
    const from = to === 'string' ? 'bytes' : 'string';
    if (value === undefined || overload.params[0]?.name !== from) return undefined;
    const { min, max } = value.size;
    // A character takes at most four bytes.
    const size = to === 'bytes' ? { min, max: product(max, 4) } : { min: Math.floor(min / 4), max };
    return { cost: scaled(value.size, perCharacter), size };
  };

const quoting: Estimate = ({ args: [value] }) => {
  if (value === undefined) return undefined;
  const { min, max } = value.size;
  // cel-go's sum for an unlimited size wraps around to zero.
  const size = { min: min + 2, max: max === unbounded ? 0 : saturated(2 * max + 2) };
  return { cost: scaled(value.size, perCharacter), size };
};

const parsingUrl: Estimate = ({ args: [text] }) =>
  text === undefined ? undefined : { cost: scaled(text.size, perCharacter), size: text.size };

/** Creates a list of a size, with a cost per item. */
function making(size: Range, perItem: number): CallCost {
  return { cost: plus(scaled(size, perItem), exactly(11)), size };
}

const ranging: Estimate = ({ args: [end] }) => making(exactly(end?.integer ?? unbounded), 1);

const slicing: Estimate = ({ target, args: [start, end] }) => {
  if (target === undefined) return undefined;
  const length = (end?.integer ?? target.size.max) - (start?.integer ?? 0);
  return making(exactly(Math.max(length, 0)), 1);
};

const reversing: Estimate = ({ target }) =>
  target === undefined || target.type?.name === 'string' ? undefined : making(target.size, 1);

const flattening: Estimate = ({ target, args: [depth] }) => {
  if (target === undefined) return undefined;
  return making(target.size, depth === undefined ? 1 : (depth.integer ?? unbounded));
};

/** Compares all items with all others, twice. */
const pairing: Estimate = ({ target }) => {
  if (target === undefined) return undefined;
  const reads = isText(target.item?.type) ? perCharacter : 0;
  return making(times(target.size, target.size), 2 + reads);
};

const comparingSets =
  (factor: number): Estimate =>
  ({ args: [left, right] }) =>
    left === undefined || right === undefined
      ? undefined
      : { cost: plus(scaled(times(left.size, right.size), factor), free) };

/** `cidr.ip()` only reads a member. */
const parsingAddress: Estimate = ({ overload, args: [text] }) =>
  overload.isMember || text === undefined
    ? { cost: free }
    : { cost: scaled(text.size, perCharacter) };

const named = (names: string, estimate: Estimate): [string, Estimate][] =>
  names.split(' ').map((name) => [name, estimate]);

const byName: Readonly<Record<string, Estimate | undefined>> = Object.fromEntries([
  ...named('isSorted sum max min indexOf lastIndexOf includes', walkingList),
  ...named('lowerAscii upperAscii substring trim', readingTarget),
  ...named('url jsonpatch.escapeKey', parsingUrl),
  ...named('cidr isIP isCIDR quantity isQuantity semver isSemver', readingArg),
  ...named('startsWith endsWith', readingArg),
  ...named(
    'masked prefixLength family isUnspecified isLoopback isLinkLocalMulticast isLinkLocalUnicast ' +
      'isGlobalUnicast format.named sign asInteger isInteger asApproximateFloat isGreaterThan ' +
      'isLessThan compareTo add sub major minor patch getScheme getHostname getHost getPort ' +
      'getEscapedPath getQuery',
    constant,
  ),
  ...named('_<_ _<=_ _>_ _>=_', ordering),
  ...named('find findAll', finding),
  ['lists.range', ranging],
  ['slice', slicing],
  ['reverse', reversing],
  ['flatten', flattening],
  ...named('distinct sort', pairing),
  ...named('sets.contains sets.intersects', comparingSets(1)),
  ['sets.equivalent', comparingSets(2)],
  ['matches', matches],
  ['contains', containing],
  ['split', splitting],
  ['join', joining],
  ['replace', replacing],
  ['ip', parsingAddress],
  [
    'ip.isCanonical',
    ({ args: [text] }: SizedCall) =>
      text === undefined ? undefined : { cost: scaled(text.size, 2 * perCharacter) },
  ],
  ['containsIP', holding(exactly(0))],
  ['containsCIDR', holding(plus(scaled(addressSize, perCharacter), free))],
  ['validate', validating],
  ['format', formatting],
  ['_+_', adding],
  ['_==_', equality],
  ['_!=_', inequality],
  ['@in', containment],
  ['string', converting('string')],
  ['bytes', converting('bytes')],
  ['strings.quote', quoting],
]);

function shortCircuit([first, second]: readonly Range[]): CallCost {
  const left = first ?? exactly(0);
  return { cost: { min: left.min, max: plus(left, second ?? exactly(0)).max } };
}

function conditional({ args, costs }: SizedCall): CallCost {
  const [condition, yes, no] = costs;
  const either = hull(yes ?? exactly(0), no ?? exactly(0));
  const cost = plus(condition ?? exactly(0), either);
  const [, whenTrue, whenFalse] = args;
  return whenTrue === undefined || whenFalse === undefined
    ? { cost }
    : { cost, size: hull(whenTrue.size, whenFalse.size) };
}

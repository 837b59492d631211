import { isUtf8 } from 'node:buffer';
import { goQuoted, itemAt, problemText, sortSteps } from '@wheelhouse/machinery';
import type { Issue } from '../issues.ts';
import type { CallContext } from '../types/functions.ts';
import { type Type, unwrapped } from '../types/types.ts';
import {
  CelCostError,
  CelError,
  compare,
  Duration,
  type Items,
  isMapValue,
  kindOf,
  List,
  longTypeName,
  type MapValue,
  Timestamp,
  TypeValue,
  Uint,
  type Value,
} from '../values.ts';
import { showDouble } from './conversions.ts';
import { showDuration, showTimestamp } from './times.ts';

type Clause = (value: Value, precision: number | undefined, pace: FormatPace) => string;

/** Counts what a call formats, and says when it pauses. */
interface FormatPace {
  /** Counts the characters of a value about to be formatted. Throws `CelCostError`. */
  tally(characters: number): void;
  readonly isStepOver: () => boolean;
}

/** Maximum number of characters that one call formats. */
const formattedMax = 1_000_000;

/** Elementary steps of formatting one value, besides one for each ten of its characters. */
const stepsPerValue = 10;

function formatPace({ work, isStepOver }: CallContext): FormatPace {
  let left = formattedMax;
  return {
    isStepOver,
    tally(characters) {
      left -= characters;
      if (left < 0) {
        throw new CelCostError(
          `operation cancelled: format writes more than ${formattedMax} characters`,
        );
      }
      work(stepsPerValue + Math.ceil(characters / 10));
    },
  };
}

const precisionMax = 1000;

/**
 * The function `format`: `%s %d %f %e %b %o %x %X %%`, with a precision for `f` and a width for
 * `e`, in steps (TRUST-2).
 */
export function* formatSteps(
  format: string,
  args: Items,
  context: CallContext,
): Generator<void, string> {
  const pace = formatPace(context);
  context.work(Math.ceil(format.length / 10));
  let text = '';
  const read = partsOf(format, args.length);
  for (let part = read(); part !== undefined; part = read()) {
    if (pace.isStepOver()) yield;
    if (typeof part === 'string') {
      text += part;
      continue;
    }
    const value = args.at(part.index) ?? null;
    if (part.verb === 's')
      text += isCollection(value) ? yield* plain(value, pace) : scalar(value, pace);
    else {
      pace.tally(scalarLength + (part.precision ?? 0));
      text += clauseOf(part.verb)(value, part.precision, pace);
    }
  }
  return text;
}

function clauseOf(verb: string): Clause {
  const clause = clauses[verb];
  if (clause === undefined) throw unknownClause(verb);
  return clause;
}

interface ClauseUse {
  readonly verb: string;
  readonly precision: number | undefined;
  /** Index of its argument. */
  readonly index: number;
}

const clausePattern = /%(%|(?:\.(\d*))?([\s\S]?))/y;

/**
 * Returns a reader of a format's next part: a text between clauses, or a clause; undefined at the
 * end. Throws `CelError` for an invalid clause.
 */
function partsOf(format: string, count: number): () => string | ClauseUse | undefined {
  let next = 0;
  let at = 0;
  return () => {
    const index = format.indexOf('%', at);
    if (index !== at) {
      const text = index < 0 ? format.slice(at) : format.slice(at, index);
      at = index < 0 ? format.length : index;
      return text === '' ? undefined : text;
    }
    clausePattern.lastIndex = at;
    const [whole = '', inner, digits, verb = ''] = clausePattern.exec(format) ?? [];
    at += whole.length;
    if (inner === '%') return '%';
    if (inner === '') throw new CelError('unexpected end of string');
    if (next >= count) throw new CelError(`index ${next} out of range`);
    const precision = precisionOf(digits, verb);
    if (!Object.hasOwn(kindsTaken, verb)) throw unknownClause(verb);
    next += 1;
    return { verb, precision, index: next - 1 };
  };
}

/** Statically allowed kinds of types of a clause. */
const kindsTaken: Readonly<Record<string, string>> = {
  s: 'list map int uint double bool string timestamp bytes duration type null',
  d: 'int uint',
  f: 'double string',
  e: 'double string',
  b: 'int uint bool',
  o: 'int uint',
  x: 'int uint string bytes',
  X: 'int uint string bytes',
};

const shownKinds = new Set(kindsTaken['s']?.split(' '));

/** Static knowledge of an argument. */
export interface FormatArgument {
  readonly at: number;
  readonly type: Type;
  /** Elements of a literal list or map. */
  readonly parts: readonly FormatArgument[];
}

class RefusedArgument extends CelError {
  readonly at: number;
  constructor({ at, type }: FormatArgument, verb: string) {
    super(wrongArgument(verb, longTypeName(unwrapped(type))));
    this.at = at;
  }
}

/** The issue of a literal format with arguments of these types; `at` is the offset of the call. */
export function formatIssue(
  format: string,
  args: readonly FormatArgument[],
  at: number,
): Issue | undefined {
  let used = 0;
  try {
    const read = partsOf(format, args.length);
    for (let part = read(); part !== undefined; part = read()) {
      if (typeof part === 'string') continue;
      used = part.index + 1;
      const refused = refusedPart(itemAt(args, part.index), part.verb);
      if (refused !== undefined) throw new RefusedArgument(refused, part.verb);
    }
  } catch (error) {
    if (!(error instanceof CelError)) throw error;
    return { at: error instanceof RefusedArgument ? error.at : at, message: error.message };
  }
  if (used === args.length) return undefined;
  const counts = `(expected ${used}, got ${args.length})`;
  return { at, message: `too many arguments supplied to string.format ${counts}` };
}

/** The part of an argument that a clause does not accept, which may be an item of a list. */
function refusedPart(arg: FormatArgument, verb: string): FormatArgument | undefined {
  const { name } = unwrapped(arg.type);
  const taken = kindsTaken[verb]?.split(' ') ?? [];
  if (name !== 'dyn' && !taken.includes(name)) return arg;
  if (verb !== 's') return undefined;
  for (const part of arg.parts) {
    const refused = refusedPart(part, verb);
    if (refused !== undefined) return refused;
  }
  return undefined;
}

const malformedClause = (why: string) => new CelError(`could not parse formatting clause: ${why}`);

const unknownClause = (verb: string) => malformedClause(`unrecognized formatting clause "${verb}"`);

function precisionOf(digits: string | undefined, verb: string): number | undefined {
  if (digits === undefined) return undefined;
  const problem = 'error while parsing precision';
  if (verb === '') {
    throw malformedClause(`${problem}: could not find end of precision specifier`);
  }
  if (digits === '') {
    const why = problemText({ code: 'number', parser: 'Atoi', text: '', problem: 'syntax' });
    throw malformedClause(`${problem}: error while converting precision to integer: ${why}`);
  }
  if (Number(digits) > precisionMax) throw malformedClause('precision is too large');
  return Number(digits);
}

const claims: Readonly<Record<string, string>> = {
  s:
    'string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, ' +
    'durations, and timestamps',
  d: 'decimal clause can only be used on integers',
  f: 'fixed-point clause can only be used on doubles',
  e: 'scientific clause can only be used on doubles',
  b: 'only integers and bools can be formatted as binary',
  o: 'octal clause can only be used on integers',
  x: 'only integers, byte buffers, and strings can be formatted as hex',
  X: 'only integers, byte buffers, and strings can be formatted as hex',
};

function wrongArgument(verb: string, argumentType: string): string {
  return `error during formatting: ${claims[verb]}, was given ${argumentType}`;
}

function wrong(verb: string, value: Value): CelError {
  return new CelError(wrongArgument(verb, longTypeName(kindOf(value))));
}

/** The value of an integer; undefined for other types. */
function integer(value: Value): bigint | undefined {
  return value instanceof Uint ? value.value : typeof value === 'bigint' ? value : undefined;
}

function special(value: number): string | undefined {
  if (Number.isNaN(value)) return 'NaN';
  if (Number.isFinite(value)) return undefined;
  return value > 0 ? '∞' : '-∞';
}

/** The number in a double, or in a string that represents one. */
function double(verb: string, value: Value): number {
  if (typeof value === 'number') return value;
  if (value === 'NaN') return Number.NaN;
  if (value === 'Infinity') return Number.POSITIVE_INFINITY;
  if (value === '-Infinity') return Number.NEGATIVE_INFINITY;
  throw wrong(verb, value);
}

function wholeNumber(verb: string, value: Value): bigint {
  const amount = integer(value);
  if (amount === undefined) throw wrong(verb, value);
  return amount;
}

const clauses: Readonly<Record<string, Clause>> = {
  d: (value) => wholeNumber('d', value).toString(),
  f: (value, precision = 6) => {
    const amount = double('f', value);
    return special(amount) ?? grouped(fixed(amount, precision));
  },
  // cel-go treats what looks like a precision as a width.
  e: (value, width = 6) => {
    const amount = double('e', value);
    return (special(amount) ?? scientific(amount)).padStart(width);
  },
  b: (value) => {
    if (typeof value === 'boolean') return value ? '1' : '0';
    return wholeNumber('b', value).toString(2);
  },
  o: (value) => wholeNumber('o', value).toString(8),
  x: (value, _, pace) => hex(value, pace),
  X: (value, _, pace) => hex(value, pace).toUpperCase(),
};

function hex(value: Value, pace: FormatPace): string {
  if (typeof value === 'string' || value instanceof Uint8Array) pace.tally(value.length * 2);
  if (typeof value === 'string') return Buffer.from(value).toString('hex');
  if (value instanceof Uint8Array) return Buffer.from(value).toString('hex');
  return wholeNumber('x', value).toString(16);
}

/** Formats a number with a fixed number of decimals; halves are rounded to even, as in Go. */
function fixed(value: number, precision: number): string {
  if (Math.abs(value) >= 1e21) {
    const whole = BigInt(value).toString();
    return precision === 0 ? whole : `${whole}.${'0'.repeat(precision)}`;
  }
  const exact = value.toFixed(100);
  if (precision >= 100) return exact.padEnd(exact.length + precision - 100, '0');
  const end = exact.length - 100 + precision;
  const isHalf = /^50*$/.test(exact.slice(end));
  const cut = exact.slice(0, precision === 0 ? end - 1 : end);
  return isHalf && Number(cut.at(-1)) % 2 === 0 ? cut : value.toFixed(precision);
}

/** Separates thousands as the English locale does. */
function grouped(text: string): string {
  const [whole = '', fraction] = text.split('.');
  const shown = whole.replace(/\d(?=(?:\d{3})+$)/g, '$&,');
  return fraction === undefined ? shown : `${shown}.${fraction}`;
}

const raised = '⁰¹²³⁴⁵⁶⁷⁸⁹';

/**
 * Formats a number with a power of ten for the English locale, with narrow no-break spaces:
 * `3.140000 × 10⁰⁰`.
 */
function scientific(value: number): string {
  const [digits = '', exponent = '0'] = value.toExponential(6).split('e');
  const power = Math.abs(Number(exponent)).toString().padStart(2, '0');
  const sign = Number(exponent) < 0 ? '⁻' : '';
  return `${digits}\u202f×\u202f10${sign}${[...power].map((digit) => raised[Number(digit)]).join('')}`;
}

/** Assumed length of a value without a length of its own, characters. */
const scalarLength = 8;

const isCollection = (value: Value): value is List | MapValue =>
  value instanceof List || isMapValue(value);

/** The kinds of the keys of maps that `%s` shows. */
const keyKinds = new Set(['bool', 'int', 'string', 'uint']);

const typeNameOf = (value: Value) => longTypeName(kindOf(value));

const unformattable = (what: string) =>
  new CelError(`error during formatting: no formatting function for ${what}`);

/** A list or map as `%s` shows it, in steps. */
function* plain(value: List | MapValue, pace: FormatPace): Generator<void, string> {
  if (value instanceof List) {
    let text = '';
    for (const item of value.items) {
      if (pace.isStepOver()) yield;
      if (text !== '') text += ', ';
      text += isCollection(item) ? yield* plain(item, pace) : innerScalar(item, pace);
    }
    return `[${text}]`;
  }
  const entries: { readonly key: string; readonly shown: string }[] = [];
  for (const key of value.keys()) {
    if (pace.isStepOver()) yield;
    if (!keyKinds.has(kindOf(key))) throw unformattable(`map key of type ${typeNameOf(key)}`);
    const member = value.get(key) ?? null;
    const shown = isCollection(member) ? yield* plain(member, pace) : innerScalar(member, pace);
    entries.push({ key: innerScalar(key, pace), shown });
  }
  type Entry = (typeof entries)[number];
  const order = (left: Entry, right: Entry) => compare(left.key, right.key) ?? 0;
  const sorted = yield* sortSteps(entries, order, pace.isStepOver);
  return `{${sorted.map(({ key, shown }) => `${key}:${shown}`).join(', ')}}`;
}

function scalar(value: Value, { tally }: FormatPace): string {
  const isLong = typeof value === 'string' || value instanceof Uint8Array;
  tally(isLong ? value.length : scalarLength);
  if (typeof value === 'string') return value;
  if (value === null) return 'null';
  if (typeof value === 'number') return showDouble(value);
  if (typeof value === 'bigint' || typeof value === 'boolean') return String(value);
  if (value instanceof Uint) return String(value.value);
  if (value instanceof Uint8Array) return textOfBytes(value);
  if (value instanceof Timestamp) return showTimestamp(value);
  if (value instanceof Duration) return showDuration(value.nanos);
  if (value instanceof TypeValue) return value.name;
  throw wrong('s', value);
}

function textOfBytes(bytes: Uint8Array): string {
  if (isUtf8(bytes)) return Buffer.from(bytes).toString();
  const why = 'invalid UTF-8 in bytes, cannot convert to string';
  throw new CelError(`error during formatting: could not convert argument "${why}" to string`);
}

/** A value inside a list or map, where texts are quoted and doubles have six decimals. */
function innerScalar(value: Value, pace: FormatPace): string {
  if (typeof value === 'string') {
    pace.tally(value.length + scalarLength);
    return goQuoted(value);
  }
  if (typeof value === 'number') {
    pace.tally(scalarLength);
    return Number.isFinite(value) ? fixed(value, 6) : goQuoted(showDouble(value));
  }
  if (!shownKinds.has(kindOf(value))) throw unformattable(typeNameOf(value));
  const text = scalar(value, pace);
  if (value instanceof Uint8Array) return `b${goQuoted(text)}`;
  if (value instanceof Timestamp) return `timestamp(${goQuoted(text)})`;
  return value instanceof Duration ? `duration(${goQuoted(text)})` : text;
}

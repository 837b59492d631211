import {
  CelError,
  Duration,
  isMapValue,
  kindOf,
  List,
  longTypeName,
  Timestamp,
  TypeValue,
  Uint,
  type Value,
} from '../values.ts';
import { showDouble } from './conversions.ts';
import { showDuration, showTimestamp } from './time-text.ts';

type Clause = (value: Value, precision: number | undefined) => string;

const precisionMax = 1000;

/** `format`: `%s %d %f %e %b %o %x %X %%`, with a precision for `f` and `e`. */
export function formatText(format: string, args: readonly Value[]): string {
  let next = 0;
  const pattern = /%(%|(?:\.(\d*))?([\s\S]?))/g;
  const result = format.replace(
    pattern,
    (_, whole: string, digits: string | undefined, verb: string) => {
      if (whole === '%') return '%';
      if (!Object.hasOwn(clauses, verb)) throw unknownClause(verb);
      const clause = clauses[verb] as Clause;
      if (next >= args.length) throw new CelError(`index ${next} out of range`);
      const value = args[next] as Value;
      next += 1;
      return clause(value, precisionOf(digits));
    },
  );
  return result;
}

function unknownClause(verb: string): CelError {
  if (verb === '') return new CelError('unexpected end of string');
  return new CelError(
    `could not parse formatting clause: unrecognized formatting clause "${verb}"`,
  );
}

function precisionOf(digits: string | undefined): number | undefined {
  if (digits === undefined || digits === '') return undefined;
  const precision = Number(digits);
  if (precision > precisionMax) {
    throw new CelError('could not parse formatting clause: precision is too large');
  }
  return precision;
}

function wrong(what: string, value: Value): CelError {
  const given = longTypeName(kindOf(value));
  return new CelError(`error during formatting: ${what}, was given ${given}`);
}

/** The amount of an integer, if it is one. */
function integer(value: Value): bigint | undefined {
  return value instanceof Uint ? value.value : typeof value === 'bigint' ? value : undefined;
}

function special(value: number): string | undefined {
  if (Number.isNaN(value)) return 'NaN';
  if (Number.isFinite(value)) return undefined;
  return value > 0 ? '∞' : '-∞';
}

const clauses: Readonly<Record<string, Clause>> = {
  s: (value) => plain(value),
  d: (value) => {
    const amount = integer(value);
    if (amount === undefined) throw wrong('decimal clause can only be used on integers', value);
    return amount.toString();
  },
  f: (value, precision = 6) => {
    if (typeof value !== 'number') {
      throw wrong('fixed-point clause can only be used on doubles', value);
    }
    return special(value) ?? fixed(value, precision);
  },
  e: (value, precision = 6) => {
    if (typeof value !== 'number') {
      throw wrong('scientific clause can only be used on doubles', value);
    }
    return special(value) ?? scientific(value, precision);
  },
  b: (value) => {
    if (typeof value === 'boolean') return value ? '1' : '0';
    const amount = integer(value);
    if (amount === undefined) {
      throw wrong('only integers and bools can be formatted as binary', value);
    }
    return amount.toString(2);
  },
  o: (value) => {
    const amount = integer(value);
    if (amount === undefined) throw wrong('octal clause can only be used on integers', value);
    return amount.toString(8);
  },
  x: (value) => hex(value),
  X: (value) => hex(value).toUpperCase(),
};

function hex(value: Value): string {
  const amount = integer(value);
  if (amount !== undefined) return amount.toString(16);
  if (typeof value === 'string' || value instanceof Uint8Array) {
    return Buffer.from(value as string).toString('hex');
  }
  throw wrong('only integers, byte buffers, and strings can be formatted as hex', value);
}

function fixed(value: number, precision: number): string {
  if (precision > 100) return value.toFixed(100).padEnd(precision, '0');
  if (Math.abs(value) < 1e21) {
    const isHalf = precision === 0 && Math.abs(value % 1) === 0.5;
    return isHalf ? String(2 * Math.round(value / 2)) : value.toFixed(precision);
  }
  const whole = BigInt(value).toString();
  return precision === 0 ? whole : `${whole}.${'0'.repeat(precision)}`;
}

const raised = '⁰¹²³⁴⁵⁶⁷⁸⁹';

/** With a power of ten as a reader of English writes it: `3.140000×10⁰⁰`. */
function scientific(value: number, precision: number): string {
  const [digits = '', exponent = '0'] = value.toExponential(Math.min(precision, 100)).split('e');
  const power = Math.abs(Number(exponent)).toString().padStart(2, '0');
  const sign = Number(exponent) < 0 ? '⁻' : '';
  return `${digits}×10${sign}${[...power].map((digit) => raised[Number(digit)]).join('')}`;
}

function plain(value: Value): string {
  if (typeof value === 'string') return value;
  if (value === null) return 'null';
  if (typeof value === 'number') return special(value) ?? showDouble(value);
  if (typeof value === 'bigint' || typeof value === 'boolean') return String(value);
  if (value instanceof Uint) return String(value.value);
  if (value instanceof Uint8Array) return Buffer.from(value).toString();
  if (value instanceof Timestamp) return showTimestamp(value);
  if (value instanceof Duration) return showDuration(value.nanos);
  if (value instanceof TypeValue) return value.name;
  if (value instanceof List) return `[${value.items.map(inner).join(', ')}]`;
  if (isMapValue(value)) {
    const entries = value.keys().map((key) => `${inner(key)}:${inner(value.get(key) ?? null)}`);
    return `{${entries.sort().join(', ')}}`;
  }
  const what =
    'string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, ' +
    'types, durations, and timestamps';
  throw wrong(what, value);
}

/** Inside of a list or a map texts are quoted. */
function inner(value: Value): string {
  if (typeof value === 'string') return JSON.stringify(value);
  if (value instanceof Timestamp) return `timestamp(${JSON.stringify(showTimestamp(value))})`;
  if (value instanceof Duration) return `duration(${JSON.stringify(showDuration(value.nanos))})`;
  if (typeof value === 'number')
    return special(value) === undefined ? plain(value) : JSON.stringify(plain(value));
  return plain(value);
}

import { int64Max } from '../base/numbers.ts';
/** A quantity (`500m`, `1Gi`, `1e3`), parsed, rounded, and printed as in kube-apiserver. */
export interface Quantity {
  /** The amount in billionths, the finest unit, rounded away from zero. */
  readonly nano: bigint;
  /** The stored form: the text itself if it is canonical. */
  readonly text: string;
}

type Format = 'decimal' | 'binary' | 'exponent';

interface Parts {
  readonly isNegative: boolean;
  /** Digits before the point, without leading zeros; `0` if there are none. */
  readonly whole: string;
  readonly fraction: string;
  readonly format: Format;
  /** Exponent of ten, or of two in the binary format. */
  readonly exponent: number;
}

const form = /^([+-]?)0*(\d*)(?:\.(\d*))?([eEinumkKMGTP]*[-+]?\d*)$/;
const formText = '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$';
/** Matches a suffix alone. It denotes zero, but kube-apiserver rejects the most extreme ones. */
const noDigits = /^[+-]?\.?[a-zA-Z]/;
const numericError = 'unable to parse numeric part of quantity';
const suffixError = "unable to parse quantity's suffix";
/** Longer texts are rejected, because conversion is quadratic in the number of digits. */
const lengthMax = 256;
const exponentMax = 256;
const decimalSuffixes = new Map([
  ['n', -9],
  ['u', -6],
  ['m', -3],
  ['', 0],
  ['k', 3],
  ['M', 6],
  ['G', 9],
  ['T', 12],
  ['P', 15],
  ['E', 18],
]);
const binarySuffixes = ['Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'];
const billion = 1_000_000_000n;
/** Number of digits that always fits into 64 bits. */
const fastDigits = 18;

/** Parses a quantity. Returns kube-apiserver's error text for a malformed one. */
export function parseQuantity(input: string): Quantity | { readonly error: string } {
  const text = input.trim();
  if (text === '0') return { nano: 0n, text };
  if (text.length > lengthMax) return { error: numericError };
  const match = text === '' ? null : form.exec(text);
  if (match === null)
    return { error: `quantities must match the regular expression '${formText}'` };
  const suffix = suffixOf(match[4] ?? '');
  if (suffix === undefined) return { error: suffixError };
  const { format, exponent: power } = suffix;
  const isExtreme = format === 'binary' ? power >= 50 : power < -9;
  if (isExtreme && noDigits.test(text)) return { error: numericError };
  const parts: Parts = {
    isNegative: match[1] === '-',
    whole: match[2] === '' ? '0' : (match[2] ?? '0'),
    fraction: match[3] ?? '',
    ...suffix,
  };
  const nano = amountOf(parts);
  if (isCanonical(parts)) return { nano, text };
  const printed = print(nano, parts.format);
  // The stored text must be a quantity, too.
  if (printed.length > lengthMax) return { error: numericError };
  const [, exponent = '0'] = printed.split('e');
  return Number(exponent) > exponentMax ? { error: suffixError } : { nano, text: printed };
}

function suffixOf(suffix: string): Pick<Parts, 'format' | 'exponent'> | undefined {
  const decimal = decimalSuffixes.get(suffix);
  if (decimal !== undefined) return { format: 'decimal', exponent: decimal };
  const binary = binarySuffixes.indexOf(suffix);
  if (binary >= 0) return { format: 'binary', exponent: (binary + 1) * 10 };
  if (!/^[eE][+-]?\d+$/.test(suffix)) return undefined;
  const exponent = Number(suffix.slice(1));
  return Math.abs(exponent) <= exponentMax ? { format: 'exponent', exponent } : undefined;
}

function amountOf({ isNegative, whole, fraction, format, exponent }: Parts): bigint {
  const digits = BigInt(whole + fraction);
  const isBinary = format === 'binary';
  const scale = 9 - fraction.length + (isBinary ? 0 : exponent);
  const factored = isBinary ? digits << BigInt(exponent) : digits;
  const unit = 10n ** BigInt(Math.abs(scale));
  let nano = scale >= 0 ? factored * unit : (factored + unit - 1n) / unit;
  if (isBinary && nano > int64Max * billion) nano = int64Max * billion;
  return isNegative ? -nano : nano;
}

/** kube-apiserver keeps texts that its fast path considers canonical, including `1.500`. */
function isCanonical({ whole, fraction, format, exponent }: Parts): boolean {
  const shifted = whole + fraction;
  if (format === 'binary') {
    const digitsMax = Math.trunc(15 - exponent * 0.3 - 1);
    const fits = fraction === '' && whole.length <= digitsMax;
    return fits && BigInt(whole) << BigInt(exponent) <= int64Max && BigInt(whole) % 8n !== 0n;
  }
  const scale = exponent - fraction.length;
  if (shifted.length > fastDigits || scale < -9) return false;
  return scale % 3 === 0 && !shifted.endsWith('000') && !shifted.startsWith('0');
}

function print(nano: bigint, format: Format): string {
  if (nano === 0n) return '0';
  const magnitude = nano < 0n ? -nano : nano;
  const isSmall = magnitude < 1024n * billion;
  if (format === 'binary' && !isSmall && magnitude % billion === 0n) return printBinary(nano);
  let mantissa = nano;
  let exponent = -9;
  const limit = format === 'exponent' ? Number.POSITIVE_INFINITY : 18;
  while (mantissa % 1000n === 0n && exponent < limit) {
    mantissa /= 1000n;
    exponent += 3;
  }
  if (format === 'exponent') return exponent === 0 ? `${mantissa}` : `${mantissa}e${exponent}`;
  const suffix = [...decimalSuffixes].find(([, power]) => power === exponent)?.[0] ?? '';
  return `${mantissa}${suffix}`;
}

function printBinary(nano: bigint): string {
  let mantissa = nano / billion;
  let power = 0;
  while (mantissa % 1024n === 0n && power < binarySuffixes.length) {
    mantissa /= 1024n;
    power += 1;
  }
  return `${mantissa}${power === 0 ? '' : binarySuffixes[power - 1]}`;
}

const million = 1_000_000n;
/** Matches texts that may denote a fraction of a thousandth. */
const maybeFine = /[nu]$|\.\d|[eE]-/;

/** Rounds an amount to thousandths, away from zero, as kube-apiserver's defaulting does. */
export function roundToThousandths(text: string): string {
  if (!maybeFine.test(text)) return text;
  const quantity = parseQuantity(text);
  if ('error' in quantity || quantity.nano % million === 0n) return text;
  const up = quantity.nano < 0n ? -million : million;
  return print((quantity.nano / million) * million + up, formatOf(text));
}

/**
 * Returns the thousandths of an amount, rounded away from zero, as Go's `MilliValue` does: more than
 * an int64 holds are 0 for a large decimal suffix, and wrap around otherwise.
 */
export function milliValue({ nano, text }: Quantity): bigint {
  const rest = nano % million;
  const milli = nano / million + (rest === 0n ? 0n : rest > 0n ? 1n : -1n);
  const wrapped = BigInt.asIntN(64, milli);
  return wrapped !== milli && /[GTPE]$|e(?:9|\d{2,})$/.test(text) ? 0n : wrapped;
}

/** Sums amounts and prints the result in the format of the first nonzero one. */
export function sumQuantities(amounts: readonly Quantity[]): Quantity {
  const nano = amounts.reduce((sum, amount) => sum + amount.nano, 0n);
  const { text = '0' } = amounts.find((amount) => amount.nano !== 0n) ?? {};
  return { nano, text: print(nano, formatOf(text)) };
}

function formatOf(text: string): Format {
  const suffix = /[a-zA-Z].*$/.exec(text)?.[0] ?? '';
  return suffixOf(suffix)?.format ?? 'decimal';
}

import {
  asPrefix,
  dns1035Label,
  dnsLabel,
  dnsSubdomain,
  labelValue,
  type NameRule,
  parseGoRequestUrl,
  parseQuantity,
  qualifiedName,
  sumQuantities,
} from '@wheelhouse/machinery';
import { formatCheck } from '@wheelhouse/schema';
import type { CallContext, Library } from '../types/functions.ts';
import { CelError, List, Opaque, Optional, type Value } from '../values.ts';
import { asInt, asText, misfit } from './arguments.ts';
import { int64, parsing, patternCost, sizeCost, textSize } from './arithmetic.ts';

const quantityType = 'kubernetes.Quantity';
const billion = 1_000_000_000n;

/** A quantity, and the int64 and power of ten that represent it in Go, if any do. */
interface Amount {
  readonly nano: bigint;
  readonly scaled: Scaled | undefined;
  /** The power of ten of the decimal that represents it otherwise. */
  readonly exponent: number;
  /** The amount as a text. */
  readonly text: () => string;
}

/** Go rounds what it parses as decimals to nanos. */
const parsedExponent = -9;

interface Scaled {
  readonly value: bigint;
  readonly scale: number;
}

class Quantity extends Opaque<Amount> {}

function quantity(amount: Amount, { isPointer = false } = {}): Quantity {
  const key = String(amount.nano);
  const native = () => `(*resource.Quantity)${amount.text()}`;
  return new Quantity({ type: quantityType, value: amount, key, native, isPointer });
}

/** Parses a quantity, which may have blanks around it only in JSON. */
const quantityIn = (text: string) => parseQuantity(text === text.trim() ? text : '');

function parsedQuantity(text: string): Quantity {
  const parsed = quantityIn(text);
  if ('error' in parsed) throw new CelError(parsed.error);
  const { nano, text: stored } = parsed;
  return quantity({
    nano,
    scaled: scaledOf(text),
    exponent: parsedExponent,
    text: () => stored,
  });
}

const decimalSuffixes = 'n u m  k M G T P E'.split(' ');
const binarySuffixes = 'Ki Mi Gi Ti Pi Ei'.split(' ');

/** The representation that Go chooses for a valid quantity by its length; undefined for decimals. */
function scaledOf(text: string): Scaled | undefined {
  const [, sign, whole = '', fraction = '', suffix = ''] =
    /^([+-]?)0*(\d*)(?:\.(\d*))?(.*)$/.exec(text) ?? [];
  const digits = `${whole === '' ? '0' : whole}${fraction}`;
  const value = BigInt(sign === '-' ? `-${digits}` : digits);
  const bits = 10 * (binarySuffixes.indexOf(suffix) + 1);
  if (bits > 0) {
    const digitsLeft = 14 - digits.length - Math.trunc((bits * 3) / 10);
    return fraction === '' && digitsLeft >= 0 ? int64Scaled(value << BigInt(bits), 0) : undefined;
  }
  const exponent = /^[eE]\d|^[eE][+-]/.test(suffix)
    ? Number(suffix.slice(1))
    : 3 * (decimalSuffixes.indexOf(suffix) - 3);
  const scale = exponent - fraction.length;
  return digits.length <= 18 && scale >= -9 ? int64Scaled(value, scale) : undefined;
}

const isInt64 = (value: bigint) => BigInt.asIntN(64, value) === value;

const int64Scaled = (value: bigint, scale: number): Scaled | undefined =>
  isInt64(value) ? { value, scale } : undefined;

/** The number at a smaller scale, as far as int64 suffices. */
function rescaled({ value, scale }: Scaled, to: number): bigint | undefined {
  if (value === 0n) return value;
  if (scale - to > 18) return undefined;
  const scaledValue = value * 10n ** BigInt(scale - to);
  return isInt64(scaledValue) ? scaledValue : undefined;
}

function scaledSum(left: Scaled | undefined, right: Scaled | undefined): Scaled | undefined {
  if (left === undefined || right === undefined) return undefined;
  if (right.value === 0n) return left;
  if (left.value === 0n) return right;
  const scale = Math.min(left.scale, right.scale);
  const [one, other] = [rescaled(left, scale), rescaled(right, scale)];
  return one === undefined || other === undefined ? undefined : int64Scaled(one + other, scale);
}

function amountOf(value: Value | undefined): Amount {
  if (value instanceof Quantity) return value.value;
  const whole = asInt(value);
  const scaled = { value: whole, scale: 0 };
  return { nano: whole * billion, scaled, exponent: 0, text: () => String(whole) };
}

const exponentOf = ({ scaled, exponent }: Amount) => scaled?.scale ?? exponent;

const nano = (value: Value | undefined) => amountOf(value).nano;

const sum = ([left, right]: readonly Value[], sign: 1n | -1n): Quantity => {
  const [one, other] = [amountOf(left), amountOf(right)];
  const added = other.scaled && { ...other.scaled, value: sign * other.scaled.value };
  const addedNano = sign * other.nano;
  const texts = () => [
    { nano: one.nano, text: one.text() },
    { nano: addedNano, text: other.text() },
  ];
  const amount = {
    nano: one.nano + addedNano,
    scaled: scaledSum(one.scaled, added),
    exponent: Math.max(parsedExponent, Math.min(exponentOf(one), exponentOf(other))),
    text: () => sumQuantities(texts()).text,
  };
  return quantity(amount, { isPointer: true });
};

/** The integer that a quantity is; undefined for others, and for those that Go keeps as decimals. */
function integerOf(value: Value | undefined): bigint | undefined {
  const { scaled } = amountOf(value);
  return scaled === undefined || scaled.scale < 0 ? undefined : rescaled(scaled, 0);
}

function asInteger([value]: readonly Value[]): bigint {
  const whole = integerOf(value);
  if (whole === undefined) throw new CelError('cannot convert value to integer');
  return int64(whole);
}

function approximateFloat([value]: readonly Value[]): number {
  const amount = amountOf(value);
  const exponent = exponentOf(amount);
  const unscaled = amount.scaled?.value ?? amount.nano / 10n ** BigInt(9 + exponent);
  return exponent === 0 ? Number(unscaled) : Number(unscaled) * Number(`1e${exponent}`);
}

const signOf = (amount: bigint) => (amount < 0n ? -1n : amount > 0n ? 1n : 0n);

/** The Kubernetes library for quantities such as `500m` and `1Gi`. */
export const quantities: Library = [
  [`quantity(string): ${quantityType}`, parsing(parsedQuantity)],
  ['isQuantity(string): bool', parsing((text) => !('error' in quantityIn(text)))],
  // kube-apiserver documents the method but declares the function.
  [`${quantityType}.sign(): int`, ([value]) => signOf(nano(value))],
  [`sign(${quantityType}): int`, ([value]) => signOf(nano(value))],
  [
    `${quantityType}.isGreaterThan(${quantityType}): bool`,
    ([left, right]) => nano(left) > nano(right),
  ],
  [
    `${quantityType}.isLessThan(${quantityType}): bool`,
    ([left, right]) => nano(left) < nano(right),
  ],
  [
    `${quantityType}.compareTo(${quantityType}): int`,
    ([left, right]) => signOf(nano(left) - nano(right)),
  ],
  [`${quantityType}.asInteger(): int`, asInteger],
  [`${quantityType}.isInteger(): bool`, ([value]) => integerOf(value) !== undefined],
  [`${quantityType}.asApproximateFloat(): double`, approximateFloat],
  ...[quantityType, 'int'].flatMap(
    (operand) =>
      [
        [
          `${quantityType}.add(${operand}): ${quantityType}`,
          (operands: readonly Value[]) => sum(operands, 1n),
        ],
        [
          `${quantityType}.sub(${operand}): ${quantityType}`,
          (operands: readonly Value[]) => sum(operands, -1n),
        ],
      ] as const,
  ),
];

const formatType = 'kubernetes.NamedFormat';
const noErrors = new Optional();

/** A format of OpenAPI schemas. */
const must =
  (format: string, message: string): NameRule =>
  (value) =>
    formatCheck(format)?.(value) === true ? [] : [message];

/** Go's error for a text that is no absolute URI or path. */
function uriErrors(text: string): readonly string[] {
  const url = parseGoRequestUrl(text);
  return typeof url === 'string' ? [url] : [];
}

interface Format {
  readonly rule: NameRule;
  /** The length of the pattern that kube-apiserver assumes for the cost. */
  readonly patternLength: number;
}

const form = (patternLength: number, rule: NameRule): Format => ({ rule, patternLength });

const formats: Readonly<Record<string, Format>> = {
  dns1123Label: form(30, dnsLabel),
  dns1123Subdomain: form(60, dnsSubdomain),
  dns1035Label: form(30, dns1035Label),
  dns1123LabelPrefix: form(30, asPrefix(dnsLabel)),
  dns1123SubdomainPrefix: form(60, asPrefix(dnsSubdomain)),
  dns1035LabelPrefix: form(30, asPrefix(dns1035Label)),
  qualifiedName: form(60, qualifiedName),
  labelValue: form(40, labelValue),
  uri: form(1103, uriErrors),
  uuid: form(70, must('uuid', 'does not match the UUID format')),
  byte: form(84, must('byte', 'invalid base64')),
  date: form(71, must('date', 'invalid date')),
  datetime: form(71, must('datetime', 'invalid datetime')),
};

class NamedFormat extends Opaque<Format> {}

const formatValues = new Map<string, NamedFormat>(
  Object.entries(formats).map(([name, value]) => [
    name,
    new NamedFormat({ type: formatType, value, key: name }),
  ]),
);

function formatOf(format: Value | undefined): Format {
  if (!(format instanceof NamedFormat)) throw misfit(format, formatType);
  return format.value;
}

function validate([format, text]: readonly Value[], { spend }: CallContext): Value {
  const { rule, patternLength } = formatOf(format);
  spend(sizeCost(1 + textSize(asText(text))) * patternCost(patternLength) - 1);
  const messages = rule(asText(text));
  return messages.length === 0 ? noErrors : new Optional(new List(messages));
}

/** The library for named formats of strings. */
export const namedFormats: Library = [
  ...[...formatValues].map(
    ([name, value]) => [`format.${name}(): ${formatType}`, () => value] as const,
  ),
  [
    `format.named(string): optional_type(${formatType})`,
    ([name]) => new Optional(formatValues.get(asText(name))),
  ],
  [`${formatType}.validate(string): optional_type(list(string))`, validate],
];

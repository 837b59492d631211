import { compareText, goFloat, goPlain, isObject, type JsonValue } from '@wheelhouse/machinery';

/** Go's limit for widths and precisions. */
const widthMax = 1_000_000;

interface Verb {
  readonly flags: string;
  readonly width: number | undefined;
  readonly precision: number | undefined;
  readonly letter: string;
}

/**
 * Formats template values like Go's `fmt.Sprintf`.
 * @param check is called with the length of the output after each part; may throw
 */
export function sprintf(
  format: string,
  args: readonly GoValue[],
  check: (length: number) => void,
): string {
  let out = '';
  let next = 0;
  let reordered = false;
  const add = (text: string) => {
    out += text;
    check(out.length);
  };
  for (let at = 0; at < format.length; ) {
    const percent = format.indexOf('%', at);
    add(format.slice(at, percent < 0 ? format.length : percent));
    if (percent < 0) break;
    const spec = /^%([-+# 0]*)(\*|\d{0,7})(?:\.(\*|\d{0,7}))?(?:\[(\d{1,4})\])?/.exec(
      format.slice(percent, percent + 64),
    );
    const [whole = '%', flags = '', width = '', precision, index] = spec ?? [];
    if (index !== undefined) {
      next = Number(index) - 1;
      reordered = true;
    }
    const readStar = (text: string | undefined) => {
      if (text !== '*') return text === undefined ? undefined : Number(text);
      const argument = args[next++];
      if (argument !== undefined && isInteger(argument)) return Number(argument.value);
      add('%!(BADWIDTH)');
      return undefined;
    };
    const resolvedWidth = width === '' ? undefined : readStar(width);
    const exact = precision === '' ? 0 : readStar(precision);
    const letter = String.fromCodePoint(format.codePointAt(percent + whole.length) ?? 0);
    at = percent + whole.length + letter.length;
    if (percent + whole.length >= format.length) {
      add('%!(NOVERB)');
      break;
    }
    if (letter === '%') {
      add('%');
      continue;
    }
    const arg = args[next];
    const tooWide = Math.abs(resolvedWidth ?? 0) > widthMax || Math.abs(exact ?? 0) > widthMax;
    if (arg === undefined) add(`%!${letter}(${index === undefined ? 'MISSING' : 'BADINDEX'})`);
    else if (tooWide) add('%!(BADWIDTH)');
    else add(formatValue(arg, { flags, width: resolvedWidth, precision: exact, letter }));
    next += 1;
  }
  const extra = reordered ? [] : args.slice(next);
  if (extra.length > 0) {
    const extraTexts = extra.map((arg) =>
      arg.kind === 'none' || arg.kind === 'nil' ? '<nil>' : `${typeName(arg)}=${formatPlain(arg)}`,
    );
    add(`%!(EXTRA ${extraTexts.join(', ')})`);
  }
  return out;
}

function formatValue(arg: GoValue, verb: Verb): string {
  const { letter } = verb;
  if (letter === 'T') return pad(isNothing(arg) ? '<nil>' : typeName(arg), verb);
  if (isNothing(arg)) return letter === 'v' ? pad('<nil>', verb) : `%!${letter}(<nil>)`;
  return text(arg, verb) ?? `%!${letter}(${typeName(arg)}=${formatPlain(arg)})`;
}

const isNothing = ({ kind }: GoValue): boolean => kind === 'none' || kind === 'nil';

/** Formats a value by its verb. Returns undefined if the verb does not apply to it. */
function text(arg: GoValue, verb: Verb): string | undefined {
  const { value, kind } = arg;
  if (kind === 'list' || kind === 'map') return formatComposite(value, verb);
  if (typeof value === 'string') return formatText(value, verb);
  if (typeof value === 'boolean') {
    return verb.letter === 't' || verb.letter === 'v' ? pad(String(value), verb) : undefined;
  }
  if (kind === 'float64') return formatFloat(Number(value), verb);
  return formatInteger(value as number | bigint, verb);
}

function formatText(value: string, verb: Verb): string | undefined {
  const cut = verb.precision === undefined ? value : [...value].slice(0, verb.precision).join('');
  switch (verb.letter) {
    case 'v':
      return pad(verb.flags.includes('#') ? JSON.stringify(cut) : cut, verb);
    case 's':
      return pad(cut, verb);
    case 'q':
      return pad(JSON.stringify(cut), verb);
    case 'x':
      return pad(Buffer.from(cut).toString('hex'), verb);
    case 'X':
      return pad(Buffer.from(cut).toString('hex').toUpperCase(), verb);
    default:
      return undefined;
  }
}

const bases: Readonly<Record<string, number>> = { d: 10, v: 10, x: 16, X: 16, o: 8, O: 8, b: 2 };

function formatInteger(value: number | bigint, verb: Verb): string | undefined {
  const { letter, flags } = verb;
  const point = Number(value);
  const isPoint = point >= 0 && point <= 0x10ffff;
  if (letter === 'c') return pad(String.fromCodePoint(isPoint ? point : 0xfffd), verb);
  if (letter === 'q') {
    const character = String.fromCodePoint(isPoint ? point : 0xfffd);
    return pad(`'${character === "'" || character === '\\' ? `\\${character}` : character}'`, verb);
  }
  if (letter === 'U') return pad(`U+${value.toString(16).toUpperCase().padStart(4, '0')}`, verb);
  const base = Object.hasOwn(bases, letter) ? bases[letter] : undefined;
  if (base === undefined) return undefined;
  const isNegative = value < 0;
  const digits = (isNegative ? -value : value).toString(base).padStart(verb.precision ?? 0, '0');
  const casedDigits = letter === 'X' ? digits.toUpperCase() : digits;
  const prefix = flags.includes('#') ? ({ x: '0x', X: '0X', o: '0', b: '0b' }[letter] ?? '') : '';
  return addSign(`${letter === 'O' ? '0o' : prefix}${casedDigits}`, { isNegative, verb });
}

function formatFloat(value: number, verb: Verb): string | undefined {
  const isNegative = value < 0 || Object.is(value, -0);
  const size = Math.abs(value);
  const digits = verb.precision ?? 6;
  const shown = ((): string | undefined => {
    if (!Number.isFinite(value)) return goFloat(size);
    switch (verb.letter) {
      case 'v':
        return goFloat(size);
      case 'f':
      case 'F':
        return size.toFixed(Math.min(digits, 100));
      case 'e':
      case 'E': {
        const [mantissa = '', power = '0'] = size.toExponential(Math.min(digits, 100)).split('e');
        return `${mantissa}${verb.letter}${goExponent(Number(power))}`;
      }
      case 'g':
      case 'G':
        return verb.precision === undefined
          ? formatGeneralFloat(size)
          : formatGeneralFloat(Number(size.toPrecision(Math.max(1, Math.min(digits, 100)))));
      default:
        return undefined;
    }
  })();
  return shown === undefined ? undefined : addSign(shown, { isNegative, verb });
}

/** Formats a number like `%g`, which switches to exponents at larger numbers than `%v`. */
function formatGeneralFloat(size: number): string {
  const [mantissa = '', power = '0'] = size.toExponential().split('e');
  const exponent = Number(power);
  if (size === 0 || (exponent >= -4 && exponent < 21)) return String(size);
  return `${mantissa}e${goExponent(exponent)}`;
}

function addSign(
  digits: string,
  { isNegative, verb }: { readonly isNegative: boolean; readonly verb: Verb },
): string {
  const { flags } = verb;
  const blank = flags.includes(' ') ? ' ' : '';
  const sign = isNegative ? '-' : flags.includes('+') ? '+' : blank;
  const fills = flags.includes('0') && !flags.includes('-') && verb.width !== undefined;
  if (!fills) return pad(sign + digits, verb);
  return sign + digits.padStart(Math.abs(verb.width) - sign.length, '0');
}

/** Formats a list or map by applying the verb to each part. */
function formatComposite(value: JsonValue, verb: Verb): string | undefined {
  if (verb.letter === 'v' && verb.width === undefined) {
    return formatPlain({ kind: 'map', value, boxed: false });
  }
  if (!['v', 's', 'd', 'q', 'x', 't', 'f'].includes(verb.letter)) return undefined;
  const part = (item: JsonValue): string => {
    if (Array.isArray(item)) return `[${item.map(part).join(' ')}]`;
    if (isObject(item)) {
      const members = sortedNames(item).map((name) => `${part(name)}:${part(item[name] ?? null)}`);
      return `map[${members.join(' ')}]`;
    }
    return formatValue(box(item), verb);
  };
  return part(value);
}

function pad(text: string, { width, flags }: Verb): string {
  if (width === undefined) return text;
  const missing = Math.abs(width) - [...text].length;
  if (missing <= 0) return text;
  const isLeftAligned = flags.includes('-') || width < 0;
  const fill = (flags.includes('0') && !isLeftAligned ? '0' : ' ').repeat(missing);
  return isLeftAligned ? text + fill : fill + text;
}

/**
 * A value in Go's type system. `none` is the result of a missing key, and `nil` is null. `boxed`
 * values come from a map or list and have the static type `interface {}`.
 */
export interface GoValue {
  readonly kind: 'none' | 'nil' | 'bool' | 'int' | 'int64' | 'float64' | 'string' | 'list' | 'map';
  readonly value: JsonValue;
  readonly boxed: boolean;
}

/** The result of a missing key. */
export const none: GoValue = { kind: 'none', value: null, boxed: false };

/** Wraps a member of a map or list. */
export function box(value: JsonValue): GoValue {
  return { kind: kindOf(value), value, boxed: true };
}

/** Unwraps a value to its own type; null becomes `none`. */
export function unbox(value: GoValue): GoValue {
  if (value.kind === 'nil') return none;
  return value.boxed ? { ...value, boxed: false } : value;
}

/** Creates a Go string. */
export const goText = (value: string): GoValue => ({ kind: 'string', value, boxed: false });
/** Creates a Go int. */
export const goInt = (value: number): GoValue => ({ kind: 'int', value, boxed: false });
/** Creates a Go bool. */
export const goBool = (value: boolean): GoValue => ({ kind: 'bool', value, boxed: false });

function kindOf(value: JsonValue): GoValue['kind'] {
  if (value === null) return 'nil';
  if (typeof value === 'string') return 'string';
  if (typeof value === 'boolean') return 'bool';
  if (typeof value === 'bigint') return 'int64';
  if (typeof value === 'number') return Number.isInteger(value) ? 'int64' : 'float64';
  return Array.isArray(value) ? 'list' : 'map';
}

const typeNames: Readonly<Record<GoValue['kind'], string>> = {
  none: '<nil>',
  nil: 'interface {}',
  bool: 'bool',
  int: 'int',
  int64: 'int64',
  float64: 'float64',
  string: 'string',
  list: '[]interface {}',
  map: 'map[string]interface {}',
};

/** Go's name of a value's dynamic type. */
export const typeName = (value: GoValue): string => typeNames[value.kind];

/** Go's name of a value's static type. */
export const staticType = (value: GoValue): string =>
  value.boxed ? 'interface {}' : typeNames[value.kind];

/** Whether a value has an integer type. */
export const isInteger = ({ kind }: GoValue): boolean => kind === 'int' || kind === 'int64';

/** Whether a value is true for `if`. */
export function isTrue({ kind, value }: GoValue): boolean {
  if (kind === 'none' || kind === 'nil') return false;
  if (Array.isArray(value)) return value.length > 0;
  if (isObject(value)) return Object.keys(value).length > 0;
  return typeof value === 'bigint' ? value !== 0n : Boolean(value);
}

/** The names of a map's members in Go's order; empty for other values. */
export function sortedNames(map: JsonValue): string[] {
  if (!isObject(map)) return [];
  return Object.keys(map)
    .filter((name) => map[name] !== undefined)
    .sort(compareText);
}

/** Formats a JSON value like Go's `%v`, whatever its length. */
export const formatJson = (value: JsonValue): string =>
  goPlain(value, { max: Number.POSITIVE_INFINITY });

/** Formats a value like Go's `%v`. */
export function formatPlain({ kind, value }: GoValue): string {
  if (kind === 'none' || kind === 'nil') return '<nil>';
  return kind === 'float64' ? goFloat(Number(value)) : formatJson(value);
}

/** An exponent with a sign and at least two digits. */
function goExponent(exponent: number): string {
  const digits = String(Math.abs(exponent)).padStart(2, '0');
  return `${exponent < 0 ? '-' : '+'}${digits}`;
}

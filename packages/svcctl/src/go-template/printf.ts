import { isObject, type JsonValue } from '@wheelhouse/machinery';
import {
  boxedValue,
  type GoValue,
  goExponent,
  isInteger,
  plainFloat,
  plainValue,
  sortedNames,
  typeName,
} from './values.ts';

/** Go's own limit on widths and precisions. */
const widthMax = 1_000_000;

interface Verb {
  readonly flags: string;
  readonly width: number | undefined;
  readonly precision: number | undefined;
  readonly letter: string;
}

/** Go's `fmt.Sprintf` for the values that templates hold; `check` is told how long the text gets. */
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
    const star = (text: string | undefined) => {
      if (text !== '*') return text === undefined ? undefined : Number(text);
      const argument = args[next++];
      if (argument !== undefined && isInteger(argument)) return Number(argument.value);
      add('%!(BADWIDTH)');
      return undefined;
    };
    const wide = width === '' ? undefined : star(width);
    const exact = precision === '' ? 0 : star(precision);
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
    const tooWide = Math.abs(wide ?? 0) > widthMax || Math.abs(exact ?? 0) > widthMax;
    if (arg === undefined) add(`%!${letter}(${index === undefined ? 'MISSING' : 'BADINDEX'})`);
    else if (tooWide) add('%!(BADWIDTH)');
    else add(formatted(arg, { flags, width: wide, precision: exact, letter }));
    next += 1;
  }
  const extra = reordered ? [] : args.slice(next);
  if (extra.length > 0) {
    const extraTexts = extra.map((arg) =>
      arg.kind === 'none' || arg.kind === 'nil' ? '<nil>' : `${typeName(arg)}=${plainValue(arg)}`,
    );
    add(`%!(EXTRA ${extraTexts.join(', ')})`);
  }
  return out;
}

function formatted(arg: GoValue, verb: Verb): string {
  const { letter } = verb;
  if (letter === 'T') return padded(isNothing(arg) ? '<nil>' : typeName(arg), verb);
  if (isNothing(arg)) return letter === 'v' ? padded('<nil>', verb) : `%!${letter}(<nil>)`;
  return text(arg, verb) ?? `%!${letter}(${typeName(arg)}=${plainValue(arg)})`;
}

const isNothing = ({ kind }: GoValue): boolean => kind === 'none' || kind === 'nil';

/** The value by its verb; undefined when the verb is not for it. */
function text(arg: GoValue, verb: Verb): string | undefined {
  const { value, kind } = arg;
  if (kind === 'list' || kind === 'map') return composite(value, verb);
  if (typeof value === 'string') return ofText(value, verb);
  if (typeof value === 'boolean') {
    return verb.letter === 't' || verb.letter === 'v' ? padded(String(value), verb) : undefined;
  }
  if (kind === 'float64') return ofFloat(Number(value), verb);
  return ofInteger(value as number | bigint, verb);
}

function ofText(value: string, verb: Verb): string | undefined {
  const cut = verb.precision === undefined ? value : [...value].slice(0, verb.precision).join('');
  switch (verb.letter) {
    case 'v':
      return padded(verb.flags.includes('#') ? JSON.stringify(cut) : cut, verb);
    case 's':
      return padded(cut, verb);
    case 'q':
      return padded(JSON.stringify(cut), verb);
    case 'x':
      return padded(Buffer.from(cut).toString('hex'), verb);
    case 'X':
      return padded(Buffer.from(cut).toString('hex').toUpperCase(), verb);
    default:
      return undefined;
  }
}

const bases: Readonly<Record<string, number>> = { d: 10, v: 10, x: 16, X: 16, o: 8, O: 8, b: 2 };

function ofInteger(value: number | bigint, verb: Verb): string | undefined {
  const { letter, flags } = verb;
  const point = Number(value);
  const isPoint = point >= 0 && point <= 0x10ffff;
  if (letter === 'c') return padded(String.fromCodePoint(isPoint ? point : 0xfffd), verb);
  if (letter === 'q') {
    const character = String.fromCodePoint(isPoint ? point : 0xfffd);
    return padded(
      `'${character === "'" || character === '\\' ? `\\${character}` : character}'`,
      verb,
    );
  }
  if (letter === 'U') {
    return padded(`U+${value.toString(16).toUpperCase().padStart(4, '0')}`, verb);
  }
  const base = Object.hasOwn(bases, letter) ? bases[letter] : undefined;
  if (base === undefined) return undefined;
  const isNegative = value < 0;
  const digits = (isNegative ? -value : value).toString(base).padStart(verb.precision ?? 0, '0');
  const shown = letter === 'X' ? digits.toUpperCase() : digits;
  const prefix = flags.includes('#') ? ({ x: '0x', X: '0X', o: '0', b: '0b' }[letter] ?? '') : '';
  return signed(`${letter === 'O' ? '0o' : prefix}${shown}`, { isNegative, verb });
}

function ofFloat(value: number, verb: Verb): string | undefined {
  const isNegative = value < 0 || Object.is(value, -0);
  const size = Math.abs(value);
  const digits = verb.precision ?? 6;
  const shown = ((): string | undefined => {
    if (!Number.isFinite(value)) return plainFloat(size);
    switch (verb.letter) {
      case 'v':
        return plainFloat(size);
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
          ? longFloat(size)
          : longFloat(Number(size.toPrecision(Math.max(1, Math.min(digits, 100)))));
      default:
        return undefined;
    }
  })();
  return shown === undefined ? undefined : signed(shown, { isNegative, verb });
}

/** `%g`, which turns to an exponent later than `%v`. */
function longFloat(size: number): string {
  const [mantissa = '', power = '0'] = size.toExponential().split('e');
  const exponent = Number(power);
  if (size === 0 || (exponent >= -4 && exponent < 21)) return String(size);
  return `${mantissa}e${goExponent(exponent)}`;
}

function signed(
  digits: string,
  { isNegative, verb }: { readonly isNegative: boolean; readonly verb: Verb },
): string {
  const { flags } = verb;
  const blank = flags.includes(' ') ? ' ' : '';
  const sign = isNegative ? '-' : flags.includes('+') ? '+' : blank;
  const fills = flags.includes('0') && !flags.includes('-') && verb.width !== undefined;
  if (!fills) return padded(sign + digits, verb);
  return sign + digits.padStart(Math.abs(verb.width ?? 0) - sign.length, '0');
}

/** A list or map, each part of it by the verb. */
function composite(value: JsonValue, verb: Verb): string | undefined {
  if (verb.letter === 'v' && verb.width === undefined) {
    return plainValue({ kind: 'map', value, boxed: false });
  }
  if (!['v', 's', 'd', 'q', 'x', 't', 'f'].includes(verb.letter)) return undefined;
  const part = (item: JsonValue): string => {
    if (Array.isArray(item)) return `[${item.map(part).join(' ')}]`;
    if (isObject(item)) {
      const members = sortedNames(item).map((name) => `${part(name)}:${part(item[name] ?? null)}`);
      return `map[${members.join(' ')}]`;
    }
    return formatted(boxedValue(item), verb);
  };
  return part(value);
}

function padded(text: string, { width, flags }: Verb): string {
  if (width === undefined) return text;
  const missing = Math.abs(width) - [...text].length;
  if (missing <= 0) return text;
  const left = flags.includes('-') || width < 0;
  const fill = (flags.includes('0') && !left ? '0' : ' ').repeat(missing);
  return left ? text + fill : fill + text;
}

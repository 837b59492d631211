import {
  FlagError,
  goSyntax,
  type JsonValue,
  type Problem,
  problemText,
  showHead,
  showValue,
} from '@wheelhouse/machinery';
import { resolved, type Schema } from './schema.ts';

/** Returns the name of the Go type of a schema: `int32`, `map[string]string`, `v1.PodSpec`. */
export function goType(schema: Schema): string {
  const at = resolved(schema);
  if (at.goName !== undefined) return at.goName;
  if (at.typeName !== undefined) return shortTypeName(at.typeName);
  if (at.type === 'array') return `[]${at.items === undefined ? 'interface {}' : goType(at.items)}`;
  if (at.type === 'object') {
    const element = at.additionalProperties;
    return `map[string]${element === undefined ? 'interface {}' : goType(element)}`;
  }
  if (at.type === 'integer') return at.format ?? 'int64';
  if (at.type === 'number') return 'float64';
  if (at.type === 'boolean') return 'bool';
  return at.format === 'byte' ? '[]uint8' : 'string';
}

/** Returns Go's reflect.Kind of a decoded JSON value. */
function goKind(value: JsonValue): string {
  if (Array.isArray(value)) return 'slice';
  if (typeof value === 'boolean') return 'bool';
  if (typeof value === 'string') return 'string';
  if (typeof value === 'object') return 'map';
  return Number.isInteger(Number(value)) ? 'int64' : 'float64';
}

/** Returns the error of kube-apiserver's map converter for a value of the wrong type. */
export function cannotConvert(value: JsonValue, schema: Schema): string {
  const at = resolved(schema);
  const kind = goKind(value);
  if (at.type === 'array' || at.format === 'byte') return `cannot restore slice from ${kind}`;
  if (at.properties !== undefined) return `cannot restore struct from: ${kind}`;
  if (at.type === 'object') return `cannot restore map from ${kind}`;
  const isNumber = at.type === 'integer' || at.type === 'number';
  // Go converts any number to another type, and an integer to a string.
  const converts = isNumber ? typeof value === 'number' : kind === 'int64' && at.type === 'string';
  if (converts) return `cannot convert ${kind} to ${goType(at)}`;
  const { typeName: _, goName: __, ...bare } = at;
  return `unrecognized type: ${goType(bare)}`;
}

/** Returns the package and name of a type as Go prints them: `v1.Pod` for `core.v1.Pod`. */
export function shortTypeName(typeName: string): string {
  return typeName.split('.').slice(-2).join('.');
}

/** Returns the name of a type without its package: `Pod` for `core.v1.Pod`. */
export function bareTypeName(typeName: string): string {
  return typeName.slice(typeName.lastIndexOf('.') + 1);
}

/** Prints a value in an error; lists and objects are in Go syntax. */
export function goBadValue(value: JsonValue | undefined): string {
  if (value === null || value === undefined) return '"null"';
  return typeof value === 'object' ? showHead(value, goSyntax) : showValue(value);
}

/** The units of Go's durations in nanoseconds; both signs for micro are accepted. */
const units: ReadonlyMap<string, bigint> = new Map([
  ['ns', 1n],
  ['us', 1_000n],
  ['µs', 1_000n],
  ['μs', 1_000n],
  ['ms', 1_000_000n],
  ['s', 1_000_000_000n],
  ['m', 60_000_000_000n],
  ['h', 3_600_000_000_000n],
]);
/** One more than the longest duration, in nanoseconds. */
const durationLimit = 2n ** 63n;

/** Parses a duration such as `1h30m` to nanoseconds; undefined if Go rejects it. */
export function parseGoDuration(text: string): bigint | undefined {
  const sign = /^[+-]/.exec(text)?.[0] ?? '';
  let rest = text.slice(sign.length);
  if (rest === '0') return 0n;
  if (rest === '' || rest.length > 200) return undefined;
  let total = 0n;
  while (rest !== '') {
    const match = /^(\d*)(?:\.(\d*))?([a-zµμ]+)/.exec(rest);
    const unit = units.get(match?.[3] ?? '');
    if (match === null || unit === undefined) return undefined;
    const [whole, fraction = ''] = [match[1] ?? '', match[2]];
    if (whole === '' && fraction === '') return undefined;
    const scale = 10n ** BigInt(fraction.length);
    total += BigInt(whole === '' ? 0 : whole) * unit + (BigInt(fraction || '0') * unit) / scale;
    if (total > durationLimit) return undefined;
    rest = rest.slice(match[0].length);
  }
  if (sign === '-') return -total;
  return total === durationLimit ? undefined : total;
}

/**
 * Parses the duration of a flag to nanoseconds. Throws FlagError with Go's reason for other texts.
 */
export function durationFlag(text: string): bigint {
  const nanoseconds = parseGoDuration(text);
  if (nanoseconds === undefined) throw new FlagError(goDurationError(text));
  return nanoseconds;
}

/** Returns Go's error for a text that `parseGoDuration` rejects. */
export function goDurationError(text: string): string {
  const errorOf = (problem: Extract<Problem, { code: 'duration' }>['problem']) =>
    problemText({ code: 'duration', text, problem });
  let rest = text.replace(/^[+-]/, '');
  while (rest !== '' && rest.length <= 200) {
    const [found = '', digits = '', unit = ''] = /^(\d*\.?\d*)([^\d.]*)/.exec(rest) ?? [];
    if (digits === '' || digits === '.') break;
    if (unit === '') return errorOf('no unit');
    if (!units.has(unit)) return errorOf({ unit });
    rest = rest.slice(found.length);
  }
  return errorOf('syntax');
}

/** Prints nanoseconds like Go's `Duration.String()`: `1h30m0s`, `1.5s`, `250ms`. */
export function printGoDuration(duration: bigint): string {
  if (duration === 0n) return '0s';
  const sign = duration < 0n ? '-' : '';
  const count = duration < 0n ? -duration : duration;
  if (count < 1_000n) return `${sign}${count}ns`;
  if (count < 1_000_000n) return `${sign}${decimal(count, 3)}µs`;
  if (count < 1_000_000_000n) return `${sign}${decimal(count, 6)}ms`;
  const minutes = count / 60_000_000_000n;
  const seconds = `${decimal(count % 60_000_000_000n, 9)}s`;
  if (minutes === 0n) return sign + seconds;
  const hours = minutes / 60n;
  if (hours === 0n) return `${sign}${minutes}m${seconds}`;
  return `${sign}${hours}h${minutes % 60n}m${seconds}`;
}

function decimal(count: bigint, digits: number): string {
  const text = String(count).padStart(digits + 1, '0');
  const fraction = text.slice(-digits).replace(/0+$/, '');
  const whole = text.slice(0, -digits);
  return fraction === '' ? whole : `${whole}.${fraction}`;
}

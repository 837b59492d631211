import { shownValueMax, truncateText } from './answer-bounds.ts';

/**
 * Formats a `metav1.Time`: RFC 3339 in UTC with whole seconds.
 * @param ms milliseconds since the epoch
 */
export function formatTime(ms: number): string {
  const second = Math.floor(ms / 1000);
  if (second !== lastSecond) {
    lastText = `${new Date(second * 1000).toISOString().slice(0, 19)}Z`;
    lastSecond = second;
  }
  return lastText;
}

/** The last formatted second, because thousands of writes per second format the same one. */
let lastSecond = Number.NaN;
let lastText = '';

/** Matches the days that every month has; later ones need the calendar. */
const writtenTime = /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|1\d|2[0-8])T([01]\d|2[0-3])(:[0-5]\d){2}Z$/;

/**
 * Whether a text is a valid time in the form of `formatTime`; may be false for days after the 28th.
 */
export function isWrittenTime(text: string): boolean {
  return text.length === 20 && writtenTime.test(text);
}

type ParsedTime = { readonly ms: number; readonly micros: number } | { readonly error: string };

const elements: readonly (readonly [name: string, pattern: RegExp])[] = [
  ['2006', /^\d{4}/],
  ['-', /^-/],
  ['01', /^\d\d/],
  ['-', /^-/],
  ['02', /^\d\d/],
  ['T', /^T/],
  ['15', /^\d\d?/],
  [':', /^:/],
  ['04', /^\d\d/],
  [':', /^:/],
  ['05', /^\d\d(?:[.,]\d+)?/],
  ['Z07:00', /^(?:Z|[+-]\d\d:\d\d)/],
];

/** A layout with fractional digits requires exactly as many. */
const microElements: typeof elements = [
  ...elements.slice(0, -2),
  ['05', /^\d\d/],
  ['.000000', /^[.,]\d{6}/],
  ['Z07:00', /^(?:Z|[+-]\d\d:\d\d)/],
];

/** Elements whose range is checked as soon as they are read; that of a day depends on the rest. */
const ranges: ReadonlyMap<
  string,
  { readonly unit: string; readonly min: number; readonly max: number }
> = new Map([
  ['01', { unit: 'month', min: 1, max: 12 }],
  ['15', { unit: 'hour', min: 0, max: 23 }],
  ['04', { unit: 'minute', min: 0, max: 59 }],
  ['05', { unit: 'second', min: 0, max: 59 }],
]);

const wellFormed =
  /^(\d{4})-(\d\d)-(\d\d)T(\d\d?):(\d\d):(\d\d)(?:[.,](\d+))?(?:Z|([+-])(\d\d):(\d\d))$/;

/** The fraction of a second, as its digits, and the rest in milliseconds since 1970. */
interface Rfc3339 {
  readonly ms: number;
  readonly fraction: string;
}

/**
 * Parses RFC 3339 as Go does, which accepts an hour of one digit. Undefined for a text in another
 * form; `outOfRange` names a part whose value does not exist.
 */
export function parseRfc3339(
  text: string,
): Rfc3339 | { readonly outOfRange: string; readonly fraction: string } | undefined {
  const match = wellFormed.exec(text);
  if (match === null) return undefined;
  const part = (index: number) => Number(match[index] ?? 0);
  const fraction = match[7] ?? '';
  const outOfRange = rangeError(part);
  if (outOfRange !== undefined) return { outOfRange, fraction };
  const offset = (part(9) * 60 + part(10)) * 60_000 * (match[8] === '-' ? -1 : 1);
  const at = new Date(0);
  at.setUTCFullYear(part(1), part(2) - 1, part(3));
  at.setUTCHours(part(4), part(5), part(6));
  return { ms: at.getTime() - offset, fraction };
}

/**
 * Parses an RFC 3339 time whose year in UTC has four digits. Returns Go's error message for a
 * malformed one.
 * @param digits 6 requires exactly six fractional digits; 0 accepts any fraction
 */
export function parseGoTime(text: string, digits: 0 | 6 = 0): ParsedTime {
  const parsed = parseRfc3339(text);
  if (parsed === undefined || (digits === 6 && parsed.fraction.length !== 6)) {
    return { error: formError(text, digits) };
  }
  if ('outOfRange' in parsed) {
    return { error: `parsing time ${timeQuoted(text)}: ${parsed.outOfRange} out of range` };
  }
  const { ms, fraction } = parsed;
  // Its text in UTC could not be parsed again.
  if (!(ms >= msMin && ms <= msMax)) {
    return { error: `parsing time ${timeQuoted(text)}: year outside of range [0,9999]` };
  }
  return { ms, micros: Number(fraction.slice(0, 6).padEnd(6, '0')) };
}

const msMin = Date.parse('0000-01-01T00:00:00Z');
const msMax = Date.parse('9999-12-31T23:59:59Z');

function rangeError(part: (index: number) => number): string | undefined {
  if (part(2) < 1 || part(2) > 12) return 'month';
  if (part(4) > 23) return 'hour';
  if (part(5) > 59) return 'minute';
  if (part(6) > 59) return 'second';
  if (part(10) > 60) return 'time zone offset minute';
  if (part(9) > 24) return 'time zone offset hour';
  const last = new Date(0);
  last.setUTCFullYear(part(1), part(2), 0);
  return part(3) < 1 || part(3) > last.getUTCDate() ? 'day' : undefined;
}

/**
 * Quotes a text as Go's time package does, with bytes outside printable ASCII as `\\xc3`. Shows at
 * most `shownValueMax` characters.
 */
export function timeQuoted(text: string): string {
  let quoted = '';
  for (const byte of Buffer.from(truncateText(text, shownValueMax))) {
    const character = String.fromCharCode(byte);
    if (byte < 0x20 || byte >= 0x80) quoted += `\\x${byte.toString(16).padStart(2, '0')}`;
    else quoted += character === '"' || character === '\\' ? `\\${character}` : character;
  }
  return `"${quoted}"`;
}

function formError(text: string, digits: 0 | 6): string {
  const layout = `2006-01-02T15:04:05${digits === 6 ? '.000000' : ''}Z07:00`;
  const quoted = timeQuoted(text);
  let rest = text;
  for (const [name, pattern] of digits === 6 ? microElements : elements) {
    const match = pattern.exec(rest);
    if (match === null) {
      const at = timeQuoted(rest);
      const form = JSON.stringify(layout);
      return `parsing time ${quoted} as ${form}: cannot parse ${at} as ${JSON.stringify(name)}`;
    }
    const range = ranges.get(name);
    const value = Number.parseInt(match[0], 10);
    if (range !== undefined && (value < range.min || value > range.max)) {
      return `parsing time ${quoted}: ${range.unit} out of range`;
    }
    rest = rest.slice(match[0].length);
  }
  return `parsing time ${quoted}: extra text: ${timeQuoted(rest)}`;
}

/** Formats a time in UTC as `2006-01-02T15:04:05Z`, optionally with six fractional digits. */
export function printGoTime(time: { ms: number; micros: number }, digits: 0 | 6): string {
  const text = new Date(time.ms).toISOString();
  const seconds = text.slice(0, text.indexOf('.'));
  return digits === 0 ? `${seconds}Z` : `${seconds}.${String(time.micros).padStart(6, '0')}Z`;
}

/** Formats milliseconds since the epoch as a MicroTime: `2006-01-02T15:04:05.000000Z`. */
export function formatMicroTime(ms: number): string {
  const micros = Math.floor(ms * 1000);
  return printGoTime({ ms: Math.floor(micros / 1000), micros: micros % 1_000_000 }, 6);
}

const minute = 60;
const hour = 60 * minute;
const day = 24 * hour;
const year = 365 * day;

/**
 * Formats a duration in at most two units: `119s`, `9m59s`, `3h`, `7d23h`, `2y1d`. The
 * thresholds are kubectl's: below 2 minutes only seconds, below 10 minutes two units, and so on.
 */
export function humanDuration(durationMs: number): string {
  const seconds = Math.trunc(durationMs / 1000);
  if (seconds < -1) return '<invalid>';
  if (seconds < 0) return '0s';
  if (seconds < 2 * minute) return `${seconds}s`;
  if (seconds < 10 * minute)
    return units(seconds, { unit: minute, name: 'm', rest: 1, restName: 's' });
  if (seconds < 3 * hour) return `${Math.floor(seconds / minute)}m`;
  if (seconds < 8 * hour)
    return units(seconds, { unit: hour, name: 'h', rest: minute, restName: 'm' });
  if (seconds < 2 * day) return `${Math.floor(seconds / hour)}h`;
  if (seconds < 8 * day) return units(seconds, { unit: day, name: 'd', rest: hour, restName: 'h' });
  if (seconds < 2 * year) return `${Math.floor(seconds / day)}d`;
  if (seconds < 8 * year)
    return units(seconds, { unit: year, name: 'y', rest: day, restName: 'd' });
  return `${Math.floor(seconds / year)}y`;
}

function units(
  seconds: number,
  of: { unit: number; name: string; rest: number; restName: string },
): string {
  const whole = Math.floor(seconds / of.unit);
  const rest = Math.floor((seconds - whole * of.unit) / of.rest);
  return rest === 0 ? `${whole}${of.name}` : `${whole}${of.name}${rest}${of.restName}`;
}

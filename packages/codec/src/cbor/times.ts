import { type JsonValue, parseGoTime } from '@wheelhouse/machinery';
import { major } from './cursor.ts';
import { type Fault, misfit, otherFault } from './fault.ts';

/** A time as untyped values hold it, in text, or why there is none. */
type Time = { readonly text: string } | { readonly fault: Fault };

const noText =
  'cbor: decoded time cannot be represented in RFC3339 format with sub-second precision: ' +
  'Time.MarshalText: year outside of range [0,9999]';

/** Content of a text time (tag 0) as Go prints it: nanoseconds without trailing zeros. */
export function timeOfText(text: string): Time {
  const parsed = parseGoTime(text);
  if ('error' in parsed) {
    return { fault: otherFault(`cbor: cannot set ${text} for time.Time: ${parsed.error}`) };
  }
  const [, date, fraction = '', zone] = /^([^.,Z+]{19})(?:[.,](\d+))?(.*)$/.exec(text) ?? [];
  const isUtc = zone === 'Z' || zone?.slice(1) === '00:00';
  return { text: `${date}${nanos(fraction)}${isUtc ? 'Z' : zone}` };
}

function nanos(fraction: string): string {
  const digits = fraction.slice(0, 9).replace(/0+$/, '');
  return digits === '' ? '' : `.${digits}`;
}

const firstSecond = -62_167_219_200;
const lastSecond = 253_402_300_799;

/** Content of an epoch time (tag 1). */
export function timeOfSeconds(seconds: JsonValue): Time {
  const value = Number(seconds);
  let whole = Math.trunc(value);
  let part = Math.trunc((value - whole) * 1e9);
  if (part < 0) {
    whole -= 1;
    part += 1e9;
  }
  if (whole < firstSecond || whole > lastSecond) return { fault: otherFault(noText) };
  const text = new Date(whole * 1000).toISOString().slice(0, 19);
  return { text: `${text}${nanos(String(part).padStart(9, '0'))}Z` };
}

/** Seconds that Go cannot count. */
export function secondsOverflow(type: number, value: bigint): Fault {
  return misfit(type, 'time.Time', `${value} overflows Go's int64`);
}

/** Why a tag cannot stand ahead of an item that begins with this byte; bignums never come so far. */
export function tagProblem(tag: number, next: number): string | undefined {
  const type = next >> 5;
  if (tag === 0 && type !== major.text) return 'text string';
  const isNumber = type <= major.negative || (next >= 0xf9 && next <= 0xfb);
  return tag === 1 && !isNumber ? 'integer or floating-point number' : undefined;
}

import { parseRfc3339, problemText } from '@wheelhouse/machinery';
import type { Library } from '../types/functions.ts';
import { CelError, type Timestamp, type Value } from '../values.ts';
import { asNanos, asText, asTimestamp } from './arguments.ts';

const dayMs = 86_400_000;

/** A Date whose UTC parts are the local parts in a time zone. */
function localDate(time: Timestamp, zone: string | undefined): Date {
  const { date } = splitTime(time.nanos);
  if (zone === undefined || zone === '' || zone === 'UTC') return date;
  if (/^[/\\]|\.\./.test(zone) && !zone.includes(':')) {
    throw new CelError('time: invalid location name');
  }
  const at = zone.indexOf(':');
  if (at < 0) return namedZone(date, zone);
  const [hours, minutes] = [zonePart(zone.slice(0, at)), zonePart(zone.slice(at + 1))];
  const offset = hours * 60 + (zone.startsWith('-') ? -minutes : minutes);
  const local = new Date(date.getTime() + offset * 60_000);
  if (Number.isNaN(local.getTime())) throw new CelError('timestamp overflow');
  return local;
}

/** The hours or minutes of an offset. */
function zonePart(text: string): number {
  if (/^[+-]?\d+$/.test(text)) return Number(text);
  throw new CelError(problemText({ code: 'number', parser: 'Atoi', text, problem: 'syntax' }));
}

/** Names of zones are those of files in Go, so their case matters. */
const zoneForm = /^[A-Z][A-Za-z0-9+_-]*(?:\/[A-Z][A-Za-z0-9+_-]*)*$/;

function isZoneName(zone: string, canonical: string): boolean {
  const isCanonical = zone.toLowerCase() === canonical.toLowerCase();
  return isCanonical ? zone === canonical : zoneForm.test(zone);
}

const unknownZone = (zone: string) => new CelError(`unknown time zone ${zone}`);

function namedZone(date: Date, zone: string): Date {
  let format: Intl.DateTimeFormat;
  try {
    format = new Intl.DateTimeFormat('en-US', {
      // Without a zone, the server's is used.
      ...(zone === 'Local' ? {} : { timeZone: zone }),
      hourCycle: 'h23',
      era: 'short',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    });
  } catch {
    throw unknownZone(zone);
  }
  const { timeZone } = format.resolvedOptions();
  if (zone !== 'Local' && !isZoneName(zone, timeZone)) throw unknownZone(zone);
  const parts = new Map(format.formatToParts(date).map(({ type, value }) => [type, value]));
  const part = (name: Intl.DateTimeFormatPartTypes) => Number(parts.get(name));
  const year = parts.get('era')?.startsWith('B') ? 1 - part('year') : part('year');
  const local = new Date(0);
  local.setUTCFullYear(year, part('month') - 1, part('day'));
  local.setUTCHours(part('hour'), part('minute'), part('second'));
  return local;
}

function dayOfYear(date: Date): number {
  const first = new Date(0);
  first.setUTCFullYear(date.getUTCFullYear(), 0, 1);
  return Math.floor((date.getTime() - first.getTime()) / dayMs);
}

const readers: readonly (readonly [string, (date: Date) => number])[] = [
  ['getFullYear', (date) => date.getUTCFullYear()],
  ['getMonth', (date) => date.getUTCMonth()],
  ['getDayOfYear', dayOfYear],
  ['getDayOfMonth', (date) => date.getUTCDate() - 1],
  ['getDate', (date) => date.getUTCDate()],
  ['getDayOfWeek', (date) => date.getUTCDay()],
  ['getHours', (date) => date.getUTCHours()],
  ['getMinutes', (date) => date.getUTCMinutes()],
  ['getSeconds', (date) => date.getUTCSeconds()],
];

const millisecond = 1_000_000n;
const durationParts: readonly (readonly [string, bigint])[] = [
  ['getHours', 3_600_000_000_000n],
  ['getMinutes', 60_000_000_000n],
  ['getSeconds', 1_000_000_000n],
  ['getMilliseconds', millisecond],
];

function milliseconds([time, zone]: readonly Value[]): Value {
  if (zone !== undefined) localDate(asTimestamp(time), asText(zone));
  return splitTime(asNanos(time)).fraction / millisecond;
}

/** The library for parts of timestamps and durations. */
export const times: Library = [
  ...readers.flatMap(([name, read]) => {
    const run = ([time, zone]: readonly Value[]) =>
      BigInt(read(localDate(asTimestamp(time), zone === undefined ? zone : asText(zone))));
    return [
      [`timestamp.${name}(): int`, run],
      [`timestamp.${name}(string): int`, run],
    ] as const;
  }),
  ['timestamp.getMilliseconds(): int', milliseconds],
  ['timestamp.getMilliseconds(string): int', milliseconds],
  ...durationParts.map(([name, unit]) => {
    const run = ([value]: readonly Value[]) => asNanos(value) / unit;
    return [`duration.${name}(): int`, run] as const;
  }),
];

const billion = 1_000_000_000n;

/** Parses RFC 3339 to nanoseconds since 1970; undefined if it is malformed. */
export function parseTimestamp(text: string): bigint | undefined {
  const parsed = text.length > 64 ? undefined : parseRfc3339(text);
  if (parsed === undefined || 'outOfRange' in parsed) return undefined;
  const { ms, fraction } = parsed;
  return BigInt(ms) * millisecond + BigInt(fraction.slice(0, 9).padEnd(9, '0'));
}

/** The zone of an RFC 3339 text. */
export function zoneOf(text: string): string {
  if (text.endsWith('Z')) return 'Z';
  return /[+-]\d\d:\d\d$/.exec(text)?.[0] ?? 'Z';
}

function zoneSeconds(zone: string): number {
  const match = /^([+-])(\d\d):(\d\d)$/.exec(zone);
  if (match === null) return 0;
  return (match[1] === '-' ? -1 : 1) * (Number(match[2]) * 3600 + Number(match[3]) * 60);
}

/** Formats a timestamp as RFC 3339 in its own zone, with the necessary fractional digits. */
export function showTimestamp({ nanos, zone }: { nanos: bigint; zone: string }): string {
  const offset = zoneSeconds(zone);
  const { date, fraction } = splitTime(nanos + BigInt(offset) * billion);
  const digits = String(fraction).padStart(9, '0').replace(/0+$/, '');
  const text = date.toISOString().replace(/\.\d+Z$/, '');
  return `${text.replace(/^[+-]\d\d/, '')}${digits === '' ? '' : `.${digits}`}${offset === 0 ? 'Z' : zone}`;
}

/** Splits a time into whole seconds and nanoseconds. */
function splitTime(nanos: bigint): { date: Date; fraction: bigint } {
  const fraction = ((nanos % billion) + billion) % billion;
  return { date: new Date(Number((nanos - fraction) / 1_000_000n)), fraction };
}

/**
 * Formats a duration in seconds, as conversions to string do: `3723.004s`. Like Go, rounds the
 * seconds to a float.
 */
export function showDuration(nanos: bigint): string {
  const sign = nanos < 0n ? '-' : '';
  const amount = nanos < 0n ? -nanos : nanos;
  const seconds = String(Number(amount / billion) + Number(amount % billion) / 1e9);
  if (!seconds.includes('e')) return `${sign}${seconds}s`;
  const digits = String(amount % billion)
    .padStart(9, '0')
    .replace(/0+$/, '');
  return `${sign}${amount / billion}${digits === '' ? '' : `.${digits}`}s`;
}

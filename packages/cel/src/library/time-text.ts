import { parseGoDuration } from '@wheelhouse/schema';

const billion = 1_000_000_000n;
const form = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?(?:Z|([+-])(\d\d):(\d\d))$/;

/** RFC 3339 as nanoseconds since 1970; undefined for anything else, and outside of years 1 to 9999. */
export function parseTimestamp(text: string): bigint | undefined {
  const match = text.length > 64 ? null : form.exec(text);
  if (match === null) return undefined;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match
    .slice(1, 7)
    .map(Number);
  if (hour > 23 || minute > 59 || second > 59 || year < 1) return undefined;
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  if (month < 1 || date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return undefined;
  date.setUTCHours(hour, minute, second);
  const fraction = BigInt((match[7] ?? '').slice(0, 9).padEnd(9, '0'));
  const offset = offsetSeconds(match[8], match[9], match[10]);
  if (offset === undefined) return undefined;
  const nanos = BigInt(date.getTime() - offset * 1000) * 1_000_000n + fraction;
  const low = -62_135_596_800n * billion;
  return nanos < low || nanos >= 253_402_300_800n * billion ? undefined : nanos;
}

function offsetSeconds(sign = '+', hours = '0', minutes = '0'): number | undefined {
  if (Number(hours) > 24 || Number(minutes) > 59) return undefined;
  return (sign === '-' ? -1 : 1) * (Number(hours) * 3600 + Number(minutes) * 60);
}

/** The zone a text of RFC 3339 ends with. */
export function zoneOf(text: string): string {
  return /[+-]\d\d:\d\d$/.exec(text)?.[0] ?? 'Z';
}

function zoneSeconds(zone: string): number {
  const match = /^([+-])(\d\d):(\d\d)$/.exec(zone);
  return match === null ? 0 : (offsetSeconds(match[1], match[2], match[3]) ?? 0);
}

/** RFC 3339 in its own zone with as many digits of a second as it needs. */
export function showTimestamp({ nanos, zone }: { nanos: bigint; zone: string }): string {
  const offset = zoneSeconds(zone);
  const { date, fraction } = splitTime(nanos + BigInt(offset) * billion);
  const digits = String(fraction).padStart(9, '0').replace(/0+$/, '');
  const text = date.toISOString().replace(/\.\d+Z$/, '');
  return `${text.replace(/^[+-]\d\d/, '')}${digits === '' ? '' : `.${digits}`}${offset === 0 ? 'Z' : zone}`;
}

/** The whole second a time is in, and the nanoseconds after it. */
export function splitTime(nanos: bigint): { date: Date; fraction: bigint } {
  const fraction = ((nanos % billion) + billion) % billion;
  return { date: new Date(Number((nanos - fraction) / 1_000_000n)), fraction };
}

/** Go's form of a duration in nanoseconds, which must fit 64 bits; undefined otherwise. */
export function parseDuration(text: string): bigint | undefined {
  return parseGoDuration(text);
}

/** `3723.004s`: seconds, as conversions to text have them. */
export function showDuration(nanos: bigint): string {
  const sign = nanos < 0n ? '-' : '';
  const amount = nanos < 0n ? -nanos : nanos;
  const digits = String(amount % billion)
    .padStart(9, '0')
    .replace(/0+$/, '');
  return `${sign}${amount / billion}${digits === '' ? '' : `.${digits}`}s`;
}

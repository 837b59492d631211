import type { Library } from '../types/functions.ts';
import { CelError, type Timestamp, type Value } from '../values.ts';
import { asNanos, asText, asTimestamp } from './arguments.ts';
import { splitTime } from './time-text.ts';

const dayMs = 86_400_000;

/** A date whose UTC parts are the local ones of a time zone. */
function localDate(time: Timestamp, zone: string | undefined): Date {
  const { date } = splitTime(time.nanos);
  if (zone === undefined || zone === '' || zone === 'UTC') return date;
  const offset = /^([+-]?)(\d{1,2}):(\d{2})$/.exec(zone);
  if (offset !== null) {
    const minutes = Number(offset[2]) * 60 + Number(offset[3]);
    return new Date(date.getTime() + (offset[1] === '-' ? -1 : 1) * minutes * 60_000);
  }
  return namedZone(date, zone);
}

function namedZone(date: Date, zone: string): Date {
  let format: Intl.DateTimeFormat;
  try {
    format = new Intl.DateTimeFormat('en-US', {
      timeZone: zone,
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
    throw new CelError(`unknown time zone ${zone}`);
  }
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

function milliseconds([time]: readonly Value[]): Value {
  return splitTime(asNanos(time)).fraction / millisecond;
}

/** The parts of timestamps and durations. */
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

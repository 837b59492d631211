import { problemText } from '@wheelhouse/machinery';
import { goDurationError, parseGoDuration } from '@wheelhouse/schema';
import { isTimeZone } from './time-zones.ts';

/** Reads a cron schedule far enough to say what is wrong with it. */

interface FieldBounds {
  readonly low: number;
  readonly high: number;
  readonly names?: readonly string[];
}

const months = 'jan feb mar apr may jun jul aug sep oct nov dec'.split(' ');
const weekdays = 'sun mon tue wed thu fri sat'.split(' ');

const fields: readonly FieldBounds[] = [
  { low: 0, high: 59 },
  { low: 0, high: 23 },
  { low: 1, high: 31 },
  { low: 1, high: 12, names: months },
  { low: 0, high: 6, names: weekdays },
];

const descriptors = new Set([
  '@yearly',
  '@annually',
  '@monthly',
  '@weekly',
  '@daily',
  '@midnight',
  '@hourly',
]);

/** What is wrong with `schedule` in the words of upstream's parser; undefined when it is right. */
export function scheduleProblem(schedule: string): string | undefined {
  const [zonePart, zone = ''] = /^(?:CRON_)?TZ=([^ ]*) /.exec(schedule) ?? [];
  if (zonePart !== undefined && zone !== '' && zone !== 'Local' && !isTimeZone(zone)) {
    return `provided bad location ${zone}: ${zoneProblem(zone)}`;
  }
  const text = zonePart === undefined ? schedule : schedule.slice(zonePart.length).trim();
  if (text.startsWith('@')) return descriptorProblem(text);
  const parts = text.split(/\s+/).filter((part) => part !== '');
  if (parts.length !== fields.length) {
    return `expected exactly 5 fields, found ${parts.length}: [${parts.join(' ')}]`;
  }
  for (const [index, part] of parts.entries()) {
    const bounds = fields[index];
    const problem = bounds === undefined ? undefined : fieldProblem(part, bounds);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/** What is wrong with the name of a time zone that there is none of. */
export function zoneProblem(zone: string): string {
  const isOutside = zone.startsWith('/') || zone.startsWith('\\') || zone.includes('..');
  return isOutside ? 'time: invalid location name' : `unknown time zone ${zone}`;
}

const every = '@every ';

function descriptorProblem(text: string): string | undefined {
  if (descriptors.has(text)) return undefined;
  if (!text.startsWith(every)) return `unrecognized descriptor: ${text}`;
  const duration = text.slice(every.length);
  if (parseGoDuration(duration) !== undefined) return undefined;
  return `failed to parse duration ${text}: ${goDurationError(duration)}`;
}

function fieldProblem(part: string, bounds: FieldBounds): string | undefined {
  for (const range of part.split(',').filter((one) => one !== '')) {
    const problem = rangeProblem(range, bounds);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function rangeProblem(range: string, bounds: FieldBounds): string | undefined {
  const [span = '', step, ...moreSteps] = range.split('/');
  const [from = '', to, ...moreEnds] = span.split('-');
  let [start, end] = [bounds.low, bounds.high];
  if (from !== '*' && from !== '?') {
    const first = numberOf(from, bounds);
    if (typeof first === 'string') return first;
    const last = to === undefined || moreEnds.length > 0 ? first : numberOf(to, bounds);
    if (typeof last === 'string') return last;
    if (moreEnds.length > 0) return `too many hyphens: ${range}`;
    [start, end] = [first, step !== undefined && to === undefined ? bounds.high : last];
  }
  if (moreSteps.length > 0) return `too many slashes: ${range}`;
  const stride = step === undefined ? 1 : integerOf(step);
  if (typeof stride === 'string') return stride;
  if (start < bounds.low)
    return `beginning of range (${start}) below minimum (${bounds.low}): ${range}`;
  if (end > bounds.high) return `end of range (${end}) above maximum (${bounds.high}): ${range}`;
  if (start > end) return `beginning of range (${start}) beyond end of range (${end}): ${range}`;
  return stride > 0 ? undefined : `step of range should be a positive number: ${range}`;
}

function numberOf(text: string, bounds: FieldBounds): number | string {
  const named = bounds.names?.indexOf(text.toLowerCase()) ?? -1;
  return named >= 0 ? named + bounds.low : integerOf(text);
}

/** The number, or what is wrong with it. */
function integerOf(text: string): number | string {
  const refused = (problem: 'syntax' | 'range') => {
    const why = problemText({ code: 'number', parser: 'Atoi', text, problem });
    return `failed to parse int from ${text}: ${why}`;
  };
  if (!/^[+-]?[0-9]+$/.test(text)) return refused('syntax');
  const value = BigInt(text.replace('+', ''));
  if (BigInt.asIntN(64, value) !== value) return refused('range');
  return value < 0 ? `negative number (${value}) not allowed: ${text}` : Number(value);
}

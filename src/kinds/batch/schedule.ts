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
  const text = schedule.replace(/^(?:CRON_)?TZ=\S+\s+/, '');
  if (text.startsWith('@')) {
    if (descriptors.has(text)) return undefined;
    if (/^@every ([0-9.]+(ns|us|µs|ms|s|m|h))+$/.test(text)) return undefined;
    return `unrecognized descriptor: ${text}`;
  }
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
  if (moreEnds.length > 0) return `too many hyphens: ${range}`;
  if (moreSteps.length > 0) return `too many slashes: ${range}`;
  const wild = from === '*' || from === '?';
  const start = wild ? bounds.low : numberOf(from, bounds);
  const fallback = step === undefined ? start : bounds.high;
  const end = wild ? bounds.high : to === undefined ? fallback : numberOf(to, bounds);
  if (start === undefined) return notANumber(from);
  if (end === undefined) return notANumber(to ?? '');
  if (step !== undefined && !/^[0-9]+$/.test(step)) return notANumber(step);
  if (start < bounds.low)
    return `beginning of range (${start}) below minimum (${bounds.low}): ${range}`;
  if (end > bounds.high) return `end of range (${end}) above maximum (${bounds.high}): ${range}`;
  if (start > end) return `beginning of range (${start}) beyond end of range (${end}): ${range}`;
  return step === undefined || Number(step) > 0
    ? undefined
    : `step of range should be a positive number: ${range}`;
}

const notANumber = (text: string) =>
  `failed to parse int from ${text}: strconv.Atoi: parsing ${JSON.stringify(text)}: invalid syntax`;

function numberOf(text: string, bounds: FieldBounds): number | undefined {
  const named = bounds.names?.indexOf(text.toLowerCase()) ?? -1;
  if (named >= 0) return named + bounds.low;
  return /^[0-9]{1,9}$/.test(text) ? Number(text) : undefined;
}

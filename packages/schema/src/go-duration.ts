import { type Problem, problemText } from '@wheelhouse/machinery';

/** Durations as Go parses and prints them; counted in nanoseconds as bigint. */

const units: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1_000n,
  µs: 1_000n,
  μs: 1_000n,
  ms: 1_000_000n,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
};
const longest = 2n ** 63n;

/** `1h30m` in nanoseconds, or undefined when Go refuses it. */
export function parseGoDuration(text: string): bigint | undefined {
  const sign = /^[+-]/.exec(text)?.[0] ?? '';
  let rest = text.slice(sign.length);
  if (rest === '0') return 0n;
  if (rest === '' || rest.length > 200) return undefined;
  let total = 0n;
  while (rest !== '') {
    const match = /^(\d*)(?:\.(\d*))?([a-zµμ]+)/.exec(rest);
    const unit = match === null ? undefined : units[match[3] ?? ''];
    if (match === null || unit === undefined) return undefined;
    const [whole, fraction = ''] = [match[1] ?? '', match[2]];
    if (whole === '' && fraction === '') return undefined;
    const scale = 10n ** BigInt(fraction.length);
    total += BigInt(whole === '' ? 0 : whole) * unit + (BigInt(fraction || '0') * unit) / scale;
    if (total > longest) return undefined;
    rest = rest.slice(match[0].length);
  }
  if (sign === '-') return -total;
  return total === longest ? undefined : total;
}

/** What Go says of a text that `parseGoDuration` refuses. */
export function goDurationError(text: string): string {
  const wrong = (problem: Extract<Problem, { code: 'duration' }>['problem']) =>
    problemText({ code: 'duration', text, problem });
  let rest = text.replace(/^[+-]/, '');
  while (rest !== '' && rest.length <= 200) {
    const [found = '', digits = '', unit = ''] = /^(\d*\.?\d*)([^\d.]*)/.exec(rest) ?? [];
    if (digits === '' || digits === '.') break;
    if (unit === '') return wrong('no unit');
    if (!Object.hasOwn(units, unit)) return wrong({ unit });
    rest = rest.slice(found.length);
  }
  return wrong('syntax');
}

/** What Go's `Duration.String()` gives: `1h30m0s`, `1.5s`, `250ms`. */
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

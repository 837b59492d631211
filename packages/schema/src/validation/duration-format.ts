import { problemText } from '@wheelhouse/machinery';
import { parseGoDuration } from '../go-wording.ts';

/** A unit of Scala's notation, in nanoseconds: its short names, and the start of its long ones. */
interface Unit {
  readonly names: readonly string[];
  readonly prefix: string;
  readonly nanoseconds: bigint;
}

const units: readonly Unit[] = [
  { names: ['ns'], prefix: 'nano', nanoseconds: 1n },
  { names: ['us', 'µs'], prefix: 'micro', nanoseconds: 1_000n },
  { names: ['ms'], prefix: 'milli', nanoseconds: 1_000_000n },
  { names: ['s'], prefix: 'sec', nanoseconds: 1_000_000_000n },
  { names: ['m'], prefix: 'min', nanoseconds: 60_000_000_000n },
  { names: ['h', 'hr'], prefix: 'hour', nanoseconds: 3_600_000_000_000n },
  { names: ['d'], prefix: 'day', nanoseconds: 86_400_000_000_000n },
  { names: ['w', 'wk'], prefix: 'week', nanoseconds: 604_800_000_000_000n },
];

/**
 * Parses a text of the format `duration` to nanoseconds: a Go duration, or the sum of all numbers
 * with a unit in Scala's notation that the text contains, such as `7d` or `1 hour and 2 minutes`.
 * Sums wrap at 64 bits. Returns Go's error text if there are none, or if a number exceeds 64 bits.
 */
export function parseDurationFormat(text: string): bigint | string {
  const duration = parseGoDuration(text);
  if (duration !== undefined) return duration;
  let total: bigint | undefined;
  for (const { count, name } of amountsOf(text)) {
    // Zeros in front would make the conversion of a long text expensive.
    const digits = count.replace(/^0+/, '');
    if (isBeyondInt64(digits)) {
      return problemText({ code: 'number', parser: 'Atoi', text: count, problem: 'range' });
    }
    const unit = unitOf(name);
    if (unit !== undefined) total = (total ?? 0n) + BigInt(digits) * unit.nanoseconds;
  }
  if (total === undefined) return `unable to parse ${text} as duration`;
  return BigInt.asIntN(64, total);
}

function unitOf(name: string): Unit | undefined {
  const lower = name.toLowerCase();
  return units.find(({ names, prefix }) => names.includes(lower) || lower.startsWith(prefix));
}

/** The numbers that a name follows, possibly after white space. */
function* amountsOf(text: string): Generator<{ readonly count: string; readonly name: string }> {
  // Each step consumes what it matches, whereas one expression for all parts would backtrack.
  const parts = /[0-9]+|[\t\n\f\r ]+|[A-Za-zµ]+|[^0-9\t\n\f\r A-Za-zµ]+/g;
  let count: string | undefined;
  for (const [part] of text.matchAll(parts)) {
    const first = part.charCodeAt(0);
    if (isDigit(first)) count = part;
    else if (!isSpace(first)) {
      if (count !== undefined && isLetter(first)) yield { count, name: part };
      count = undefined;
    }
  }
}

const isDigit = (code: number) => code >= 0x30 && code <= 0x39;
const isSpace = (code: number) => code === 0x20 || (code >= 0x09 && code <= 0x0d && code !== 0x0b);
const isLetter = (code: number) =>
  (code >= 0x41 && code <= 0x5a) || (code >= 0x61 && code <= 0x7a) || code === 0xb5;

function isBeyondInt64(digits: string): boolean {
  return digits.length > 19 || BigInt(digits) >= 2n ** 63n;
}

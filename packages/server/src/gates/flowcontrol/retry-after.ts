import type { Clock } from '@wheelhouse/machinery';

/** Longest time that is asked for, seconds; no older refusals count. */
const longest = 32;

/**
 * How long those turned away at a level are asked to stay away (OPS-3): a second, twice as long each
 * time that more than three a second went on being turned away, and a second less again when fewer
 * than one a second were.
 */
export class RetryAfter {
  readonly #clock: Clock;
  readonly #levels = new Map<string, Refusals>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Counts a request turned away, and gives the seconds it is asked to wait. */
  refused(level: string): number {
    const second = Math.floor(this.#clock.monotonic() / 1000);
    let refusals = this.#levels.get(level);
    if (refusals === undefined) {
      refusals = { current: second, count: 0, past: [], seconds: 1, raisedAt: 0 };
      this.#levels.set(level, refusals);
    }
    if (refusals.current !== second) turnTo(refusals, second);
    refusals.count += 1;
    return refusals.seconds;
  }

  /** Levels that are gone need not be remembered. */
  keep(levels: ReadonlySet<string>): void {
    for (const level of this.#levels.keys()) if (!levels.has(level)) this.#levels.delete(level);
  }
}

interface Refusals {
  /** The second that `count` is of. */
  current: number;
  count: number;
  past: { readonly second: number; readonly count: number }[];
  seconds: number;
  raisedAt: number;
}

function turnTo(refusals: Refusals, second: number): void {
  const { seconds } = refusals;
  const kept = Math.min(longest, 2 * seconds);
  refusals.past.push({ second: refusals.current, count: refusals.count });
  refusals.past = refusals.past.filter((one) => second - one.second <= kept);
  refusals.current = second;
  refusals.count = 0;
  const recent = refusals.past
    .filter((one) => second - one.second <= seconds)
    .reduce((sum, { count }) => sum + count, 0);
  if (second - refusals.raisedAt >= seconds && recent >= 3 * seconds) {
    refusals.seconds = Math.min(longest, 2 * seconds);
    refusals.raisedAt = second;
  } else if (recent < seconds && seconds > 1) refusals.seconds -= 1;
}

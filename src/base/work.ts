import type { Clock } from './clock.ts';
import type { MaybePromise } from './maybe-promise.ts';

/** A request asks for more work than one request may cost (TRUST-2). The message names the work. */
export class WorkExceeded extends Error {
  constructor(what: string) {
    super(`${what} needs more work than one request may cost`);
    this.name = 'WorkExceeded';
  }
}

/**
 * The work that one operation may cost, for operations whose cost no simple limit on their input
 * bounds: escalation checks, patches, certificate chains, patterns.
 */
export class WorkBudget {
  readonly #what: string;
  #steps: number;

  /**
   * @param options.what names the work in the error, as a noun phrase: `the JSON patch`
   * @param options.steps how many elementary steps it may take
   */
  constructor(options: { what: string; steps: number }) {
    this.#what = options.what;
    this.#steps = options.steps;
  }

  /** Takes `steps` from the budget. Throws WorkExceeded when it does not have that many left. */
  spend(steps = 1): void {
    this.#steps -= steps;
    if (this.#steps < 0) throw new WorkExceeded(this.#what);
  }
}

/** How long work that can pause keeps the event loop to itself, in milliseconds. */
const sliceMs = 8;

/** Divides long work into slices, between which the event loop serves others (TRUST-2). */
export class Slices {
  readonly #clock: Pick<Clock, 'monotonic'>;
  #endMs: number;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
    this.#endMs = clock.monotonic() + sliceMs;
  }

  /** Whether the slice is used up. Reads the clock: ask once per item, not once per byte. */
  get over(): boolean {
    return this.#clock.monotonic() >= this.#endMs;
  }

  /** Resolves in a later turn of the event loop, at the beginning of the next slice. */
  async pause(): Promise<void> {
    await new Promise<void>((resolve) => setImmediate(resolve));
    this.#endMs = this.#clock.monotonic() + sliceMs;
  }
}

/**
 * Runs work to its end in slices: at once where one slice is enough, else over several turns of the
 * event loop. The work yields wherever it may pause.
 */
export function inSlices<Result>(
  work: Iterator<void, Result>,
  clock: Pick<Clock, 'monotonic'>,
): MaybePromise<Result> {
  const slices = new Slices(clock);
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
    if (slices.over) return continued(work, slices);
  }
}

async function continued<Result>(work: Iterator<void, Result>, slices: Slices): Promise<Result> {
  for (;;) {
    if (slices.over) await slices.pause();
    const step = work.next();
    if (step.done === true) return step.value;
  }
}

/** Runs the same work in one piece, for callers that have no others to serve. */
export function inOnePiece<Result>(work: Iterator<void, Result>): Result {
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
  }
}

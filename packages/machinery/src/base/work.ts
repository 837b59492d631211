import type { Clock } from './clock.ts';
import { contained, type MaybePromise } from './faults.ts';
import { deferTask } from './host.ts';

/** A request exceeds its work budget (TRUST-2). The message names the work. */
export class WorkExceeded extends Error {
  constructor(what: string) {
    super(`${what} needs more work than one request may cost`);
    this.name = 'WorkExceeded';
  }
}

/**
 * A limit on the work of one operation whose cost is not bounded by a simple limit on its input:
 * escalation checks, patches, certificate chains, patterns.
 */
export class WorkBudget {
  readonly #what: string;
  #steps: number;

  /**
   * @param options.what names the work in the error, as a noun phrase: `the JSON patch`
   * @param options.steps number of elementary steps that it may take
   */
  constructor(options: { what: string; steps: number }) {
    this.#what = options.what;
    this.#steps = options.steps;
  }

  /** Number of steps left. */
  get left(): number {
    return this.#steps;
  }

  /** Takes `steps` from the budget. Throws WorkExceeded if fewer are left. */
  spend(steps = 1): void {
    this.#steps -= steps;
    if (this.#steps < 0) throw new WorkExceeded(this.#what);
  }
}

/** Maximum duration of sliced work in one turn of the event loop, milliseconds. */
const turnMs = 5;

/** Containment of faults in sliced work. */
const slices = { where: 'endpoint' } as const;

/**
 * The state that all sliced work shares: the time left in this turn of the event loop, and the
 * waiting work.
 */
class SharedTurns {
  readonly #clock: Pick<Clock, 'monotonic'>;
  /** Work that has paused once. It alternates with the rest, so that short work finishes soon. */
  readonly #fresh: (() => void)[] = [];
  readonly #others: (() => void)[] = [];
  #endMs = 0;
  #isOpen = false;
  #lastResumed: 'fresh' | 'others' = 'others';

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  get over(): boolean {
    const nowMs = this.#clock.monotonic();
    if (!this.#isOpen) this.#open(nowMs);
    return nowMs >= this.#endMs;
  }

  begin(): void {
    if (!this.#isOpen) this.#open(this.#clock.monotonic());
  }

  wait(resume: () => void, as: 'fresh' | 'others'): void {
    (as === 'fresh' ? this.#fresh : this.#others).push(resume);
    this.begin();
  }

  #open(nowMs: number): void {
    this.#isOpen = true;
    this.#endMs = nowMs + turnMs;
    deferTask(this.#next);
  }

  /** Starts a later turn of the event loop with the work that has waited longest. */
  readonly #next = contained(slices, () => {
    this.#isOpen = false;
    this.#resumeOne();
  });

  /** Passes the rest of the turn to the next waiting work. */
  readonly #continue = contained(slices, () => {
    if (!this.over) this.#resumeOne();
  });

  #resumeOne(): void {
    const takesFresh =
      this.#fresh.length > 0 && (this.#lastResumed === 'others' || this.#others.length === 0);
    const resume = (takesFresh ? this.#fresh : this.#others).shift();
    if (resume === undefined) return;
    this.#lastResumed = takesFresh ? 'fresh' : 'others';
    if (!this.#isOpen) this.#open(this.#clock.monotonic());
    resume();
    queueMicrotask(this.#continue);
  }
}

const sharedTurns = new WeakMap<Pick<Clock, 'monotonic'>, SharedTurns>();

function turnsOn(clock: Pick<Clock, 'monotonic'>): SharedTurns {
  let turns = sharedTurns.get(clock);
  if (turns === undefined) {
    turns = new SharedTurns(clock);
    sharedTurns.set(clock, turns);
  }
  return turns;
}

/**
 * Divides long work into slices, between which the event loop serves others (TRUST-2). All sliced
 * work on one clock shares one slice in each turn of the event loop, regardless of the number of
 * requests: paused work continues one task per turn.
 */
export class Slices {
  readonly #turns: SharedTurns;
  readonly #resumed: (() => void) | undefined;
  #hasPaused = false;

  /** @param resumed called when `pause` ends; it may throw to abandon the work */
  constructor(clock: Pick<Clock, 'monotonic'>, resumed?: () => void) {
    this.#turns = turnsOn(clock);
    this.#resumed = resumed;
  }

  /** Starts the slice of this turn, which otherwise starts at the first call of `isOver`. */
  begin(): this {
    this.#turns.begin();
    return this;
  }

  /** Whether the slice is used up. Reads the clock, so call it once per item, not once per byte. */
  get over(): boolean {
    return this.#turns.over;
  }

  /** Resolves in a later turn of the event loop, at the start of the next slice. */
  pause(): Promise<void> {
    const pause = new Promise<void>((resolve) => this.afterPause(resolve));
    return this.#resumed === undefined ? pause : pause.then(this.#resumed);
  }

  /** Calls `resume` when `pause` would resolve. */
  afterPause(resume: () => void): void {
    this.#turns.wait(resume, this.#hasPaused ? 'others' : 'fresh');
    this.#hasPaused = true;
  }
}

/**
 * Runs work in slices: synchronously if one slice suffices, otherwise over several turns of the
 * event loop. The generator yields wherever it may pause.
 */
export function runInSlices<Result>(
  work: Iterator<void, Result>,
  clock: Pick<Clock, 'monotonic'>,
): MaybePromise<Result> {
  const slices = new Slices(clock);
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
    if (slices.over) return continueInSlices(work, slices);
  }
}

/** Decides where long work pauses. */
export interface Pace {
  /** Whether the slice is used up. */
  readonly over: boolean;
  /** Resolves at the start of the next slice. */
  pause(): Promise<void>;
}

/** Size in bytes from which work on an object is sliced. */
export const pacedBytesMin = 16_384;

/** Returns the pace for an object of `bytes` bytes of JSON; undefined if it needs no slices. */
export function paceFor(clock: Pick<Clock, 'monotonic'>, bytes: number): Pace | undefined {
  return bytes < pacedBytesMin ? undefined : new Slices(clock).begin();
}

/** Runs work at a pace that the steps of a request share, or in one piece without a pace. */
export function runAtPace<Result>(
  work: Iterator<void, Result>,
  pace: Pace | undefined,
): MaybePromise<Result> {
  return pace === undefined ? runInOnePiece(work) : continueInSlices(work, pace);
}

async function continueInSlices<Result>(
  work: Iterator<void, Result>,
  slices: Pace,
): Promise<Result> {
  for (;;) {
    if (slices.over) await slices.pause();
    const step = work.next();
    if (step.done === true) return step.value;
  }
}

/** Runs the generator in one piece, for small objects and for callers with no other work. */
export function runInOnePiece<Result>(work: Iterator<void, Result>): Result {
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
  }
}

/** Bytes that one step of `concatSteps` copies, less than a millisecond of work. */
const copiedBytes = 1024 * 1024;

/** `Buffer.concat` in steps, for many megabytes. */
export function* concatSteps(pieces: readonly Buffer[]): Generator<void, Buffer> {
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  if (length <= copiedBytes) return Buffer.concat(pieces, length);
  const whole = Buffer.allocUnsafeSlow(length);
  let at = 0;
  let pauseAt = copiedBytes;
  for (const piece of pieces) {
    for (let from = 0; from < piece.length; from += copiedBytes) {
      at += piece.copy(whole, at, from, from + copiedBytes);
      if (at < pauseAt) continue;
      yield;
      pauseAt = at + copiedBytes;
    }
  }
  return whole;
}

import type { Clock } from './clock.ts';
import { contained, type MaybePromise } from './faults.ts';
import { deferTask } from './host.ts';

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

/** How long the sliced work of one turn of the event loop may take, in milliseconds. */
const turnMs = 5;

/** Faults that the work in a slice does not contain itself. */
const slices = { where: 'endpoint' } as const;

/** What all sliced work shares: the time it has in this turn of the loop, and whose turn is next. */
class SharedTurns {
  readonly #clock: Pick<Clock, 'monotonic'>;
  /** Work that has paused once. It alternates with the rest, so that short work ends soon. */
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

  /** Begins a later turn of the loop with whoever waits longest. */
  readonly #next = contained(slices, () => {
    this.#isOpen = false;
    this.#resumeOne();
  });

  /** What is left of the turn when one has had enough is the next one's. */
  readonly #goOn = contained(slices, () => {
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
    queueMicrotask(this.#goOn);
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
 * work on one clock shares one slice in each turn of the loop, however many requests do such work:
 * those whose slice is over continue one a turn.
 */
export class Slices {
  readonly #turns: SharedTurns;
  #hasPaused = false;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#turns = turnsOn(clock);
  }

  /** Begins the slice of this turn, which else begins where somebody first asks whether it is over. */
  begin(): this {
    this.#turns.begin();
    return this;
  }

  /** Whether the slice is used up. Reads the clock: ask once per item, not once per byte. */
  get over(): boolean {
    return this.#turns.over;
  }

  /** Resolves in a later turn of the event loop, at the beginning of the next slice. */
  pause(): Promise<void> {
    return new Promise((resolve) => this.afterPause(resolve));
  }

  /** Calls `resume` where `pause` would resolve. */
  afterPause(resume: () => void): void {
    this.#turns.wait(resume, this.#hasPaused ? 'others' : 'fresh');
    this.#hasPaused = true;
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

/** Where one piece of long work may pause: `Slices`, or slices that also look after a request. */
export interface Pace {
  /** Whether the slice is used up. */
  readonly over: boolean;
  /** Resolves at the beginning of the next slice. */
  pause(): Promise<void>;
}

/** Bytes from which on the work on an object pauses between its steps. */
export const pacedBytesMin = 16_384;

/** The pace of work on an object of so many bytes of JSON; undefined for one that is done at once. */
export function paceFor(clock: Pick<Clock, 'monotonic'>, bytes: number): Pace | undefined {
  return bytes < pacedBytesMin ? undefined : new Slices(clock).begin();
}

/** Runs work at a pace that other steps of the same request share; without one, in one piece. */
export function atPace<Result>(
  work: Iterator<void, Result>,
  pace: Pace | undefined,
): MaybePromise<Result> {
  return pace === undefined ? inOnePiece(work) : continued(work, pace);
}

async function continued<Result>(work: Iterator<void, Result>, slices: Pace): Promise<Result> {
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

/** Whoever the thread may be working for. */
interface Occupant {
  /** Path and query as received. */
  readonly url: string;
  /** Name of the user; undefined while nobody has been authenticated. */
  readonly userName?: string | undefined;
}

/**
 * Remembers for whom the thread has worked longest without a break, so that a report of a blocked
 * event loop can name a request (TRUST-2). A request enters where its work begins or resumes, which
 * costs a look at the clock; what runs between two entries counts for the former.
 */
export class LoopOccupancy {
  readonly #clock: Pick<Clock, 'monotonic'>;
  #current: Occupant | undefined;
  #sinceMs = 0;
  #longest: Occupant | undefined;
  #longestMs = 0;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** The thread works for `occupant` from here on. */
  enter(occupant: Occupant): void {
    this.#close(this.#clock.monotonic());
    this.#current = occupant;
  }

  /** Who had the thread longest since the last call, and for how many milliseconds. */
  takeLongest(): { readonly occupant: Occupant; readonly heldMs: number } | undefined {
    this.#close(this.#clock.monotonic());
    const occupant = this.#longest;
    const heldMs = this.#longestMs;
    this.#current = undefined;
    this.#longest = undefined;
    this.#longestMs = 0;
    return occupant === undefined ? undefined : { occupant, heldMs };
  }

  #close(nowMs: number): void {
    const heldMs = nowMs - this.#sinceMs;
    this.#sinceMs = nowMs;
    if (this.#current === undefined || heldMs <= this.#longestMs) return;
    this.#longest = this.#current;
    this.#longestMs = heldMs;
  }
}

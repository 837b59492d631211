import { createHash, type Hash } from 'node:crypto';
import { type Clock, FakeClock, type Timer } from '../../../src/base/clock.ts';
import { type Random, randomOf } from '../../fuzz/random.ts';

/** Something that happens when the schedule picks it: a call arrives, an answer returns. */
interface Delivery {
  readonly owner: object;
  readonly run: () => void;
}

/**
 * The schedule of one history: a clock that only the history moves, everything that is under way,
 * and one source of choices. `digest` tells whether two histories of one seed were equal.
 */
export class World {
  readonly random: Random;
  readonly clock = new FakeClock();
  /** Whether calls may fail; the end of a history is calm, so that everything can settle. */
  isStormy = true;
  readonly #hash: Hash = createHash('sha256');
  #deliveries: Delivery[] = [];
  #violation: Error | undefined;

  constructor(seed: number) {
    this.random = randomOf(seed);
  }

  /** Number of deliveries under way. */
  get pending(): number {
    return this.#deliveries.length;
  }

  /** Has `run` called at some later step; never, when its owner is dropped before. */
  later(owner: object, run: () => void): void {
    this.#deliveries.push({ owner, run });
  }

  /** Delivers one thing that is under way, whichever; false when there is none. */
  deliver(): boolean {
    const at = this.random.below(this.#deliveries.length);
    const [chosen] = this.#deliveries.splice(at, 1);
    chosen?.run();
    return chosen !== undefined;
  }

  /** Forgets what is under way to or from an owner. */
  drop(owner: object): void {
    this.#deliveries = this.#deliveries.filter((one) => one.owner !== owner);
  }

  /** True with a probability while the storm lasts. */
  strikes(probability: number): boolean {
    return this.random.chance(probability) && this.isStormy;
  }

  /** The first guarantee that did not hold, from wherever it was noticed. */
  get violation(): Error | undefined {
    return this.#violation;
  }

  /** Runs a check inside of a callback whose caller would take an exception for its own. */
  check(run: () => void): void {
    try {
      run();
    } catch (error) {
      this.#violation ??= error instanceof Error ? error : new Error(String(error));
    }
  }

  /** Adds a line to what is compared between two runs of one seed. */
  note(line: string): void {
    this.#hash.update(`${line}\n`);
  }

  digest(): string {
    return this.#hash.digest('hex').slice(0, 16);
  }
}

/** Lets what is ready to run do so. */
export async function settle(turns = 3): Promise<void> {
  for (let i = 0; i < turns; i++) await new Promise<void>((resolve) => setImmediate(resolve));
}

/** The clock of one process, whose timers end with it. */
export class ProcessClock implements Clock {
  readonly #clock: Clock;
  readonly #timers = new Set<Timer>();
  #isDead = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  now(): number {
    return this.#clock.now();
  }

  monotonic(): number {
    return this.#clock.monotonic();
  }

  after(delayMs: number, task: () => void): Timer {
    return this.#kept((done) =>
      this.#clock.after(delayMs, () => {
        done();
        task();
      }),
    );
  }

  every(periodMs: number, task: () => void): Timer {
    return this.#kept(() => this.#clock.every(periodMs, task));
  }

  kill(): void {
    this.#isDead = true;
    for (const timer of this.#timers) timer.stop();
    this.#timers.clear();
  }

  #kept(start: (done: () => void) => Timer): Timer {
    if (this.#isDead) return { stop: () => {} };
    const timer: Timer = start(() => this.#timers.delete(timer));
    this.#timers.add(timer);
    return {
      stop: () => {
        timer.stop();
        this.#timers.delete(timer);
      },
    };
  }
}

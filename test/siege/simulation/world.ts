import { type Clock, type Random, randomOf, type Timer } from '@wheelhouse/machinery';
import { FakeClock, type Host } from '@wheelhouse/machinery/testing';

/** An event that happens when the schedule picks it: a call arrives, or an answer returns. */
interface Delivery {
  readonly owner: object;
  readonly run: () => void;
}

/** Decides which of the possible faults a history has. */
export interface FaultPlan {
  /** Whether a fault strikes at this opportunity; called once for each. */
  strikes(probability: number): boolean;
}

/**
 * The schedule of one history: a clock that only the history moves, everything in flight, the tasks
 * that the server has deferred, and one source of choices. The trace of a history is a function of
 * its seed: nothing here depends on real time, and the history owns the host (host.ts).
 */
export class World {
  readonly random: Random;
  readonly clock = new FakeClock();
  /** Whether calls may fail; the end of a history is calm, so that everything can settle. */
  isStormy = false;
  readonly host: Host;
  readonly #plan: FaultPlan;
  readonly #trace: string[] = [];
  #deliveries: Delivery[] = [];
  #deferred: (() => void)[] = [];
  #violation: Error | undefined;

  constructor(options: { readonly random: Random; readonly hostSeed: number; plan: FaultPlan }) {
    this.random = options.random;
    this.#plan = options.plan;
    const chance = randomOf(options.hostSeed);
    this.host = {
      random: () => chance.below(2 ** 32) / 2 ** 32,
      randomUuid: () => uuidOf(chance),
      defer: (task) => void this.#deferred.push(task),
    };
  }

  /** Number of deliveries in flight. */
  get pending(): number {
    return this.#deliveries.length;
  }

  /** Schedules `run` for some later step, unless its owner is dropped before. */
  later(owner: object, run: () => void): void {
    this.#deliveries.push({ owner, run });
  }

  /** Delivers any one thing in flight; false if there is none. */
  deliver(): boolean {
    const at = this.random.below(this.#deliveries.length);
    const [chosen] = this.#deliveries.splice(at, 1);
    if (chosen === undefined) return false;
    this.note(`delivery ${at} of ${this.#deliveries.length + 1}`);
    chosen.run();
    return true;
  }

  /** Drops everything in flight to or from an owner. */
  drop(owner: object): void {
    this.#deliveries = this.#deliveries.filter((delivery) => delivery.owner !== owner);
  }

  /** Advances time. */
  advance(byMs: number): void {
    this.note(`${byMs} ms pass`);
    this.clock.advance(byMs);
  }

  /** Runs the currently deferred tasks and everything that follows from each; `turns` times. */
  async settle(turns = 1): Promise<void> {
    await microtasks();
    for (let i = 0; i < turns && this.#deferred.length > 0; i++) {
      for (const task of this.#deferred.splice(0)) {
        task();
        await microtasks();
      }
    }
  }

  /** Drops deferred tasks, because the only process that had any has ended. */
  dropDeferred(): void {
    this.#deferred = [];
  }

  /** Settles and delivers until a promise settles. */
  async settled<Value>(promise: Promise<Value>): Promise<Value> {
    let isSettled = false;
    const settle = () => {
      isSettled = true;
    };
    promise.then(settle, settle);
    for (let turn = 0; !isSettled; turn++) {
      if (turn === stuckTurns) throw new Error('a start waits for something that does not come');
      await this.settle();
      this.deliver();
    }
    return promise;
  }

  /** Whether a fault of some probability happens here; never while it is calm. */
  strikes(probability: number): boolean {
    return this.isStormy && this.#plan.strikes(probability);
  }

  /** The first violated guarantee, from any check. */
  get violation(): Error | undefined {
    return this.#violation;
  }

  /** Records a violation that no check found: an unexpected exception. */
  fail(error: unknown): void {
    this.#violation ??= error instanceof Error ? error : new Error(String(error));
  }

  /** Runs a check inside a callback whose caller would handle its exception. */
  check(run: () => void): void {
    try {
      run();
    } catch (error) {
      this.fail(error);
    }
  }

  /** Adds a line to the trace, by which two runs of one seed are compared. */
  note(line: string): void {
    this.#trace.push(line);
  }

  get trace(): readonly string[] {
    return this.#trace;
  }
}

const stuckTurns = 1000;

/** Resolves when no microtasks are left; the server waits for nothing else by itself. */
function microtasks(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function uuidOf(chance: Random): string {
  const hex = (length: number) =>
    chance
      .below(16 ** length)
      .toString(16)
      .padStart(length, '0');
  return `${hex(8)}-${hex(4)}-4${hex(3)}-8${hex(3)}-${hex(6)}${hex(6)}`;
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

import { contained, type FaultPlace, whenAborted } from './faults.ts';
import { nextTurn } from './host.ts';

/** A timer. Stopping it is idempotent. */
export interface Timer {
  stop(): void;
}

/**
 * The only source of time. Code that waits or takes timestamps receives a Clock, so that tests can
 * drive it.
 *
 * Calendar time (timestamps, expiry of credentials and certificates) comes from `now`. Durations
 * (timeouts, lifetimes in caches, rates, measurements) come from `monotonic`, because the wall
 * clock may be set forward or back and advances while the machine is suspended (TRUST-9).
 */
export interface Clock {
  /** Wall time in milliseconds since the epoch, with a fraction; follows the system clock. */
  now(): number;
  /** Milliseconds since an arbitrary moment; never decreases. */
  monotonic(): number;
  /** Runs `task` once after `delayMs`; never keeps the process alive on its own. */
  after(delayMs: number, task: () => void): Timer;
  /** Runs `task` every `periodMs` until stopped; never keeps the process alive on its own. */
  every(periodMs: number, task: () => void): Timer;
}

/**
 * Maximum lead of the fine clock over the system clock, to which it is then reset, milliseconds.
 */
const aheadMsMax = 5;

/**
 * Returns wall time with the system clock's milliseconds and a finer fraction. The fine clock
 * counts from the last reading of the system clock and is reset when the two disagree.
 * @param host.wall reads the system clock, whole milliseconds since the epoch
 * @param host.monotonic reads a monotonic clock, milliseconds with a fraction
 */
export function wallClock(host: { wall: () => number; monotonic: () => number }): () => number {
  let offset = host.wall() - host.monotonic();
  return () => {
    const wall = host.wall();
    const fine = offset + host.monotonic();
    if (fine >= wall && fine <= wall + aheadMsMax) return fine;
    offset += wall - fine;
    return wall;
  };
}

const timers = { where: 'timer' } as const;

/** Maximum delay of Node's timers in milliseconds; they replace a longer delay by 1 ms. */
export const delayMsMax = 2 ** 31 - 1;

/**
 * Delay in milliseconds from which a stopped timer removes its list. Node keeps the list of a delay
 * until the delay has passed, even without timers, unless its last timer kept the process alive:
 * watches that are closed early, each with a random timeout of up to an hour, would leave up to
 * 1.8 million lists, 160 bytes each.
 */
const removedFromMs = 10_000;

/** Calls `task` once after a delay of any length. */
function anyDelay(options: {
  readonly delayMs: number;
  readonly task: () => void;
  readonly keepsProcess: boolean;
}): Timer {
  const { delayMs, task, keepsProcess } = options;
  let handle: NodeJS.Timeout;
  const wait = (leftMs: number): void => {
    const isLast = !(leftMs > delayMsMax);
    const next = isLast ? task : () => wait(leftMs - delayMsMax);
    handle = setTimeout(contained(timers, next), isLast ? leftMs : delayMsMax);
    if (!keepsProcess) handle.unref();
  };
  wait(delayMs);
  const stop = () => {
    if (delayMs >= removedFromMs) handle.ref();
    clearTimeout(handle);
  };
  return { stop };
}

/** Calls `task` periodically with a period that exceeds those of Node's intervals. */
function longInterval(periodMs: number, task: () => void): Timer {
  const wait = (): Timer =>
    systemClock.after(periodMs, () => {
      // First, because the task may stop the timer.
      timer = wait();
      task();
    });
  let timer = wait();
  return { stop: () => timer.stop() };
}

/** The system clock. An exception in a task is contained, and a periodic task runs again. */
export const systemClock: Clock = {
  now: wallClock({ wall: () => Date.now(), monotonic: () => performance.now() }),
  monotonic: () => performance.now(),
  after: (delayMs, task) => anyDelay({ delayMs, task, keepsProcess: false }),
  every(periodMs, task) {
    if (periodMs > delayMsMax) return longInterval(periodMs, task);
    const handle = setInterval(contained(timers, task), periodMs).unref();
    return { stop: () => clearInterval(handle) };
  },
};

/** Like `systemClock`, but pending timers keep the process alive, for programs that only wait. */
export const programClock: Clock = {
  ...systemClock,
  after: (delayMs, task) => anyDelay({ delayMs, task, keepsProcess: true }),
};

/**
 * Keeps the process alive until the returned function is called. The timers of clocks do not, so a
 * process that waits for its store at startup would end.
 */
export function holdProcess(): () => void {
  const handle = setInterval(() => {}, 60_000);
  return () => clearInterval(handle);
}

/** An operation with a deadline. */
export interface DeadlineEntry {
  /** The deadline in monotonic milliseconds. It may change while the entry is listed. */
  readonly dueMs: number;
  /** Index in the list, which maintains it; -1 if it is not listed. */
  place: number;
  /** Called after the deadline, when the entry has been removed from the list. */
  expire(): void;
}

/**
 * A deadline counts as passed this many milliseconds early. Timers have millisecond resolution and
 * may fire early, so an operation that ends at its deadline could otherwise find time left.
 */
export const deadlineEarlyMs = 2;

/** Maximum delay of an expiration after its deadline, milliseconds. */
const precisionMs = 50;

/**
 * Expires entries after their deadlines. Adding and removing take constant time and no timer,
 * because most operations end long before their deadlines: a periodic scan finds the exceptions,
 * and does not run while the list is empty.
 */
export class Deadlines {
  readonly #clock: Clock;
  readonly #open: DeadlineEntry[] = [];
  #scanTimer: Timer | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(entry: DeadlineEntry): void {
    entry.place = this.#open.push(entry) - 1;
    this.#scanTimer ??= this.#clock.every(precisionMs, this.#scan);
  }

  /** Does nothing for an entry that is not listed. */
  remove(entry: DeadlineEntry): void {
    const { place } = entry;
    if (place < 0) return;
    entry.place = -1;
    const last = this.#open.pop() as DeadlineEntry;
    if (last === entry) return;
    this.#open[place] = last;
    last.place = place;
  }

  readonly #scan = (): void => {
    if (this.#open.length === 0) {
      this.#scanTimer?.stop();
      this.#scanTimer = undefined;
      return;
    }
    const now = this.#clock.monotonic();
    for (const entry of this.#open.filter(({ dueMs }) => dueMs <= now)) {
      // An earlier entry's `expire` may have removed it.
      if (entry.place < 0) continue;
      this.remove(entry);
      entry.expire();
    }
  };
}

/**
 * Waits for a time on a clock. Rejects with the signal's reason if that aborts first.
 * @param options.where the place that is reported for a fault in the signal's listener
 */
export function pause(
  clock: Pick<Clock, 'after'>,
  options: {
    readonly ms: number;
    readonly signal?: AbortSignal | undefined;
    readonly where?: FaultPlace;
  },
): Promise<void> {
  const { ms, signal, where = 'timer' } = options;
  return new Promise((resolve, reject) => {
    const stop = () => {
      timer.stop();
      reject(signal?.reason);
    };
    const timer = clock.after(ms, () => {
      release?.();
      resolve();
    });
    const release = signal === undefined ? undefined : whenAborted(signal, { where }, stop);
  });
}

/**
 * Resolves when a task does, or after `ms` milliseconds; rejects if the task rejects earlier.
 */
export function waitAtMost(
  clock: Pick<Clock, 'after'>,
  ms: number,
  task: Promise<unknown>,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = clock.after(ms, resolve);
    task.then(() => resolve(), reject).finally(() => timer.stop());
  });
}

/** The end of the year 9999, the last whose times RFC 3339 can write. */
const timeMsMax = Date.UTC(10_000, 0) - 1;
/** Maximum number of steps of an advance, and the minimum length of a step. */
const stepsMax = 100;
const stepMsMin = 1000;
/**
 * Turns of the event loop after each step, in which the work that its timers started can proceed.
 */
const turnsAfterStep = 2;

interface Pending {
  readonly task: () => void;
  readonly periodMs: number | undefined;
  /** In this clock's monotonic milliseconds. */
  dueMs: number;
  handle: Timer | undefined;
}

/**
 * A clock that follows another one and can be advanced beyond it (PLANE-4). Both kinds of time
 * advance, as on a host that was suspended: due tasks run immediately, in order of time, a periodic
 * one once for each step of an advance.
 */
export class MovableClock implements Clock {
  readonly #host: Clock;
  readonly #pending = new Set<Pending>();
  #offsetMs = 0;

  constructor(host: Clock = systemClock) {
    this.#host = host;
  }

  now(): number {
    return this.#host.now() + this.#offsetMs;
  }

  monotonic(): number {
    return this.#host.monotonic() + this.#offsetMs;
  }

  after(delayMs: number, task: () => void): Timer {
    return this.#add({ delayMs, task, periodMs: undefined });
  }

  every(periodMs: number, task: () => void): Timer {
    return this.#add({ delayMs: periodMs, task, periodMs });
  }

  /**
   * Advances time in steps, between which the event loop turns, so that a lease that is renewed in
   * time survives an advance of any length. Rejects with RangeError unless `byMs` is a finite
   * number of milliseconds that is not negative and ends within the year 9999.
   */
  async advance(byMs: number): Promise<void> {
    if (!Number.isFinite(byMs) || byMs < 0) {
      throw new RangeError(`a clock cannot be advanced by ${byMs} ms`);
    }
    if (this.now() + byMs > timeMsMax) {
      throw new RangeError(`a clock cannot be advanced by ${byMs} ms, beyond the year 9999`);
    }
    const stepMs = Math.max(byMs / stepsMax, stepMsMin);
    for (let leftMs = byMs; leftMs > 0; leftMs -= stepMs) {
      this.#offsetMs += Math.min(stepMs, leftMs);
      this.#runDue();
      for (let turn = 0; turn < turnsAfterStep; turn += 1) await nextTurn();
    }
    for (const timer of this.#pending) this.#arm(timer);
  }

  #add(options: { delayMs: number; task: () => void; periodMs: number | undefined }): Timer {
    const { delayMs, periodMs } = options;
    const task = contained({ where: 'timer' }, options.task);
    const timer: Pending = {
      task,
      periodMs,
      dueMs: this.monotonic() + Math.max(delayMs, 0),
      handle: undefined,
    };
    this.#pending.add(timer);
    this.#arm(timer);
    const stop = () => {
      this.#pending.delete(timer);
      timer.handle?.stop();
    };
    return { stop };
  }

  #arm(timer: Pending): void {
    timer.handle?.stop();
    const delayMs = Math.min(Math.max(timer.dueMs - this.monotonic(), 0), delayMsMax);
    timer.handle = this.#host.after(delayMs, () => this.#elapsed(timer));
  }

  #elapsed(timer: Pending): void {
    // Timers have millisecond resolution and may fire a fraction early.
    if (timer.dueMs - this.monotonic() >= 1) this.#arm(timer);
    else this.#fire(timer);
  }

  #fire(timer: Pending): void {
    if (timer.periodMs === undefined) {
      this.#pending.delete(timer);
      timer.handle?.stop();
    } else {
      timer.dueMs = Math.max(timer.dueMs + timer.periodMs, this.monotonic());
      this.#arm(timer);
    }
    timer.task();
  }

  #runDue(): void {
    const now = this.monotonic();
    const due = [...this.#pending].filter(({ dueMs }) => dueMs <= now);
    // A task may stop another one that is due.
    for (const timer of due.sort((a, b) => a.dueMs - b.dueMs)) {
      if (this.#pending.has(timer)) this.#fire(timer);
    }
  }
}

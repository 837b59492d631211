import type { Clock } from './clock.ts';

/** Whoever the thread may be working for. */
export interface Occupant {
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

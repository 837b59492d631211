import type { Clock } from '@wheelhouse/machinery';
import { ConnectionError, errorCode } from './protocol.ts';

/** Frames that make work and carry nothing; sending DATA earns a client the updates it answers with. */
const idleFrames = { burst: 5000, perSecond: 1000 };
const earnedByData = 2;
/** Streams reset before their answer; an answer in full earns one back. */
const resets = { burst: 2000, perSecond: 100 };

/**
 * Bounds what one connection may ask for without using it. Both methods that spend throw a
 * ConnectionError with ENHANCE_YOUR_CALM when there is nothing left.
 */
export class FloodGuard {
  readonly #idleFrames: Budget;
  readonly #resets: Budget;

  constructor(clock: Clock) {
    this.#idleFrames = new Budget(clock, idleFrames);
    this.#resets = new Budget(clock, resets);
  }

  /** The client has sent a frame that is cheap for it and carries no request and no body. */
  idleFrame(): void {
    if (!this.#idleFrames.spend()) throw calm('frames that do nothing');
  }

  /** The client has reset a stream, or made us reset it. */
  reset(): void {
    if (!this.#resets.spend()) throw calm('streams opened and reset');
  }

  answered(): void {
    this.#resets.earn(1);
  }

  sentData(frames: number): void {
    this.#idleFrames.earn(frames * earnedByData);
  }
}

function calm(what: string): ConnectionError {
  return new ConnectionError(errorCode.enhanceYourCalm, `too many ${what}`);
}

/** So many at once, so many a second, and what is earned. Looks at the clock only when it is spent. */
class Budget {
  readonly #clock: Clock;
  readonly #burst: number;
  readonly #perSecond: number;
  #left: number;
  #filledAt: number;

  constructor(clock: Clock, { burst, perSecond }: { burst: number; perSecond: number }) {
    this.#clock = clock;
    this.#burst = burst;
    this.#perSecond = perSecond;
    this.#left = burst;
    this.#filledAt = clock.monotonic();
  }

  spend(): boolean {
    if (this.#left < 1) this.#refill();
    if (this.#left < 1) return false;
    this.#left -= 1;
    return true;
  }

  earn(some: number): void {
    this.#left = Math.min(this.#burst, this.#left + some);
  }

  #refill(): void {
    const now = this.#clock.monotonic();
    this.earn(((now - this.#filledAt) * this.#perSecond) / 1000);
    this.#filledAt = now;
  }
}

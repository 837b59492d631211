import { statfs } from 'node:fs';
import { promisify } from 'node:util';
import type { Clock, MaybePromise } from '@wheelhouse/machinery';
import { StoreError } from '../contract.ts';

const statfsAsync = promisify(statfs);

/** How long a look at the disk holds while nothing is wrong. */
const lookMs = 500;
const lowWaterBytesMax = 64 * 2 ** 20;
/** Of the disk; what small disks keep free. */
const lowWaterPart = 0.05;
/** Of the quota; use has to fall below it for the alarm to end. */
const quotaClearedPart = 0.8;

/** Why the store takes no more: its quota, or the disk's free space. */
export type SpaceAlarm = 'quota' | 'low-space';

/** What the store goes on with for a while when the disk is full. */
interface Reserve {
  /** Why it is not full. */
  readonly failure: StoreError | undefined;
  /** Tries to fill it; never rejects. */
  refill(): Promise<void>;
}

/**
 * Decides before a write that grows the store whether there is room for it (TRUST-8): below a
 * low-water mark of the disk, a twentieth of it and 64 MiB at most, and above a quota, there is not.
 */
export class SpaceGuard {
  readonly #directory: string;
  readonly #clock: Clock;
  readonly #quotaBytes: number;
  readonly #usedBytes: () => number;
  readonly #reserve: Reserve;
  #freeBytes = Number.POSITIVE_INFINITY;
  #lowWaterBytes = 0;
  #lookedAtMs = Number.NEGATIVE_INFINITY;
  #isOverQuota = false;
  /** The reserve's failure after the last look. */
  #judgedFailure: StoreError | undefined;

  constructor(options: {
    readonly directory: string;
    readonly clock: Clock;
    /** 0 for none. */
    readonly quotaBytes: number;
    readonly usedBytes: () => number;
    readonly reserve: Reserve;
  }) {
    this.#directory = options.directory;
    this.#clock = options.clock;
    this.#quotaBytes = options.quotaBytes;
    this.#usedBytes = options.usedBytes;
    this.#reserve = options.reserve;
  }

  /** As of the last look, so that who only reads about it costs nothing. */
  get alarms(): readonly SpaceAlarm[] {
    const alarms: SpaceAlarm[] = [];
    if (this.#isOverQuota) alarms.push('quota');
    if (this.#isLow) alarms.push('low-space');
    return alarms;
  }

  /** Undefined when `bytes` more may be written, or why not: StoreError `no-space`. */
  refusal(bytes: number): MaybePromise<StoreError | undefined> {
    const age = this.#clock.monotonic() - this.#lookedAtMs;
    if (age < lookMs && !this.#isLow) return this.#judge(bytes);
    return this.#look().then(() => this.#judge(bytes));
  }

  get #isLow(): boolean {
    return this.#freeBytes < this.#lowWaterBytes || this.#isReserveShort;
  }

  /** A user's quota, say, is not seen in the free space of the disk. */
  get #isReserveShort(): boolean {
    return this.#reserve.failure?.code === 'no-space';
  }

  #judge(bytes: number): StoreError | undefined {
    if (this.#quotaBytes > 0) {
      const used = this.#usedBytes();
      if (used + bytes > this.#quotaBytes) this.#isOverQuota = true;
      else if (used < this.#quotaBytes * quotaClearedPart) this.#isOverQuota = false;
      if (this.#isOverQuota) return overQuota(used, this.#quotaBytes);
    }
    if (!this.#isLow) return undefined;
    return lowSpace(this.#freeBytes, this.#lowWaterBytes);
  }

  async #look(): Promise<void> {
    try {
      const { bavail, blocks, bsize } = await statfsAsync(this.#directory);
      const hasMore = bavail * bsize > this.#freeBytes;
      const age = this.#clock.monotonic() - this.#lookedAtMs;
      this.#freeBytes = bavail * bsize;
      this.#lowWaterBytes = Math.min(lowWaterBytesMax, blocks * bsize * lowWaterPart);
      // Space may have come since a failure that no look has seen, without more than at the last look.
      const isNew = this.#reserve.failure !== this.#judgedFailure;
      if (this.#isReserveShort && (hasMore || isNew || age >= lookMs)) await this.#reserve.refill();
      this.#judgedFailure = this.#reserve.failure;
    } catch {
      // A host that cannot say how much is free refuses the write itself when nothing is.
      this.#freeBytes = Number.POSITIVE_INFINITY;
    }
    this.#lookedAtMs = this.#clock.monotonic();
  }
}

const advice = 'objects can still be read and deleted';

function overQuota(used: number, quota: number): StoreError {
  const message =
    `the store uses ${used} of the ${quota} bytes that --quota-backend-bytes allows:` +
    ` nothing was written; ${advice}`;
  return new StoreError({ code: 'no-space', message });
}

function lowSpace(free: number, lowWater: number): StoreError {
  const message =
    `the disk of the store has no space left (${free} bytes are free,` +
    ` ${Math.ceil(lowWater)} are kept in reserve): nothing was written; ${advice}`;
  return new StoreError({ code: 'no-space', message });
}

import { statfs } from 'node:fs';
import { promisify } from 'node:util';
import { type Clock, type MaybePromise, systemErrorCode } from '@wheelhouse/machinery';
import { StoreError } from '../contract.ts';

const statfsAsync = promisify(statfs);

/** Validity of a measurement of free space, milliseconds. */
const measurementMs = 500;
const lowWaterBytesMax = 64 * 2 ** 20;
/** Fraction of a small disk that stays free. */
const lowWaterFraction = 0.05;
/** Fraction of the quota below which the alarm ends. */
const quotaClearedFraction = 0.8;

/** Why the store refuses to grow: its quota or the disk's free space. */
export type SpaceAlarm = 'quota' | 'low-space';

/** The reserve from which the store can continue on a full disk. */
interface Reserve {
  /** Why the last refill failed. */
  readonly failure: StoreError | undefined;
  /** Refills it if possible; never rejects. */
  refill(): Promise<void>;
}

/**
 * Decides whether a write may grow the store (TRUST-8). It may not while the disk's free space is
 * below a low-water mark (a twentieth of the disk, at most 64 MiB) or the store is above its quota.
 */
export class SpaceGuard {
  readonly #directory: string;
  readonly #clock: Clock;
  readonly #quotaBytes: number;
  readonly #usedBytes: () => number;
  readonly #reserve: Reserve;
  #freeBytes = Number.POSITIVE_INFINITY;
  #lowWaterBytes = 0;
  #measuredAtMs = Number.NEGATIVE_INFINITY;
  #isOverQuota = false;
  /** The reserve's failure at the last measurement. */
  #measuredFailure: StoreError | undefined;

  constructor(options: {
    readonly directory: string;
    readonly clock: Clock;
    /** 0 for no quota. */
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

  /** The alarms as of the last measurement; reading them does not access the disk. */
  get alarms(): readonly SpaceAlarm[] {
    const alarms: SpaceAlarm[] = [];
    if (this.#isOverQuota) alarms.push('quota');
    if (this.#isLow) alarms.push('low-space');
    return alarms;
  }

  /** Returns StoreError `no-space`, or undefined if `bytes` more may be written. */
  refusal(bytes: number): MaybePromise<StoreError | undefined> {
    const age = this.#clock.monotonic() - this.#measuredAtMs;
    if (age < measurementMs && !this.#isLow) return this.#refusalOf(bytes);
    return this.#measure().then(() => this.#refusalOf(bytes));
  }

  get #isLow(): boolean {
    return this.#freeBytes < this.#lowWaterBytes || this.#isReserveShort;
  }

  /** Detects limits that the disk's free space does not show, such as a user's disk quota. */
  get #isReserveShort(): boolean {
    return this.#reserve.failure?.code === 'no-space';
  }

  #refusalOf(bytes: number): StoreError | undefined {
    if (this.#quotaBytes > 0) {
      const used = this.#usedBytes();
      if (used + bytes > this.#quotaBytes) this.#isOverQuota = true;
      else if (used < this.#quotaBytes * quotaClearedFraction) this.#isOverQuota = false;
      if (this.#isOverQuota) return overQuota(used, this.#quotaBytes);
    }
    if (!this.#isLow) return undefined;
    return lowSpace(this.#freeBytes, this.#lowWaterBytes);
  }

  async #measure(): Promise<void> {
    try {
      const { bavail, blocks, bsize } = await statfsAsync(this.#directory);
      const hasGrown = bavail * bsize > this.#freeBytes;
      const age = this.#clock.monotonic() - this.#measuredAtMs;
      this.#freeBytes = bavail * bsize;
      this.#lowWaterBytes = Math.min(lowWaterBytesMax, blocks * bsize * lowWaterFraction);
      // A failure after the last measurement may be outdated even if free space has not grown
      // since.
      const isNew = this.#reserve.failure !== this.#measuredFailure;
      if (this.#isReserveShort && (hasGrown || isNew || age >= measurementMs))
        await this.#reserve.refill();
      this.#measuredFailure = this.#reserve.failure;
    } catch {
      // If the system cannot report free space, the write itself fails when there is none.
      this.#freeBytes = Number.POSITIVE_INFINITY;
    }
    this.#measuredAtMs = this.#clock.monotonic();
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

const spaceCodes: ReadonlySet<unknown> = new Set(['ENOSPC', 'EDQUOT', 'EFBIG']);

/** Whether the system refused a write because the disk is full or a quota is reached. */
function isOutOfSpace(error: unknown): boolean {
  if (error instanceof StoreError) return error.code === 'no-space';
  return spaceCodes.has(systemErrorCode(error));
}

/** Converts a system error to a StoreError; returns StoreErrors unchanged. */
export function toStoreError(error: unknown, action: 'read' | 'write'): StoreError {
  if (error instanceof StoreError) return error;
  const { code, syscall, message: systemMessage } = error as NodeJS.ErrnoException;
  // The system's message contains paths, which clients must not see.
  const text = code === undefined ? systemMessage : [code, syscall].join(' ').trim();
  if (isOutOfSpace(error)) {
    const message = `the disk of the store has no space left: ${text}`;
    return new StoreError({ code: 'no-space', message, cause: error });
  }
  const message = `the disk of the store failed to ${action}: ${text}`;
  return new StoreError({ code: 'disk-failed', message, cause: error });
}

import type { Clock } from '@wheelhouse/machinery';
import type { EtcdClient } from './client.ts';
import { methods } from './protocol.ts';

/** Keys of one lease at most, as upstream. */
const keysMax = 1000;
/** A lease is given to keys for this share of its life at most. */
const reuseShare = 0.05;

/**
 * Leases by which keys go away by themselves. Keys that come together share one, which lives a
 * little longer for it: until its last key is old enough.
 */
export class KeyLeases {
  readonly #client: EtcdClient;
  readonly #clock: Clock;
  readonly #ttlSeconds: number;
  readonly #reuseSeconds: number;
  #granted: Promise<number | bigint> | undefined;
  #keys = 0;
  #reusableUntilMs = 0;

  constructor(options: {
    readonly client: EtcdClient;
    readonly clock: Clock;
    readonly ttlMs: number;
    readonly reuseMs: number;
  }) {
    this.#client = options.client;
    this.#clock = options.clock;
    this.#ttlSeconds = Math.max(1, Math.ceil(options.ttlMs / 1000));
    const reuse = Math.min(options.reuseMs / 1000, this.#ttlSeconds * reuseShare);
    this.#reuseSeconds = Math.floor(reuse);
  }

  /** A lease that lives for the keys' time from now on. Rejects with the store's errors. */
  take(): Promise<number | bigint> {
    const nowMs = this.#clock.monotonic();
    this.#keys += 1;
    if (this.#granted !== undefined && this.#keys <= keysMax && nowMs < this.#reusableUntilMs) {
      return this.#granted;
    }
    this.#keys = 1;
    this.#reusableUntilMs = nowMs + this.#reuseSeconds * 1000;
    const granted = this.#grant();
    this.#granted = granted;
    granted.catch(() => {
      if (this.#granted === granted) this.#granted = undefined;
    });
    return granted;
  }

  /** A lease turned out to be gone: keys are given another one. */
  forget(): void {
    this.#granted = undefined;
  }

  async #grant(): Promise<number | bigint> {
    const ttlSeconds = this.#ttlSeconds + this.#reuseSeconds;
    const request = { ttlSeconds };
    const { id } = await this.#client.call(methods.leaseGrant, request, { repeatable: true });
    return id;
  }
}

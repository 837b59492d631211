import { type Clock, type Logger, silentLogger, type Timer } from '@wheelhouse/machinery';
import type { EtcdClient } from './client.ts';
import { isLeaseGone } from './errors.ts';
import { compareTarget, methods } from './protocol.ts';

/** A claim lasts as long as its process, and this much longer when the process dies. */
const sessionMs = 60_000;
const keepAliveMs = 20_000;
/** A process that ends does not wait longer for etcd to be told. */
const farewellMs = 2000;

/** Names that were claimed together. */
export interface Claim {
  /** Lets others have them. Never rejects: what is left over goes with the session. */
  release(): Promise<void>;
}

/**
 * Names of which at most one process of an etcd's has each at a time. A claim is a key that is made
 * on condition that it is absent, under a lease that this process keeps alive.
 */
export class EtcdClaims {
  readonly #client: EtcdClient;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #prefix: string;
  #session: Promise<number | bigint> | undefined;
  #timer: Timer | undefined;

  /** @param options.prefix how the claims' keys in etcd begin; nobody else may write there */
  constructor(options: {
    readonly client: EtcdClient;
    readonly clock: Clock;
    readonly prefix: string;
    readonly logger?: Logger;
  }) {
    this.#client = options.client;
    this.#clock = options.clock;
    this.#prefix = options.prefix;
    this.#logger = options.logger ?? silentLogger;
  }

  /** Claims all of the names or none; undefined when another has one. Rejects with StoreErrors. */
  async take(names: readonly string[]): Promise<Claim | undefined> {
    const lease = await this.#lease();
    try {
      return await this.#takeUnder(lease, names);
    } catch (error) {
      if (!isLeaseGone(error)) throw error;
      // The process stood still for longer than the session lasts.
      this.#end();
      return this.#takeUnder(await this.#lease(), names);
    }
  }

  /** Gives up all claims, as far as etcd can be told. */
  async close(): Promise<void> {
    const session = this.#session;
    this.#end();
    if (session === undefined) return;
    try {
      const options = { repeatable: true, timeoutMs: farewellMs };
      await this.#client.call(methods.leaseRevoke, { id: await session }, options);
    } catch (error) {
      this.#logger.debug(2, 'claims are left to expire', { error: String(error) });
    }
  }

  async #takeUnder(lease: number | bigint, names: readonly string[]): Promise<Claim | undefined> {
    const keys = [...new Set(names)].map((name) => this.#prefix + name);
    const { modRevision: target } = compareTarget;
    const answer = await this.#client.call(
      methods.txn,
      {
        compare: keys.map((key) => ({ key, target, modRevision: 0 })),
        success: keys.map((key) => ({ put: { key, lease } })),
      },
      { repeatable: false },
    );
    if (!answer.succeeded) return undefined;
    const revision = answer.header?.revision ?? 0;
    return { release: () => this.#release(keys, revision) };
  }

  async #release(keys: readonly string[], revision: number): Promise<void> {
    const { modRevision: target } = compareTarget;
    const request = {
      compare: keys.map((key) => ({ key, target, modRevision: revision })),
      success: keys.map((key) => ({ delete: { key } })),
    };
    try {
      await this.#client.call(methods.txn, request, { repeatable: true });
    } catch (error) {
      this.#logger.debug(2, 'a claim is left to its session', { error: String(error) });
    }
  }

  #lease(): Promise<number | bigint> {
    this.#session ??= this.#begin();
    return this.#session;
  }

  async #begin(): Promise<number | bigint> {
    try {
      const request = { ttlSeconds: sessionMs / 1000 };
      const { id } = await this.#client.call(methods.leaseGrant, request, { repeatable: true });
      this.#timer = this.#clock.every(keepAliveMs, () => this.#keepAlive(id));
      return id;
    } catch (error) {
      this.#session = undefined;
      throw error;
    }
  }

  #keepAlive(id: number | bigint): void {
    const stream = this.#client.stream(
      methods.leaseKeepAlive,
      { id },
      {
        onResponse: ({ ttlSeconds }) => {
          stream.close();
          if (ttlSeconds <= 0) this.#end();
        },
        // The next turn tries again; a session that is gone shows when it is used.
        onEnd: () => {},
      },
    );
  }

  #end(): void {
    this.#timer?.stop();
    this.#timer = undefined;
    this.#session = undefined;
  }
}

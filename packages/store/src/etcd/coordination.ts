import { type Clock, type Logger, silentLogger, type Timer } from '@wheelhouse/machinery';
import type { Compactor } from '../compactor.ts';
import type { Revision, Store } from '../contract.ts';
import type { EtcdClient } from './client.ts';
import { isLeaseExpired } from './errors.ts';
import { compareTarget, methods } from './protocol.ts';

/** Lifetime of a claim after its process has died, milliseconds. */
const sessionMs = 60_000;
const keepAliveMs = 20_000;
/** Maximum time that a stopping process waits for etcd, milliseconds. */
const closeTimeoutMs = 2000;

/** Names that were claimed together. */
export interface Claim {
  /** Releases the names. Never rejects: leftovers expire with the session. */
  release(): Promise<void>;
}

/**
 * Names that at most one process on an etcd holds at a time. A claim is a key that is created only
 * if it is absent, under a lease that this process keeps alive.
 */
export class EtcdClaims {
  readonly #client: EtcdClient;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #prefix: string;
  #session: Promise<number | bigint> | undefined;
  #timer: Timer | undefined;

  /** @param options.prefix prefix of the claims' keys in etcd; nobody else may write there */
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

  /** Claims all names or none; undefined if another process holds one. Rejects with StoreErrors. */
  async take(names: readonly string[]): Promise<Claim | undefined> {
    const lease = await this.#lease();
    try {
      return await this.#takeUnder(lease, names);
    } catch (error) {
      if (!isLeaseExpired(error)) throw error;
      // The session expires if the process is suspended for longer than its lifetime.
      this.#endSession();
      return this.#takeUnder(await this.#lease(), names);
    }
  }

  /** Releases all claims if etcd can be reached. */
  async close(): Promise<void> {
    const session = this.#session;
    this.#endSession();
    if (session === undefined) return;
    try {
      const options = { repeatable: true, timeoutMs: closeTimeoutMs };
      await this.#client.call(methods.leaseRevoke, { id: await session }, options);
    } catch (error) {
      this.#logger.debug(2, 'Releasing the claims failed; they expire with their session', {
        error: String(error),
      });
    }
  }

  async #takeUnder(lease: number | bigint, names: readonly string[]): Promise<Claim | undefined> {
    const keys = [...new Set(names)].map((name) => this.#prefix + name);
    const { modRevision: target } = compareTarget;
    const response = await this.#client.call(
      methods.txn,
      {
        compare: keys.map((key) => ({ key, target, modRevision: 0 })),
        success: keys.map((key) => ({ put: { key, lease } })),
      },
      { repeatable: false },
    );
    if (!response.succeeded) return undefined;
    const revision = response.header?.revision ?? 0;
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
      this.#logger.debug(2, 'Releasing a claim failed; it expires with its session', {
        error: String(error),
      });
    }
  }

  #lease(): Promise<number | bigint> {
    this.#session ??= this.#startSession();
    return this.#session;
  }

  async #startSession(): Promise<number | bigint> {
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
          if (ttlSeconds <= 0) this.#endSession();
        },
        // The next tick tries again; a lost session is detected on its next use.
        onEnd: () => {},
      },
    );
  }

  #endSession(): void {
    this.#timer?.stop();
    this.#timer = undefined;
    this.#session = undefined;
  }
}

/** kube-apiserver's key, outside the prefix, so that all compactors of one etcd share it. */
const turnKey = 'compact_rev_key';

/**
 * Compacts an etcd that several servers share (STORE-4): all of them try every `intervalMs`, and
 * the first one does it. The turn is the version of a key. A server that finds it unchanged since
 * its last attempt increments it and compacts to the revision of that attempt; the others record
 * the new version.
 *
 * Example: A and B have recorded turn 3. A increments it to 4 and compacts to the revision that A
 * recorded at turn 3. B finds 4 instead of 3 and records 4 and the current revision. One interval
 * later B tries to increment it to 5, but A has already done so unless it has stopped.
 */
export function startEtcdCompactor(options: {
  readonly client: EtcdClient;
  readonly store: Pick<Store, 'compact'>;
  readonly clock: Clock;
  readonly intervalMs: number;
  readonly logger?: Logger;
}): Compactor {
  const { client, store, clock, intervalMs, logger = silentLogger } = options;
  if (intervalMs <= 0) return { stop: () => {}, idle: async () => {} };
  let last: { readonly turn: number; readonly revision: Revision } = { turn: 0, revision: 0 };
  let round: Promise<void> | undefined;

  async function compact(): Promise<void> {
    const { turn, revision } = last;
    const request = {
      compare: [{ key: turnKey, target: compareTarget.version, version: turn }],
      success: [{ put: { key: turnKey, value: Buffer.from(String(revision)) } }],
      failure: [{ range: { key: turnKey } }],
    };
    const response = await client.call(methods.txn, request, { repeatable: false });
    const now = response.header?.revision ?? 0;
    if (!response.succeeded) {
      last = { turn: response.responses[0]?.range?.kvs[0]?.version ?? 0, revision: now };
      return;
    }
    last = { turn: turn + 1, revision: now };
    if (revision > 0) await store.compact(revision);
  }

  function tick(): void {
    round ??= compact()
      .catch((error: unknown) => {
        logger.warn('cannot compact etcd', { error: String(error) });
      })
      .finally(() => {
        round = undefined;
      });
  }

  const timer: Timer = clock.every(intervalMs, tick);
  return { stop: () => timer.stop(), idle: async () => round };
}

import { type Clock, type Logger, silentLogger, type Timer } from '@wheelhouse/machinery';
import type { Compactor } from '../compactor.ts';
import type { Revision, Store } from '../contract.ts';
import type { EtcdClient } from './client.ts';
import { isLeaseGone } from './errors.ts';
import { compareTarget, methods } from './protocol.ts';

/** Lifetime of a claim after its process has died, seconds. */
const sessionMs = 60_000;
const keepAliveMs = 20_000;
/** How long a stopping process waits for etcd, milliseconds. */
const farewellMs = 2000;

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
      if (!isLeaseGone(error)) throw error;
      // The process was suspended for longer than the session lasts.
      this.#end();
      return this.#takeUnder(await this.#lease(), names);
    }
  }

  /** Releases all claims if etcd can be reached. */
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
        // The next tick tries again; a lost session is detected on its next use.
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

/** kube-apiserver's key, outside the prefix, so that all compactors of this etcd take turns. */
const turnKey = 'compact_rev_key';

/**
 * Compacts an etcd that several servers share (STORE-4): all of them try every `intervalMs`, and
 * the first one does it. The turn is the version of a key. A server that finds it unchanged since
 * its last attempt increments it and compacts to the revision of that attempt; the others record
 * the new version.
 *
 * Example: A and B have seen turn 3. A increments it to 4 and compacts to the revision that A saw
 * at turn 3. B finds 4 instead of 3, records 4 and the current revision, and tries to make it 5 one
 * interval later; if A is alive, it has done so before.
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
  let seen: { readonly turn: number; readonly revision: Revision } = { turn: 0, revision: 0 };
  let round: Promise<void> | undefined;

  async function compact(): Promise<void> {
    const { turn, revision } = seen;
    const request = {
      compare: [{ key: turnKey, target: compareTarget.version, version: turn }],
      success: [{ put: { key: turnKey, value: Buffer.from(String(revision)) } }],
      failure: [{ range: { key: turnKey } }],
    };
    const answer = await client.call(methods.txn, request, { repeatable: false });
    const now = answer.header?.revision ?? 0;
    if (!answer.succeeded) {
      seen = { turn: answer.responses[0]?.range?.kvs[0]?.version ?? 0, revision: now };
      return;
    }
    seen = { turn: turn + 1, revision: now };
    if (revision > 0) await store.compact(revision);
  }

  function tick(): void {
    round ??= compact()
      .catch((error: unknown) => {
        logger.warn('Compacting etcd failed', { error: String(error) });
      })
      .finally(() => {
        round = undefined;
      });
  }

  const timer: Timer = clock.every(intervalMs, tick);
  return { stop: () => timer.stop(), idle: async () => round };
}

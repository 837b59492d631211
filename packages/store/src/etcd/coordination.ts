import {
  background,
  type Clock,
  type Logger,
  pause,
  silentLogger,
  type Timer,
} from '@wheelhouse/machinery';
import { type Compactor, startRounds } from '../compactor.ts';
import { type Revision, type Store, StoreError } from '../contract.ts';
import type { EtcdClient } from './client.ts';
import { isLeaseExpired } from './errors.ts';
import { compareTarget, methods } from './protocol.ts';

/** Lifetime of a claim after its process has died, milliseconds. */
const sessionMs = 60_000;
const keepAliveMs = 20_000;
/** Maximum time that a stopping process waits for etcd, milliseconds. */
const closeTimeoutMs = 2000;
/** Pause between attempts to revoke a lease, milliseconds. */
const revokeRetryMs = 1000;

/** Names that were claimed together. */
interface Claim {
  /** Releases the names. Never rejects: leftovers end with the session. */
  release(): Promise<void>;
}

/** A lease under which names are claimed. */
interface Session {
  readonly lease: Promise<number | bigint>;
  /** Keeps the lease alive; absent until it is granted. */
  timer?: Timer;
  /** Number of claims that are being taken or held. */
  claims: number;
}

/**
 * Names that at most one process on an etcd holds at a time. A claim is a key that is created only
 * if it is absent, under a lease that this process keeps alive.
 *
 * A failed call may leave keys in etcd. Their session then takes no more claims, and ends with the
 * last of those it has, so that the keys disappear.
 */
export class EtcdClaims {
  readonly #client: EtcdClient;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #prefix: string;
  /** The session of new claims. */
  #current: Session | undefined;
  /** All sessions that are kept alive. */
  readonly #sessions = new Set<Session>();

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
    try {
      return await this.#takeUnder(this.#session(), names);
    } catch (error) {
      if (!isLeaseExpired(error)) throw error;
      // The session expires if the process is suspended for longer than its lifetime.
      return this.#takeUnder(this.#session(), names);
    }
  }

  /** Releases all claims if etcd can be reached. */
  async close(): Promise<void> {
    this.#current = undefined;
    await Promise.all(
      [...this.#sessions].map(async (session) => {
        this.#stop(session);
        await this.#revoke(session, closeTimeoutMs).catch((error: unknown) => {
          this.#logger.debug(2, 'Releasing the claims failed; they expire with their session', {
            error: String(error),
          });
        });
      }),
    );
  }

  async #takeUnder(session: Session, names: readonly string[]): Promise<Claim | undefined> {
    let claim: Claim | undefined;
    session.claims += 1;
    try {
      claim = await this.#createKeys(session, names);
      return claim;
    } catch (error) {
      // etcd may have created the keys.
      this.#retire(session);
      throw error;
    } finally {
      if (claim === undefined) this.#leave(session);
    }
  }

  async #createKeys(session: Session, names: readonly string[]): Promise<Claim | undefined> {
    const lease = await session.lease;
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
    let isHeld = true;
    return {
      release: async () => {
        if (!isHeld) return;
        isHeld = false;
        await this.#deleteKeys(session, { keys, revision });
        this.#leave(session);
      },
    };
  }

  async #deleteKeys(
    session: Session,
    { keys, revision }: { readonly keys: readonly string[]; readonly revision: number },
  ): Promise<void> {
    const { modRevision: target } = compareTarget;
    const request = {
      compare: keys.map((key) => ({ key, target, modRevision: revision })),
      success: keys.map((key) => ({ delete: { key } })),
    };
    try {
      await this.#client.call(methods.txn, request, { repeatable: true });
    } catch (error) {
      this.#logger.debug(2, 'Releasing a claim failed; it ends with its session', {
        error: String(error),
      });
      this.#retire(session);
    }
  }

  #session(): Session {
    this.#current ??= this.#startSession();
    return this.#current;
  }

  #startSession(): Session {
    const request = { ttlSeconds: sessionMs / 1000 };
    const granted = this.#client.call(methods.leaseGrant, request, { repeatable: true });
    const session: Session = { lease: granted.then(({ id }) => id), claims: 0 };
    this.#sessions.add(session);
    const keepAlive = (id: number | bigint) => {
      if (!this.#sessions.has(session)) return;
      session.timer = this.#clock.every(keepAliveMs, () => this.#keepAlive(session, id));
    };
    // Failures are reported to those who take claims.
    session.lease.then(keepAlive, () => {});
    return session;
  }

  #keepAlive(session: Session, id: number | bigint): void {
    const stream = this.#client.stream(
      methods.leaseKeepAlive,
      { id },
      {
        onResponse: ({ ttlSeconds }) => {
          stream.close();
          if (ttlSeconds > 0) return;
          this.#retire(session);
          this.#endIfUnused(session);
        },
        // The next tick tries again; a lost session is detected on its next use.
        onEnd: () => {},
      },
    );
  }

  /** Lets new claims use another session. */
  #retire(session: Session): void {
    if (this.#current === session) this.#current = undefined;
  }

  #leave(session: Session): void {
    session.claims -= 1;
    this.#endIfUnused(session);
  }

  #endIfUnused(session: Session): void {
    if (this.#current === session || session.claims > 0 || !this.#sessions.has(session)) return;
    this.#stop(session);
    background({ where: 'store' }, this.#revokeEventually(session));
  }

  /** Stops to keep a session alive. */
  #stop(session: Session): void {
    session.timer?.stop();
    this.#sessions.delete(session);
  }

  /** Revokes the lease of a session as soon as etcd answers, unless it expires earlier. */
  async #revokeEventually(session: Session): Promise<void> {
    const endMs = this.#clock.monotonic() + sessionMs;
    while (this.#clock.monotonic() < endMs) {
      try {
        await this.#revoke(session);
        return;
      } catch (error) {
        if (isLeaseExpired(error) || (error instanceof StoreError && error.code === 'closed'))
          return;
        await pause(this.#clock, { ms: revokeRetryMs });
      }
    }
  }

  /** Revokes the lease of a session, if it has one. */
  async #revoke(session: Session, timeoutMs?: number): Promise<void> {
    const id = await session.lease.catch(() => undefined);
    if (id === undefined) return;
    await this.#client.call(
      methods.leaseRevoke,
      { id },
      { repeatable: true, ...(timeoutMs === undefined ? {} : { timeoutMs }) },
    );
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
  const { client, store } = options;
  let last: { readonly turn: number; readonly revision: Revision } = { turn: 0, revision: 0 };
  return startRounds({
    ...options,
    what: 'etcd',
    first: 'after an interval',
    async compact() {
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
    },
  });
}

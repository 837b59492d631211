import type { ResourceDef, Stored } from '@wheelhouse/kinds';
import type { Lease } from '@wheelhouse/kinds/types/coordination/v1';
import {
  asApiObject,
  background,
  type Clock,
  cloneJson,
  formatMicroTime,
  random as hostRandom,
  type Logger,
  type MaybePromise,
  StatusError,
  type Timer,
  waitAtMost,
} from '@wheelhouse/machinery';
import { decodedInSlices, objectKey } from '../registry/object-codec.ts';
import { type Registry, serverContext } from '../registry/registry.ts';
import { write } from '../registry/write.ts';
import type { Entry } from '../watchcache/entry.ts';
import { storedVersion } from './tools.ts';
import type { Controller } from './work-queue.ts';

/** The leadership fields of a Lease. */
type LeaseSpec = {
  readonly holderIdentity?: string | undefined;
  readonly leaseDurationSeconds?: number | undefined;
  readonly acquireTime?: string | undefined;
  readonly renewTime?: string | undefined;
  readonly leaseTransitions?: number | undefined;
};

type HeldLease = Stored<Lease>;

/**
 * The result of an attempt: this server holds the Lease, another one does, or a concurrent write
 * won and the holder must be read again.
 */
type Outcome = 'held' | 'lost' | 'others';

/** Options of an election; the periods are those of client-go's leader election. */
interface LeaderElectionOptions {
  readonly leases: ResourceDef;
  readonly registry: Registry;
  readonly clock: Clock;
  readonly logger: Logger;
  /** The Lease's namespace. */
  readonly namespace: string;
  readonly name: string;
  /** This server's identity, unique among servers. */
  readonly identity: string;
  readonly leaseDurationMs: number;
  readonly renewDeadlineMs: number;
  readonly retryPeriodMs: number;
  /** Starts the leader's work, which is closed before another server can lead. */
  readonly startWork: () => Controller;
  readonly random?: () => number;
}

/** client-go's bound on the random extension of the retry period, which spreads candidates. */
const jitterFactor = 1.2;
/** Maximum milliseconds that a stopping server waits to release the Lease, which expires anyway. */
const releaseMs = 2000;

/**
 * Runs the leader's work while this server holds a Lease, by client-go's protocol. The leader
 * renews the Lease; another server may acquire it once it has not changed for its duration. A
 * candidate tries every retry period, and at once when the Lease is released. The leader renews
 * every retry period, and stops leading if renewal fails for the renew deadline, which is shorter
 * than the duration, so that no other server leads before. Closing releases the Lease. Durations
 * are measured locally from the last observed change, so clocks need not agree.
 */
export function startLeaderElection(options: LeaderElectionOptions): Controller {
  const election = new LeaderElection(options);
  election.start();
  return { close: () => election.close() };
}

class LeaderElection {
  readonly #options: LeaderElectionOptions;
  readonly #subscription: { close(): void };
  #term: Controller | undefined;
  #previousTerm: Promise<void> = Promise.resolve();
  #nextAttempt: Timer | undefined;
  #deadline: Timer | undefined;
  #attempting: Promise<void> | undefined;
  #observed: { readonly revision: number; readonly atMs: number } | undefined;
  /** Whether this server has written itself into the Lease, and has seen no other holder since. */
  #mayHold = false;
  #closed = false;

  constructor(options: LeaderElectionOptions) {
    this.#options = options;
    const { registry, leases, namespace, name } = options;
    const key = objectKey(namespace, name);
    this.#subscription = registry.caches.of(leases).subscribe(({ current }) => {
      if (current?.key === key) background({ where: 'controller' }, this.#review(current));
    });
  }

  start(): void {
    this.#tryNow();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#subscription.close();
    this.#nextAttempt?.stop();
    this.#deadline?.stop();
    await this.#attempting;
    this.#resign();
    await this.#previousTerm;
    if (!this.#mayHold) return;
    await waitAtMost(this.#options.clock, releaseMs, this.#release());
  }

  /** Tries at once if the Lease has been released. */
  async #review(entry: Entry): Promise<void> {
    if (holderOf(await this.#decoded(entry)) === '') this.#tryNow();
  }

  /** The Lease that an entry contains. */
  #decoded(entry: Entry): MaybePromise<HeldLease> {
    return decodedInSlices(entry, this.#options.clock);
  }

  /** Tries now rather than after the retry period, unless an attempt is in progress. */
  #tryNow(): void {
    if (this.#closed || this.#term !== undefined || this.#attempting !== undefined) return;
    this.#nextAttempt?.stop();
    this.#attempt();
  }

  #attempt(): void {
    this.#attempting = this.#tryOnce().finally(() => {
      this.#attempting = undefined;
      if (this.#closed) return;
      const { clock, retryPeriodMs, random = hostRandom } = this.#options;
      const jitter = this.#term === undefined ? 1 + random() * jitterFactor : 1;
      this.#nextAttempt = clock.after(retryPeriodMs * jitter, () => this.#attempt());
    });
  }

  async #tryOnce(): Promise<void> {
    const { clock, logger, name } = this.#options;
    const startedMs = clock.monotonic();
    try {
      // The previous term must have ended before the next one.
      await this.#previousTerm;
      const outcome = await this.#acquire();
      // The deadline may have ended another term meanwhile.
      await this.#previousTerm;
      if (outcome === 'others') this.#resign();
      else if (outcome === 'held' && !this.#closed) this.#leadUntil(startedMs);
    } catch (error) {
      logger.warn('cannot acquire or renew the controller lease', { name, error: String(error) });
    }
  }

  #leadUntil(renewedMs: number): void {
    const { clock, logger, renewDeadlineMs, name, identity, startWork } = this.#options;
    this.#deadline?.stop();
    const leftMs = renewedMs + renewDeadlineMs - clock.monotonic();
    if (leftMs <= 0) {
      this.#resign();
      return;
    }
    this.#deadline = clock.after(leftMs, () => this.#resign());
    if (this.#term !== undefined) return;
    logger.info('this server is the controller leader', { name, identity });
    this.#term = startWork();
  }

  #resign(): void {
    const term = this.#term;
    this.#deadline?.stop();
    if (term === undefined) return;
    this.#term = undefined;
    const { logger, name, identity } = this.#options;
    logger.info('this server is no longer the controller leader', { name, identity });
    this.#previousTerm = term.close().catch((error: unknown) => {
      logger.error('a controller failed while stopping', { error: String(error) });
    });
  }

  /** Acquires or renews the Lease. Rejects when the store fails. */
  async #acquire(): Promise<Outcome> {
    const { registry, leases, namespace, name, identity, clock, leaseDurationMs } = this.#options;
    const entry = await registry.caches.of(leases).get(objectKey(namespace, name), undefined);
    if (entry === undefined) {
      this.#mayHold = true;
      return this.#create();
    }
    const nowMs = clock.monotonic();
    if (this.#observed?.revision !== entry.revision) {
      this.#observed = { revision: entry.revision, atMs: nowMs };
    }
    const lease = await this.#decoded(entry);
    const holder = holderOf(lease);
    const isHeld = holder !== '' && this.#observed.atMs + leaseDurationMs > nowMs;
    this.#mayHold = !isHeld || holder === identity;
    if (!this.#mayHold) return 'others';
    return this.#write(lease, (before) => this.#claimedSpec(before));
  }

  #claimedSpec(before: LeaseSpec): LeaseSpec {
    const { identity } = this.#options;
    const time = this.#time();
    const isOurs = before.holderIdentity === identity;
    return {
      ...before,
      ...this.#claim(time),
      acquireTime: isOurs ? (before.acquireTime ?? time) : time,
      leaseTransitions: (before.leaseTransitions ?? 0) + (isOurs ? 0 : 1),
    };
  }

  #claim(renewTime: string): LeaseSpec {
    const { identity, leaseDurationMs } = this.#options;
    const leaseDurationSeconds = Math.max(1, Math.ceil(leaseDurationMs / 1000));
    return { holderIdentity: identity, leaseDurationSeconds, renewTime };
  }

  async #create(): Promise<Outcome> {
    const { registry, leases, namespace, name } = this.#options;
    const time = this.#time();
    const object = asApiObject({
      apiVersion: leases.storage.apiVersion,
      kind: leases.kind,
      metadata: { name, namespace },
      spec: { ...this.#claim(time), acquireTime: time, leaseTransitions: 0 },
    });
    const target = { def: leases, version: storedVersion(leases), namespace, name: '' };
    const create = () =>
      write(registry, {
        operation: 'create',
        target: { ...target, subresource: '' },
        object,
        context: serverContext,
      });
    return unlessLost('AlreadyExists', create);
  }

  /** Writes the Lease on condition that it is unchanged. */
  #write(lease: HeldLease, next: (before: LeaseSpec) => LeaseSpec): Promise<Outcome> {
    const { registry, leases, namespace, name } = this.#options;
    const target = {
      def: leases,
      version: storedVersion(leases),
      namespace,
      name,
      subresource: '',
    };
    const object = asApiObject({ ...lease, spec: next(lease.spec ?? {}) });
    return unlessLost('Conflict', () =>
      write(registry, {
        operation: 'update',
        target,
        context: serverContext,
        // The object contains its resourceVersion, so that an outdated update is rejected.
        transform: () => cloneJson(object),
        source: 'body',
        onAbsent: 'refuse',
      }),
    );
  }

  /** Releases the Lease, so that others can lead at once. */
  async #release(): Promise<void> {
    const { registry, leases, namespace, name, identity, logger } = this.#options;
    try {
      const entry = await registry.caches.of(leases).get(objectKey(namespace, name), undefined);
      const lease = entry && (await this.#decoded(entry));
      if (lease === undefined || holderOf(lease) !== identity) return;
      const time = this.#time();
      await this.#write(lease, (before) => ({
        leaseDurationSeconds: 1,
        renewTime: time,
        acquireTime: time,
        leaseTransitions: before.leaseTransitions ?? 0,
        holderIdentity: '',
      }));
    } catch (error) {
      logger.warn('cannot release the controller lease', { error: String(error) });
    }
  }

  #time(): string {
    return formatMicroTime(this.#options.clock.now());
  }
}

const holderOf = ({ spec }: HeldLease): string => spec?.holderIdentity ?? '';

async function unlessLost(
  reason: 'AlreadyExists' | 'Conflict',
  write: () => Promise<unknown>,
): Promise<Outcome> {
  try {
    await write();
    return 'held';
  } catch (error) {
    if (error instanceof StatusError && error.reason === reason) return 'lost';
    throw error;
  }
}

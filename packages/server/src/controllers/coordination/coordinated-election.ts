import type { ResourceDef } from '@wheelhouse/kinds';
import {
  type ApiObject,
  background,
  printGoTime,
  StatusError,
  type Timer,
} from '@wheelhouse/machinery';
import { followBeside } from '../../registry/follow.ts';
import { decodeEntry, objectKey } from '../../registry/object-codec.ts';
import type { Entry } from '../../watchcache/entry.ts';
import type { ControllerTools } from '../inside.ts';
import { listEntries } from '../removal.ts';
import { createWorkQueue } from '../work-queue.ts';
import {
  type Candidate,
  candidateLifetimeMs,
  candidateOf,
  electedSpec,
  electionResult,
  hasAnswered,
  isAwaited,
  isExpiredCandidate,
  isUnanswered,
  needsElection,
  needsPing,
  newLeaseSpec,
} from './candidates.ts';

export interface CoordinatedElectionOptions extends ControllerTools {
  readonly leases: ResourceDef;
  readonly candidates: ResourceDef;
}

/** How often a Lease with candidates is looked at, so that one that expires is noticed. */
const recheckMs = 5000;

const microTime = (ms: number) => printGoTime({ ms, micros: Math.floor((ms % 1000) * 1000) }, 6);

/**
 * Elects the holders of Leases among their LeaseCandidates: pings candidates, gives a free Lease to
 * the best one that answers, and names a better one as preferred holder. Removes candidates that
 * have not renewed themselves for half an hour.
 *
 * An election has no state of its own: each step follows from the Lease and its candidates.
 */
export function startCoordinatedElection(options: CoordinatedElectionOptions): {
  close(): Promise<void>;
} {
  const election = new CoordinatedElection(options);
  const collection = collectCandidates(options);
  return {
    async close() {
      await Promise.all([election.close(), collection.close()]);
    },
  };
}

class CoordinatedElection {
  readonly #options: CoordinatedElectionOptions;
  /** The candidates of each Lease, by their own keys. */
  readonly #candidates = new Map<string, Map<string, Candidate>>();
  readonly #queue: ReturnType<typeof createWorkQueue>;
  readonly #following: readonly { close(): void }[];
  /** Whether all stored candidates are known. Nobody is elected before, as the best may be missing. */
  #isListed = false;

  constructor(options: CoordinatedElectionOptions) {
    this.#options = options;
    const { caches, logger } = options;
    this.#queue = createWorkQueue({
      ...options,
      name: 'leader-election-controller',
      run: (key) => this.#look(key),
      workers: 1,
    });
    const failed = (error: unknown) =>
      logger.error('elections of Leases could not begin', { error: String(error) });
    this.#following = [
      followBeside(caches.of(options.candidates), {
        tell: (key, current, previous) => this.#note(key, current, previous),
        listed: () => {
          this.#isListed = true;
          for (const leaseKey of this.#candidates.keys()) this.#queue.add(leaseKey);
        },
        failed,
      }),
      followBeside(caches.of(options.leases), { tell: (key) => this.#lookSoon(key), failed }),
    ];
  }

  async close(): Promise<void> {
    for (const following of this.#following) following.close();
    await this.#queue.close();
  }

  #note(key: string, current: Entry | undefined, previous: Entry | undefined): void {
    const before = previous === undefined ? undefined : candidateOf(previous);
    const after = current === undefined ? undefined : candidateOf(current);
    const leaseKey = leaseKeyOf(after ?? before);
    if (leaseKey === undefined) return;
    const siblings = this.#candidates.get(leaseKey) ?? new Map<string, Candidate>();
    if (after === undefined) siblings.delete(key);
    else siblings.set(key, after);
    if (siblings.size === 0) this.#candidates.delete(leaseKey);
    else this.#candidates.set(leaseKey, siblings);
    // A ping is no news: the controller has sent it.
    if (this.#isListed && (after === undefined || !isUnanswered(after))) this.#queue.add(leaseKey);
  }

  /** Leases without candidates are none of the controller's business. */
  #lookSoon(leaseKey: string): void {
    if (this.#isListed && this.#candidates.has(leaseKey)) this.#queue.add(leaseKey);
  }

  async #look(leaseKey: string): Promise<void> {
    const { clock, logger } = this.#options;
    const all = [...(this.#candidates.get(leaseKey)?.values() ?? [])];
    const nowMs = clock.now();
    const candidates = all.filter((one) => !isExpiredCandidate(one, nowMs));
    if (candidates.length === 0) return;
    try {
      await this.#step(leaseKey, candidates, nowMs);
    } catch (error) {
      logger.warn('no holder was elected', { lease: leaseKey, error: String(error) });
      if (isRefusal(error)) return;
    }
    this.#queue.addAfter(leaseKey, recheckMs);
  }

  async #step(leaseKey: string, candidates: readonly Candidate[], nowMs: number): Promise<void> {
    const { caches, leases } = this.#options;
    const entry = await caches.of(leases).get(leaseKey, undefined);
    const lease = entry === undefined ? undefined : decodeEntry(entry);
    if (!needsElection(lease, candidates, nowMs)) return;
    const silent = candidates.filter((one) => needsPing(one, nowMs));
    if (silent.length > 0) {
      for (const candidate of silent) await this.#ping(candidate, nowMs);
      return;
    }
    if (candidates.some((one) => isAwaited(one, nowMs))) return;
    const answered = candidates.filter((one) => hasAnswered(one, nowMs));
    if (answered.length > 0) await this.#elect(answered, nowMs);
  }

  async #ping({ namespace, name }: Candidate, nowMs: number): Promise<void> {
    const { inside, candidates } = this.#options;
    await inside.change({ def: candidates, namespace, name }, (current) => ({
      ...current,
      spec: { ...specOf(current), pingTime: microTime(nowMs) },
    }));
  }

  async #elect(answered: readonly Candidate[], nowMs: number): Promise<void> {
    const { inside, leases, logger } = this.#options;
    const { namespace = '', leaseName: name = '' } = answered[0] ?? {};
    const result = electionResult(answered, { nowMs, time: microTime(nowMs) });
    const at = { def: leases, namespace, name };
    const { apiVersion } = leases.storage;
    const object = { apiVersion, kind: leases.kind, metadata: { name, namespace } };
    if (!(await inside.create(at, { ...object, spec: newLeaseSpec(result) }))) {
      await inside.change(at, (current) => ({ ...current, spec: electedSpec(current, result) }));
    }
    logger.info('a holder was elected', { namespace, lease: name, holder: result.holder ?? '' });
  }
}

const specOf = (object: ApiObject): object => {
  const { spec } = object;
  return typeof spec === 'object' && spec !== null ? spec : {};
};

/** Whether the API refuses a write, as it will again until something changes: a Lease's bad name. */
const isRefusal = (error: unknown): boolean =>
  error instanceof StatusError && [403, 404, 422].includes(error.code);

/** The key of the Lease that a candidate names, which never changes. */
const leaseKeyOf = (candidate: Candidate | undefined): string | undefined =>
  candidate === undefined ? undefined : objectKey(candidate.namespace, candidate.leaseName);

/** Removes candidates that have expired, at once and then as often as they may expire. */
function collectCandidates(options: CoordinatedElectionOptions): { close(): Promise<void> } {
  const { caches, candidates, inside, clock, logger } = options;
  let isClosed = false;
  let working: Promise<void> = Promise.resolve();
  const collect = async () => {
    for (const entry of await listEntries(caches, { def: candidates, namespace: '' })) {
      if (isClosed) return;
      if (!isExpiredCandidate(candidateOf(entry), clock.now())) continue;
      const { namespace, name, uid } = entry.index;
      const preconditions = { uid, resourceVersion: String(entry.revision) };
      await inside.remove({ def: candidates, namespace, name }, { preconditions });
    }
  };
  const run = () => {
    working = working.then(collect).catch((error: unknown) => {
      if (!isClosed) logger.warn('expired candidates were not removed', { error: String(error) });
    });
    background({ where: 'controller' }, working);
  };
  const timer: Timer = clock.every(candidateLifetimeMs, run);
  run();
  return {
    async close() {
      isClosed = true;
      timer.stop();
      await working;
    },
  };
}

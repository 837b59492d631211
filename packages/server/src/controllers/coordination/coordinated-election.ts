import { oldestEmulationVersion, type ResourceDef, type Stored, textAt } from '@wheelhouse/kinds';
import type { Lease } from '@wheelhouse/kinds/types/coordination/v1';
import {
  type ApiObject,
  background,
  compareSemanticVersions,
  formatMicroTime,
  type JsonObject,
  parseSemanticVersion,
  type SemanticVersion,
  Slices,
  StatusError,
  type Timer,
} from '@wheelhouse/machinery';
import { followBeside } from '../../registry/caches.ts';
import { EntryDecoder } from '../../registry/entry-decoder.ts';
import { decodedInSlices, objectKey } from '../../registry/object-codec.ts';
import { type ControllerTools, listEntries, removeUnchanged } from '../tools.ts';
import { type Controller, createWorkQueue } from '../work-queue.ts';

/** The dependencies of the election controller. */
interface CoordinatedElectionOptions extends ControllerTools {
  readonly leases: ResourceDef;
  readonly candidates: ResourceDef;
}

/** Interval in milliseconds for rechecking a Lease with candidates, so that expiry is noticed. */
const recheckMs = 5000;

/**
 * Elects the holders of Leases among their LeaseCandidates: pings candidates, assigns a free Lease
 * to the best one that responds, and marks a better one as the preferred holder. Removes candidates
 * that have not renewed for half an hour. Elections are stateless: each step follows from the Lease
 * and its candidates.
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
  /** The candidates of each Lease, by their keys. */
  readonly #candidates = new Map<string, Map<string, Candidate>>();
  /** The Lease of each candidate, by the candidate's key. */
  readonly #leaseKeys = new Map<string, string>();
  readonly #queue: ReturnType<typeof createWorkQueue>;
  readonly #following: readonly { close(): void }[];
  /** Whether all stored candidates are loaded; before that, the best one may be missing. */
  #isListed = false;

  constructor(options: CoordinatedElectionOptions) {
    this.#options = options;
    const { caches, clock, logger } = options;
    this.#queue = createWorkQueue({
      ...options,
      name: 'leader-election-controller',
      run: (key) => this.#process(key),
      workers: 1,
    });
    const decoder = new EntryDecoder(clock);
    const failed = (error: unknown) =>
      logger.error('cannot start leader elections', { error: String(error) });
    this.#following = [
      followBeside(caches.of(options.candidates), {
        onEntry: (key, current) =>
          decoder.pass(key, current, (object) =>
            this.#updateCandidate(key, object && candidateOf(object)),
          ),
        listed: () => {
          const listed = decoder.settled().then(() => {
            this.#isListed = true;
            for (const leaseKey of this.#candidates.keys()) this.#queue.add(leaseKey);
          });
          background({ where: 'controller' }, listed);
        },
        failed,
        retrying: clock,
      }),
      followBeside(caches.of(options.leases), {
        onEntry: (key) => this.#enqueueLease(key),
        failed,
        retrying: clock,
      }),
    ];
  }

  async close(): Promise<void> {
    for (const following of this.#following) following.close();
    await this.#queue.close();
  }

  /** @param after the candidate, or undefined if it is gone */
  #updateCandidate(key: string, after: Candidate | undefined): void {
    const leaseKey = after === undefined ? this.#leaseKeys.get(key) : leaseKeyOf(after);
    if (leaseKey === undefined) return;
    const siblings = this.#candidates.get(leaseKey) ?? new Map<string, Candidate>();
    if (after === undefined) {
      this.#leaseKeys.delete(key);
      siblings.delete(key);
    } else {
      this.#leaseKeys.set(key, leaseKey);
      siblings.set(key, after);
    }
    if (siblings.size === 0) this.#candidates.delete(leaseKey);
    else this.#candidates.set(leaseKey, siblings);
    // Ignores pings, which the controller itself sends.
    if (this.#isListed && (after === undefined || !isUnanswered(after))) this.#queue.add(leaseKey);
  }

  /** Queues a Lease, unless it has no candidates. */
  #enqueueLease(leaseKey: string): void {
    if (this.#isListed && this.#candidates.has(leaseKey)) this.#queue.add(leaseKey);
  }

  async #process(leaseKey: string): Promise<void> {
    const { clock, logger } = this.#options;
    const all = [...(this.#candidates.get(leaseKey)?.values() ?? [])];
    const nowMs = clock.now();
    const candidates = all.filter((candidate) => !isExpiredCandidate(candidate, nowMs));
    if (candidates.length === 0) return;
    try {
      await this.#step(leaseKey, candidates, nowMs);
    } catch (error) {
      logger.warn('cannot elect a lease holder', { lease: leaseKey, error: String(error) });
      if (isPermanentRejection(error)) return;
    }
    this.#queue.addAfter(leaseKey, recheckMs);
  }

  async #step(leaseKey: string, candidates: readonly Candidate[], nowMs: number): Promise<void> {
    const { caches, leases, clock } = this.#options;
    const entry = await caches.of(leases).get(leaseKey, undefined);
    const lease = entry === undefined ? undefined : await decodedInSlices(entry, clock);
    if (!needsElection(lease, candidates, nowMs)) return;
    const unpinged = candidates.filter((candidate) => needsPing(candidate, nowMs));
    if (unpinged.length > 0) {
      for (const candidate of unpinged) await this.#ping(candidate, nowMs);
      return;
    }
    if (candidates.some((candidate) => isAwaited(candidate, nowMs))) return;
    const answered = candidates.filter((candidate) => hasAnswered(candidate, nowMs));
    if (answered.length > 0) await this.#elect(answered, nowMs);
  }

  async #ping({ namespace, name }: Candidate, nowMs: number): Promise<void> {
    const { writer, candidates } = this.#options;
    await writer.change({ def: candidates, namespace, name }, (current) => ({
      ...current,
      spec: { ...specOf(current), pingTime: formatMicroTime(nowMs) },
    }));
  }

  async #elect(answered: readonly Candidate[], nowMs: number): Promise<void> {
    const { writer, leases, logger } = this.#options;
    const { namespace = '', leaseName: name = '' } = answered[0] ?? {};
    const result = electionResult(answered, { nowMs, time: formatMicroTime(nowMs) });
    const at = { def: leases, namespace, name };
    const { apiVersion } = leases.storage;
    const object = { apiVersion, kind: leases.kind, metadata: { name, namespace } };
    if (!(await writer.create(at, { ...object, spec: newLeaseSpec(result) }))) {
      await writer.change(at, (current) => ({ ...current, spec: electedSpec(current, result) }));
    }
    logger.info('elected a lease holder', { namespace, lease: name, holder: result.holder ?? '' });
  }
}

const specOf = (object: ApiObject): object => {
  const { spec } = object;
  return typeof spec === 'object' && spec !== null ? spec : {};
};

/** Whether the API rejects a write permanently, for example because of an invalid Lease name. */
const isPermanentRejection = (error: unknown): boolean =>
  error instanceof StatusError && [403, 404, 422].includes(error.code);

/** The key of the Lease that a candidate names, which is immutable. */
const leaseKeyOf = ({ namespace, leaseName }: Candidate): string => objectKey(namespace, leaseName);

/** Removes expired candidates, initially and periodically. */
function collectCandidates(options: CoordinatedElectionOptions): Controller {
  const { caches, candidates, clock, logger } = options;
  let isClosed = false;
  let working: Promise<void> = Promise.resolve();
  const collect = async () => {
    const slices = new Slices(clock);
    for (const entry of await listEntries(caches, { def: candidates, namespace: '' })) {
      if (slices.over) await slices.pause();
      if (isClosed) return;
      const candidate = candidateOf(await decodedInSlices(entry, clock));
      if (!isExpiredCandidate(candidate, clock.now())) continue;
      await removeUnchanged(options, { def: candidates, entry });
    }
  };
  const run = () => {
    working = working.then(collect).catch((error: unknown) => {
      if (!isClosed)
        logger.warn('cannot remove expired lease candidates', { error: String(error) });
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

/**
 * The fields of a LeaseCandidate that an election uses; times are in milliseconds since the epoch.
 */
interface Candidate {
  readonly namespace: string;
  readonly name: string;
  readonly leaseName: string;
  readonly strategy: string;
  readonly binaryVersion: SemanticVersion;
  readonly emulationVersion: SemanticVersion | undefined;
  readonly createdMs: number;
  /** Time of the candidate's last renewal. */
  readonly renewedMs: number | undefined;
  /** Time of the controller's last ping. */
  readonly pingedMs: number | undefined;
}

/** Lifetime of a candidate after its last renewal, in milliseconds. */
const candidateLifetimeMs = 30 * 60_000;
/** Milliseconds to answer a ping, and for which the answer counts. */
const electionMs = 5000;

const zero: SemanticVersion = { core: [0n, 0n, 0n], preRelease: [], build: [] };

/** A time in an object's spec, in milliseconds since the epoch; undefined if absent. */
function timeOf(object: JsonObject, member: string): number | undefined {
  const ms = Date.parse(textAt(object, 'spec', member));
  return Number.isNaN(ms) ? undefined : ms;
}

/** Reads a stored LeaseCandidate. */
function candidateOf(object: ApiObject): Candidate {
  const { namespace = '', name = '' } = object.metadata;
  const spec = (member: string) => textAt(object, 'spec', member);
  return {
    namespace,
    name,
    leaseName: spec('leaseName'),
    strategy: spec('strategy'),
    binaryVersion: parseSemanticVersion(spec('binaryVersion')) ?? zero,
    emulationVersion: parseSemanticVersion(spec('emulationVersion')),
    createdMs: Date.parse(textAt(object, 'metadata', 'creationTimestamp')) || 0,
    renewedMs: timeOf(object, 'renewTime'),
    pingedMs: timeOf(object, 'pingTime'),
  };
}

/** Whether a candidate's lifetime has passed since its last renewal. */
const isExpiredCandidate = ({ renewedMs }: Candidate, nowMs: number): boolean =>
  renewedMs === undefined || renewedMs + candidateLifetimeMs < nowMs;

/** Whether a ping is still unanswered. */
const isUnanswered = ({ pingedMs, renewedMs }: Candidate): boolean =>
  pingedMs !== undefined && (renewedMs === undefined || renewedMs < pingedMs);

/** Whether a candidate renewed recently enough to be elected. */
const hasAnswered = ({ renewedMs }: Candidate, nowMs: number): boolean =>
  renewedMs !== undefined && renewedMs + electionMs > nowMs;

/** Whether the controller still waits for a candidate's answer. */
const isAwaited = (candidate: Candidate, nowMs: number): boolean =>
  isUnanswered(candidate) && (candidate.pingedMs ?? 0) + electionMs > nowMs;

/** Whether to ping a candidate: it has no recent answer and no unanswered ping. */
function needsPing(candidate: Candidate, nowMs: number): boolean {
  if (hasAnswered(candidate, nowMs) || isUnanswered(candidate)) return false;
  const { pingedMs } = candidate;
  return pingedMs === undefined || pingedMs + electionMs < nowMs;
}

/** The common strategy of the newest release's candidates. Throws if their strategies differ. */
function strategyOf(candidates: readonly Candidate[]): string {
  const compare = (left: Candidate, right: Candidate) =>
    compareSemanticVersions(left.binaryVersion, right.binaryVersion);
  const newest = candidates.reduce<Candidate[]>((best, candidate) => {
    const order = best[0] === undefined ? 1 : compare(candidate, best[0]);
    if (order > 0) return [candidate];
    if (order === 0) best.push(candidate);
    return best;
  }, []);
  const strategies = [...new Set(newest.map(({ strategy }) => strategy))];
  if (strategies.length <= 1) return strategies[0] ?? '';
  throw new Error(`candidates of one release name different strategies: ${strategies.join(', ')}`);
}

/** The candidate with the oldest emulated release; ties go to the oldest binary, then object. */
function oldestEmulation(candidates: readonly Candidate[]): Candidate | undefined {
  let best: Candidate | undefined;
  for (const candidate of candidates) {
    if (candidate.emulationVersion === undefined) continue;
    if (best === undefined || precedes(candidate, best)) best = candidate;
  }
  return best;
}

function precedes(left: Candidate, right: Candidate): boolean {
  const emulated = compareSemanticVersions(
    left.emulationVersion ?? zero,
    right.emulationVersion ?? zero,
  );
  if (emulated !== 0) return emulated < 0;
  const binary = compareSemanticVersions(left.binaryVersion, right.binaryVersion);
  return binary === 0 ? left.createdMs < right.createdMs : binary < 0;
}

/** Whether a Lease was not renewed for its duration. */
function isExpiredLease(lease: Stored<Lease>, nowMs: number): boolean {
  const renewedMs = timeOf(lease, 'renewTime');
  const seconds = lease.spec?.leaseDurationSeconds;
  if (renewedMs === undefined || typeof seconds !== 'number') return true;
  return renewedMs + seconds * 1000 < nowMs;
}

/** Whether a Lease is free, has lost its holder, or may have a better candidate. */
function needsElection(
  lease: Stored<Lease> | undefined,
  candidates: readonly Candidate[],
  nowMs: number,
): boolean {
  if (lease === undefined || isExpiredLease(lease, nowMs)) return true;
  const holder = lease.spec?.holderIdentity ?? '';
  if (holder === '') return true;
  // A periodic election pings the candidates.
  const halfMs = candidateLifetimeMs / 2;
  if (candidates.some(({ renewedMs }) => (renewedMs ?? nowMs) + halfMs < nowMs)) return true;
  if (strategyOf(candidates) !== oldestEmulationVersion) return false;
  const best = oldestEmulation(candidates);
  return best !== undefined && best.name !== holder;
}

/** Seconds that an elected holder has to renew its Lease. */
const leaseSeconds = 5;

/** The outcome of an election. */
interface Result {
  readonly strategy: string;
  /** Undefined if another controller elects by this strategy. */
  readonly holder: string | undefined;
  readonly nowMs: number;
  /** The time of the outcome, as stored. */
  readonly time: string;
}

/** The outcome of an election among live candidates. Throws like `strategyOf`. */
function electionResult(
  candidates: readonly Candidate[],
  at: Pick<Result, 'nowMs' | 'time'>,
): Result {
  const strategy = strategyOf(candidates);
  const electsHere = strategy === oldestEmulationVersion;
  const holder = electsHere ? oldestEmulation(candidates)?.name : undefined;
  return { ...at, strategy, holder };
}

/** The spec of a new Lease. */
function newLeaseSpec({ strategy, holder, time }: Result): JsonObject {
  return {
    ...(holder === undefined ? {} : { holderIdentity: holder }),
    leaseDurationSeconds: leaseSeconds,
    renewTime: time,
    strategy,
  };
}

/**
 * The spec of a Lease after an election: a free Lease goes to the elected candidate; a held one
 * names it as preferred holder, and the holder steps down.
 */
function electedSpec(lease: Stored<Lease>, result: Result): JsonObject {
  const before = lease.spec ?? {};
  const { strategy, holder, nowMs } = result;
  const current = lease.spec?.holderIdentity ?? '';
  if (holder === undefined) return { ...before, strategy };
  const isFree = current === '' || (current !== holder && isExpiredLease(lease, nowMs));
  if (isFree) {
    const { preferredHolder: _preferred, acquireTime: _acquired, ...rest } = before;
    return { ...rest, ...newLeaseSpec(result) };
  }
  return current === holder
    ? { ...before, strategy }
    : { ...before, strategy, preferredHolder: holder };
}

import {
  compareSemanticVersions,
  oldestEmulationVersion,
  parseSemanticVersion,
  type SemanticVersion,
  type Stored,
  textAt,
} from '@wheelhouse/kinds';
import type { Lease } from '@wheelhouse/kinds/types/coordination/v1';
import type { JsonObject } from '@wheelhouse/machinery';
import { decodeEntry } from '../../registry/object-codec.ts';
import type { Entry } from '../../watchcache/entry.ts';

/** What an election reads of a LeaseCandidate; times are in milliseconds. */
export interface Candidate {
  readonly namespace: string;
  readonly name: string;
  readonly leaseName: string;
  readonly strategy: string;
  readonly binaryVersion: SemanticVersion;
  readonly emulationVersion: SemanticVersion | undefined;
  readonly createdMs: number;
  /** When the candidate last said that it lives. */
  readonly renewedMs: number | undefined;
  /** When the controller last asked it to say so. */
  readonly pingedMs: number | undefined;
}

/** How long a candidate counts after its last renewal. */
export const candidateLifetimeMs = 30 * 60_000;
/** How long a candidate has to answer a ping, and how long its answer counts. */
export const electionMs = 5000;

const zero: SemanticVersion = { core: [0, 0, 0], preRelease: [] };

/** Reads a time of an object's spec; undefined when it is absent. */
export function timeOf(object: JsonObject, member: string): number | undefined {
  const ms = Date.parse(textAt(object, 'spec', member));
  return Number.isNaN(ms) ? undefined : ms;
}

/** Reads a stored LeaseCandidate. */
export function candidateOf(entry: Entry): Candidate {
  const object = decodeEntry(entry);
  const { namespace, name } = entry.index;
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

/** Whether a candidate has not renewed itself for as long as it counts. */
export const isExpiredCandidate = ({ renewedMs }: Candidate, nowMs: number): boolean =>
  renewedMs === undefined || renewedMs + candidateLifetimeMs < nowMs;

/** Whether a candidate has been pinged and has not answered yet. */
export const isUnanswered = ({ pingedMs, renewedMs }: Candidate): boolean =>
  pingedMs !== undefined && (renewedMs === undefined || renewedMs < pingedMs);

/** Whether a candidate has renewed itself so lately that it may be elected. */
export const hasAnswered = ({ renewedMs }: Candidate, nowMs: number): boolean =>
  renewedMs !== undefined && renewedMs + electionMs > nowMs;

/** Whether the controller still waits for a candidate's answer. */
export const isAwaited = (candidate: Candidate, nowMs: number): boolean =>
  isUnanswered(candidate) && (candidate.pingedMs ?? 0) + electionMs > nowMs;

/** Whether a candidate is to be pinged: it has not answered lately, and no ping is unanswered. */
export function needsPing(candidate: Candidate, nowMs: number): boolean {
  if (hasAnswered(candidate, nowMs) || isUnanswered(candidate)) return false;
  const { pingedMs } = candidate;
  return pingedMs === undefined || pingedMs + electionMs < nowMs;
}

/**
 * The strategy of the candidates of the newest release, which must agree on it.
 * @throws Error when two of them name different ones
 */
export function strategyOf(candidates: readonly Candidate[]): string {
  const compare = (one: Candidate, other: Candidate) =>
    compareSemanticVersions(one.binaryVersion, other.binaryVersion);
  const newest = candidates.reduce<Candidate[]>((best, one) => {
    const order = best[0] === undefined ? 1 : compare(one, best[0]);
    if (order > 0) return [one];
    if (order === 0) best.push(one);
    return best;
  }, []);
  const strategies = [...new Set(newest.map(({ strategy }) => strategy))];
  if (strategies.length <= 1) return strategies[0] ?? '';
  throw new Error(`candidates of one release name different strategies: ${strategies.join(', ')}`);
}

/** The candidate that acts as the oldest release; of several the oldest binary, then object. */
export function oldestEmulation(candidates: readonly Candidate[]): Candidate | undefined {
  let best: Candidate | undefined;
  for (const one of candidates) {
    if (one.emulationVersion === undefined) continue;
    if (best === undefined || precedes(one, best)) best = one;
  }
  return best;
}

function precedes(one: Candidate, other: Candidate): boolean {
  const emulated = compareSemanticVersions(
    one.emulationVersion ?? zero,
    other.emulationVersion ?? zero,
  );
  if (emulated !== 0) return emulated < 0;
  const binary = compareSemanticVersions(one.binaryVersion, other.binaryVersion);
  return binary === 0 ? one.createdMs < other.createdMs : binary < 0;
}

/** Whether nobody holds a Lease any more: it was not renewed for its duration. */
function isExpiredLease(lease: Stored<Lease>, nowMs: number): boolean {
  const renewedMs = timeOf(lease, 'renewTime');
  const seconds = lease.spec?.leaseDurationSeconds;
  if (renewedMs === undefined || typeof seconds !== 'number') return true;
  return renewedMs + seconds * 1000 < nowMs;
}

/** Whether a Lease has no holder, has lost it, or a better one may be found. */
export function needsElection(
  lease: Stored<Lease> | undefined,
  candidates: readonly Candidate[],
  nowMs: number,
): boolean {
  if (lease === undefined || isExpiredLease(lease, nowMs)) return true;
  const holder = lease.spec?.holderIdentity ?? '';
  if (holder === '') return true;
  // An election from time to time shows which candidates live.
  const halfMs = candidateLifetimeMs / 2;
  if (candidates.some(({ renewedMs }) => (renewedMs ?? nowMs) + halfMs < nowMs)) return true;
  if (strategyOf(candidates) !== oldestEmulationVersion) return false;
  const best = oldestEmulation(candidates);
  return best !== undefined && best.name !== holder;
}

/** How long a holder has to renew a Lease that the controller has given to it. */
const leaseSeconds = 5;

/** What the controller writes into a Lease. */
interface Result {
  readonly strategy: string;
  /** Undefined when another controller elects by this strategy. */
  readonly holder: string | undefined;
  readonly nowMs: number;
  /** The same moment as it is written. */
  readonly time: string;
}

/** The outcome of an election among candidates that live. @throws Error as `strategyOf` does */
export function electionResult(
  candidates: readonly Candidate[],
  at: Pick<Result, 'nowMs' | 'time'>,
): Result {
  const strategy = strategyOf(candidates);
  const isOurs = strategy === oldestEmulationVersion;
  const holder = isOurs ? oldestEmulation(candidates)?.name : undefined;
  return { ...at, strategy, holder };
}

/** The spec of a new Lease. */
export function newLeaseSpec({ strategy, holder, time }: Result): JsonObject {
  return {
    ...(holder === undefined ? {} : { holderIdentity: holder }),
    leaseDurationSeconds: leaseSeconds,
    renewTime: time,
    strategy,
  };
}

/**
 * The spec of a Lease after an election: a free one goes to the elected candidate; one that is held
 * names it as preferred, and its holder steps down.
 */
export function electedSpec(lease: Stored<Lease>, result: Result): JsonObject {
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

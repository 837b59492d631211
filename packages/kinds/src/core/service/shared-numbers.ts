import { type ApiObject, cloneJson, serviceUnavailable } from '@wheelhouse/machinery';
import type { Allocation, Strategy } from '../../resource-def.ts';
import type { Family } from './cluster-ips.ts';
import type { ServiceLedger } from './ledger.ts';
import { type AddressPool, addressKey } from './pools.ts';
import { asService, isExternalName, noAddress } from './spec.ts';

type Allocate = NonNullable<Strategy['allocate']>;

/** The object that holds an address. */
export interface AddressOwner {
  readonly namespace: string;
  readonly name: string;
}

/** Records the numbers of Services in objects of their own. */
export interface NumberRecorder {
  /** The numbers of a Service that this recorder records. */
  numbersOf(object: ApiObject): readonly string[];
  /**
   * Records all numbers or none. Resolves to the ledger's names of those that other objects hold;
   * empty once all are recorded.
   */
  record(numbers: readonly string[], owner: AddressOwner): Promise<readonly string[]>;
  /** Removes records. Never rejects. */
  erase(numbers: readonly string[], owner: AddressOwner): Promise<void>;
  /** Whether a record names its Service. */
  readonly owners: 'named' | 'none';
}

/** Upper bound of the numbers that a request finds recorded by others before it fails. */
const conflictsMax = 256;

/**
 * Wraps `allocate` so that each new number is recorded. A number that another object has recorded
 * is marked as taken in the ledger until an allocation succeeds, so `allocate` chooses other
 * numbers, rejects a requested number, and recognizes a full range. Numbers that the Service no
 * longer has are released once the write is stored.
 */
export function recordingNumbers(
  allocate: Allocate,
  { recorder, ledger }: { readonly recorder: NumberRecorder; readonly ledger: ServiceLedger },
): Allocate {
  return async (context, object, old) => {
    if (context.subresource !== '' || context.dryRun) return allocate(context, object, old);
    const requested = cloneJson(object['spec'] ?? null);
    const before = new Set(old === undefined ? [] : recorder.numbersOf(old));
    const owner = ownerOf(object);
    const taken: string[] = [];
    try {
      for (;;) {
        const allocation = await allocate(context, object, old);
        const now = new Set(recorder.numbersOf(object));
        const added = [...now].filter((number) => !before.has(number));
        const dropped = [...before].filter((number) => !now.has(number));
        const conflicts = await recordOrRefuse(allocation, { recorder, added, owner });
        if (conflicts.length === 0) {
          return recordedAllocation(allocation, { recorder, added, dropped, owner, object });
        }
        for (const conflict of conflicts) {
          taken.push(conflict);
          ledger.take(conflict);
        }
        if (taken.length >= conflictsMax) throw contended();
        object['spec'] = cloneJson(requested);
      }
    } finally {
      ledger.settle(taken, { type: 'refused' });
    }
  };
}

const ownerOf = ({ metadata }: ApiObject): AddressOwner => ({
  namespace: metadata.namespace ?? '',
  name: metadata.name ?? '',
});

interface Change {
  readonly recorder: NumberRecorder;
  readonly added: readonly string[];
  readonly owner: AddressOwner;
}

/**
 * Records the added numbers. Cancels the allocation and returns the conflicts if others hold some.
 */
async function recordOrRefuse(
  allocation: Allocation,
  { recorder, added, owner }: Change,
): Promise<readonly string[]> {
  let isRecorded = added.length === 0;
  try {
    const conflicts = isRecorded ? [] : await recorder.record(added, owner);
    isRecorded = conflicts.length === 0;
    return conflicts;
  } finally {
    if (!isRecorded) await allocation.settle({ type: 'refused' });
  }
}

function recordedAllocation(
  allocation: Allocation,
  change: Change & { readonly dropped: readonly string[]; readonly object: ApiObject },
): Allocation {
  const { recorder, added, dropped, owner, object } = change;
  return {
    async settle(outcome) {
      await allocation.settle(outcome);
      const stored = ownerOf(object);
      const isRenamed = recorder.owners === 'named' && stored.name !== owner.name;
      if (outcome.type === 'written' && isRenamed) {
        // The generated name was taken, so the object has a new one.
        await recorder.erase(added, owner);
        await recorder.record(added, stored);
      }
      // If the outcome is unknown, the repair controller removes stale records.
      if (outcome.type === 'refused') await recorder.erase(added, owner);
      if (outcome.type === 'written') await recorder.erase(dropped, owner);
    },
  };
}

const contended = () =>
  serviceUnavailable('other clients are allocating the same addresses or ports; please try again');

/** Returns a Service's `afterRemoval`, which releases its numbers. */
export function releasingNumbers(
  recorders: readonly NumberRecorder[],
): NonNullable<Strategy['afterRemoval']> {
  return async (object) => {
    await Promise.all(
      recorders.map((recorder) => recorder.erase(recorder.numbersOf(object), ownerOf(object))),
    );
  };
}

/**
 * Service addresses as API objects (MultiCIDRServiceAllocator): ServiceCIDRs define the ranges,
 * and one IPAddress records each address in use. Creating the IPAddress claims the address, so no
 * other server or program can use it at the same time.
 */
export interface AddressRecords {
  /** Resolves when the ranges and the recorded addresses are as new as the store. */
  caughtUp(): Promise<void>;
  /** The ready ranges of a family. */
  pools(family: Family): readonly AddressPool[];
  /** Whether an address is recorded, by its name in the ledger. */
  isRecorded(key: string): boolean;
  /** Records an address; resolves to false if it has a record already. */
  record(ip: string, owner: AddressOwner): Promise<boolean>;
  /** Removes the record of an address if `owner` holds it. Never rejects. */
  erase(ip: string, owner: AddressOwner): Promise<void>;
}

/** Records each address as an IPAddress. */
export function addressRecorder(records: AddressRecords): NumberRecorder {
  const erase = async (ips: readonly string[], owner: AddressOwner) => {
    await Promise.all(ips.map((ip) => records.erase(ip, owner)));
  };
  return {
    owners: 'named',
    numbersOf: addressesOf,
    async record(ips, owner) {
      const done: string[] = [];
      try {
        for (const ip of ips) {
          if (!(await records.record(ip, owner))) return [addressKey(ip)];
          done.push(ip);
        }
        return [];
      } finally {
        if (done.length < ips.length) await erase(done, owner);
      }
    },
    erase,
  };
}

/** The IP addresses of a Service. */
export function addressesOf(object: ApiObject): readonly string[] {
  const { spec } = asService(object);
  if (isExternalName(spec)) return [];
  return (spec.clusterIPs ?? []).filter((ip) => ip !== noAddress && ip !== '');
}

interface NumberClaim {
  /** Ends the claim once the write has succeeded or failed. */
  release(): void;
  /** Leaves the claim to expire, because the outcome of the write is unknown. */
  letExpire(): void;
}

/** Exclusive claims of this server on numbers and other names. */
export interface NumberClaims {
  /** Claims all or none; resolves to undefined if another server has claimed one of them. */
  take(keys: readonly string[]): Promise<NumberClaim | undefined>;
}

const attemptsMax = 32;

/**
 * Allocates numbers that no other server allocates at the same time. The stored Services record
 * which numbers are held; a claim covers only the time between the choice and the write:
 *
 * 1. choose numbers that are free according to the stored Services, and claim them;
 * 2. reload the stored Services as of the claim;
 * 3. if the numbers are still free, store them and release the claim.
 *
 * Another server claims the same number either before step 1, so step 2 finds the number stored, or
 * after step 3, so that server's step 2 finds what this server has stored.
 */
export async function allocateClaimed(options: {
  readonly object: ApiObject;
  readonly ledger: ServiceLedger;
  readonly claims: NumberClaims;
  /** Sets numbers in the object and takes them in the ledger; throws when one is not available. */
  readonly choose: () => Promise<readonly string[]>;
}): Promise<Allocation> {
  const { object, ledger, claims, choose } = options;
  const originalSpec = structuredClone(object.spec);
  for (let attempt = 1; attempt <= attemptsMax; attempt += 1) {
    if (attempt > 1) object.spec = structuredClone(originalSpec);
    const keys = await choose();
    if (keys.length === 0) return { settle: () => {} };
    const claim = await claimChosen(keys, { ledger, claims });
    if (claim === undefined) continue;
    return {
      settle(outcome) {
        ledger.settle(keys, outcome);
        if (outcome.type === 'unknown') claim.letExpire();
        else claim.release();
      },
    };
  }
  throw serviceUnavailable(
    'other servers are allocating the same addresses or ports; please try again',
  );
}

/** Claims the chosen numbers; if that fails, releases them and resolves to undefined. */
async function claimChosen(
  keys: readonly string[],
  { ledger, claims }: { readonly ledger: ServiceLedger; readonly claims: NumberClaims },
): Promise<NumberClaim | undefined> {
  let claim: NumberClaim | undefined;
  let isFree = false;
  try {
    claim = await claims.take(keys);
    if (claim === undefined) return undefined;
    await ledger.caughtUp();
    isFree = keys.every((key) => !ledger.isContested(key));
    return isFree ? claim : undefined;
  } finally {
    if (!isFree) {
      ledger.settle(keys, { type: 'refused' });
      claim?.release();
    }
  }
}

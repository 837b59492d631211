import { type ApiObject, serviceUnavailable } from '@wheelhouse/machinery';
import type { Allocation, Strategy } from '../../resource-def.ts';
import type { Family } from './cluster-ips.ts';
import type { ServiceLedger } from './ledger.ts';
import { type AddressPool, addressKey } from './pools.ts';
import { asService, isExternalName, noAddress } from './spec.ts';

type Allocate = NonNullable<Strategy['allocate']>;

/** The object that an address belongs to. */
export interface AddressOwner {
  readonly namespace: string;
  readonly name: string;
}

/** Where numbers of Services are recorded, apart from the Services themselves. */
export interface NumberRecorder {
  /** The numbers of a Service that are recorded here. */
  numbersOf(object: ApiObject): readonly string[];
  /**
   * Records all numbers, or none. Gives those that somebody else has recorded, as the ledger names
   * them; when there are none, the numbers are recorded.
   */
  record(numbers: readonly string[], owner: AddressOwner): Promise<readonly string[]>;
  /** Removes records. Never rejects. */
  erase(numbers: readonly string[], owner: AddressOwner): Promise<void>;
  /** Whether a record says which Service it belongs to. */
  readonly owners: 'named' | 'none';
}

/** After so many numbers of somebody else's the request is given up, as it has taken its time. */
const conflictsMax = 256;

/**
 * Records what `allocate` gives: each number that the Service did not have before. Where somebody
 * else has recorded one of them, the ledger holds it until a choice succeeds, so that `allocate`
 * chooses others, refuses a number that was asked for by name, and finds a range full when it is.
 * Numbers that the Service no longer has are freed once the write is stored.
 */
export function recordingNumbers(
  allocate: Allocate,
  { recorder, ledger }: { readonly recorder: NumberRecorder; readonly ledger: ServiceLedger },
): Allocate {
  return async (context, object, old) => {
    if (context.subresource !== '' || context.dryRun) return allocate(context, object, old);
    const requested = structuredClone(object.spec);
    const before = new Set(old === undefined ? [] : recorder.numbersOf(old));
    const owner = ownerOf(object);
    const taken: string[] = [];
    try {
      for (;;) {
        const allocation = await allocate(context, object, old);
        const now = new Set(recorder.numbersOf(object));
        const added = [...now].filter((one) => !before.has(one));
        const dropped = [...before].filter((one) => !now.has(one));
        const conflicts = await recordOrRefuse(allocation, { recorder, added, owner });
        if (conflicts.length === 0) {
          return recordedAllocation(allocation, { recorder, added, dropped, owner, object });
        }
        for (const one of conflicts) {
          taken.push(one);
          ledger.take(one);
        }
        if (taken.length >= conflictsMax) throw contended();
        object.spec = structuredClone(requested);
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

/** The numbers that have a record of somebody else's; nothing is allocated any more where there are. */
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
        // The generated name was taken, and the object has another.
        await recorder.erase(added, owner);
        await recorder.record(added, stored);
      }
      // Records of a write whose outcome nobody knows are left to the repair of addresses.
      if (outcome.type === 'refused') await recorder.erase(added, owner);
      if (outcome.type === 'written') await recorder.erase(dropped, owner);
    },
  };
}

const contended = () =>
  serviceUnavailable('others are taking the same addresses or ports: please try again');

/** A Service's `afterRemoval`: frees its numbers. */
export function releasingNumbers(
  recorders: readonly NumberRecorder[],
): NonNullable<Strategy['afterRemoval']> {
  return async (object) => {
    await Promise.all(recorders.map((one) => one.erase(one.numbersOf(object), ownerOf(object))));
  };
}

/**
 * Service addresses as API objects (MultiCIDRServiceAllocator): ServiceCIDRs say which addresses
 * there are, and an IPAddress of its own records each address in use. The IPAddress is what claims
 * an address, so that neither another server nor another program can use it at the same time.
 */
export interface AddressRecords {
  /** Resolves when the ranges and the recorded addresses are as new as the store. */
  caughtUp(): Promise<void>;
  /** The ready ranges of a family. */
  pools(family: Family): readonly AddressPool[];
  /** Whether an address has a record, by the ledger's name of the address. */
  isRecorded(key: string): boolean;
  /** Records an address; resolves to false when it has a record already. */
  record(ip: string, owner: AddressOwner): Promise<boolean>;
  /** Removes the record of an address, if `owner` is whose it is. Never rejects. */
  erase(ip: string, owner: AddressOwner): Promise<void>;
}

/** Records each address as an object of its own. */
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

/** The addresses that a Service has, each an IP. */
export function addressesOf(object: ApiObject): readonly string[] {
  const { spec } = asService(object);
  if (isExternalName(spec)) return [];
  return (spec.clusterIPs ?? []).filter((ip) => ip !== noAddress && ip !== '');
}

interface NumberClaim {
  /** What was claimed is written, or will never be. */
  release(): void;
  /** Nobody knows which of the two: it stays claimed for a time. */
  doubt(): void;
}

/** Numbers, and other things by name, of which at most one server has each at a time. */
export interface NumberClaims {
  /** Claims all or none; undefined when another server has one of them. */
  take(keys: readonly string[]): Promise<NumberClaim | undefined>;
}

const attemptsMax = 32;

/**
 * Chooses numbers that no other server chooses at the same time. What is stored is what is held; a
 * claim only covers the moment between choosing and storing:
 *
 * 1. numbers are chosen that nobody holds, by what is stored, and claimed;
 * 2. what is stored is looked at again, as of after the claim;
 * 3. if they are still free, they are stored, and the claim ends.
 *
 * Whoever claims the same number had it before step 1, and has stored it before step 2 sees; or
 * gets it after step 3, and sees in its own step 2 what was stored here.
 */
export async function allocateClaimed(options: {
  readonly object: ApiObject;
  readonly ledger: ServiceLedger;
  readonly claims: NumberClaims;
  /** Puts numbers into the object, taken in the ledger; throws when one cannot be had. */
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
        if (outcome.type === 'unknown') claim.doubt();
        else claim.release();
      },
    };
  }
  throw serviceUnavailable(
    'other servers are giving the same addresses or ports: please try again',
  );
}

/** The claim of what was chosen; undefined, and the numbers are given back, when it was not had. */
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

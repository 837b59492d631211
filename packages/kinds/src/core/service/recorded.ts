import { type ApiObject, serviceUnavailable } from '@wheelhouse/machinery';
import type { Allocation, Strategy } from '../../resource-def.ts';
import type { AddressOwner, AddressRecords } from './address-records.ts';
import type { ServiceLedger } from './ledger.ts';
import { addressKey } from './pools.ts';
import { asService, isExternalName, noAddress } from './spec.ts';

type Allocate = NonNullable<Strategy['allocate']>;

/** After so many numbers of somebody else's the request is given up, as it has taken its time. */
const conflictsMax = 256;

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

interface Change {
  readonly recorder: NumberRecorder;
  readonly added: readonly string[];
  readonly owner: AddressOwner;
}

const contended = () =>
  serviceUnavailable('others are taking the same addresses or ports: please try again');

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

const ownerOf = ({ metadata }: ApiObject): AddressOwner => ({
  namespace: metadata.namespace ?? '',
  name: metadata.name ?? '',
});

/** A Service's `afterRemoval`: frees its numbers. */
export function releasingNumbers(
  recorders: readonly NumberRecorder[],
): NonNullable<Strategy['afterRemoval']> {
  return async (object) => {
    await Promise.all(recorders.map((one) => one.erase(one.numbersOf(object), ownerOf(object))));
  };
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

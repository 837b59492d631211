import { type ApiObject, serviceUnavailable } from '@wheelhouse/machinery';
import type { Allocation, Strategy } from '../../resource-def.ts';
import type { AddressOwner, AddressRecords } from './address-records.ts';
import { asService, isExternalName, noAddress } from './spec.ts';

type Allocate = NonNullable<Strategy['allocate']>;

const attemptsMax = 32;

/** Where numbers of Services are recorded, apart from the Services themselves. */
export interface NumberRecorder {
  /** The numbers of a Service that are recorded here. */
  numbersOf(object: ApiObject): readonly string[];
  /** Records all numbers, or none: resolves to false when one of them is taken. */
  record(numbers: readonly string[], owner: AddressOwner): Promise<boolean>;
  /** Removes records. Never rejects. */
  erase(numbers: readonly string[], owner: AddressOwner): Promise<void>;
  /** Whether a record says which Service it belongs to. */
  readonly owners: 'named' | 'none';
}

/**
 * Records what `allocate` gives: each number that the Service did not have before. Where somebody
 * else has recorded one of them meanwhile, `allocate` chooses anew, and refuses a number that was
 * asked for by name. Numbers that the Service no longer has are freed once the write is stored.
 */
export function recordingNumbers(allocate: Allocate, recorder: NumberRecorder): Allocate {
  return async (context, object, old) => {
    if (context.subresource !== '' || context.dryRun) return allocate(context, object, old);
    const requested = structuredClone(object.spec);
    const before = old === undefined ? [] : recorder.numbersOf(old);
    const owner = ownerOf(object);
    for (let attempt = 1; attempt <= attemptsMax; attempt += 1) {
      if (attempt > 1) object.spec = structuredClone(requested);
      const allocation = await allocate(context, object, old);
      const now = recorder.numbersOf(object);
      const added = now.filter((one) => !before.includes(one));
      const dropped = before.filter((one) => !now.includes(one));
      if (await recordOrRefuse(allocation, { recorder, added, owner })) {
        return recordedAllocation(allocation, { recorder, added, dropped, owner, object });
      }
    }
    throw serviceUnavailable('others are taking the same addresses or ports: please try again');
  };
}

interface Change {
  readonly recorder: NumberRecorder;
  readonly added: readonly string[];
  readonly owner: AddressOwner;
}

/** False, and nothing is allocated any more, when one of the numbers has a record. */
async function recordOrRefuse(
  allocation: Allocation,
  { recorder, added, owner }: Change,
): Promise<boolean> {
  let isRecorded = added.length === 0;
  try {
    if (!isRecorded) isRecorded = await recorder.record(added, owner);
    return isRecorded;
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
          if (!(await records.record(ip, owner))) return false;
          done.push(ip);
        }
        return true;
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

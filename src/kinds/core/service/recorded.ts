import type { Allocation, Strategy } from '../../../catalogue/resource-def.ts';
import { serviceUnavailable } from '../../../meta/status.ts';
import type { ApiObject } from '../../../meta/types.ts';
import type { AddressOwner, AddressRecords } from './address-records.ts';
import { asService, isExternalName, noAddress } from './spec.ts';

type Allocate = NonNullable<Strategy['allocate']>;

const attemptsMax = 32;

/**
 * Records what `allocate` gives: each address that the Service did not have before. Where somebody
 * else has recorded one of them meanwhile, `allocate` chooses anew, and refuses an address that was
 * asked for by name. Addresses that the Service no longer has are freed once the write is stored.
 */
export function recordingAddresses(allocate: Allocate, records: AddressRecords): Allocate {
  return async (context, object, old) => {
    if (context.subresource !== '' || context.dryRun) return allocate(context, object, old);
    const requested = structuredClone(object.spec);
    const before = old === undefined ? [] : addressesOf(old);
    const owner = ownerOf(object);
    for (let attempt = 1; attempt <= attemptsMax; attempt += 1) {
      if (attempt > 1) object.spec = structuredClone(requested);
      const allocation = await allocate(context, object, old);
      const now = addressesOf(object);
      const added = now.filter((ip) => !before.includes(ip));
      const dropped = before.filter((ip) => !now.includes(ip));
      if (await recordOrRefuse(allocation, { records, added, owner })) {
        return recordedAllocation(allocation, { records, added, dropped, owner, object });
      }
    }
    throw serviceUnavailable('others are taking the same addresses: please try again');
  };
}

interface Change {
  readonly records: AddressRecords;
  readonly added: readonly string[];
  readonly owner: AddressOwner;
}

/** False, and nothing is allocated any more, when one of the addresses has a record. */
async function recordOrRefuse(allocation: Allocation, change: Change): Promise<boolean> {
  let isRecorded = false;
  try {
    isRecorded = await recordAll(change);
    return isRecorded;
  } finally {
    if (!isRecorded) await allocation.settle({ type: 'refused' });
  }
}

function recordedAllocation(
  allocation: Allocation,
  change: Change & { readonly dropped: readonly string[]; readonly object: ApiObject },
): Allocation {
  const { records, added, dropped, owner, object } = change;
  return {
    async settle(outcome) {
      await allocation.settle(outcome);
      const stored = ownerOf(object);
      if (outcome.type === 'written' && stored.name !== owner.name) {
        // The generated name was taken, and the object has another.
        await eraseAll(records, added, owner);
        await recordAll({ records, added, owner: stored });
      }
      // Records of a write whose outcome nobody knows are left to the repair of addresses.
      if (outcome.type === 'refused') await eraseAll(records, added, owner);
      if (outcome.type === 'written') await eraseAll(records, dropped, owner);
    },
  };
}

/** Records all addresses, or none: false when one of them is taken. */
async function recordAll({ records, added, owner }: Change): Promise<boolean> {
  const done: string[] = [];
  try {
    for (const ip of added) {
      if (!(await records.record(ip, owner))) return false;
      done.push(ip);
    }
    return true;
  } finally {
    if (done.length < added.length) await eraseAll(records, done, owner);
  }
}

async function eraseAll(
  records: AddressRecords,
  ips: readonly string[],
  owner: AddressOwner,
): Promise<void> {
  await Promise.all(ips.map((ip) => records.erase(ip, owner)));
}

const ownerOf = ({ metadata }: ApiObject): AddressOwner => ({
  namespace: metadata.namespace ?? '',
  name: metadata.name ?? '',
});

/** A Service's `afterRemoval`: frees its addresses. */
export function releasingAddresses(records: AddressRecords): NonNullable<Strategy['afterRemoval']> {
  return (object) => eraseAll(records, addressesOf(object), ownerOf(object));
}

/** The addresses that a Service has, each an IP. */
export function addressesOf(object: ApiObject): readonly string[] {
  const { spec } = asService(object);
  if (isExternalName(spec)) return [];
  return (spec.clusterIPs ?? []).filter((ip) => ip !== noAddress && ip !== '');
}

import {
  type AddressOwner,
  type AddressPool,
  type AddressRecords,
  addressLabels,
  cidrsOf,
  createWholePool,
  type Family,
  familyOf,
  isReady,
  type ResourceDef,
  type Stored,
} from '@wheelhouse/kinds';
import type { IPAddress } from '@wheelhouse/kinds/types/networking/v1beta1';
import {
  type ApiObject,
  type Dialect,
  formatIpAddress,
  type Logger,
  parseIpAddress,
  parseIpBlock,
} from '@wheelhouse/machinery';
import type { CachePool } from '../../registry/caches.ts';
import { decodeEntry } from '../../registry/object-codec.ts';
import { listEntries, type ObjectWriter } from '../tools.ts';

/** The kinds of the allocator: ServiceCIDRs and IPAddresses. */
export interface AddressKinds {
  readonly ranges: ResourceDef;
  readonly addresses: ResourceDef;
}

/** The name of the IPAddress of an address, regardless of its spelling. */
export function recordName(ip: string): string {
  const address = parseIpAddress(ip);
  return address === undefined ? ip : formatIpAddress(address);
}

/** The IPAddress that records a Service's address. */
export function recordOf(ip: string, owner: AddressOwner, dialect: Dialect): ApiObject {
  const labels = addressLabels(dialect);
  const name = recordName(ip);
  return {
    apiVersion: `${dialect.group('networking')}/v1beta1`,
    kind: 'IPAddress',
    metadata: {
      name,
      labels: { [labels.family]: familyOf(name), [labels.managedBy]: labels.allocator },
    },
    spec: { parentRef: { group: '', resource: 'services', ...owner } },
  };
}

/** Whether an IPAddress records that a Service has the address. */
export function isOwnedBy(record: Stored<IPAddress>, owner: AddressOwner): boolean {
  const parent = record.spec?.parentRef ?? undefined;
  return (
    (parent?.group ?? '') === '' &&
    (parent?.resource ?? '') === 'services' &&
    (parent?.namespace ?? '') === owner.namespace &&
    (parent?.name ?? '') === owner.name
  );
}

/** Creates the port through which the allocator of Services uses ServiceCIDRs and IPAddresses. */
export function createAddressRecords(options: {
  readonly kinds: AddressKinds;
  readonly caches: CachePool;
  readonly writer: ObjectWriter;
  readonly dialect: Dialect;
  readonly logger: Logger;
}): AddressRecords {
  const { kinds, caches, writer, dialect, logger } = options;
  const { ranges, addresses } = kinds;
  const cached = cachedPools(caches, ranges);
  const at = (ip: string) => ({ def: addresses, namespace: '', name: recordName(ip) });
  return {
    async caughtUp() {
      await Promise.all([cached.refresh(), caches.of(addresses).get('', undefined)]);
    },
    pools: (family) => cached.pools(family),
    isRecorded: (key) => caches.of(addresses).peek(key.slice('ip:'.length)) !== undefined,
    record: (ip, owner) => writer.create(at(ip), recordOf(ip, owner, dialect)),
    async erase(ip, owner) {
      try {
        const entry = await caches.of(addresses).get(recordName(ip), undefined);
        if (entry === undefined || !isOwnedBy(decodeEntry(entry), owner)) return;
        await writer.remove(at(ip), { preconditions: { uid: entry.index.uid } });
      } catch (error) {
        logger.warn('cannot remove an IPAddress; the repair will', { ip, error: String(error) });
      }
    },
  };
}

/** The pools of the ready ranges, rebuilt when a ServiceCIDR changes. */
function cachedPools(caches: CachePool, ranges: ResourceDef) {
  let cached: { readonly generation: number; readonly pools: readonly AddressPool[] } | undefined;
  let generation = 0;
  let isFollowed = false;
  const load = async (): Promise<readonly AddressPool[]> => {
    const entries = await listEntries(caches, { def: ranges, namespace: '' });
    const ready = entries.map(decodeEntry).filter(isReady);
    const blocks = new Set(ready.flatMap(cidrsOf));
    return [...blocks].flatMap((text) => {
      const block = parseIpBlock(text);
      return block === undefined ? [] : [createWholePool(block)];
    });
  };
  return {
    async refresh() {
      const cache = caches.of(ranges);
      if (!isFollowed) {
        isFollowed = true;
        cache.subscribe(() => {
          generation += 1;
        });
      }
      await cache.get('', undefined);
      if (cached?.generation === generation) return;
      const loading = generation;
      cached = { generation: loading, pools: await load() };
    },
    pools: (family: Family) => (cached?.pools ?? []).filter((pool) => pool.family === family),
  };
}

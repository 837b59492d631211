import { allocateService } from '../kinds/core/service/allocator.ts';
import type { NumberClaims } from '../kinds/core/service/claimed.ts';
import { ServiceLedger } from '../kinds/core/service/ledger.ts';
import type { Pool } from '../kinds/core/service/pools.ts';
import { defaultServiceRanges, readServiceRanges } from '../kinds/core/service/ranges.ts';
import type { ServiceOptions } from '../kinds/core/service.ts';
import type { ResourceCache } from '../watchcache/contract.ts';
import type { Api } from './api.ts';
import type { ServerConfig } from './config.ts';
import { FlagError } from './flags.ts';

/** Gives Services their addresses and ports, once it has been told where they are kept. */
export interface ServiceNumbers extends ServiceOptions {
  /** Must be called before the first request. */
  readFrom(
    api: Pick<Api, 'catalogue' | 'registry'>,
    /** Where other servers give numbers too. */
    claims?: NumberClaims,
  ): void;
  /** How much of the ranges is given. Rejects when Services cannot be read. */
  usage(): Promise<{
    readonly addresses: readonly (PoolUsage & { readonly text: string })[];
    readonly nodePorts: PoolUsage;
  }>;
}

interface PoolUsage {
  readonly held: number;
  readonly free: number;
}

/** Throws FlagError for ranges that cannot be. */
export function createServiceNumbers(config: ServerConfig): ServiceNumbers {
  const ranges = readServiceRanges(config.serviceRanges ?? defaultServiceRanges);
  if ('error' in ranges) throw new FlagError(ranges.error);
  let services = (): ResourceCache => {
    throw new Error('nobody said where Services are kept');
  };
  let claims: NumberClaims | undefined;
  const ledger = new ServiceLedger({ cache: () => services(), clock: config.clock });
  return {
    allocate: allocateService({ ranges, ledger, claims: () => claims }),
    async usage() {
      await ledger.caughtUp();
      const keys = new Set(ledger.held());
      const { addresses, nodePorts } = ranges;
      return {
        addresses: addresses.map((pool) => ({ text: pool.text, ...usageOf(pool, keys) })),
        nodePorts: usageOf(nodePorts, keys),
      };
    },
    readFrom: ({ catalogue, registry }, shared) => {
      claims = shared;
      const def = catalogue.snapshot().builtin('', 'services');
      if (def === undefined) throw new Error('the catalogue has no services');
      services = () => registry.caches.of(def);
    },
  };
}

function usageOf(pool: Pool, keys: ReadonlySet<string>): PoolUsage {
  let held = 0;
  for (const key of keys) if (pool.has(key)) held += 1;
  return { held, free: pool.size - held };
}

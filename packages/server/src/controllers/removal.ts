import type { ResourceDef } from '@wheelhouse/kinds';
import type { CachePool } from '../registry/cache-pool.ts';
import type { Entry } from '../watchcache/entry.ts';
import type { Inside } from './inside.ts';

/** All objects of a kind, or those of one namespace. */
export interface Content {
  readonly def: ResourceDef;
  /** Empty: everywhere. */
  readonly namespace: string;
}

/** Deletions that run at a time. */
const parallelMax = 32;

/**
 * What a consistent list shows.
 * @param options.unreadable lists the rest although stored objects cannot be read
 */
export async function listEntries(
  caches: CachePool,
  at: Content,
  options: { readonly unreadable?: 'left-out' } = {},
): Promise<readonly Entry[]> {
  const list = await caches.of(at.def).list({
    namespace: at.namespace,
    resourceVersion: undefined,
    resourceVersionMatch: undefined,
    limit: undefined,
    continueToken: undefined,
    filter: undefined,
    ...options,
  });
  return [...list.entries()];
}

/** Tells every object to go; finalizers may keep some. */
export async function removeEntries(options: {
  readonly caches: CachePool;
  readonly inside: Inside;
  readonly at: Content;
}): Promise<void> {
  const { caches, inside, at } = options;
  const entries = await listEntries(caches, at);
  for (let start = 0; start < entries.length; start += parallelMax) {
    const batch = entries.slice(start, start + parallelMax).map(({ index }) => {
      const { name, namespace } = index;
      return inside.remove({ def: at.def, name, namespace }, { propagationPolicy: 'Background' });
    });
    await Promise.all(batch);
  }
}

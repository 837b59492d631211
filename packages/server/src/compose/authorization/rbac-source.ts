import type { CatalogueSnapshot, ResourceDef } from '@wheelhouse/kinds';
import type { Dialect } from '@wheelhouse/machinery';
import type { RbacSource } from '../../gates/authz/rbac/rbac-authorizer.ts';
import type { RbacChange, RbacKind } from '../../gates/authz/rbac/rbac-index.ts';
import type { CachePool } from '../../registry/cache-pool.ts';
import { follow } from '../../registry/follow.ts';
import { decodeEntry } from '../../registry/object-codec.ts';
import type { Entry, EntryChange } from '../../watchcache/contract.ts';

const resources: Readonly<Record<RbacKind, string>> = {
  Role: 'roles',
  ClusterRole: 'clusterroles',
  RoleBinding: 'rolebindings',
  ClusterRoleBinding: 'clusterrolebindings',
};

/**
 * Feeds the RBAC authorizer from the watch caches of the four kinds, loaded before this resolves.
 * `fresh` resolves when what it was fed is as new as the store.
 */
export async function openRbacSource(options: {
  readonly caches: CachePool;
  readonly snapshot: CatalogueSnapshot;
  readonly dialect: Dialect;
}): Promise<RbacSource & { fresh(): Promise<void> }> {
  const { caches, snapshot, dialect } = options;
  const group = dialect.group('rbac.authorization');
  const kinds = Object.keys(resources) as RbacKind[];
  const listeners = new Set<(change: RbacChange) => void>();
  const followed = await Promise.all(
    kinds.map(async (kind) => {
      const def = snapshot.builtin(group, resources[kind]);
      if (def === undefined) throw new Error(`the catalogue has no ${resources[kind]}`);
      const tell = (change: Pick<EntryChange, 'previous' | 'current'>) => {
        for (const listener of listeners) listener(rbacChange(kind, change));
      };
      return [kind, await hold({ caches, def, tell })] as const;
    }),
  );
  const byKind = new Map(followed);
  return {
    async fresh() {
      await Promise.all(followed.map(([, { fresh }]) => fresh()));
    },
    list: (kind) => (byKind.get(kind)?.entries() ?? []).map(decodeEntry),
    onChange(listener) {
      listeners.add(listener);
      return () => {
        listeners.delete(listener);
        for (const [, { close }] of followed) close();
      };
    },
  };
}

function rbacChange(
  kind: RbacKind,
  { previous, current }: Pick<EntryChange, 'previous' | 'current'>,
): RbacChange {
  return {
    kind,
    ...(previous === undefined ? {} : { previous: decodeEntry(previous) }),
    ...(current === undefined ? {} : { current: decodeEntry(current) }),
  };
}

/** Keeps the objects of a kind as they are, and tells of every change. */
async function hold(options: {
  readonly caches: CachePool;
  readonly def: ResourceDef;
  readonly tell: (change: Pick<EntryChange, 'previous' | 'current'>) => void;
}) {
  const cache = options.caches.of(options.def);
  const entryByKey = new Map<string, Entry>();
  const tell = (key: string, current: Entry | undefined) => {
    const previous = entryByKey.get(key);
    if (current === undefined) entryByKey.delete(key);
    else entryByKey.set(key, current);
    options.tell({ previous, current });
  };
  const followed = await follow(cache, tell, { unreadable: 'left-out' });
  return {
    close: followed.close,
    entries: () => [...entryByKey.values()],
    fresh: async () => {
      await cache.get('', undefined);
    },
  };
}

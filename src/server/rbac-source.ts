import type { RbacSource } from '../authz/rbac-authorizer.ts';
import type { RbacChange, RbacKind } from '../authz/rbac-index.ts';
import type { CatalogueSnapshot, ResourceDef } from '../catalogue/resource-def.ts';
import type { Dialect } from '../dialect.ts';
import type { CachePool } from '../registry/cache-pool.ts';
import { decodeEntry } from '../registry/object-codec.ts';
import type { Entry, EntryChange } from '../watchcache/contract.ts';

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
      const tell = (change: EntryChange) => {
        for (const listener of listeners) listener(rbacChange(kind, change));
      };
      return [kind, await follow({ caches, def, tell })] as const;
    }),
  );
  const held = new Map(followed);
  return {
    async fresh() {
      await Promise.all(followed.map(([, { fresh }]) => fresh()));
    },
    list: (kind) => (held.get(kind)?.entries() ?? []).map(decodeEntry),
    onChange(listener) {
      listeners.add(listener);
      return () => {
        listeners.delete(listener);
        for (const [, { close }] of followed) close();
      };
    },
  };
}

function rbacChange(kind: RbacKind, { previous, current }: EntryChange): RbacChange {
  return {
    kind,
    ...(previous === undefined ? {} : { previous: decodeEntry(previous) }),
    ...(current === undefined ? {} : { current: decodeEntry(current) }),
  };
}

/** Subscribes before it lists, and lets changes win, so that none falls in between. */
async function follow(options: {
  readonly caches: CachePool;
  readonly def: ResourceDef;
  readonly tell: (change: EntryChange) => void;
}) {
  const cache = options.caches.of(options.def);
  const held = new Map<string, Entry | undefined>();
  const subscription = cache.subscribe((change) => {
    const key = change.current?.key ?? change.previous?.key;
    if (key !== undefined) held.set(key, change.current);
    options.tell(change);
  });
  await cache.ready();
  const list = await cache.list({
    namespace: '',
    resourceVersion: '0',
    resourceVersionMatch: undefined,
    limit: undefined,
    continueToken: undefined,
    filter: undefined,
  });
  for (const entry of list.entries()) if (!held.has(entry.key)) held.set(entry.key, entry);
  return {
    close: () => subscription.close(),
    entries: () => [...held.values()].filter((entry) => entry !== undefined),
    fresh: async () => {
      await cache.get('', undefined);
    },
  };
}

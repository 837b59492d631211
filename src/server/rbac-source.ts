import type { RbacSource } from '../authz/rbac-authorizer.ts';
import type { RbacKind } from '../authz/rbac-index.ts';
import type { CatalogueSnapshot, ResourceDef } from '../catalogue/resource-def.ts';
import type { Dialect } from '../dialect.ts';
import { decodeEntry } from '../registry/object-codec.ts';
import type { CachePool } from '../registry/registry.ts';
import type { Entry } from '../watchcache/contract.ts';

const resources: Readonly<Record<RbacKind, string>> = {
  Role: 'roles',
  ClusterRole: 'clusterroles',
  RoleBinding: 'rolebindings',
  ClusterRoleBinding: 'clusterrolebindings',
};

/** Feeds the RBAC authorizer from the watch caches of the four kinds, loaded before this resolves. */
export async function openRbacSource(options: {
  readonly caches: CachePool;
  readonly snapshot: CatalogueSnapshot;
  readonly dialect: Dialect;
}): Promise<RbacSource> {
  const { caches, snapshot, dialect } = options;
  const group = dialect.group('rbac.authorization');
  const defs = new Map<RbacKind, ResourceDef>();
  const held = new Map<RbacKind, Entry[]>();
  for (const kind of Object.keys(resources) as RbacKind[]) {
    const def = snapshot.find(group, 'v1', resources[kind])?.def;
    if (def === undefined) throw new Error(`the catalogue has no ${resources[kind]}`);
    defs.set(kind, def);
    held.set(kind, await everything(caches, def));
  }
  return {
    list: (kind) => (held.get(kind) ?? []).map(decodeEntry),
    onChange(listener) {
      const subscriptions = [...defs].map(([kind, def]) =>
        caches.of(def).subscribe(({ previous, current }) =>
          listener({
            kind,
            ...(previous === undefined ? {} : { previous: decodeEntry(previous) }),
            ...(current === undefined ? {} : { current: decodeEntry(current) }),
          }),
        ),
      );
      return () => {
        for (const subscription of subscriptions) subscription.close();
      };
    },
  };
}

async function everything(caches: CachePool, def: ResourceDef): Promise<Entry[]> {
  const cache = caches.of(def);
  await cache.ready();
  const list = await cache.list({
    namespace: '',
    resourceVersion: '0',
    resourceVersionMatch: undefined,
    limit: undefined,
    continueToken: undefined,
    filter: undefined,
  });
  return [...list.entries()];
}

import type { CatalogueSnapshot, ResourceDef } from '../catalogue/resource-def.ts';
import { storedVersion } from '../controllers/inside.ts';
import type { Dialect } from '../dialect.ts';
import { StatusError } from '../meta/status.ts';
import type { ApiObject } from '../meta/types.ts';
import type { WriteContext } from '../registry/contract.ts';
import { createObject } from '../registry/create.ts';
import type { Registry } from '../registry/registry.ts';

/** Stems of the namespaces that exist from the start besides `default`. */
const systemNamespaces = ['system', 'public', 'node-lease'];

/** Who the server is when it writes what every server has. */
export const serverContext: WriteContext = {
  user: {
    name: 'system:apiserver',
    uid: '',
    groups: ['system:masters', 'system:authenticated'],
    extra: {},
  },
  dryRun: false,
  fieldManager: 'wheelhouse',
  warn: () => {},
  expired: () => false,
};

/** Creates the namespaces every server has; those that are there stay as they are. */
export async function createSystemNamespaces(options: {
  readonly registry: Registry;
  readonly snapshot: CatalogueSnapshot;
  readonly dialect: Dialect;
}): Promise<void> {
  const { registry, snapshot, dialect } = options;
  const def = snapshot.builtin('', 'namespaces');
  if (def === undefined) throw new Error('the catalogue has no namespaces');
  const names = ['default', ...systemNamespaces.map((stem) => dialect.systemNamespace(stem))];
  const cache = registry.caches.of(def);
  const create = async (name: string) => {
    if ((await cache.get(name, undefined)) === undefined) {
      await createNamespace(registry, { def, name });
    }
  };
  await Promise.all(names.map(create));
}

async function createNamespace(
  registry: Registry,
  { def, name }: { def: ResourceDef; name: string },
): Promise<void> {
  const object: ApiObject = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
  const target = { def, version: storedVersion(def), namespace: '', name, subresource: '' };
  try {
    await createObject(registry, { target, object, context: serverContext });
  } catch (error) {
    if (!(error instanceof StatusError) || error.reason !== 'AlreadyExists') throw error;
  }
}

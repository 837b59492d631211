import type { CatalogueSnapshot, ResourceDef } from '@wheelhouse/kinds';
import { type ApiObject, type Dialect, StatusError } from '@wheelhouse/machinery';
import { storedVersion } from '../controllers/inside.ts';
import type { Registry } from '../registry/registry.ts';
import { serverContext } from '../registry/server-context.ts';
import { write } from '../registry/write.ts';

/** Stems of the namespaces that exist from the start besides `default`. */
const systemNamespaces = ['system', 'public', 'node-lease'];

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
      const object = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
      await createUnlessThere(registry, def, object);
    }
  };
  await Promise.all(names.map(create));
}

async function createUnlessThere(
  registry: Registry,
  def: ResourceDef,
  object: ApiObject,
): Promise<void> {
  const name = object.metadata.name ?? '';
  const target = { def, version: storedVersion(def), namespace: '', name, subresource: '' };
  try {
    await write(registry, { operation: 'create', target, object, context: serverContext });
  } catch (error) {
    if (!(error instanceof StatusError) || error.reason !== 'AlreadyExists') throw error;
  }
}

/** Classes of pods that the system cannot do without, by upstream's names and numbers. */
const systemPriorities = [
  ['system-node-critical', 2_000_001_000, 'For pods that must stay on the node they are on.'],
  ['system-cluster-critical', 2_000_000_000, 'For pods that must run, on whatever node.'],
] as const;

/** Creates the priority classes every server has (ADM-1); those that are there stay as they are. */
export async function createSystemPriorities(options: {
  readonly registry: Registry;
  readonly snapshot: CatalogueSnapshot;
  readonly dialect: Dialect;
}): Promise<void> {
  const { registry, snapshot, dialect } = options;
  const group = dialect.group('scheduling');
  const def = snapshot.builtin(group, 'priorityclasses');
  if (def === undefined) throw new Error('the catalogue has no priority classes');
  const cache = registry.caches.of(def);
  const create = async ([name, value, description]: (typeof systemPriorities)[number]) => {
    if ((await cache.get(name, undefined)) !== undefined) return;
    const apiVersion = `${group}/v1`;
    const metadata = { name };
    const preemptionPolicy = 'PreemptLowerPriority';
    const object = { apiVersion, kind: 'PriorityClass', metadata, value, description };
    await createUnlessThere(registry, def, { ...object, preemptionPolicy });
  };
  await Promise.all(systemPriorities.map(create));
}

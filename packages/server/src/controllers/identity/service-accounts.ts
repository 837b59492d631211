import type { ResourceDef } from '@wheelhouse/kinds';
import { type ApiObject, type Dialect, jsonEqual } from '@wheelhouse/machinery';
import { decodedInSlices, objectKey } from '../../registry/object-codec.ts';
import { type ControllerTools, startVisit } from '../tools.ts';
import { type Controller, createWorkQueue, runningQueue } from '../work-queue.ts';

/** Maintains the account `default` in every namespace, for Pods that name no account (AUTHN-6). */
export function startServiceAccounts(
  options: KeeperTools & { readonly serviceAccounts: ResourceDef },
): Controller {
  const object = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } };
  return startNamespaceKeeper({
    ...options,
    controller: 'serviceaccount-controller',
    def: options.serviceAccounts,
    object,
  });
}

/** Maintains a ConfigMap with the server's CA in every namespace, for clients that run there. */
export function startRootCaPublisher(
  options: KeeperTools & {
    readonly configMaps: ResourceDef;
    readonly dialect: Dialect;
    readonly caPem: string;
  },
): Controller {
  const { dialect, caPem } = options;
  const object = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      name: `${dialect.namespacePrefix}root-ca.crt`,
      annotations: {
        [dialect.label('description')]: 'The CA that signs the server’s certificate.',
      },
    },
    data: { 'ca.crt': caPem },
  };
  return startNamespaceKeeper({
    ...options,
    controller: 'root-ca-certificate-publisher-controller',
    def: options.configMaps,
    object,
  });
}

/** Number of namespaces processed concurrently. */
const workers = 8;

/** The dependencies of the controllers that maintain an object in each namespace. */
interface KeeperTools extends ControllerTools {
  readonly namespaces: ResourceDef;
}

/**
 * Maintains one named object in every active namespace, existing or new: creates it, recreates it
 * after a deletion, and restores a changed `data`.
 */
function startNamespaceKeeper(
  options: KeeperTools & {
    readonly controller: string;
    readonly def: ResourceDef;
    /** Without a namespace. Only its `data`, if any, is maintained. */
    readonly object: ApiObject & { readonly metadata: { readonly name: string } };
  },
): Controller {
  const { namespaces, def, object, caches, writer, clock } = options;
  const { name } = object.metadata;
  const spaces = caches.of(namespaces);
  const objects = caches.of(def);
  const run = async (namespace: string): Promise<void> => {
    const space = await spaces.get(namespace, undefined);
    if (space === undefined || space.index.deleting === true) return;
    const entry = await objects.get(objectKey(namespace, name), undefined);
    const at = { def, namespace, name };
    if (entry === undefined) {
      const copy = structuredClone(object);
      await writer.create(at, { ...copy, metadata: { ...copy.metadata, namespace } });
      return;
    }
    if (object.data === undefined) return;
    if (!hasData(await decodedInSlices(entry, clock), object)) {
      await writer.change(at, (current) => ({ ...current, data: object.data ?? null }));
    }
  };
  const queue = createWorkQueue({ ...options, name: options.controller, run, workers });
  const subscriptions = [
    spaces.subscribe(({ current }) => {
      if (current !== undefined && current.index.deleting !== true) queue.add(current.index.name);
    }),
    objects.subscribe(({ previous, current }) => {
      const index = current?.index ?? previous?.index;
      if (previous !== undefined && index?.name === name) queue.add(index.namespace);
    }),
  ];
  const at = { def: namespaces, namespace: '' };
  const first = startVisit(options, { at, plural: 'namespaces' }, ({ index }) =>
    queue.add(index.name),
  );
  return runningQueue(queue, ...subscriptions, first);
}

function hasData(current: ApiObject, desired: ApiObject): boolean {
  return jsonEqual(current.data ?? {}, desired.data ?? {});
}

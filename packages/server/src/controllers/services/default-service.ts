import type { ResourceDef } from '@wheelhouse/kinds';
import {
  type ApiObject,
  type Dialect,
  type JsonObject,
  jsonEqual,
  jsonObject,
} from '@wheelhouse/machinery';
import { decodedInSlices, objectKey } from '../../registry/object-codec.ts';
import { type ControllerTools, createAbsent } from '../tools.ts';
import { type Controller, createWorkQueue, runningQueue } from '../work-queue.ts';

const namespace = 'default';
const servicePort = 443;

/** The addresses and ports at which clients reach the server. */
interface ServerLocation {
  /** The Service's address: the first of the range. */
  readonly clusterIp: string;
  readonly port: number;
  /** Port on all nodes; without one, the Service has type ClusterIP. */
  readonly nodePort?: number;
  /** An address at which clients reach the server; absent if endpoints are not maintained. */
  readonly ip?: string;
  /** Other servers with the same objects, which listen on the same port. */
  readonly peers?: ServerPeers;
}

/** The servers that share a store. */
export interface ServerPeers {
  addresses(): Promise<readonly string[]>;
  follow(changed: () => void): { close(): void };
}

interface MaintainedObject {
  readonly def: ResourceDef;
  readonly object: ApiObject;
  /** Paths of the members that are restored after a change. */
  readonly restoredMembers: readonly string[];
}

interface DefaultServiceOptions extends ControllerTools {
  readonly defs: {
    readonly services: ResourceDef;
    readonly endpoints: ResourceDef;
    readonly endpointSlices: ResourceDef;
  };
  readonly dialect: Dialect;
  readonly place: ServerLocation;
}

/**
 * Maintains the server's own Service and its endpoints in namespace `default`: creates them at
 * startup, recreates them after a deletion, and restores changes.
 */
export function startDefaultService(options: DefaultServiceOptions): Controller {
  const { caches, writer, place } = options;
  const { peers } = place;
  const objects = new Map(
    maintainedObjects(options, []).map((maintained) => [maintained.def.resource, maintained]),
  );
  const name = options.dialect.productName;
  const run = async (resource: string): Promise<void> => {
    const kept = maintainedObjects(options, (await peers?.addresses()) ?? []);
    const desired = kept.find(({ def }) => def.resource === resource);
    if (desired === undefined) return;
    const { def, object } = desired;
    const at = { def, namespace, name };
    const entry = await caches.of(def).get(objectKey(namespace, name), undefined);
    if (entry === undefined) await writer.create(at, structuredClone(object));
    else if (!isCurrent(await decodedInSlices(entry, options.clock), desired)) {
      await writer.change(at, (current) => restored(current, desired));
    }
  };
  const queue = createWorkQueue({ ...options, name: 'default-service', run, workers: 3 });
  const subscriptions = [...objects].map(([resource, { def }]) =>
    caches.of(def).subscribe(({ previous, current }) => {
      const index = current?.index ?? previous?.index;
      if (index?.name === name && index.namespace === namespace) queue.add(resource);
    }),
  );
  const addAll = () => {
    for (const resource of objects.keys()) queue.add(resource);
  };
  addAll();
  const following = peers?.follow(addAll);
  return runningQueue(queue, () => following?.close(), ...subscriptions);
}

/** Creates the Service and its endpoints concurrently if absent, during startup (HEALTH-2). */
export async function createDefaultService(options: DefaultServiceOptions): Promise<void> {
  const { place, dialect } = options;
  const name = dialect.productName;
  const desired = maintainedObjects(options, (await place.peers?.addresses()) ?? []);
  await Promise.all(
    desired.map(({ def, object }) =>
      createAbsent(options, { at: { def, namespace, name }, object }),
    ),
  );
}

/**
 * The Service and its endpoints.
 * @param serverAddresses addresses of all servers, possibly including this one
 */
function maintainedObjects(
  options: DefaultServiceOptions,
  serverAddresses: readonly string[],
): readonly MaintainedObject[] {
  const { defs, dialect, place } = options;
  const name = dialect.productName;
  const port = { name: 'https', port: place.port, protocol: 'TCP' };
  const { nodePort } = place;
  const onNodes = nodePort === undefined ? {} : { nodePort };
  const service = {
    def: defs.services,
    restoredMembers: [
      'spec.ports',
      'spec.type',
      ...(nodePort === undefined ? [] : ['spec.externalTrafficPolicy']),
    ],
    object: {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name, namespace, labels: { component: 'apiserver', provider: name } },
      spec: {
        clusterIP: place.clusterIp,
        internalTrafficPolicy: 'Cluster',
        ipFamilyPolicy: 'SingleStack',
        ports: [{ ...port, ...onNodes, port: servicePort, targetPort: place.port }],
        sessionAffinity: 'None',
        ...(nodePort === undefined
          ? { type: 'ClusterIP' }
          : { type: 'NodePort', externalTrafficPolicy: 'Cluster' }),
      },
    },
  };
  const { ip } = place;
  if (ip === undefined) return [service];
  const isV6 = ip.includes(':');
  const sameFamily = serverAddresses.filter((address) => address.includes(':') === isV6);
  const ips = [...new Set([ip, ...sameFamily])].sort();
  const endpoints = {
    def: defs.endpoints,
    restoredMembers: ['subsets'],
    object: {
      apiVersion: 'v1',
      kind: 'Endpoints',
      metadata: {
        name,
        namespace,
        labels: { [dialect.label('skip-mirror', 'endpointslice')]: 'true' },
      },
      subsets: [{ addresses: ips.map((address) => ({ ip: address })), ports: [port] }],
    },
  };
  const slice = {
    def: defs.endpointSlices,
    restoredMembers: ['endpoints', 'ports'],
    object: {
      apiVersion: `${defs.endpointSlices.group}/v1`,
      kind: 'EndpointSlice',
      metadata: { name, namespace, labels: { [dialect.label('service-name')]: name } },
      addressType: isV6 ? 'IPv6' : 'IPv4',
      endpoints: ips.map((address) => ({ addresses: [address], conditions: { ready: true } })),
      ports: [port],
    },
  };
  return [service, endpoints, slice];
}

/** The object that contains a member, and the member's own name. */
function memberOf(object: JsonObject, path: string): { parent: JsonObject; name: string } {
  const [first = '', second] = path.split('.');
  return second === undefined
    ? { parent: object, name: first }
    : { parent: jsonObject(object[first]), name: second };
}

function isCurrent(current: ApiObject, { object, restoredMembers }: MaintainedObject): boolean {
  return restoredMembers.every((path) => {
    const [is, desired] = [memberOf(current, path), memberOf(object, path)];
    return jsonEqual(is.parent[is.name], desired.parent[desired.name]);
  });
}

/** Restores the members of an object in place. */
function restored(current: ApiObject, { object, restoredMembers }: MaintainedObject): ApiObject {
  for (const path of restoredMembers) {
    const [to, from] = [memberOf(current, path), memberOf(object, path)];
    to.parent[to.name] = structuredClone(from.parent[from.name] ?? null);
  }
  return current;
}

import {
  type Dialect,
  isObject,
  type JsonObject,
  type JsonValue,
  objectsOf,
  randomBelow,
  StatusError,
  serviceUnavailable,
  textOf,
} from '@wheelhouse/machinery';
import type { ObjectReader } from '../admission/tools.ts';

/** A Service's name and one of its ports. */
export interface ServiceReference {
  readonly namespace: string;
  readonly name: string;
  readonly port: number;
}

/** An address behind a Service. */
export interface Reachable {
  readonly host: string;
  readonly port: number;
}

/** Finds an endpoint of a Service. Rejects with a StatusError if there is none. */
export type ResolveService = (service: ServiceReference) => Promise<Reachable>;

/**
 * Resolves Services to their endpoints: this process is not part of a cluster network, so Service
 * addresses work only if something routes them, and are used only if no endpoint is known. Picks a
 * random ready endpoint, as kube-apiserver does.
 */
export function createServiceResolver(options: {
  readonly dialect: Dialect;
  readonly objects: ObjectReader;
  /** `endpoints`: never falls back to the address of the Service. */
  readonly routing?: 'any' | 'endpoints';
}): ResolveService {
  const { objects, dialect, routing = 'any' } = options;
  const label = dialect.label('service-name');
  return async ({ namespace, name, port }) => {
    const service = await objects.get('services', { namespace, name });
    if (service === undefined) throw absent(name);
    const spec = isObject(service['spec']) ? service['spec'] : {};
    if (spec['type'] === 'ExternalName') {
      if (routing === 'endpoints') throw new Error('unsupported service type "ExternalName"');
      return { host: textOf(spec['externalName']), port };
    }
    const found = objectsOf(spec['ports']).find((one) => one['port'] === port);
    if (found === undefined) {
      throw serviceUnavailable(`no service port ${port} found for service ${JSON.stringify(name)}`);
    }
    const slices = await objects.list('endpointslices.discovery', namespace);
    const own = slices.filter(({ metadata }) => metadata.labels?.[label] === name);
    const endpoints = await objects.get('endpoints', { namespace, name });
    const portName = textOf(found['name']);
    const reachable = [
      ...own.flatMap((slice) => ofSlice(slice, portName)),
      ...(endpoints === undefined ? [] : ofEndpoints(endpoints, portName)),
    ];
    const picked = reachable[randomBelow(reachable.length)];
    if (picked !== undefined) return picked;
    const address = routing === 'endpoints' ? '' : textOf(spec['clusterIP']);
    if (address !== '' && address !== 'None') return { host: address, port };
    throw serviceUnavailable(`no endpoints available for service ${JSON.stringify(name)}`);
  };
}

function absent(name: string): StatusError {
  const message = `service ${JSON.stringify(name)} not found`;
  return new StatusError({ code: 404, reason: 'NotFound', message });
}

function portIn(ports: JsonValue | undefined, name: string): number | undefined {
  const port = objectsOf(ports).find((one) => textOf(one['name']) === name)?.['port'];
  return typeof port === 'number' ? port : undefined;
}

function ofSlice(slice: JsonObject, portName: string): readonly Reachable[] {
  const port = portIn(slice['ports'], portName);
  if (port === undefined) return [];
  return objectsOf(slice['endpoints'])
    .filter(({ conditions }) => !isObject(conditions) || conditions['ready'] !== false)
    .flatMap(({ addresses }) => (Array.isArray(addresses) ? addresses : []))
    .map((address) => ({ host: textOf(address), port }));
}

function ofEndpoints(endpoints: JsonObject, portName: string): readonly Reachable[] {
  return objectsOf(endpoints['subsets']).flatMap(({ addresses, ports }) => {
    const port = portIn(ports, portName);
    if (port === undefined) return [];
    return objectsOf(addresses).map(({ ip }) => ({ host: textOf(ip), port }));
  });
}

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

/** A port of a Service. */
export interface ServiceReference {
  readonly namespace: string;
  readonly name: string;
  readonly port: number;
}

/** The address of an endpoint of a Service. */
export interface ServiceEndpoint {
  readonly host: string;
  readonly port: number;
}

/** Resolves to an endpoint of a Service. Rejects with a StatusError if it has none. */
export type ResolveService = (service: ServiceReference) => Promise<ServiceEndpoint>;

/**
 * Creates a resolver of Services. It picks a random ready endpoint, as kube-apiserver does, and
 * uses the cluster IP only without endpoints, since this process may be outside the cluster's
 * network.
 */
export function createServiceResolver(options: {
  readonly dialect: Dialect;
  readonly objects: Pick<ObjectReader, 'get' | 'list'>;
  /** `endpoints` never uses the cluster IP and rejects ExternalName Services. */
  readonly routing?: 'any' | 'endpoints';
}): ResolveService {
  const { objects, dialect, routing = 'any' } = options;
  const label = dialect.label('service-name');
  return async ({ namespace, name, port }) => {
    const service = await objects.get('services', { namespace, name });
    if (service === undefined) throw notFoundError(name);
    const spec = isObject(service['spec']) ? service['spec'] : {};
    if (spec['type'] === 'ExternalName') {
      if (routing === 'endpoints') throw new Error('unsupported service type "ExternalName"');
      return { host: textOf(spec['externalName']), port };
    }
    const servicePort = objectsOf(spec['ports']).find((candidate) => candidate['port'] === port);
    if (servicePort === undefined) {
      throw serviceUnavailable(`no service port ${port} found for service ${JSON.stringify(name)}`);
    }
    const slices = await objects.list('endpointslices.discovery', namespace);
    const ownSlices = slices.filter(({ metadata }) => metadata.labels?.[label] === name);
    const endpoints = await objects.get('endpoints', { namespace, name });
    const portName = textOf(servicePort['name']);
    const candidates = [
      ...ownSlices.flatMap((slice) => endpointsOfSlice(slice, portName)),
      ...(endpoints === undefined ? [] : endpointsOfSubsets(endpoints, portName)),
    ];
    const picked = candidates[randomBelow(candidates.length)];
    if (picked !== undefined) return picked;
    const address = routing === 'endpoints' ? '' : textOf(spec['clusterIP']);
    if (address !== '' && address !== 'None') return { host: address, port };
    throw serviceUnavailable(`no endpoints available for service ${JSON.stringify(name)}`);
  };
}

function notFoundError(name: string): StatusError {
  const message = `service ${JSON.stringify(name)} not found`;
  return new StatusError({ code: 404, reason: 'NotFound', message });
}

function portNamed(ports: JsonValue | undefined, name: string): number | undefined {
  const port = objectsOf(ports).find((candidate) => textOf(candidate['name']) === name)?.['port'];
  return typeof port === 'number' ? port : undefined;
}

function endpointsOfSlice(slice: JsonObject, portName: string): readonly ServiceEndpoint[] {
  const port = portNamed(slice['ports'], portName);
  if (port === undefined) return [];
  return objectsOf(slice['endpoints'])
    .filter(({ conditions }) => !isObject(conditions) || conditions['ready'] !== false)
    .flatMap(({ addresses }) => (Array.isArray(addresses) ? addresses : []))
    .map((address) => ({ host: textOf(address), port }));
}

function endpointsOfSubsets(endpoints: JsonObject, portName: string): readonly ServiceEndpoint[] {
  return objectsOf(endpoints['subsets']).flatMap(({ addresses, ports }) => {
    const port = portNamed(ports, portName);
    if (port === undefined) return [];
    return objectsOf(addresses).map(({ ip }) => ({ host: textOf(ip), port }));
  });
}

import { lookup } from 'node:dns/promises';
import { posix } from 'node:path';
import { listAt, numberAt, objectsAt, textAt } from '@wheelhouse/kinds';
import {
  type ApiObject,
  badRequest,
  formatIpAddress,
  type JsonObject,
  notFound,
  parseIpAddress,
  randomBelow,
  Slices,
  serviceUnavailable,
  specialRanges,
} from '@wheelhouse/machinery';
import { decodedInSlices, objectKey } from '../../registry/object-codec.ts';
import type { ApiCall, ProxiedRequest } from '../call.ts';
import { admitStream, kubeletOf } from './pod-log.ts';

type Destination = Pick<ProxiedRequest, 'scheme' | 'host' | 'port' | 'trust'>;

/**
 * The `proxy` of a Pod, a Service, or a Node: after admission (ADM-2) the request is forwarded to
 * the Pod, to a Pod behind the Service, or to the Node. Rejects with 400, 404, and 503.
 */
export async function proxyEndpoint(call: ApiCall): Promise<void> {
  const { exchange, target, context } = call;
  const options = await admitStream(call, { path: pathBehind(call) });
  const destination = await destinationOf(call);
  // A cleaned path keeps its trailing slash, as in kube-apiserver.
  const joined = textAt(options, 'path');
  const path = joined === '' ? '' : posix.normalize(joined);
  const isUpgrade = exchange.header('connection')?.toLowerCase().includes('upgrade') === true;
  const isRead = exchange.method === 'GET' || exchange.method === 'HEAD';
  if (path === '' && isRead && !isUpgrade) {
    redirectToRoot(call);
    return;
  }
  const namespace = target.namespace === '' ? '' : `namespaces/${target.namespace}/`;
  const prefix = `/api/${target.version.version}/${namespace}${target.def.resource}/${target.name}/proxy`;
  await context.kubelets.proxy(call, { ...destination, path: path === '' ? '/' : path, prefix });
}

/** The path after `proxy`; empty, or with a leading slash. */
function pathBehind({ info }: ApiCall): string {
  const rest = info.parts.slice(3).join('/');
  const path = rest === '' || rest.startsWith('/') ? rest : `/${rest}`;
  return info.path.endsWith('/') && !path.endsWith('/') ? `${path}/` : path;
}

/** Redirects to the path with a trailing slash, so that relative links of pages work. */
function redirectToRoot({ exchange, baseHeaders }: ApiCall): void {
  const [path = '', ...query] = exchange.url.split('?');
  const location = [`${path}/`, ...query].join('?');
  exchange.send({ status: 301, headers: { ...baseHeaders, location }, body: Buffer.alloc(0) });
}

interface Place {
  readonly scheme: ProxiedRequest['scheme'];
  readonly name: string;
  /** Empty if absent. */
  readonly port: string;
}

const schemes = new Map<string, ProxiedRequest['scheme']>([
  ['', 'http'],
  ['http', 'http'],
  ['https', 'https'],
]);

/** Parses `name`, `name:port`, or `scheme:name:port`; undefined for anything else. */
function splitPlace(text: string): Place | undefined {
  const parts = text.split(':');
  if (parts.length > 3) return undefined;
  const [prefix = '', name = '', port = ''] = parts.length === 3 ? parts : ['', ...parts];
  const scheme = schemes.get(prefix);
  return scheme === undefined || name === '' ? undefined : { scheme, name, port };
}

function destinationOf(call: ApiCall): Promise<Destination> {
  const { target } = call;
  const place = splitPlace(target.name);
  const kind = target.def.kind.toLowerCase();
  if (place === undefined) {
    throw badRequest(`invalid ${kind} request ${JSON.stringify(target.name)}`);
  }
  if (kind === 'node') return nodeDestination(call, place);
  return kind === 'service' ? serviceDestination(call, place) : podDestination(call, place);
}

async function nodeDestination(call: ApiCall, { scheme, name, port }: Place): Promise<Destination> {
  const kubelet = await kubeletOf(call, name);
  const addresses = await lookup(kubelet.host, { all: true }).catch(() => {
    throw badRequest(`lookup ${kubelet.host}: no such host`);
  });
  for (const { address } of addresses) globalAddress(address);
  if (port === '' || port === String(kubelet.port)) {
    return { scheme: 'https', host: kubelet.host, port: kubelet.port, trust: 'kubelet' };
  }
  return { scheme, host: kubelet.host, port: portNumber(port, scheme), trust: 'anyone' };
}

async function podDestination(call: ApiCall, { scheme, name, port }: Place): Promise<Destination> {
  const pod = await objectOf(call, { resource: 'pods', name });
  const host = globalAddress(textAt(pod, 'status', 'podIP'));
  const ports = objectsAt(pod, 'spec', 'containers').flatMap((container) =>
    objectsAt(container, 'ports'),
  );
  const first = ports[0] === undefined ? undefined : numberAt(ports[0], 'containerPort');
  const numberOrName = port === '' ? String(first ?? '') : port;
  return { scheme, host, port: portNumber(numberOrName, scheme), trust: 'anyone' };
}

/** The port number of a number or a TCP service name; the default of the scheme if empty. */
function portNumber(text: string, scheme: Place['scheme']): number {
  const fault = (why: string) =>
    serviceUnavailable(`error trying to reach service: dial tcp: ${why}`);
  const name = text === '' ? scheme : text;
  if (name === 'http') return 80;
  if (name === 'https') return 443;
  if (!/^\d+$/.test(name)) throw fault(`lookup tcp/${name}: unknown port`);
  const port = Number(name);
  if (port >= 2 ** 16) throw fault(`address ${name}: invalid port`);
  return port;
}

/**
 * The address in canonical form, because the host's resolver accepts others (`0177.0.0.1`). Throws
 * 400 for unspecified, loopback, link-local, multicast, and broadcast addresses, which no Pod or
 * Node has.
 */
function globalAddress(text: string): string {
  const address = parseIpAddress(text);
  const usual = address === undefined ? '' : formatIpAddress(address);
  const isMulticast = /^(22[4-9]|23\d)\.|^ff/i.test(usual);
  const isBroadcast = usual === '255.255.255.255';
  const isSpecial =
    address !== undefined && Object.values(specialRanges).some((includes) => includes(address));
  if (address === undefined || isSpecial || isMulticast || isBroadcast) {
    throw badRequest('address not allowed');
  }
  return usual;
}

async function objectOf(
  { context, target }: ApiCall,
  { resource, name }: { resource: string; name: string },
): Promise<ApiObject> {
  const def = context.catalogue.snapshot().builtin('', resource);
  const key = objectKey(target.namespace, name);
  const entry = def && (await context.registry.caches.of(def).get(key, undefined));
  // The missing endpoints of a Service are reported as a missing Service.
  const missing = resource === 'endpoints' ? 'services' : resource;
  if (entry === undefined) throw notFound({ group: '', resource: missing }, name);
  return decodedInSlices(entry, context.clock);
}

/** The name of a port that is given by number, because endpoints list ports by name. */
async function serviceDestination(
  call: ApiCall,
  { scheme, name, port }: Place,
): Promise<Destination> {
  let portName = port;
  if (/^\d+$/.test(port)) {
    const service = await objectOf(call, { resource: 'services', name });
    const servicePort = objectsAt(service, 'spec', 'ports').find(
      (candidate) => numberAt(candidate, 'port') === Number(port),
    );
    if (servicePort === undefined) {
      throw serviceUnavailable(
        `no service port ${Number(port)} found for service ${JSON.stringify(name)}`,
      );
    }
    portName = textAt(servicePort, 'name');
  }
  const endpoints = await objectOf(call, { resource: 'endpoints', name });
  const subsets = objectsAt(endpoints, 'subsets');
  // The endpoints may list many thousands of addresses (TRUST-2).
  const slices = new Slices(call.context.clock);
  for (const subset of startingAnywhere(subsets)) {
    if (slices.over) await slices.pause();
    const listed = objectsAt(subset, 'ports').find(
      (endpointPort) => textAt(endpointPort, 'name') === portName,
    );
    if (listed === undefined) continue;
    const host = await podAddress(call, { addresses: objectsAt(subset, 'addresses'), slices });
    if (host === undefined) continue;
    return {
      scheme,
      host: globalAddress(host),
      port: numberAt(listed, 'port'),
      trust: 'anyone',
    };
  }
  const shownName = subsets.length === 0 ? name : call.target.name;
  throw serviceUnavailable(`no endpoints available for service ${JSON.stringify(shownName)}`);
}

/** The items in order from a random start, to spread requests over them. */
function startingAnywhere<T>(items: readonly T[]): T[] {
  const start = items.length === 0 ? 0 : randomBelow(items.length);
  return [...items.slice(start), ...items.slice(0, start)];
}

/** Whether a Pod of the namespace has the address: writers of endpoints may list any address. */
async function podAddress(
  call: ApiCall,
  { addresses, slices }: { readonly addresses: readonly JsonObject[]; readonly slices: Slices },
): Promise<string | undefined> {
  for (const address of startingAnywhere(addresses)) {
    if (slices.over) await slices.pause();
    const name = textAt(address, 'targetRef', 'name');
    if (textAt(address, 'targetRef', 'namespace') !== call.target.namespace) continue;
    const pod = await objectOf(call, { resource: 'pods', name }).catch(() => undefined);
    const ip = textAt(address, 'ip');
    const podIps = pod === undefined ? [] : listAt(pod, 'status', 'podIPs');
    if (podIps.some((podIp) => textAt(podIp, 'ip') === ip)) return ip;
  }
  return undefined;
}

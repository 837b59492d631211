import { listAt, numberAt, objectsAt, textAt } from '@wheelhouse/kinds';
import {
  type ApiObject,
  badRequest,
  type JsonObject,
  notFound,
  type StatusError,
  serviceUnavailable,
} from '@wheelhouse/machinery';
import { decodeEntry, objectKey } from '../../registry/object-codec.ts';
import type { ApiCall } from '../call.ts';
import { admitStream, kubeletOf } from './pod-log.ts';

/**
 * The `proxy` of a Pod, a Service, or a Node. This server passes no request on to one, nor takes it
 * for one about the object itself. It is admitted or denied all the same (ADM-2), and what is wrong
 * with it is told as upstream does (404, 400, 503).
 */
export async function proxyEndpoint(call: ApiCall): Promise<void> {
  const { target } = call;
  await admitStream(call);
  const place = splitPlace(target.name);
  const kind = target.def.kind.toLowerCase();
  if (place === undefined) {
    throw badRequest(`invalid ${kind} request ${JSON.stringify(target.name)}`);
  }
  if (kind === 'node') {
    await kubeletOf(call, place.name);
    throw unsupported();
  }
  throw await (kind === 'service' ? serviceFault(call, place) : podFault(call, place));
}

/** The answer where a request could be passed on. */
const unsupported = (): StatusError =>
  serviceUnavailable('this control plane passes no requests on to nodes, Pods, or Services');

interface Place {
  readonly name: string;
  /** Empty where none is given. */
  readonly port: string;
}

const schemes = new Set(['http', 'https', '']);

/** Reads `name`, `name:port` or `scheme:name:port`; undefined for anything else. */
function splitPlace(text: string): Place | undefined {
  const parts = text.split(':');
  if (parts.length > 3) return undefined;
  const [scheme = '', name = '', port = ''] = parts.length === 3 ? parts : ['', ...parts];
  return schemes.has(scheme) && name !== '' ? { name, port } : undefined;
}

async function objectOf(
  { context, target }: ApiCall,
  { resource, name }: { resource: string; name: string },
): Promise<ApiObject> {
  const def = context.catalogue.snapshot().builtin('', resource);
  const key = objectKey(target.namespace, name);
  const entry = def && (await context.registry.caches.of(def).get(key, undefined));
  if (entry === undefined) throw notFound({ group: '', resource }, name);
  return decodeEntry(entry);
}

async function podFault(call: ApiCall, { name }: Place): Promise<StatusError> {
  const pod = await objectOf(call, { resource: 'pods', name });
  return textAt(pod, 'status', 'podIP') === '' ? badRequest('address not allowed') : unsupported();
}

/** A port may be told by its number; endpoints know it by its name. */
async function serviceFault(call: ApiCall, { name, port }: Place): Promise<StatusError> {
  let portName = port;
  if (/^\d+$/.test(port)) {
    const service = await objectOf(call, { resource: 'services', name });
    const found = objectsAt(service, 'spec', 'ports').find(
      (one) => numberAt(one, 'port') === Number(port),
    );
    if (found === undefined) {
      return serviceUnavailable(
        `no service port ${Number(port)} found for service ${JSON.stringify(name)}`,
      );
    }
    portName = textAt(found, 'name');
  }
  const endpoints = await objectOf(call, { resource: 'endpoints', name });
  const subsets = objectsAt(endpoints, 'subsets');
  if (subsets.some((subset) => isAble(subset, portName))) return unsupported();
  const shownName = subsets.length === 0 ? name : call.target.name;
  return serviceUnavailable(`no endpoints available for service ${JSON.stringify(shownName)}`);
}

function isAble(subset: JsonObject, portName: string): boolean {
  const hasPort = objectsAt(subset, 'ports').some((one) => textAt(one, 'name') === portName);
  return hasPort && listAt(subset, 'addresses').length > 0;
}

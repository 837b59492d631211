import { isObject, type JsonObject } from '../base/json.ts';
import { badRequest, notFound, serviceUnavailable } from '../meta/status.ts';
import { decodeEntry, objectKey } from '../registry/object-codec.ts';
import { groupResourceOf } from '../registry/registry.ts';
import type { ApiCall } from './call.ts';
import { answerHeaders } from './respond.ts';

/**
 * GET of `log`, as far as a control plane without nodes can answer: what is wrong with the question
 * is told as upstream does, a Pod that was given no node has said nothing yet, and of one that runs
 * somewhere nothing can be had here (503).
 */
export async function podLogEndpoint(call: ApiCall): Promise<void> {
  const { context, exchange, info, target } = call;
  const key = objectKey(target.namespace, target.name);
  const entry = await context.registry.caches.of(target.def).get(key, undefined);
  if (entry === undefined) throw notFound(groupResourceOf(target.def), target.name);
  const pod = decodeEntry(entry);
  const spec = isObject(pod.spec) ? pod.spec : {};
  checkContainer(spec, { pod: target.name, given: info.query.get('container') ?? '' });
  if (typeof spec.nodeName === 'string' && spec.nodeName !== '') throw noNode();
  exchange.send({
    status: 200,
    headers: answerHeaders(call, 'text/plain'),
    body: Buffer.alloc(0),
  });
}

/** What only a node could answer: streams into a container. */
export async function noNodeEndpoint(_call: ApiCall): Promise<void> {
  throw noNode();
}

function noNode(): Error {
  return serviceUnavailable('this control plane has no nodes: nothing runs that could be reached');
}

function checkContainer(spec: JsonObject, { pod, given }: { pod: string; given: string }): void {
  const containers = namesOf(spec.containers);
  const all = [
    ...containers,
    ...namesOf(spec.initContainers),
    ...namesOf(spec.ephemeralContainers),
  ];
  if (given !== '') {
    if (!all.includes(given)) throw badRequest(`container ${given} is not valid for pod ${pod}`);
    return;
  }
  if (containers.length === 1) return;
  const choices = `[${containers.join(' ')}]`;
  throw badRequest(`a container name must be specified for pod ${pod}, choose one of: ${choices}`);
}

function namesOf(list: unknown): readonly string[] {
  if (!Array.isArray(list)) return [];
  return list.filter(isObject).map((one) => String(one.name ?? ''));
}

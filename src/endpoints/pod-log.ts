import { isObject, type JsonObject } from '../base/json.ts';
import { resolved } from '../engines/schema/schema.ts';
import { schemaOf } from '../kinds/schema-of.ts';
import { badRequest, notFound, serviceUnavailable } from '../meta/status.ts';
import type { ApiObject } from '../meta/types.ts';
import { decodeEntry, objectKey } from '../registry/object-codec.ts';
import { groupResourceOf } from '../registry/registry.ts';
import { parseCreateOptions } from '../request/options.ts';
import { isTrue } from '../request/query.ts';
import type { ApiCall } from './call.ts';
import { answerHeaders } from './respond.ts';
import { writeContext } from './write-context.ts';

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

/**
 * What only a node could answer: streams into a container. Whether the request would be let through is
 * judged all the same (ADM-2).
 */
export async function noNodeEndpoint(call: ApiCall): Promise<void> {
  const { registry, dialect } = call.context;
  const { target } = call;
  const object = streamOptions(call);
  const operation = 'CONNECT' as const;
  const context = writeContext(call, parseCreateOptions(new URLSearchParams(), dialect));
  const admitted = { operation, target, context, name: target.name, old: undefined, attempt: 1 };
  await registry.admission.mutate({ ...admitted, object });
  await registry.admission.validate({ ...admitted, object });
  throw noNode();
}

/** The options of a stream as an object of their own kind, read off the query. */
function streamOptions({ target, info }: ApiCall): ApiObject {
  const { kind = '' } = target.def.subresources.find(isNamed(target.subresource))?.kind ?? {};
  const given: JsonObject = {};
  for (const [name, { schema }] of schemaOf(`core.v1.${kind}`).properties ?? []) {
    const values = info.query.getAll(name);
    const [first] = values;
    if (first === undefined) continue;
    const { type, items } = resolved(schema);
    const isCount = items !== undefined && resolved(items).type === 'integer';
    if (type === 'array') given[name] = isCount ? values.map(Number) : values;
    else given[name] = type === 'boolean' ? isTrue(first) : first;
  }
  return { kind, apiVersion: 'v1', ...given } as unknown as ApiObject;
}

const isNamed = (wanted: string) => (one: { readonly name: string }) => one.name === wanted;

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

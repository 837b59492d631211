import { objectsAt, schemaOf, textAt } from '@wheelhouse/kinds';
import {
  type ApiObject,
  badRequest,
  type FieldError,
  forbiddenField,
  invalid,
  invalidObject,
  isObject,
  type JsonObject,
  notFound,
  parseGoTime,
  StatusError,
  serviceUnavailable,
} from '@wheelhouse/machinery';
import { resolved } from '@wheelhouse/schema';
import { answerHeaders } from '../../answer/respond.ts';
import { decodeEntry, objectKey } from '../../registry/object-codec.ts';
import { groupResourceOf } from '../../registry/registry.ts';
import {
  isTrue,
  optionalInteger,
  optionalText,
  parseCreateOptions,
} from '../../request/options.ts';
import type { ApiCall } from '../call.ts';
import { writeContext } from '../write-context.ts';

/** Judges what is asked of a pod's log, as upstream does before it looks for the pod. Throws 400, 422. */
function checkLogOptions(query: URLSearchParams, pod: string): void {
  const read = (name: string) => ({ name, value: optionalInteger(query, name) });
  const [tail, limit, since] = [read('tailLines'), read('limitBytes'), read('sinceSeconds')];
  const sinceTime = optionalText(query, 'sinceTime');
  const time = sinceTime === undefined ? undefined : parseGoTime(sinceTime);
  if (time !== undefined && 'error' in time) throw badRequest(time.error);
  const isTwofold = since.value !== undefined && sinceTime !== undefined;
  const errors: FieldError[] = [
    ...atLeast(tail, 0, 'must be greater than or equal to 0'),
    ...atLeast(limit, 1, 'must be greater than 0'),
    ...(isTwofold
      ? [forbiddenField('[]', 'at most one of `sinceTime` or `sinceSeconds` may be specified')]
      : atLeast(since, 1, 'must be greater than 0')),
    // One of the two streams alone is behind a gate that is off.
    ...(query.has('stream') ? [forbiddenField('stream', 'may not be specified')] : []),
  ];
  if (errors.length > 0) throw invalidObject({ group: '', kind: 'PodLogOptions' }, pod, errors);
}

function atLeast(
  { name, value }: { readonly name: string; readonly value: number | undefined },
  least: number,
  detail: string,
): FieldError[] {
  return value === undefined || value >= least ? [] : [invalid(name, value, detail)];
}

/**
 * GET of `log`, as far as a control plane without nodes can answer: what is wrong with the question
 * is told as upstream does, a Pod that was given no node has said nothing yet, and of one that runs
 * somewhere nothing can be had here.
 */
export async function podLogEndpoint(call: ApiCall): Promise<void> {
  const { exchange, info, target } = call;
  checkLogOptions(info.query, target.name);
  const spec = await podSpec(call);
  checkContainer(spec, { pod: target.name, container: info.query.get('container') ?? '' });
  const node = textAt(spec, 'nodeName');
  if (node !== '') throw await unreachable(call, node);
  const { 'content-type': _, ...headers } = answerHeaders(call, '');
  exchange.send({ status: 204, headers, body: Buffer.alloc(0) });
}

async function podSpec({ context, target }: ApiCall): Promise<JsonObject> {
  const key = objectKey(target.namespace, target.name);
  const entry = await context.registry.caches.of(target.def).get(key, undefined);
  if (entry === undefined) throw notFound(groupResourceOf(target.def), target.name);
  const { spec } = decodeEntry(entry);
  return isObject(spec) ? spec : {};
}

/**
 * What only a node could answer: streams into a container. Whether the request would be let through is
 * judged all the same (ADM-2), and what is wrong with it told as upstream does.
 */
export async function podStreamEndpoint(call: ApiCall): Promise<void> {
  const { target } = call;
  const object = await admitStream(call);
  const spec = await podSpec(call);
  // A forwarded port is the pod's, not a container's.
  if (target.subresource !== 'portforward') {
    checkContainer(spec, { pod: target.name, container: textAt(object, 'container') });
  }
  const node = textAt(spec, 'nodeName');
  if (node === '') throw badRequest(`pod ${target.name} does not have a host assigned`);
  throw await unreachable(call, node);
}

/** Has a connection judged (ADM-2); gives its options. Rejects with a StatusError. */
export async function admitStream(call: ApiCall): Promise<ApiObject & JsonObject> {
  const { registry, dialect } = call.context;
  const { target } = call;
  const object: ApiObject & JsonObject = streamOptions(call);
  const operation = 'CONNECT' as const;
  const context = writeContext(call, parseCreateOptions(new URLSearchParams(), dialect));
  const admitted = { operation, target, context, name: target.name, old: undefined, attempt: 1 };
  await registry.admission.mutate({ ...admitted, object });
  await registry.admission.validate({ ...admitted, object });
  return object;
}

/** The options of a stream, read from the query, as an object of their own kind. */
function streamOptions({ target, info }: ApiCall): ApiObject {
  const { kind = '' } = target.def.subresources.find(isNamed(target.subresource))?.kind ?? {};
  const parameters: JsonObject = {};
  for (const [name, { schema }] of schemaOf(`core.v1.${kind}`).properties ?? []) {
    const values = info.query.getAll(name);
    const [first] = values;
    if (first === undefined) continue;
    const { type, items } = resolved(schema);
    const isCount = items !== undefined && resolved(items).type === 'integer';
    if (type === 'array') parameters[name] = isCount ? values.map(Number) : values;
    else parameters[name] = type === 'boolean' ? isTrue(first) : first;
  }
  return { kind, apiVersion: 'v1', ...parameters } as unknown as ApiObject;
}

const isNamed = (wanted: string) => (one: { readonly name: string }) => one.name === wanted;

/** Why a node is unreachable: it is absent, has no address, or is not this control plane's. */
export async function unreachable({ context }: ApiCall, name: string): Promise<StatusError> {
  const nodes = context.catalogue.snapshot().builtin('', 'nodes');
  const entry =
    nodes && (await context.registry.caches.of(nodes).get(objectKey('', name), undefined));
  if (entry === undefined) return notFound({ group: '', resource: 'nodes' }, name);
  const { status } = decodeEntry(entry);
  const addresses = isObject(status) ? objectsAt(status, 'addresses') : [];
  const nodeAddresses = addresses.map((one) => ({
    type: textAt(one, 'type'),
    text: textAt(one, 'address'),
  }));
  const { kubeletAddressTypes } = context;
  if (nodeAddresses.some(({ type }) => kubeletAddressTypes?.includes(type) ?? true))
    return noNode();
  const listed = nodeAddresses.map(({ type, text }) => `{${type} ${text}}`).join(' ');
  const message = `no preferred addresses found; known addresses: [${listed}]`;
  return new StatusError({ code: 500, reason: '', message });
}

/** What is told of a place that only a node could lead to. */
export const noNode = (): StatusError =>
  serviceUnavailable('this control plane has no nodes: nothing runs that could be reached');

function checkContainer(
  spec: JsonObject,
  { pod, container }: { pod: string; container: string },
): void {
  const lists = ['initContainers', 'containers', 'ephemeralContainers'];
  const all = lists.flatMap((list) => objectsAt(spec, list).map((one) => textAt(one, 'name')));
  if (container !== '') {
    if (!all.includes(container))
      throw badRequest(`container ${container} is not valid for pod ${pod}`);
    return;
  }
  if (objectsAt(spec, 'containers').length === 1) return;
  const choices = `[${all.join(' ')}]`;
  throw badRequest(`a container name must be specified for pod ${pod}, choose one of: ${choices}`);
}

import { listAt, numberAt, objectsAt, schemaOf, textAt } from '@wheelhouse/kinds';
import {
  type ApiObject,
  badRequest,
  type FieldError,
  forbiddenField,
  invalid,
  invalidObject,
  type JsonObject,
  member,
  notFound,
  notSupported,
  objectOf,
  parseGoTime,
  problemText,
  StatusError,
  textsOf,
} from '@wheelhouse/machinery';
import { resolved } from '@wheelhouse/schema';
import { answerHeaders } from '../../answer/respond.ts';
import { decodedInSlices, objectKey } from '../../registry/object-codec.ts';
import { existingEntry, groupResourceOf } from '../../registry/registry.ts';
import {
  isTrue,
  optionalInteger,
  optionalText,
  parseCreateOptions,
} from '../../request/options.ts';
import type { ApiCall, KubeletRequest } from '../call.ts';
import { writeContext } from '../write.ts';

/**
 * Validates log options before the pod is looked up, as kube-apiserver does. Throws 400 and 422.
 */
function checkLogOptions(
  query: URLSearchParams,
  { pod, stream }: { readonly pod: string; readonly stream: string | undefined },
): void {
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
    ...(stream === undefined ? refuseStream(query) : validateStream(stream, tail.value)),
  ];
  if (errors.length > 0) throw invalidObject({ group: '', kind: 'PodLogOptions' }, pod, errors);
}

const streams = ['All', 'Stderr', 'Stdout'];

const refuseStream = (query: URLSearchParams): FieldError[] =>
  query.has('stream') ? [forbiddenField('stream', 'may not be specified')] : [];

function validateStream(stream: string, tailLines: number | undefined): FieldError[] {
  const errors = streams.includes(stream) ? [] : [notSupported('stream', stream, streams)];
  if (stream === 'All' || tailLines === undefined) return errors;
  const why = '`tailLines` and specific `stream` are mutually exclusive for now';
  return [...errors, forbiddenField('[]', why)];
}

/** The requested stream; undefined if the feature of selecting one is disabled. */
const streamOf = ({ info, context }: ApiCall): string | undefined =>
  context.features.enabled('PodLogsQuerySplitStreams')
    ? (info.query.get('stream') ?? 'All')
    : undefined;

function atLeast(
  { name, value }: { readonly name: string; readonly value: number | undefined },
  least: number,
  detail: string,
): FieldError[] {
  return value === undefined || value >= least ? [] : [invalid(name, value, detail)];
}

/** GET of `log`: the log of a container from its node's kubelet; empty without a node. */
export async function podLogEndpoint(call: ApiCall): Promise<void> {
  const { exchange, info, target, context } = call;
  const skips = isTrue(info.query.get('insecureSkipTLSVerifyBackend') ?? 'false');
  const verification = skips ? 'skipped' : 'as configured';
  context.metrics.podLogs.countRequest(verification);
  const stream = streamOf(call);
  checkLogOptions(info.query, { pod: target.name, stream });
  const spec = await podSpec(call);
  const requested = info.query.get('container') ?? '';
  const container = containerOf(spec, { pod: target.name, container: requested });
  const node = textAt(spec, 'nodeName');
  if (node === '') {
    const { 'content-type': _, ...headers } = answerHeaders(call, '');
    exchange.send({ status: 204, headers, body: Buffer.alloc(0) });
    return;
  }
  await context.kubelets.log(call, {
    place: await kubeletOf(call, node),
    target:
      `/containerLogs/${target.namespace}/${target.name}/${container}` +
      logQuery(info.query, stream),
    verification,
  });
}

/** Log options as parameters of the kubelet. */
function logQuery(query: URLSearchParams, stream: string | undefined): string {
  const params = new URLSearchParams();
  for (const name of ['follow', 'previous', 'timestamps']) {
    if (isTrue(query.get(name) ?? 'false')) params.set(name, 'true');
  }
  for (const name of ['limitBytes', 'sinceSeconds', 'sinceTime', 'tailLines']) {
    const value = optionalText(query, name);
    if (value !== undefined) params.set(name, value);
  }
  if (stream !== undefined) params.set('stream', stream);
  return queryText(params);
}

function queryText(params: URLSearchParams): string {
  params.sort();
  return params.size === 0 ? '' : `?${params}`;
}

async function podSpec({ context, target }: ApiCall): Promise<JsonObject> {
  const entry = await existingEntry(context.registry, target);
  const { spec } = await decodedInSlices(entry, context.clock);
  return objectOf(spec);
}

/** `exec`, `attach`, and `portforward`: streams that the kubelet of the Pod's node serves. */
export async function podStreamEndpoint(call: ApiCall): Promise<void> {
  const { target, context } = call;
  const object = await admitStream(call);
  const spec = await podSpec(call);
  const path = [target.namespace, target.name];
  // Ports belong to the pod, not to a container.
  if (target.subresource !== 'portforward') {
    const names = { pod: target.name, container: textAt(object, 'container') };
    path.push(containerOf(spec, names));
  }
  const node = textAt(spec, 'nodeName');
  if (node === '') throw badRequest(`pod ${target.name} does not have a host assigned`);
  const operation = target.subresource === 'portforward' ? 'portForward' : target.subresource;
  await context.kubelets.stream(call, {
    place: await kubeletOf(call, node),
    target: `/${operation}/${path.join('/')}${streamQuery(object)}`,
    verification: 'as configured',
  });
}

/** Names of the kubelet's parameters by option. */
const streamFlags = { stdin: 'input', stdout: 'output', stderr: 'error', tty: 'tty' } as const;

function streamQuery(object: JsonObject): string {
  const params = new URLSearchParams();
  for (const [option, name] of Object.entries(streamFlags)) {
    if (member(object, option) === true) params.set(name, '1');
  }
  for (const word of textsOf(member(object, 'command'))) params.append('command', word);
  const ports = listAt(object, 'ports');
  if (ports.length > 0) params.set('port', ports.join(','));
  return queryText(params);
}

/**
 * Runs admission for a connection (ADM-2) and returns its options; those in `fixed` do not come
 * from the query. Rejects with a StatusError, also for a dry run.
 */
export async function admitStream(
  call: ApiCall,
  fixed: JsonObject = {},
): Promise<ApiObject & JsonObject> {
  const { registry, dialect } = call.context;
  const { target, info } = call;
  if (optionalText(info.query, 'dryRun') !== undefined) throw badRequest('dryRun is not supported');
  const object: ApiObject & JsonObject = { ...streamOptions(call), ...fixed };
  const operation = 'CONNECT' as const;
  const context = writeContext(call, parseCreateOptions(new URLSearchParams(), dialect));
  const admitted = { operation, target, context, name: target.name, old: undefined, attempt: 1 };
  await registry.admission.mutate({ ...admitted, object });
  await registry.admission.validate({ ...admitted, object });
  return object;
}

/** The options of a stream, from the query, as an object of their own kind. Throws 400. */
function streamOptions({ target, info }: ApiCall): ApiObject {
  const { kind = '' } = target.def.subresources.find(isNamed(target.subresource))?.kind ?? {};
  const parameters: JsonObject = {};
  for (const [name, { schema }] of schemaOf(`core.v1.${kind}`).properties ?? []) {
    const values = info.query.getAll(name);
    const [first] = values;
    if (first === undefined) continue;
    const { type, items } = resolved(schema);
    const isPorts = items !== undefined && resolved(items).type === 'integer';
    if (type === 'array') parameters[name] = isPorts ? values.flatMap(portsOf) : values;
    else if (type !== 'boolean') parameters[name] = first;
    // Webhooks see the typed form, which omits false.
    else if (isTrue(first)) parameters[name] = true;
  }
  return { kind, apiVersion: 'v1', ...parameters } as ApiObject;
}

/** Parses a comma-separated list of ports. Throws 400. */
function portsOf(list: string): number[] {
  return list.split(',').map((text) => {
    const isNumber = /^\d+$/.test(text);
    const port = Number(text);
    if (isNumber && port < 2 ** 16) return port;
    const problem = isNumber ? 'range' : 'syntax';
    const why = problemText({ code: 'number', parser: 'ParseUint', text, problem });
    throw badRequest(`cannot convert to []int32: ${why}`);
  });
}

const isNamed = (name: string) => (item: { readonly name: string }) => item.name === name;

/** The address of a node's kubelet. Throws 404, and 500 for a node without a suitable address. */
export async function kubeletOf(
  { context, target }: ApiCall,
  name: string,
): Promise<KubeletRequest['place']> {
  const nodes = context.catalogue.snapshot().builtin('', 'nodes');
  const entry =
    nodes && (await context.registry.caches.of(nodes).get(objectKey('', name), undefined));
  // The error names the resource of the request, as in kube-apiserver.
  if (entry === undefined) throw notFound(groupResourceOf(target.def), name);
  const node = await decodedInSlices(entry, context.clock);
  const addresses = objectsAt(node, 'status', 'addresses').map((address) => ({
    type: textAt(address, 'type'),
    text: textAt(address, 'address'),
  }));
  const { addressTypes, port } = context.kubelets;
  const host = addressTypes
    .map((preferred) => addresses.find(({ type }) => type === preferred))
    .find((address) => address !== undefined)?.text;
  if (host !== undefined) {
    const ownPort = numberAt(node, 'status', 'daemonEndpoints', 'kubeletEndpoint', 'Port');
    return { host, port: ownPort > 0 ? ownPort : port };
  }
  const listed = addresses.map(({ type, text }) => `{${type} ${text}}`).join(' ');
  const message = `no preferred addresses found; known addresses: [${listed}]`;
  throw new StatusError({ code: 500, reason: '', message });
}

/** The requested container, or the only one. Throws 400 if there is no such container. */
function containerOf(
  spec: JsonObject,
  { pod, container }: { readonly pod: string; readonly container: string },
): string {
  const lists = ['initContainers', 'containers', 'ephemeralContainers'];
  const all = lists.flatMap((list) =>
    objectsAt(spec, list).map((containerSpec) => textAt(containerSpec, 'name')),
  );
  if (container !== '') {
    if (all.includes(container)) return container;
    throw badRequest(`container ${container} is not valid for pod ${pod}`);
  }
  const [only, ...others] = objectsAt(spec, 'containers').map((containerSpec) =>
    textAt(containerSpec, 'name'),
  );
  if (only !== undefined && others.length === 0) return only;
  const choices = `[${all.join(' ')}]`;
  throw badRequest(`a container name must be specified for pod ${pod}, choose one of: ${choices}`);
}

import { ApiError } from '@wheelhouse/client';
import type { JsonObject } from '@wheelhouse/machinery';
import { CliError } from '../io.ts';
import { listAt, nameOf, objectAt, textAt } from '../objects.ts';
import { selectorText } from '../rollout/workloads.ts';
import { getByLabel, listObjects, targetOf, targetPath } from '../selection.ts';
import type { Session } from '../session.ts';

export const containerFlag = {
  name: 'container',
  short: 'c',
  type: 'text',
  help: 'The container',
} as const;
export const patienceFlag = {
  name: 'pod-running-timeout',
  type: 'duration',
  help: 'Accepted and ignored: svcctl does not wait for pods',
} as const;

/** The Pod that a word names, or the first one of a workload. Rejects with CliError if none. */
export async function onlyPod(session: Session, word: string): Promise<JsonObject> {
  const [pod] = await podsToRead(session, word);
  if (pod === undefined) throw new CliError(`${word} has no pods`);
  return pod;
}

/** The container of `--container`, else the Pod's default one. Rejects with CliError. */
export async function containerIn(session: Session, pod: JsonObject): Promise<string> {
  const { flags, io } = session;
  const names = containersOf(pod);
  const flag = flags.text('container') ?? '';
  if (flag !== '') {
    if (names.includes(flag)) return flag;
    throw new CliError(`container ${flag} not found in pod ${nameOf(pod)}`);
  }
  const { label, tool } = await session.dialect();
  const annotations = objectAt(pod, 'metadata', 'annotations');
  const preferred = textAt(annotations, label('default-container', tool));
  if (preferred !== '') {
    if (names.includes(preferred)) return preferred;
    io.err(`Default container name "${preferred}" not found in pod ${nameOf(pod)}\n`);
  }
  const [first] = listAt(pod, 'spec', 'containers');
  const name = textAt(first, 'name');
  if (names.length > 1 && !flags.boolean('quiet')) {
    io.err(`Defaulted container "${name}" out of: ${containerLabels(pod).join(', ')}\n`);
  }
  return name;
}

export type Pairs = readonly (readonly [name: string, value: string])[];

/** The path of a streaming request to a Pod. */
export async function streamPath(
  session: Session,
  pod: JsonObject,
  { subresource, query }: { readonly subresource: string; readonly query: Pairs },
): Promise<string> {
  const resource = await session.resourceOfKind('Pod');
  const parameters = new URLSearchParams(
    query.map(([name, value]): [string, string] => [name, value]),
  );
  return `${targetPath(targetOf(resource, pod), subresource)}?${parameters}`;
}

/** Rejects with the server's error if it would refuse a stream, without opening one. */
export async function checkStream(session: Session, path: string): Promise<void> {
  try {
    await session.client.send({ method: 'POST', path });
  } catch (error) {
    const wantsStream =
      error instanceof ApiError && /upgrade request required/i.test(error.message);
    if (!wantsStream) throw error;
  }
}

/** The names of all containers of a Pod: init, regular, and ephemeral. */
export function containersOf(pod: JsonObject): string[] {
  const spec = objectAt(pod, 'spec');
  return ['initContainers', 'containers', 'ephemeralContainers'].flatMap((list) =>
    listAt(spec, list).map((one) => textAt(one, 'name')),
  );
}

/** The names of all containers, with marks for init and ephemeral ones. */
export function containerLabels(pod: JsonObject): string[] {
  const spec = objectAt(pod, 'spec');
  const labels = (list: string, note: string) =>
    listAt(spec, list).map((one) => `${textAt(one, 'name')}${note}`);
  return [
    ...labels('containers', ''),
    ...labels('ephemeralContainers', ' (ephem)'),
    ...labels('initContainers', ' (init)'),
  ];
}

/** The Pods of a command line: one by name, those of a workload, or those that match labels. */
export async function podsToRead(
  session: Session,
  word: string | undefined,
): Promise<readonly JsonObject[]> {
  if (word === undefined) {
    const pods = await podsWith(session, session.flags.text('selector') ?? '');
    if (pods.length === 0) {
      session.io.err(`No resources found in ${session.namespace} namespace.\n`);
    }
    return pods;
  }
  const object = await getByLabel(session, word.includes('/') ? word : `pods/${word}`);
  if (object['kind'] === 'Pod') return [object];
  const pods = await podsWith(session, podSelector(object));
  const [first] = pods;
  if (first === undefined) {
    const label = `${textAt(object, 'kind').toLowerCase()}/${nameOf(object)}`;
    throw new CliError(`${label} has no pods`);
  }
  if (pods.length === 1 || session.flags.boolean('all-pods')) return pods;
  session.io.err(`Found ${pods.length} pods, using pod/${nameOf(first)}\n`);
  return [first];
}

/** The selector of an object's Pods. Throws CliError if it has none. */
function podSelector(object: JsonObject): string {
  const selector = objectAt(object, 'spec', 'selector');
  const isPlain = ['Service', 'ReplicationController'].includes(textAt(object, 'kind'));
  const text = selectorText(isPlain ? { matchLabels: selector } : selector);
  if (text !== '') return text;
  throw new CliError(`cannot get the logs from ${textAt(object, 'kind')}: it selects no pods`);
}

/** Lists Pods by labels, running ones first. */
async function podsWith(session: Session, labelSelector: string): Promise<JsonObject[]> {
  const resource = await session.resourceOfKind('Pod');
  const target = { resource, namespace: session.namespace, name: undefined };
  const pods = await listObjects(session.client, target, { labelSelector });
  const rank = (pod: JsonObject) => (textAt(pod, 'status', 'phase') === 'Running' ? 0 : 1);
  return pods.toSorted((one, other) => rank(one) - rank(other));
}

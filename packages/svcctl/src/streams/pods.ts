import { ApiError } from '@wheelhouse/client';
import { type JsonObject, parseApiVersion } from '@wheelhouse/machinery';
import { CliError, usageError } from '../io.ts';
import { listAt, nameOf, objectAt, textAt } from '../objects.ts';
import { selectorText } from '../rollout/workloads.ts';
import {
  checkSelected,
  getByLabel,
  itemsWithType,
  listObjects,
  targetOf,
  targetPath,
} from '../selection.ts';
import type { Session } from '../session.ts';
import { watch } from '../watch.ts';

/** The flag that selects a container. */
export const containerFlag = {
  name: 'container',
  short: 'c',
  type: 'text',
  help: 'The container',
} as const;

/** The flag that limits the wait for a Pod to run. */
export const podTimeoutFlag = (usual: string) =>
  ({
    name: 'pod-running-timeout',
    type: 'duration',
    help: `How long to wait for a pod to run (${usual})`,
  }) as const;

/** The limit of `--pod-running-timeout` in milliseconds. Throws CliError unless it is positive. */
export function podTimeoutMs({ flags, words: [command = ''] }: Session): number {
  const isLog = command === 'logs';
  const timeoutMs = flags.durationMs('pod-running-timeout') ?? (isLog ? 20_000 : 60_000);
  if (timeoutMs > 0) return timeoutMs;
  const problem = '--pod-running-timeout must be higher than zero';
  throw isLog ? new CliError(problem) : usageError(command, problem);
}

/**
 * Reads the Pod that a word names, or the Pod of a workload to which to connect, for which it
 * waits. Rejects with CliError if the workload gets none.
 */
export async function selectPod(session: Session, word: string): Promise<JsonObject> {
  const timeoutMs = podTimeoutMs(session);
  const object = await readByWord(session, word);
  if (object['kind'] === 'Pod') return object;
  const selector = podSelector(session, object);
  const [pod] = await waitForPods(session, selector, { purpose: 'stream', timeoutMs });
  return pod;
}

/**
 * The name in `--container`, which the Pod may lack, else the name of the Pod's default container.
 */
export async function containerName(session: Session, pod: JsonObject): Promise<string> {
  const { flags } = session;
  return (
    flags.text('container') ||
    defaultContainer(session, pod, { isReported: !flags.boolean('quiet') })
  );
}

/** Selects the container of `--container`, else the Pod's default one. Rejects with CliError. */
export async function selectContainer(session: Session, pod: JsonObject): Promise<string> {
  const name = await containerName(session, pod);
  if (containerNames(pod).includes(name)) return name;
  throw new CliError(`container ${name} not found in pod ${nameOf(pod)}`);
}

/**
 * The container that the Pod's annotation names, else the first one.
 * @param options.isReported whether to report the choice of the first one among several
 */
export async function defaultContainer(
  session: Session,
  pod: JsonObject,
  { isReported }: { readonly isReported: boolean },
): Promise<string> {
  const { io } = session;
  const names = containerNames(pod);
  const { label, tool } = await session.dialect();
  const annotations = objectAt(pod, 'metadata', 'annotations');
  const preferred = textAt(annotations, label('default-container', tool));
  if (preferred !== '') {
    if (names.includes(preferred)) return preferred;
    io.err(`Default container name "${preferred}" not found in pod ${nameOf(pod)}\n`);
  }
  const [first] = listAt(pod, 'spec', 'containers');
  const name = textAt(first, 'name');
  if (names.length > 1 && isReported) {
    io.err(`Defaulted container "${name}" out of: ${containerLabels(pod).join(', ')}\n`);
  }
  return name;
}

/** Query parameters, which may repeat. */
export type QueryPairs = readonly (readonly [name: string, value: string])[];

/** The URL path and query of a streaming request to a Pod. */
export async function streamPath(
  session: Session,
  pod: JsonObject,
  { subresource, query }: { readonly subresource: string; readonly query: QueryPairs },
): Promise<string> {
  const resource = await session.resourceOfKind('Pod');
  const parameters = new URLSearchParams(
    query.map(([name, value]): [string, string] => [name, value]),
  );
  return `${targetPath(targetOf(resource, pod), subresource)}?${parameters}`;
}

/**
 * Checks, without opening a stream, that the server would accept it. Rejects with the server's
 * error.
 */
export async function checkStream(session: Session, path: string): Promise<void> {
  try {
    await session.client.send({ method: 'POST', path });
  } catch (error) {
    const requiresUpgrade =
      error instanceof ApiError && /upgrade request required/i.test(error.message);
    if (!requiresUpgrade) throw error;
  }
}

/** Whether the containers of a Pod have ended and will not restart. */
export const hasEnded = (pod: JsonObject): boolean =>
  ['Succeeded', 'Failed'].includes(textAt(pod, 'status', 'phase'));

/** The names of all containers of a Pod: init, regular, and ephemeral. */
export function containerNames(pod: JsonObject): string[] {
  const spec = objectAt(pod, 'spec');
  return ['initContainers', 'containers', 'ephemeralContainers'].flatMap((list) =>
    listAt(spec, list).map((container) => textAt(container, 'name')),
  );
}

/** The names of all containers of a Pod, with marks for init and ephemeral ones. */
function containerLabels(pod: JsonObject): string[] {
  const spec = objectAt(pod, 'spec');
  const labels = (list: string, note: string) =>
    listAt(spec, list).map((container) => `${textAt(container, 'name')}${note}`);
  return [
    ...labels('containers', ''),
    ...labels('ephemeralContainers', ' (ephem)'),
    ...labels('initContainers', ' (init)'),
  ];
}

const readByWord = (session: Session, word: string): Promise<JsonObject> =>
  getByLabel(session, word.includes('/') ? word : `pods/${word}`);

/**
 * Reads the Pods whose logs to print: one by name, one or all of a workload, or those that match
 * `--selector`. Waits for a Pod of the workload. Rejects with CliError if it gets none.
 */
export async function selectPods(
  session: Session,
  word: string | undefined,
): Promise<readonly JsonObject[]> {
  const { io, flags } = session;
  const timeoutMs = podTimeoutMs(session);
  if (word === undefined) {
    const resource = await session.resourceOfKind('Pod');
    const target = { resource, namespace: session.namespace, name: undefined };
    const labelSelector = flags.text('selector')?.trim() ?? '';
    if (labelSelector === '') checkSelected(session, [target]);
    const pods = await listObjects(session.client, target, { labelSelector });
    if (pods.length === 0) io.err(`No resources found in ${session.namespace} namespace.\n`);
    return pods;
  }
  const object = await readByWord(session, word);
  if (object['kind'] === 'Pod') return [object];
  const selector = podSelector(session, object);
  const pods = await waitForPods(session, selector, { purpose: 'logs', timeoutMs });
  if (pods.length === 1 || flags.boolean('all-pods')) return pods;
  const [first] = pods;
  io.err(`Found ${pods.length} pods, using pod/${nameOf(first)}\n`);
  return [first];
}

/** The label selector of an object's Pods. Throws CliError if it has none. */
function podSelector({ words }: Session, object: JsonObject): string {
  const selector = objectAt(object, 'spec', 'selector');
  const kind = textAt(object, 'kind');
  const isMap = ['Service', 'ReplicationController'].includes(kind);
  const text = selectorText(isMap ? { matchLabels: selector } : selector);
  if (text !== '') return text;
  const type = `*${parseApiVersion(textAt(object, 'apiVersion'))?.version ?? ''}.${kind}`;
  const action = words[0] === 'logs' ? 'get the logs from' : 'attach to';
  const problem =
    kind === 'Service'
      ? `invalid service '${nameOf(object)}': Service is defined without a selector`
      : `selector for ${type} not implemented`;
  throw new CliError(`cannot ${action} ${type}: ${problem}`);
}

/** What a Pod is for: to print its log, or to connect to it. */
type Purpose = 'logs' | 'stream';

/**
 * Lists the Pods that a label selector matches, in the order in which kubectl prefers them. Waits
 * for one if there are none. Rejects with CliError after `timeoutMs`.
 */
async function waitForPods(
  session: Session,
  labelSelector: string,
  { purpose, timeoutMs }: { readonly purpose: Purpose; readonly timeoutMs: number },
): Promise<readonly [JsonObject, ...JsonObject[]]> {
  const { client, namespace } = session;
  const resource = await session.resourceOfKind('Pod');
  const path = targetPath({ resource, namespace, name: undefined });
  return session.waitFor(timeoutMs, async (signal) => {
    for (;;) {
      const list = await client.get(path, { labelSelector });
      const [first, ...others] = byPreference(itemsWithType(list), purpose);
      if (first !== undefined) return [first, ...others];
      const resourceVersion = textAt(list, 'metadata', 'resourceVersion');
      const query = { labelSelector, resourceVersion };
      for await (const { type, object } of watch(session, { path, query, signal })) {
        if (type !== 'ADDED' && type !== 'MODIFIED') break;
        return [object];
      }
    }
  });
}

function byPreference(pods: readonly JsonObject[], purpose: Purpose): readonly JsonObject[] {
  const ranked = pods.map((pod) => ({ pod, rank: rankOf(pod, purpose) }));
  ranked.sort((left, right) => {
    const at = left.rank.findIndex((value, index) => value !== right.rank[index]);
    return at < 0 ? 0 : (left.rank[at] as number) - (right.rank[at] as number);
  });
  return ranked.map(({ pod }) => pod);
}

/** Ranks of phases; for a log, a Pod that has ended is as good as one that runs. */
const phaseRanks: Readonly<Record<Purpose, Readonly<Record<string, number>>>> = {
  logs: { Running: 0, Succeeded: 0, Failed: 0, Unknown: 1, Pending: 2 },
  stream: { Running: 0, Unknown: 1, Pending: 2, Succeeded: 2, Failed: 2 },
};

/** A key of finite numbers, which are compared in order; smaller ones are preferred. */
function rankOf(pod: JsonObject, purpose: Purpose): readonly number[] {
  const ready = listAt(pod, 'status', 'conditions').find(
    (condition) => condition['type'] === 'Ready' && condition['status'] === 'True',
  );
  const deletion = textAt(pod, 'metadata', 'deletionTimestamp');
  // kubectl prefers the log of a Pod that restarts often, and a connection to one that does not.
  const sign = purpose === 'logs' ? -1 : 1;
  return [
    textAt(pod, 'spec', 'nodeName') === '' ? 1 : 0,
    phaseRanks[purpose][textAt(pod, 'status', 'phase')] ?? 2,
    ready === undefined ? 1 : 0,
    ...(purpose === 'logs' || deletion === '' ? [0, 0] : [1, -timeOf(deletion)]),
    ready === undefined ? 0 : timeOf(textAt(ready, 'lastTransitionTime')),
    ...restartsOf(pod).map((count) => sign * count),
    timeOf(textAt(pod, 'metadata', 'creationTimestamp')),
  ];
}

/** A time in milliseconds; an absent one is the latest. */
const timeOf = (text: string): number => (text === '' ? Number.MAX_VALUE : Date.parse(text));

/** The largest numbers of restarts of a regular container and of a sidecar. */
function restartsOf(pod: JsonObject): readonly [regular: number, sidecar: number] {
  const largest = (statuses: readonly JsonObject[]) =>
    Math.max(0, ...statuses.map((status) => Number(status['restartCount'] ?? 0)));
  const sidecars = new Set(
    listAt(pod, 'spec', 'initContainers')
      .filter((container) => container['restartPolicy'] === 'Always')
      .map((container) => container['name']),
  );
  const initStatuses = listAt(pod, 'status', 'initContainerStatuses');
  return [
    largest(listAt(pod, 'status', 'containerStatuses')),
    largest(initStatuses.filter((status) => sidecars.has(status['name']))),
  ];
}

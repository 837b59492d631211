import type { JsonObject } from '@wheelhouse/machinery';
import { CliError } from '../io.ts';
import { listAt, nameOf, objectAt, textAt } from '../objects.ts';
import { selectorText } from '../rollout/revisions.ts';
import { listObjects, objectNamed } from '../selection.ts';
import type { Session } from '../session.ts';

/** The names of a Pod's containers: the initial ones, its own, and ephemeral ones. */
export function containersOf(pod: JsonObject): string[] {
  const spec = objectAt(pod, 'spec');
  return ['initContainers', 'containers', 'ephemeralContainers'].flatMap((list) =>
    listAt(spec, list).map((one) => textAt(one, 'name')),
  );
}

/** The names of all containers, and what the special ones are. */
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

/** The Pods that a command line means: one by its name, an object's, or those with labels. */
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
  const object = await objectNamed(session, word.includes('/') ? word : `pods/${word}`);
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

/** Throws CliError for an object that selects no Pods. */
function podSelector(object: JsonObject): string {
  const selector = objectAt(object, 'spec', 'selector');
  const isPlain = ['Service', 'ReplicationController'].includes(textAt(object, 'kind'));
  const text = selectorText(isPlain ? { matchLabels: selector } : selector);
  if (text !== '') return text;
  throw new CliError(`cannot get the logs from ${textAt(object, 'kind')}: it selects no pods`);
}

/** Pods with labels, those that run before those that wait. */
async function podsWith(session: Session, labelSelector: string): Promise<JsonObject[]> {
  const resource = await session.resourceOfKind('Pod');
  const target = { resource, namespace: session.namespace, name: undefined };
  const pods = await listObjects(session.client, target, { labelSelector });
  const rank = (pod: JsonObject) => (textAt(pod, 'status', 'phase') === 'Running' ? 0 : 1);
  return pods.toSorted((one, other) => rank(one) - rank(other));
}

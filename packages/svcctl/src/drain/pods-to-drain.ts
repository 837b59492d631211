import { ApiError } from '@wheelhouse/client';
import type { JsonObject } from '@wheelhouse/machinery';
import { listAt, nameOf, namespaceOf, objectAt, textAt } from '../objects.ts';
import { listObjects, targetPath } from '../selection.ts';
import { serverDialect } from '../server-dialect.ts';
import type { Session } from '../session.ts';

/** The Pods of a node that a drain takes away, and what is to be said of them and of the others. */
export interface PodsToDrain {
  readonly pods: readonly JsonObject[];
  readonly warnings: string;
  /** Why the node cannot be drained. */
  readonly errors: readonly string[];
}

/** What becomes of a Pod; the last `message` of several rules is what the user reads. */
interface Verdict {
  readonly takes: boolean;
  readonly level: 'none' | 'warning' | 'error';
  readonly message: string;
}

const okay: Verdict = { takes: true, level: 'none', message: '' };
const skipped: Verdict = { takes: false, level: 'none', message: '' };
const warning = (message: string, takes: boolean): Verdict => ({
  takes,
  level: 'warning',
  message,
});
const failure = (message: string): Verdict => ({ takes: false, level: 'error', message });

/** Finds the Pods of a node, and judges each by the flags. Rejects with ApiError. */
export async function podsToDrain(session: Session, node: string): Promise<PodsToDrain> {
  const resource = await session.resourceOfKind('Pod');
  const target = { resource, namespace: '', name: undefined };
  const pods = await listObjects(session.client, target, {
    labelSelector: session.flags.text('pod-selector'),
    fieldSelector: `spec.nodeName=${node}`,
  });
  const mirror = (await serverDialect(session)).label('config.mirror');
  const taken: JsonObject[] = [];
  const messages = { warning: new Map<string, string[]>(), error: new Map<string, string[]>() };
  for (const pod of pods) {
    const { takes, level, message } = await judge(session, pod, mirror);
    if (takes) taken.push(pod);
    if (level === 'none') continue;
    const names = messages[level].get(message) ?? [];
    messages[level].set(message, [...names, `${namespaceOf(pod)}/${nameOf(pod)}`]);
  }
  const lines = (level: 'warning' | 'error') =>
    [...messages[level]].map(([message, names]) => `${message}: ${names.join(', ')}`);
  return {
    pods: taken,
    warnings: lines('warning').join('; '),
    errors: lines('error').map((line) => `cannot delete ${line}`),
  };
}

/** Applies the rules in order; the first that keeps the Pod decides. */
async function judge(session: Session, pod: JsonObject, mirror: string): Promise<Verdict> {
  if (isLongDeleted(session, pod)) return skipped;
  const daemon = await daemonVerdict(session, pod);
  if (!daemon.takes) return daemon;
  if (Object.hasOwn(objectAt(pod, 'metadata', 'annotations'), mirror)) return skipped;
  const storage = storageVerdict(session, pod);
  if (!storage.takes) return storage;
  return ownerVerdict(session, pod);
}

const isFinished = (pod: JsonObject): boolean =>
  ['Succeeded', 'Failed'].includes(textAt(pod, 'status', 'phase'));

const controllerOf = (pod: JsonObject): JsonObject | undefined =>
  listAt(pod, 'metadata', 'ownerReferences').find((owner) => owner.controller === true);

/** Whether `--skip-wait-for-delete-timeout` gives a Pod up that is being deleted. */
export function isLongDeleted(session: Session, pod: JsonObject): boolean {
  const seconds = session.flags.integer('skip-wait-for-delete-timeout') ?? 0;
  const deleted = Date.parse(textAt(pod, 'metadata', 'deletionTimestamp'));
  if (seconds <= 0 || Number.isNaN(deleted)) return false;
  return Math.trunc((session.clock.now() - deleted) / 1000) > seconds;
}

/** A DaemonSet's Pod stays, as its controller would make it anew; one whose DaemonSet is gone does not. */
async function daemonVerdict(session: Session, pod: JsonObject): Promise<Verdict> {
  const owner = controllerOf(pod);
  if (owner === undefined || owner.kind !== 'DaemonSet' || isFinished(pod)) return okay;
  const resource = await session.resourceOfKind('DaemonSet');
  const target = { resource, namespace: namespaceOf(pod), name: textAt(owner, 'name') };
  try {
    await session.client.get(targetPath(target));
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const isGone = error.code === 404 && session.flags.boolean('force');
    return isGone ? warning(error.message, true) : failure(error.message);
  }
  return session.flags.boolean('ignore-daemonsets')
    ? warning('ignoring DaemonSet-managed Pods', false)
    : failure('DaemonSet-managed Pods (use --ignore-daemonsets to ignore)');
}

function storageVerdict(session: Session, pod: JsonObject): Verdict {
  const isLocal = listAt(pod, 'spec', 'volumes').some((volume) => volume.emptyDir !== undefined);
  if (!isLocal || isFinished(pod) || session.flags.boolean('delete-emptydir-data')) return okay;
  return failure('Pods with local storage (use --delete-emptydir-data to override)');
}

function ownerVerdict(session: Session, pod: JsonObject): Verdict {
  if (isFinished(pod) || controllerOf(pod) !== undefined) return okay;
  return session.flags.boolean('force')
    ? warning('deleting Pods that declare no controller', true)
    : failure('cannot delete Pods that declare no controller (use --force to override)');
}

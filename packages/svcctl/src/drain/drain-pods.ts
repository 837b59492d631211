import { ApiError } from '@wheelhouse/client';
import { asError, type JsonObject } from '@wheelhouse/machinery';
import { dryRunOf, dryRunSuffix } from '../apply/writes.ts';
import { isNotFound } from '../deletion.ts';
import { CliError } from '../io.ts';
import { controllerOf, listAt, nameOf, namespaceOf, objectAt, textAt } from '../objects.ts';
import { listObjects, pageLimit, type Target, targetOf, targetPath } from '../selection.ts';
import { goDuration, type Session } from '../session.ts';
import { hasEnded } from '../streams/pods.ts';

const retryMs = 5_000;
const pollMs = 1_000;

/** The settings of one drain. */
interface Removal {
  readonly session: Session;
  /** Deadline on the monotonic clock, in milliseconds; Infinity without a limit. */
  readonly deadlineMs: number;
  readonly timeoutMs: number;
  readonly usesEviction: boolean;
}

/**
 * Evicts Pods concurrently and waits until they are gone. Deletes them instead with
 * `--disable-eviction`, or if the server does not serve evictions. Resolves with the failures.
 */
export async function removePods(
  session: Session,
  pods: readonly JsonObject[],
): Promise<readonly Error[]> {
  if (pods.length === 0) return [];
  const resource = await session.resourceOfKind('Pod');
  const usesEviction =
    resource.subresources.includes('eviction') && !session.flags.boolean('disable-eviction');
  const timeoutMs = session.flags.durationMs('timeout') ?? 0;
  const deadlineMs = timeoutMs === 0 ? Infinity : session.clock.monotonic() + timeoutMs;
  const removal = { session, deadlineMs, timeoutMs, usesEviction };
  const removeEach = usesEviction ? evictPod : deletePod;
  const outcomes = await Promise.allSettled(
    pods.map((pod) => removeEach(removal, pod, targetOf(resource, pod))),
  );
  if (session.io.signal.aborted) throw session.io.signal.reason;
  return outcomes.flatMap((outcome) =>
    outcome.status === 'rejected' ? [asError(outcome.reason)] : [],
  );
}

function deleteOptions(session: Session): JsonObject {
  const seconds = session.flags.integer('grace-period') ?? -1;
  return {
    ...(seconds < 0 ? {} : { gracePeriodSeconds: seconds }),
    ...(dryRunOf(session) === 'server' ? { dryRun: ['All'] } : {}),
  };
}

async function deletePod(removal: Removal, pod: JsonObject, target: Target): Promise<void> {
  const { session } = removal;
  try {
    await session.client.send({
      method: 'DELETE',
      path: targetPath(target),
      body: deleteOptions(session),
    });
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
  if (dryRunOf(session) === 'none') await waitUntilGone(removal, pod, target);
}

async function evictPod(removal: Removal, pod: JsonObject, target: Target): Promise<void> {
  const { session } = removal;
  const { namespace, name = '' } = target;
  const label = `pods/${JSON.stringify(name)} -n ${JSON.stringify(namespace)}`;
  for (;;) {
    session.io.out(`evicting pod ${namespace}/${name}${dryRunSuffix(session)}\n`);
    if (isTimedOut(removal)) {
      throw new CliError(
        `error when evicting ${label}: global timeout reached: ${goDuration(removal.timeoutMs)}`,
      );
    }
    const outcome = await tryEviction(session, target);
    if (outcome === 'gone') return;
    if (outcome === 'evicted') break;
    const { failure } = outcome;
    if (failure.code === 429) {
      session.io.err(`error when evicting ${label} (will retry after 5s): ${failure.message}\n`);
    } else if (isNamespaceTerminating(failure)) {
      if (await isBeingDeleted(session, target)) break;
      session.io.err(
        `error when evicting pod ${JSON.stringify(name)} from terminating namespace ` +
          `${JSON.stringify(namespace)} (will retry after 5s): ${failure.message}\n`,
      );
    } else {
      throw new CliError(`error when evicting ${label}: ${failure.message}`);
    }
    await session.pause(retryMs);
  }
  if (dryRunOf(session) !== 'none') return;
  try {
    await waitUntilGone(removal, pod, target);
  } catch (error) {
    if (session.io.signal.aborted) throw error;
    throw new CliError(
      `error when waiting for pod ${JSON.stringify(name)} in namespace ` +
        `${JSON.stringify(namespace)} to terminate: ${asError(error).message}`,
    );
  }
}

type Eviction = 'evicted' | 'gone' | { readonly failure: ApiError };

async function tryEviction(session: Session, target: Target): Promise<Eviction> {
  const { namespace, name = '' } = target;
  try {
    await session.client.send({
      method: 'POST',
      path: targetPath(target, 'eviction'),
      body: {
        apiVersion: 'policy/v1',
        kind: 'Eviction',
        metadata: { name, namespace },
        deleteOptions: deleteOptions(session),
      },
    });
    return 'evicted';
  } catch (error) {
    if (isNotFound(error)) return 'gone';
    if (error instanceof ApiError) return { failure: error };
    throw error;
  }
}

const isNamespaceTerminating = (error: ApiError): boolean =>
  error.code === 403 &&
  (error.details?.causes ?? []).some((cause) => cause.reason === 'NamespaceTerminating');

async function isBeingDeleted(session: Session, target: Target): Promise<boolean> {
  try {
    const pod = await session.client.get(targetPath(target));
    return textAt(pod, 'metadata', 'deletionTimestamp') !== '';
  } catch (error) {
    if (isNotFound(error)) return true;
    throw error;
  }
}

const isTimedOut = ({ session, deadlineMs }: Removal): boolean =>
  session.clock.monotonic() >= deadlineMs;

/** Polls until the Pod is gone or another one has its name. */
async function waitUntilGone(removal: Removal, pod: JsonObject, target: Target): Promise<void> {
  const { session, usesEviction } = removal;
  const report = (what: string) => session.io.out(`pod/${nameOf(pod)} ${what}\n`);
  for (;;) {
    let current: JsonObject | undefined;
    try {
      current = await session.client.get<JsonObject>(targetPath(target));
    } catch (error) {
      if (!isNotFound(error)) {
        report(usesEviction ? 'eviction failed' : 'deletion failed');
        throw error;
      }
    }
    const uid = textAt(pod, 'metadata', 'uid');
    if (current === undefined || textAt(current, 'metadata', 'uid') !== uid) {
      report(usesEviction ? 'evicted' : 'deleted');
      return;
    }
    if (isLongDeleted(session, current)) {
      const seconds = session.flags.integer('skip-wait-for-delete-timeout');
      session.io.out(
        `pod ${JSON.stringify(nameOf(pod))} has DeletionTimestamp older than ${seconds} seconds, ` +
          'skipping\n',
      );
      return;
    }
    if (isTimedOut(removal)) throw new CliError('context deadline exceeded');
    await session.pause(pollMs);
  }
}

/** The Pods that a drain removes from a node, and messages about the node's Pods. */
interface PodsToDrain {
  readonly pods: readonly JsonObject[];
  readonly warnings: string;
  /** The reasons why the node cannot be drained. */
  readonly errors: readonly string[];
}

/** Whether a drain removes a Pod, and the message about it. */
interface DrainDecision {
  readonly removes: boolean;
  readonly level: 'none' | 'warning' | 'error';
  readonly message: string;
}

const removable: DrainDecision = { removes: true, level: 'none', message: '' };
const skipped: DrainDecision = { removes: false, level: 'none', message: '' };
const warning = (message: string, removes: boolean): DrainDecision => ({
  removes,
  level: 'warning',
  message,
});
const failure = (message: string): DrainDecision => ({ removes: false, level: 'error', message });

/** Finds the Pods of a node and checks each against the flags. Rejects with ApiError. */
export async function podsToDrain(session: Session, node: string): Promise<PodsToDrain> {
  const resource = await session.resourceOfKind('Pod');
  const target = { resource, namespace: '', name: undefined };
  const pods = await listObjects(session.client, target, {
    labelSelector: session.flags.text('pod-selector'),
    fieldSelector: `spec.nodeName=${node}`,
    limit: pageLimit(session),
  });
  const mirror = (await session.dialect()).label('config.mirror');
  const selected: JsonObject[] = [];
  const messages = { warning: new Map<string, string[]>(), error: new Map<string, string[]>() };
  for (const pod of pods) {
    const { removes, level, message } = await checkPod(session, pod, mirror);
    if (removes) selected.push(pod);
    if (level === 'none') continue;
    const names = messages[level].get(message) ?? [];
    messages[level].set(message, [...names, `${namespaceOf(pod)}/${nameOf(pod)}`]);
  }
  const lines = (level: 'warning' | 'error') =>
    [...messages[level]].map(([message, names]) => `${message}: ${names.join(', ')}`);
  return {
    pods: selected,
    warnings: lines('warning').join('; '),
    errors: lines('error').map((line) => `cannot delete ${line}`),
  };
}

/** Checks a Pod against the rules in order; the first one that keeps the Pod decides. */
async function checkPod(session: Session, pod: JsonObject, mirror: string): Promise<DrainDecision> {
  if (isLongDeleted(session, pod)) return skipped;
  const daemon = await checkDaemonSet(session, pod);
  if (!daemon.removes) return daemon;
  if (Object.hasOwn(objectAt(pod, 'metadata', 'annotations'), mirror)) return skipped;
  const storage = checkLocalStorage(session, pod);
  if (!storage.removes) return storage;
  return checkController(session, pod);
}

/** Whether a Pod has been terminating for longer than `--skip-wait-for-delete-timeout`. */
function isLongDeleted(session: Session, pod: JsonObject): boolean {
  const seconds = session.flags.integer('skip-wait-for-delete-timeout') ?? 0;
  const deleted = Date.parse(textAt(pod, 'metadata', 'deletionTimestamp'));
  if (seconds <= 0 || Number.isNaN(deleted)) return false;
  return Math.trunc((session.clock.now() - deleted) / 1000) > seconds;
}

/** Keeps Pods of DaemonSets, whose controller would recreate them, unless the DaemonSet is gone. */
async function checkDaemonSet(session: Session, pod: JsonObject): Promise<DrainDecision> {
  const owner = controllerOf(pod);
  if (owner === undefined || owner.kind !== 'DaemonSet' || hasEnded(pod)) return removable;
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

function checkLocalStorage(session: Session, pod: JsonObject): DrainDecision {
  const isLocal = listAt(pod, 'spec', 'volumes').some((volume) => volume.emptyDir !== undefined);
  if (!isLocal || hasEnded(pod) || session.flags.boolean('delete-emptydir-data')) return removable;
  return failure('Pods with local storage (use --delete-emptydir-data to override)');
}

function checkController(session: Session, pod: JsonObject): DrainDecision {
  if (hasEnded(pod) || controllerOf(pod) !== undefined) return removable;
  return session.flags.boolean('force')
    ? warning('deleting Pods that declare no controller', true)
    : failure('cannot delete Pods that declare no controller (use --force to override)');
}

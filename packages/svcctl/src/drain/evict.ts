import { ApiError } from '@wheelhouse/client';
import type { JsonObject } from '@wheelhouse/machinery';
import { printGoDuration } from '@wheelhouse/schema';
import { dryRunOf, dryRunSuffix } from '../apply/writes.ts';
import { CliError } from '../io.ts';
import { nameOf, namespaceOf, textAt } from '../objects.ts';
import { type Target, targetPath } from '../selection.ts';
import type { Session } from '../session.ts';
import { isLongDeleted } from './pods-to-drain.ts';

const retryMs = 5_000;
const pollMs = 1_000;

/** How a drain removes Pods, and till when. */
interface Removal {
  readonly session: Session;
  /** On the monotonic clock. */
  readonly deadlineMs: number;
  readonly timeoutMs: number;
  readonly evicts: boolean;
}

/**
 * Evicts Pods, all at once, and waits until they are gone; deletes them with `--disable-eviction`,
 * or if the server has no evictions. Gives the failures of Pods.
 */
export async function removePods(
  session: Session,
  pods: readonly JsonObject[],
): Promise<readonly Error[]> {
  if (pods.length === 0) return [];
  const resource = await session.resourceOfKind('Pod');
  const evicts =
    resource.subresources.includes('eviction') && !session.flags.boolean('disable-eviction');
  const timeoutMs = session.flags.durationMs('timeout') ?? 0;
  const deadlineMs = timeoutMs === 0 ? Infinity : session.clock.monotonic() + timeoutMs;
  const removal = { session, deadlineMs, timeoutMs, evicts };
  const targetOf = (pod: JsonObject) => ({
    resource,
    namespace: namespaceOf(pod),
    name: nameOf(pod),
  });
  const removeEach = evicts ? evictPod : deletePod;
  const outcomes = await Promise.allSettled(
    pods.map((pod) => removeEach(removal, pod, targetOf(pod))),
  );
  if (session.io.signal.aborted) throw session.io.signal.reason;
  return outcomes.flatMap((one) => (one.status === 'rejected' ? [asError(one.reason)] : []));
}

const asError = (reason: unknown): Error =>
  reason instanceof Error ? reason : new Error(String(reason));

const isNotFound = (error: unknown): boolean => error instanceof ApiError && error.code === 404;

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
    if (isOver(removal)) {
      throw new CliError(
        `error when evicting ${label}: global timeout reached: ${durationText(removal.timeoutMs)}`,
      );
    }
    const outcome = await tryEviction(session, target);
    if (outcome === 'gone') return;
    if (outcome === 'evicted') break;
    const { failure } = outcome;
    if (failure.code === 429) {
      session.io.err(`error when evicting ${label} (will retry after 5s): ${failure.message}\n`);
    } else if (isOfEndingNamespace(failure)) {
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

const isOfEndingNamespace = (error: ApiError): boolean =>
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

const isOver = ({ session, deadlineMs }: Removal): boolean =>
  session.clock.monotonic() >= deadlineMs;

/** Asks every second until the Pod is gone or another has its name. */
async function waitUntilGone(removal: Removal, pod: JsonObject, target: Target): Promise<void> {
  const { session, evicts } = removal;
  const report = (what: string) => session.io.out(`pod/${nameOf(pod)} ${what}\n`);
  for (;;) {
    let current: JsonObject | undefined;
    try {
      current = await session.client.get<JsonObject>(targetPath(target));
    } catch (error) {
      if (!isNotFound(error)) {
        report(evicts ? 'eviction failed' : 'deletion failed');
        throw error;
      }
    }
    const uid = textAt(pod, 'metadata', 'uid');
    if (current === undefined || textAt(current, 'metadata', 'uid') !== uid) {
      report(evicts ? 'evicted' : 'deleted');
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
    if (isOver(removal)) throw new CliError('context deadline exceeded');
    await session.pause(pollMs);
  }
}

const durationText = (ms: number): string => printGoDuration(BigInt(Math.round(ms * 1_000_000)));

import { errorText, isObject, type JsonObject } from '@wheelhouse/machinery';
import { attachTo, printBody } from '../commands/streams/exec.ts';
import { CliError, CommandExit } from '../io.ts';
import { listAt, nameOf, namespaceOf, objectAt, textAt } from '../objects.ts';
import { type Target, targetOf, targetPath } from '../selection.ts';
import type { Session } from '../session.ts';
import { followObject } from '../watch.ts';
import { hasEnded, podTimeoutMs, selectContainer } from './pods.ts';

/**
 * Waits for a new Pod to run, attaches to its container, and waits for its end unless it restarts.
 * Rejects with CommandExit if the container fails, and with CliError after `--pod-running-timeout`.
 */
export async function followPod(session: Session, target: Target): Promise<void> {
  const limit = { timeoutMs: podTimeoutMs(session) };
  const running = await waitForPod(session, target, {
    test: (pod) => isReady(pod) || hasEnded(pod),
    ...limit,
  });
  const container = await selectContainer(session, running);
  if (hasEnded(running)) await printLog(session, target, container);
  else await attachOrLog(session, { target, pod: running, container });
  const restart = textAt(running, 'spec', 'restartPolicy');
  if (restart === 'Always' || session.flags.boolean('leave-stdin-open')) return;
  // A Pod that restarts after failures ends only when it succeeds.
  const isComplete =
    restart === 'Never' ? hasEnded : (pod: JsonObject) => phaseOf(pod) === 'Succeeded';
  checkEnd(await waitForPod(session, target, { test: isComplete, ...limit }));
}

/**
 * Waits without limit for a container to run and attaches to it, or prints its log if it has
 * already ended. Rejects with ApiError if the Pod is deleted.
 */
export async function followContainer(
  session: Session,
  { pod, container }: { readonly pod: JsonObject; readonly container: string },
): Promise<void> {
  const resource = await session.resourceOfKind('Pod');
  const target = targetOf(resource, pod);
  let reported = '';
  const started = await waitForPod(session, target, {
    test: (current) => {
      const { running, terminated, waiting } = stateOf(current, container);
      const message = isObject(waiting) ? textAt(waiting, 'message') : '';
      if (message !== '' && message !== reported && !session.flags.boolean('quiet')) {
        session.io.err(`Warning: container ${container}: ${message}\n`);
      }
      reported = message;
      return running !== undefined || terminated !== undefined;
    },
  });
  if (stateOf(started, container)['terminated'] !== undefined) {
    await printLog(session, target, container);
  } else {
    await attachOrLog(session, { target, pod: started, container });
  }
}

/** The state of a container of any type; empty until the kubelet reports one. */
function stateOf(pod: JsonObject, container: string): JsonObject {
  const lists = ['initContainerStatuses', 'containerStatuses', 'ephemeralContainerStatuses'];
  const status = lists
    .flatMap((list) => listAt(pod, 'status', list))
    .find((containerStatus) => textAt(containerStatus, 'name') === container);
  return objectAt(status, 'state');
}

const phaseOf = (pod: JsonObject): string => textAt(pod, 'status', 'phase');

const isReady = (pod: JsonObject): boolean =>
  phaseOf(pod) === 'Running' &&
  listAt(pod, 'status', 'conditions').some(
    (condition) => textAt(condition, 'type') === 'Ready' && textAt(condition, 'status') === 'True',
  );

async function attachOrLog(
  session: Session,
  {
    target,
    pod,
    container,
  }: { readonly target: Target; readonly pod: JsonObject; readonly container: string },
): Promise<void> {
  try {
    await attachTo(session, pod, container);
  } catch (error) {
    if (session.io.signal.aborted || error instanceof CommandExit) throw error;
    const reason = errorText(error);
    session.io.err(
      `warning: couldn't attach to pod/${nameOf(pod)}, falling back to streaming logs: ${reason}\n`,
    );
    await printLog(session, target, container);
  }
}

const printLog = (session: Session, target: Target, container: string): Promise<void> =>
  printBody(session, {
    path: targetPath(target, 'log'),
    query: { container },
    accept: '*/*',
    signal: session.io.signal,
  });

/** Throws CommandExit or CliError if the Pod failed. */
function checkEnd(pod: JsonObject): void {
  if (phaseOf(pod) !== 'Failed') return;
  const [container] = listAt(pod, 'status', 'containerStatuses');
  const terminated = objectAt(container, 'state', 'terminated');
  const label = `pod ${namespaceOf(pod)}/${nameOf(pod)}`;
  const code = terminated['exitCode'];
  if (typeof code !== 'number' || code === 0) {
    throw new CliError(`${label} failed with unknown exit code`);
  }
  const [reason, message] = [textAt(terminated, 'reason'), textAt(terminated, 'message')];
  throw new CommandExit(code, `${label} terminated (${reason})\n${message}`);
}

/** Waits for a Pod to pass a test. Rejects with CliError after `timeoutMs`. */
async function waitForPod(
  session: Session,
  target: Target,
  options: {
    readonly test: (pod: JsonObject) => boolean;
    /** No limit if absent. */
    readonly timeoutMs?: number;
  },
): Promise<JsonObject> {
  const { test, timeoutMs } = options;
  return session.waitFor(timeoutMs, async (signal) => {
    for await (const state of followObject(session, { target, signal })) {
      if (state.type === 'present' && test(state.object)) return state.object;
      // Fails with the server's error, unless another Pod has the name by now.
      if (state.type !== 'present') await session.client.get(targetPath(target));
    }
    throw signal.reason;
  });
}

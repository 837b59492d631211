import { ApiError } from '@wheelhouse/client';
import type { JsonObject } from '@wheelhouse/machinery';
import { dryRunOf, getOrUndefined } from './apply/writes.ts';
import type { FlagSpec } from './flags.ts';
import { CliError } from './io.ts';
import { textAt } from './objects.ts';
import { type Target, targetPath } from './selection.ts';
import type { Session } from './session.ts';
import { followObject } from './watch.ts';

/** Flags for the dependents and the graceful termination of deleted objects. */
export const deletionFlags: readonly FlagSpec[] = [
  {
    name: 'cascade',
    type: 'text',
    bare: 'background',
    help: 'What happens to dependents: background, orphan, or foreground',
  },
  {
    name: 'grace-period',
    type: 'integer',
    help: 'Seconds to terminate gracefully; negative for the default',
  },
  { name: 'timeout', type: 'duration', help: 'How long to wait; 0 for no limit' },
  { name: 'wait', type: 'boolean', help: 'Wait until the objects are gone (default)' },
];

const policies: Readonly<Record<string, string>> = {
  background: 'Background',
  true: 'Background',
  orphan: 'Orphan',
  false: 'Orphan',
  foreground: 'Foreground',
};

/** Throws CliError for an invalid `--cascade`, and warns of the values of older clients. */
export function checkCascade({ flags, io }: Session): void {
  const cascade = flags.text('cascade') ?? 'background';
  if (!Object.hasOwn(policies, cascade)) {
    throw new CliError(
      `invalid cascade value (${cascade}). Must be "background", "foreground", or "orphan"`,
    );
  }
  if (cascade !== 'true' && cascade !== 'false') return;
  const replacement = cascade === 'true' ? 'background' : 'orphan';
  io.err(
    `warning: --cascade=${cascade} is deprecated (boolean value) and can be replaced with ` +
      `--cascade=${replacement}.\n`,
  );
}

/**
 * Returns the body of a DELETE request, whose `--cascade` has been checked.
 * @param graceSeconds overrides `--grace-period`
 */
export function deleteOptions(session: Session, graceSeconds?: number): JsonObject {
  const { flags } = session;
  const propagationPolicy = policies[flags.text('cascade') ?? 'background'] as string;
  const grace = graceSeconds ?? flags.integer('grace-period') ?? -1;
  return {
    kind: 'DeleteOptions',
    apiVersion: 'v1',
    propagationPolicy,
    ...(grace < 0 ? {} : { gracePeriodSeconds: grace }),
    ...(dryRunOf(session) === 'server' ? { dryRun: ['All'] } : {}),
  };
}

/** Whether an error is the server's 404. */
export const isNotFound = (error: unknown): boolean =>
  error instanceof ApiError && error.code === 404;

/**
 * Waits until the object is gone or another object has its name. Rejects with CliError after
 * `timeoutMs`; 0 sets no limit.
 */
export async function waitForDeletion(
  session: Session,
  options: { readonly target: Target; readonly uid: string; readonly timeoutMs: number },
): Promise<void> {
  const { target, uid, timeoutMs } = options;
  const isGone = (current: JsonObject | undefined) =>
    current === undefined || (uid !== '' && textAt(current, 'metadata', 'uid') !== uid);
  if (isGone(await getOrUndefined(session, targetPath(target)))) return;
  const deadline = session.deadline(timeoutMs > 0 ? timeoutMs : undefined);
  const { signal } = deadline;
  try {
    for await (const state of followObject(session, { target, signal })) {
      if (state.type !== 'present' || isGone(state.object)) return;
    }
  } catch (error) {
    if (!deadline.isOver()) throw error;
    const label = `${target.resource.resource}/${target.name ?? ''}`;
    throw new CliError(`timed out waiting for the condition on ${label}`);
  }
}

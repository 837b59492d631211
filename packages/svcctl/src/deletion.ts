import { ApiError } from '@wheelhouse/client';
import { booleanOf, type JsonObject } from '@wheelhouse/machinery';
import { dryRunOf, getOrUndefined } from './apply/writes.ts';
import type { FlagSpec } from './flags.ts';
import { CliError } from './io.ts';
import { textAt } from './objects.ts';
import { type Target, targetPath } from './selection.ts';
import type { Deadline, Session } from './session.ts';
import { followObject } from './watch.ts';

/** Flags for the dependents and the graceful termination of deleted objects. */
const terminationFlags: readonly FlagSpec[] = [
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
];

/** Flags of the command that deletes objects. */
export const deletionFlags: readonly FlagSpec[] = [
  ...terminationFlags,
  { name: 'timeout', type: 'duration', help: 'How long to wait; 0 for no limit' },
  { name: 'wait', type: 'boolean', help: 'Wait until the objects are gone (default)' },
];

/**
 * Flags of commands that delete an object only to create it again.
 * @param limit how long they wait by default until the old object is gone
 */
export const recreationFlags = (limit: string): readonly FlagSpec[] => [
  ...terminationFlags,
  {
    name: 'timeout',
    type: 'duration',
    help: `How long --force waits until the old object is gone; 0 for ${limit}`,
  },
  { name: 'wait', type: 'boolean', help: 'Ignored; --force always waits' },
];

const policies: ReadonlyMap<string, string> = new Map([
  ['background', 'Background'],
  ['orphan', 'Orphan'],
  ['foreground', 'Foreground'],
]);

/** The value of `--cascade`, and whether it is a boolean of older clients. */
function cascadeOf({ flags }: Session): { readonly cascade: string; readonly isBoolean: boolean } {
  const cascade = flags.text('cascade') ?? 'background';
  const boolean = booleanOf(cascade);
  if (boolean === undefined) return { cascade, isBoolean: false };
  return { cascade: boolean ? 'background' : 'orphan', isBoolean: true };
}

/** Throws CliError for an invalid `--cascade`, and warns of the values of older clients. */
export function checkCascade(session: Session): void {
  const { cascade, isBoolean } = cascadeOf(session);
  if (!policies.has(cascade)) {
    throw new CliError(
      `invalid cascade value (${cascade}). Must be "background", "foreground", or "orphan"`,
    );
  }
  if (!isBoolean) return;
  session.io.err(
    `warning: --cascade=${session.flags.text('cascade')} is deprecated (boolean value) and can ` +
      `be replaced with --cascade=${cascade}.\n`,
  );
}

/**
 * Returns the body of a DELETE request, whose `--cascade` has been checked.
 * @param graceSeconds overrides `--grace-period`
 */
export function deleteOptions(session: Session, graceSeconds?: number): JsonObject {
  const { flags } = session;
  const propagationPolicy = policies.get(cascadeOf(session).cascade) ?? 'Background';
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

/** A deleted object; without its UID, any object of its name counts. */
export interface Deletion {
  readonly target: Target;
  readonly uid: string;
}

/**
 * Waits until the object is gone or another object has its name. Rejects with CliError after the
 * deadline.
 */
export async function waitForDeletion(
  session: Session,
  { target, uid }: Deletion,
  deadline: Deadline,
): Promise<void> {
  const isGone = (current: JsonObject | undefined) =>
    current === undefined || (uid !== '' && textAt(current, 'metadata', 'uid') !== uid);
  if (isGone(await getOrUndefined(session, targetPath(target)))) return;
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

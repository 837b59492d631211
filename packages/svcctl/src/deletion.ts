import { ApiError, resourcePath, watchEvents } from '@wheelhouse/client';
import type { JsonObject } from '@wheelhouse/machinery';
import { dryRunOf } from './apply/writes.ts';
import type { FlagSpec } from './flags.ts';
import { CliError } from './io.ts';
import { textAt } from './objects.ts';
import { type Target, targetPath } from './selection.ts';
import type { Session } from './session.ts';

/** What happens to the dependents of a deleted object, and how long it may take to terminate. */
export const deletionFlags: readonly FlagSpec[] = [
  {
    name: 'cascade',
    type: 'text',
    bare: 'background',
    help: 'background, orphan or foreground: what happens to dependents',
  },
  {
    name: 'grace-period',
    type: 'integer',
    help: 'Seconds to terminate gracefully; negative: the default',
  },
  { name: 'timeout', type: 'duration', help: 'How long to wait; 0: as long as it takes' },
  { name: 'wait', type: 'boolean', help: 'Wait until the objects are gone (default)' },
];

const policies: Readonly<Record<string, string>> = {
  background: 'Background',
  true: 'Background',
  orphan: 'Orphan',
  false: 'Orphan',
  foreground: 'Foreground',
};

/** The body of a DELETE request. `graceSeconds` overrides `--grace-period`. Throws CliError. */
export function deleteOptions(session: Session, graceSeconds?: number): JsonObject {
  const { flags } = session;
  const cascade = flags.text('cascade') ?? 'background';
  const propagationPolicy = Object.hasOwn(policies, cascade) ? policies[cascade] : undefined;
  if (propagationPolicy === undefined) {
    throw new CliError(
      `invalid cascade value (${cascade}). Must be "background", "foreground", or "orphan"`,
    );
  }
  const grace = graceSeconds ?? flags.integer('grace-period') ?? -1;
  return {
    kind: 'DeleteOptions',
    apiVersion: 'v1',
    propagationPolicy,
    ...(grace < 0 ? {} : { gracePeriodSeconds: grace }),
    ...(dryRunOf(session) === 'server' ? { dryRun: ['All'] } : {}),
  };
}

/** Whether the server has no such object. */
export const isNotFound = (error: unknown): boolean =>
  error instanceof ApiError && error.code === 404;

/**
 * Waits until the object is gone or another one has its name. `timeoutMs` of 0 sets no limit.
 * Throws CliError when the time is up.
 */
export async function waitForDeletion(
  session: Session,
  options: { readonly target: Target; readonly uid: string; readonly timeoutMs: number },
): Promise<void> {
  const { target, uid, timeoutMs } = options;
  const { resource, namespace, name = '' } = target;
  const deadline = session.deadline(timeoutMs > 0 ? timeoutMs : undefined);
  try {
    for (;;) {
      const current = await session.client.get(targetPath(target));
      if (uid !== '' && textAt(current, 'metadata', 'uid') !== uid) return;
      const stream = await session.client.stream({
        path: resourcePath(resource, { namespace }),
        query: {
          watch: 'true',
          fieldSelector: `metadata.name=${name}`,
          resourceVersion: textAt(current, 'metadata', 'resourceVersion'),
        },
        signal: deadline.signal,
      });
      for await (const event of watchEvents(stream.body)) {
        if (event.type === 'ERROR') break;
        if (event.type === 'DELETED') return;
      }
    }
  } catch (error) {
    if (isNotFound(error)) return;
    if (deadline.isOver()) {
      throw new CliError(`timed out waiting for the condition on ${resource.resource}/${name}`);
    }
    throw error;
  }
}

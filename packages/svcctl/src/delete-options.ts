import type { JsonObject } from '@wheelhouse/machinery';
import { dryRunOf } from './apply/writes.ts';
import type { FlagSpec } from './flags.ts';
import { CliError } from './io.ts';
import type { Session } from './session.ts';

/** What becomes of what depends on a deleted object, and how long it has to end. */
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

/** The body of a deletion; `graceSeconds`, where it is not the flag's. Throws CliError. */
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

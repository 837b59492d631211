import type { JsonObject } from '@wheelhouse/machinery';
import type { Command } from '../../command.ts';
import { describeErrors } from '../../errors.ts';
import { CliError } from '../../io.ts';
import { withProgress } from '../../progress.ts';
import { historicKinds } from '../../rollout/revisions.ts';
import { rolloutStatus } from '../../rollout/rollout-status.ts';
import {
  findWorkloads,
  groupKind,
  isAppsKind,
  reportNothing,
  type Workload,
  workloadFlags,
  workloadLabel,
} from '../../rollout/workloads.ts';
import { serverDialect } from '../../server-dialect.ts';
import type { Session } from '../../session.ts';
import { followObject } from '../../watch-object.ts';

export const statusCommand: Command = {
  name: 'status',
  completes: 'objects',
  summary: 'Show the status of the rollout',
  usage: '(TYPE NAME | TYPE/NAME)',
  flags: [
    ...workloadFlags,
    { name: 'watch', short: 'w', type: 'boolean', help: 'Wait till it is done (default)' },
    { name: 'revision', type: 'integer', help: 'Fail unless it is of this revision; 0: any' },
    { name: 'timeout', type: 'duration', help: 'How long to wait; 0: for ever' },
  ],
  async run(session, args) {
    const revision = session.flags.integer('revision') ?? 0;
    if (revision < 0) throw new CliError(`revision must be a positive integer: ${revision}`);
    const { found, failures } = await findWorkloads(session, args);
    for (const workload of found) {
      const { resource } = workload.target;
      if (!isAppsKind(resource, historicKinds)) {
        failures.push(
          new CliError(`no status viewer has been implemented for ${groupKind(resource)}`),
        );
        continue;
      }
      try {
        await withProgress(session, `waiting for ${workloadLabel(workload)}`, () =>
          awaitRollout(session, workload, revision),
        );
      } catch (error) {
        if (session.io.signal.aborted) throw error;
        failures.push(error);
      }
    }
    if (failures.length > 0) {
      session.io.err(describeErrors(failures));
      return 1;
    }
    if (found.length === 0) reportNothing(session);
    return 0;
  },
};

/** Prints each state of a rollout till it is done. Throws CliError when it fails. */
async function awaitRollout(
  session: Session,
  { target }: Workload,
  revision: number,
): Promise<void> {
  const annotation = (await serverDialect(session)).label('revision', 'deployment');
  const timeoutMs = session.flags.durationMs('timeout') ?? 0;
  const { signal: interrupt } = session.io;
  const timeout = timeoutMs > 0 ? AbortSignal.timeout(Math.ceil(timeoutMs)) : undefined;
  const signal = timeout === undefined ? interrupt : AbortSignal.any([timeout, interrupt]);
  const statusOf = (object: JsonObject) =>
    rolloutStatus(target.resource.kind, object, { revision, annotation });
  try {
    for await (const state of followObject(session, { target, signal })) {
      if (state.type === 'deleted') throw new CliError('object has been deleted');
      const { message, done } = statusOf(state.object);
      session.io.out(message);
      if (done || !session.flags.boolean('watch', true)) return;
    }
  } catch (error) {
    if (timeout?.aborted === true && !(error instanceof CliError)) {
      throw new CliError('timed out waiting for the condition');
    }
    throw error;
  }
}

import type { Command } from '../../command.ts';
import { describeErrors } from '../../errors.ts';
import { CliError } from '../../io.ts';
import { objectLabel } from '../../objects.ts';
import { outputFlags, printerOf } from '../../output/output.ts';
import { podTemplateText } from '../../output/pod-template.ts';
import { historicKinds, type Revision, readHistory } from '../../rollout/revisions.ts';
import {
  findWorkloads,
  groupKind,
  isAppsKind,
  type Workload,
  workloadFlags,
} from '../../rollout/workloads.ts';
import type { Session } from '../../session.ts';

export const historyCommand: Command = {
  name: 'history',
  completes: 'objects',
  summary: 'View rollout history',
  usage: '(TYPE NAME | TYPE/NAME)',
  flags: [
    ...workloadFlags,
    ...outputFlags,
    { name: 'revision', type: 'integer', help: 'Show the template of this revision' },
  ],
  async run(session, args) {
    const revision = session.flags.integer('revision') ?? 0;
    if (revision < 0) throw new CliError(`revision must be a positive integer: ${revision}`);
    const { found, failures } = await findWorkloads(session, args);
    for (const workload of found) {
      try {
        await showHistory(session, workload, revision);
      } catch (error) {
        if (session.io.signal.aborted) throw error;
        failures.push(error);
      }
    }
    if (failures.length === 0) return 0;
    session.io.err(describeErrors(failures));
    return 1;
  },
};

async function showHistory(
  session: Session,
  { target, object }: Workload,
  revision: number,
): Promise<void> {
  const { resource } = target;
  if (!isAppsKind(resource, historicKinds)) {
    const kind = JSON.stringify(groupKind(resource));
    throw new CliError(`no history viewer has been implemented for ${kind}`);
  }
  const { revisions } = await readHistory(session, target);
  const printer = printerOf(session);
  if (printer !== undefined) {
    for (const one of revisions) {
      if (revision === 0 || one.revision === revision) session.io.out(printer(one.shown));
    }
    return;
  }
  const which = revision === 0 ? '' : `with revision #${revision}`;
  const text = revisions.length === 0 ? 'No rollout history found.' : textOf(revisions, revision);
  session.io.out(`${objectLabel(object)} ${which}\n${text}\n`);
}

function textOf(revisions: readonly Revision[], revision: number): string {
  if (revision > 0) {
    const found = revisions.find((one) => one.revision === revision);
    if (found === undefined) throw new CliError('unable to find the specified revision');
    return podTemplateText(found.template);
  }
  const lines = revisions.map((one) => [String(one.revision), one.cause || '<none>'] as const);
  return [['REVISION', 'CHANGE-CAUSE'] as const, ...lines]
    .map(([number, cause]) => `${number.padEnd(10)}${cause}\n`)
    .join('');
}

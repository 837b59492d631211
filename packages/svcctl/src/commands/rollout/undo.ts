import { ApiError } from '@wheelhouse/client';
import type { JsonObject } from '@wheelhouse/machinery';
import { dryRunOf, dryRunQuery, dryRunSuffix, writeFlags } from '../../apply/writes.ts';
import type { Command } from '../../command.ts';
import { describeErrors } from '../../errors.ts';
import { CliError } from '../../io.ts';
import { nameOf, objectAt } from '../../objects.ts';
import { outputFlags, reportObject } from '../../output/output.ts';
import { podTemplateText } from '../../output/pod-template.ts';
import {
  type History,
  historicKinds,
  isSameTemplate,
  type Revision,
  readHistory,
  withoutHash,
} from '../../rollout/revisions.ts';
import {
  findWorkloads,
  groupKind,
  isAppsKind,
  type Workload,
  workloadFlags,
} from '../../rollout/workloads.ts';
import { targetPath } from '../../selection.ts';
import { serverDialect } from '../../server-dialect.ts';
import type { Session } from '../../session.ts';

export const undoCommand: Command = {
  name: 'undo',
  completes: 'objects',
  summary: 'Undo a previous rollout',
  usage: '(TYPE NAME | TYPE/NAME)',
  flags: [
    ...workloadFlags,
    ...outputFlags,
    ...writeFlags.filter((flag) => flag.name === 'dry-run'),
    {
      name: 'to-revision',
      type: 'integer',
      help: 'The revision to return to; 0: the previous one',
    },
  ],
  async run(session, args) {
    const { found, failures } = await findWorkloads(session, args);
    for (const workload of found) {
      try {
        const done = await undo(session, workload);
        reportObject(session, workload.object, `${done}${dryRunSuffix(session)}`);
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

/** Rolls one workload back; gives what is said of it. Throws CliError. */
async function undo(session: Session, { target }: Workload): Promise<string> {
  const { resource } = target;
  if (!isAppsKind(resource, historicKinds)) {
    const kind = JSON.stringify(groupKind(resource));
    throw new CliError(`no rollbacker has been implemented for ${kind}`);
  }
  const wanted = session.flags.integer('to-revision') ?? 0;
  if (wanted < 0) throw notFound(wanted);
  const history = await readHistory(session, target);
  const isDeployment = resource.kind === 'Deployment';
  const revision = revisionTo(history, wanted);
  const { workload } = history;
  const former = isDeployment ? objectAt(revision.holder, 'spec', 'template') : revision.template;
  if (dryRunOf(session) === 'client') {
    const text = podTemplateText(former);
    return isDeployment ? text : `will roll back to ${text}`;
  }
  if (isDeployment && objectAt(workload, 'spec')['paused'] === true) {
    throw new CliError(
      "you cannot rollback a paused deployment; resume it first with 'svcctl rollout resume' " +
        'and try again',
    );
  }
  if (isSameTemplate(former, objectAt(workload, 'spec', 'template'))) {
    return `skipped rollback (current template already matches revision ${wanted})`;
  }
  const patch = isDeployment
    ? await deploymentPatch(session, workload, revision)
    : { contentType: strategic, body: objectAt(revision.holder, 'data') };
  try {
    await session.client.send({
      method: 'PATCH',
      path: targetPath(target),
      query: dryRunQuery(session),
      ...patch,
    });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    throw new CliError(`failed restoring revision ${wanted}: ${error.message}`);
  }
  return 'rolled back';
}

const strategic = 'application/strategic-merge-patch+json';

const notFound = (revision: number): CliError =>
  new CliError(`unable to find specified revision ${revision} in history`);

/** The revision of a number, or the one before the last. Throws CliError when there is none. */
function revisionTo({ target, workload, revisions }: History, wanted: number): Revision {
  if (wanted > 0) {
    const found = revisions.find((one) => one.revision === wanted);
    if (found === undefined) throw notFound(wanted);
    return found;
  }
  const before = revisions.at(-2);
  if (before !== undefined) return before;
  throw new CliError(
    target.resource.kind === 'Deployment'
      ? `no rollout history found for deployment ${JSON.stringify(nameOf(workload))}`
      : 'no last revision to roll back to',
  );
}

/** Gives a Deployment the template of a ReplicaSet and its annotations, but for its own. */
async function deploymentPatch(session: Session, workload: JsonObject, { holder }: Revision) {
  const dialect = await serverDialect(session);
  const own = new Set([
    dialect.label('last-applied-configuration', dialect.tool),
    ...['revision', 'revision-history', 'desired-replicas', 'max-replicas'].map((name) =>
      dialect.label(name, 'deployment'),
    ),
    'deprecated.deployment.rollback.to',
  ]);
  const pick = (object: JsonObject, keeps: (name: string) => boolean) =>
    Object.entries(objectAt(object, 'metadata', 'annotations')).filter(([name]) => keeps(name));
  const annotations: JsonObject = Object.fromEntries([
    ...pick(workload, (name) => own.has(name)),
    ...pick(holder, (name) => !own.has(name)),
  ]);
  return {
    contentType: 'application/json-patch+json',
    body: [
      {
        op: 'replace',
        path: '/spec/template',
        value: withoutHash(objectAt(holder, 'spec', 'template')),
      },
      { op: 'replace', path: '/metadata/annotations', value: annotations },
    ],
  };
}

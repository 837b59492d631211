import { ApiError, type ApiResource } from '@wheelhouse/client';
import { type JsonObject, jsonEqual, setMember } from '@wheelhouse/machinery';
import { changeObject } from '../../apply/patches.ts';
import {
  dryRunFlag,
  dryRunOf,
  dryRunQuery,
  dryRunSuffix,
  managerFlag,
} from '../../apply/writes.ts';
import type { Command } from '../../command.ts';
import { podTemplateText } from '../../describe/pod-template.ts';
import { reportFailures, visitEach } from '../../errors.ts';
import type { FlagSpec } from '../../flags.ts';
import { CliError } from '../../io.ts';
import { nameOf, objectAt, objectLabel } from '../../objects.ts';
import { outputFlags, printerOf, reportObject } from '../../output/output.ts';
import {
  findWorkloads,
  groupKind,
  type History,
  isAppsKind,
  isSameTemplate,
  type Revision,
  readHistory,
  reportNoResources,
  revisionedKinds,
  type Workload,
  withoutHash,
  workloadFlags,
  workloadLabel,
} from '../../rollout/workloads.ts';
import { targetPath } from '../../selection.ts';
import type { Session } from '../../session.ts';
import { statusCommand } from './status.ts';

const flags: readonly FlagSpec[] = [...workloadFlags, ...outputFlags, managerFlag];

/** A change to the rollout of a workload, and the verb of its report. */
interface Action {
  readonly verb: string;
  /** Returns the changed workload. Throws or rejects with CliError if the change is impossible. */
  change(session: Session, workload: Workload): Promise<JsonObject> | JsonObject;
}

const pauseCommand: Command = {
  name: 'pause',
  completes: 'objects',
  summary: 'Mark the provided resource as paused',
  usage: '(TYPE NAME | TYPE/NAME)',
  flags,
  run: (session, args) =>
    runAction(session, args, {
      verb: 'paused',
      change: (_, workload) => withPaused(workload, { paused: true, gerund: 'pausing' }),
    }),
};

const resumeCommand: Command = {
  name: 'resume',
  completes: 'objects',
  summary: 'Resume a paused resource',
  usage: '(TYPE NAME | TYPE/NAME)',
  flags,
  run: (session, args) =>
    runAction(session, args, {
      verb: 'resumed',
      change: (_, workload) => withPaused(workload, { paused: false, gerund: 'resuming' }),
    }),
};

const restartCommand: Command = {
  name: 'restart',
  completes: 'objects',
  summary: 'Restart a resource',
  usage: '(TYPE NAME | TYPE/NAME)',
  flags,
  run: (session, args) => runAction(session, args, { verb: 'restarted', change: withRestart }),
};

async function runAction(
  session: Session,
  args: readonly string[],
  action: Action,
): Promise<number> {
  const { workloads, failures } = await findWorkloads(session, args);
  if (workloads.length === 0 && failures.length === 0) reportNoResources(session);
  const visit = async (workload: Workload): Promise<void> =>
    reportObject(session, await applyAction(session, workload, action), action.verb);
  return reportFailures(session.io, await visitEach(session.io, workloads, visit, failures));
}

async function applyAction(
  session: Session,
  workload: Workload,
  action: Action,
): Promise<JsonObject> {
  const { target, object: before } = workload;
  const after = await action.change(session, workload);
  if (jsonEqual(before, after)) {
    throw new CliError(
      `failed to create patch for ${nameOf(before)}: if restart has already been triggered ` +
        'within the past second, please wait before attempting to trigger another',
    );
  }
  const query = { fieldManager: session.flags.text('field-manager') ?? 'svcctl-rollout' };
  try {
    return await changeObject(session, { resource: target.resource, before, after, query });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    throw new CliError(`failed to patch: ${error.message}`);
  }
}

const rejection = (workload: Workload, why: string): CliError =>
  new CliError(`error: ${workloadLabel(workload)} ${why}`);

const deployments: ReadonlySet<string> = new Set(['Deployment']);

function withPaused(
  workload: Workload,
  { paused, gerund }: { readonly paused: boolean; readonly gerund: string },
): JsonObject {
  const { target, object } = workload;
  if (!isAppsKind(target.resource, deployments)) {
    throw rejection(workload, `${gerund} is not supported`);
  }
  const { paused: current, ...spec } = objectAt(object, 'spec');
  if ((current === true) === paused) {
    throw rejection(workload, paused ? 'is already paused' : 'is not paused');
  }
  return { ...object, spec: paused ? { ...spec, paused } : spec };
}

/** Changes an annotation of the Pod template, so that the controller replaces all Pods. */
async function withRestart(session: Session, workload: Workload): Promise<JsonObject> {
  const { target, object } = workload;
  if (!isAppsKind(target.resource, revisionedKinds)) {
    throw rejection(workload, 'restarting is not supported');
  }
  const spec = objectAt(object, 'spec');
  if (spec['paused'] === true) {
    throw rejection(workload, "can't restart paused deployment (run rollout resume first)");
  }
  const { label, tool } = await session.dialect();
  const template = objectAt(spec, 'template');
  const metadata = objectAt(template, 'metadata');
  const annotations: JsonObject = { ...objectAt(metadata, 'annotations') };
  const now = session.timestamp();
  setMember(annotations, label('restartedAt', tool), now);
  return {
    ...object,
    spec: { ...spec, template: { ...template, metadata: { ...metadata, annotations } } },
  };
}

const undoCommand: Command = {
  name: 'undo',
  completes: 'objects',
  summary: 'Undo a previous rollout',
  usage: '(TYPE NAME | TYPE/NAME)',
  flags: [
    ...workloadFlags,
    ...outputFlags,
    dryRunFlag,
    {
      name: 'to-revision',
      type: 'integer',
      help: 'The revision to return to; 0 for the previous one',
    },
  ],
  async run(session, args) {
    const { workloads, failures } = await findWorkloads(session, args);
    const visit = async (workload: Workload): Promise<void> => {
      const verb = await undo(session, workload);
      reportObject(session, workload.object, `${verb}${dryRunSuffix(session)}`);
    };
    return reportFailures(session.io, await visitEach(session.io, workloads, visit, failures));
  },
};

/** Kinds of workloads, by group, whose controllers keep no revisions. */
const revisionless: Readonly<Record<string, readonly string[]>> = {
  '': ['Pod', 'ReplicationController'],
  apps: ['ReplicaSet'],
  batch: ['CronJob', 'Job'],
};

/** Returns the error for a kind without revisions. */
function withoutRevisions(resource: ApiResource, tool: 'history viewer' | 'rollbacker'): CliError {
  const { group, kind } = resource;
  const label = JSON.stringify(groupKind(resource));
  if (revisionless[group]?.includes(kind) === true) {
    return new CliError(`no ${tool} has been implemented for ${label}`);
  }
  const wanted = tool === 'rollbacker' ? tool : 'history';
  return new CliError(
    `error retrieving ${wanted} for ${label}, no visitor method exists for {${group} ${kind}}`,
  );
}

/** Rolls back one workload. Resolves with the text of the report. Rejects with CliError. */
async function undo(session: Session, { target }: Workload): Promise<string> {
  const { resource } = target;
  if (!isAppsKind(resource, revisionedKinds)) throw withoutRevisions(resource, 'rollbacker');
  const dryRun = dryRunOf(session);
  const requested = session.flags.integer('to-revision') ?? 0;
  if (requested < 0) throw notFound(requested);
  const history = await readHistory(session, target);
  const isDeployment = resource.kind === 'Deployment';
  const revision = selectRevision(history, requested);
  const { workload } = history;
  const template = isDeployment ? objectAt(revision.holder, 'spec', 'template') : revision.template;
  if (dryRun === 'client') {
    const text = podTemplateText(template);
    return isDeployment ? text : `will roll back to ${text}`;
  }
  if (isDeployment && objectAt(workload, 'spec')['paused'] === true) {
    throw new CliError(
      "you cannot rollback a paused deployment; resume it first with 'svcctl rollout resume' " +
        'and try again',
    );
  }
  if (isSameTemplate(template, objectAt(workload, 'spec', 'template'))) {
    return `skipped rollback (current template already matches revision ${requested})`;
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
    throw new CliError(`failed restoring revision ${requested}: ${error.message}`);
  }
  return 'rolled back';
}

const strategic = 'application/strategic-merge-patch+json';

const notFound = (revision: number): CliError =>
  new CliError(`unable to find specified revision ${revision} in history`);

/** Selects a revision by number; 0 for the previous one. Throws CliError if there is none. */
function selectRevision({ target, workload, revisions }: History, requested: number): Revision {
  if (requested > 0) {
    const revision = revisions.find((revision) => revision.revision === requested);
    if (revision === undefined) throw notFound(requested);
    return revision;
  }
  const before = revisions.at(-2);
  if (before !== undefined) return before;
  throw new CliError(
    target.resource.kind === 'Deployment'
      ? `no rollout history found for deployment ${JSON.stringify(nameOf(workload))}`
      : 'no last revision to roll back to',
  );
}

/** Creates the patch that gives a Deployment the template and annotations of a ReplicaSet. */
async function deploymentPatch(session: Session, workload: JsonObject, { holder }: Revision) {
  const dialect = await session.dialect();
  const controllerKeys = new Set([
    dialect.label('last-applied-configuration', dialect.tool),
    ...['revision', 'revision-history', 'desired-replicas', 'max-replicas'].map((name) =>
      dialect.label(name, 'deployment'),
    ),
    'deprecated.deployment.rollback.to',
  ]);
  const pick = (object: JsonObject, keeps: (name: string) => boolean) =>
    Object.entries(objectAt(object, 'metadata', 'annotations')).filter(([name]) => keeps(name));
  const annotations: JsonObject = Object.fromEntries([
    ...pick(workload, (name) => controllerKeys.has(name)),
    ...pick(holder, (name) => !controllerKeys.has(name)),
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

const historyCommand: Command = {
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
    const { workloads, failures } = await findWorkloads(session, args);
    const visit = (workload: Workload) => showHistory(session, workload, revision);
    return reportFailures(session.io, await visitEach(session.io, workloads, visit, failures));
  },
};

async function showHistory(
  session: Session,
  { target, object }: Workload,
  revision: number,
): Promise<void> {
  const { resource } = target;
  if (!isAppsKind(resource, revisionedKinds)) throw withoutRevisions(resource, 'history viewer');
  const { revisions } = await readHistory(session, target);
  const printer = printerOf(session);
  if (printer !== undefined) {
    for (const entry of revisions) {
      if (revision === 0 || entry.revision === revision) session.io.out(printer(entry.printed));
    }
    return;
  }
  const which = revision === 0 ? '' : `with revision #${revision}`;
  const text =
    revisions.length === 0 ? 'No rollout history found.' : historyText(revisions, revision);
  session.io.out(`${objectLabel(object)} ${which}\n${text}\n`);
}

function historyText(revisions: readonly Revision[], revision: number): string {
  if (revision > 0) {
    const chosen = revisions.find((candidate) => candidate.revision === revision);
    if (chosen === undefined) throw new CliError('unable to find the specified revision');
    return podTemplateText(chosen.template);
  }
  const lines = revisions.map(
    (entry) => [String(entry.revision), entry.cause || '<none>'] as const,
  );
  return [['REVISION', 'CHANGE-CAUSE'] as const, ...lines]
    .map(([number, cause]) => `${number.padEnd(10)}${cause}\n`)
    .join('');
}

/** The commands for the revisions and the progress of Deployments, DaemonSets, and StatefulSets. */
export const rolloutCommand: Command = {
  name: 'rollout',
  summary: 'Manage the rollout of one or many resources',
  usage: 'SUBCOMMAND',
  alone: 'fails on stdout',
  subcommands: [
    historyCommand,
    pauseCommand,
    restartCommand,
    resumeCommand,
    statusCommand,
    undoCommand,
  ],
};

import { ApiError } from '@wheelhouse/client';
import { type JsonObject, jsonEqual, setMember } from '@wheelhouse/machinery';
import { changeObject } from '../../apply/change-object.ts';
import type { Command } from '../../command.ts';
import { describeErrors } from '../../errors.ts';
import type { FlagSpec } from '../../flags.ts';
import { CliError } from '../../io.ts';
import { nameOf, objectAt } from '../../objects.ts';
import { outputFlags, reportObject } from '../../output/output.ts';
import { historicKinds } from '../../rollout/revisions.ts';
import {
  findWorkloads,
  isAppsKind,
  reportNothing,
  type Workload,
  workloadFlags,
  workloadLabel,
} from '../../rollout/workloads.ts';
import { serverDialect } from '../../server-dialect.ts';
import type { Session } from '../../session.ts';

const flags: readonly FlagSpec[] = [
  ...workloadFlags,
  ...outputFlags,
  { name: 'field-manager', type: 'text', help: 'Name of the field manager' },
];

/** One way to change how a workload rolls out. */
interface Action {
  readonly done: string;
  /** The workload as it is to be. Throws CliError for one that cannot be. */
  change(session: Session, workload: Workload): Promise<JsonObject> | JsonObject;
}

export const pauseCommand: Command = {
  name: 'pause',
  completes: 'objects',
  summary: 'Mark the provided resource as paused',
  usage: '(TYPE NAME | TYPE/NAME)',
  flags,
  run: (session, args) =>
    act(session, args, {
      done: 'paused',
      change: (_, workload) => withPaused(workload, { paused: true, doing: 'pausing' }),
    }),
};

export const resumeCommand: Command = {
  name: 'resume',
  completes: 'objects',
  summary: 'Resume a paused resource',
  usage: '(TYPE NAME | TYPE/NAME)',
  flags,
  run: (session, args) =>
    act(session, args, {
      done: 'resumed',
      change: (_, workload) => withPaused(workload, { paused: false, doing: 'resuming' }),
    }),
};

export const restartCommand: Command = {
  name: 'restart',
  completes: 'objects',
  summary: 'Restart a resource',
  usage: '(TYPE NAME | TYPE/NAME)',
  flags,
  run: (session, args) => act(session, args, { done: 'restarted', change: withRestart }),
};

async function act(session: Session, args: readonly string[], action: Action): Promise<number> {
  const { found, failures } = await findWorkloads(session, args);
  if (found.length === 0 && failures.length === 0) reportNothing(session);
  for (const workload of found) {
    try {
      reportObject(session, await actOn(session, workload, action), action.done);
    } catch (error) {
      if (session.io.signal.aborted) throw error;
      failures.push(error);
    }
  }
  if (failures.length === 0) return 0;
  session.io.err(describeErrors(failures));
  return 1;
}

async function actOn(session: Session, workload: Workload, action: Action): Promise<JsonObject> {
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

const refusal = (workload: Workload, why: string): CliError =>
  new CliError(`error: ${workloadLabel(workload)} ${why}`);

const deployments: ReadonlySet<string> = new Set(['Deployment']);

function withPaused(
  workload: Workload,
  { paused, doing }: { readonly paused: boolean; readonly doing: string },
): JsonObject {
  const { target, object } = workload;
  if (!isAppsKind(target.resource, deployments)) {
    throw refusal(workload, `${doing} is not supported`);
  }
  const { paused: current, ...spec } = objectAt(object, 'spec');
  if ((current === true) === paused) {
    throw refusal(workload, paused ? 'is already paused' : 'is not paused');
  }
  return { ...object, spec: paused ? { ...spec, paused } : spec };
}

/** The time among the annotations of the template makes its controller replace all Pods. */
async function withRestart(session: Session, workload: Workload): Promise<JsonObject> {
  const { target, object } = workload;
  if (!isAppsKind(target.resource, historicKinds)) {
    throw refusal(workload, 'restarting is not supported');
  }
  const spec = objectAt(object, 'spec');
  if (spec['paused'] === true) {
    throw refusal(workload, "can't restart paused deployment (run rollout resume first)");
  }
  const { label, tool } = await serverDialect(session);
  const template = objectAt(spec, 'template');
  const metadata = objectAt(template, 'metadata');
  const annotations: JsonObject = { ...objectAt(metadata, 'annotations') };
  const now = new Date(session.clock.now()).toISOString().replace(/\.\d+Z$/, 'Z');
  setMember(annotations, label('restartedAt', tool), now);
  return {
    ...object,
    spec: { ...spec, template: { ...template, metadata: { ...metadata, annotations } } },
  };
}

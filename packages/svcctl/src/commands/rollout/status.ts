import type { JsonObject } from '@wheelhouse/machinery';
import type { Command } from '../../command.ts';
import { reportFailures, visitEach } from '../../errors.ts';
import { CliError } from '../../io.ts';
import { listAt, nameOf, textAt, valueAt } from '../../objects.ts';
import {
  findWorkloads,
  groupKind,
  isAppsKind,
  reportNoResources,
  revisionedKinds,
  type Workload,
  workloadFlags,
  workloadLabel,
} from '../../rollout/workloads.ts';
import type { Session } from '../../session.ts';
import { withProgress } from '../../terminal.ts';
import { followObject } from '../../watch.ts';

/** The progress of a rollout. */
interface RolloutStatus {
  readonly message: string;
  readonly done: boolean;
}

/** The revision that a Deployment must have (0 for any), and the annotation that records it. */
interface ExpectedRevision {
  readonly revision: number;
  readonly annotation: string;
}

/** Determines the progress of a workload's rollout. Throws CliError if it has failed. */
function rolloutStatus(
  kind: string,
  object: JsonObject,
  expected: ExpectedRevision,
): RolloutStatus {
  if (kind === 'Deployment') return deploymentStatus(object, expected);
  const strategy = textAt(object, 'spec', 'updateStrategy', 'type');
  if (strategy !== 'RollingUpdate') {
    throw new CliError('rollout status is only available for RollingUpdate strategy type');
  }
  return kind === 'DaemonSet' ? daemonSetStatus(object) : statefulSetStatus(object);
}

const numberAt = (object: JsonObject, ...path: string[]): number => {
  const value = valueAt(object, ...path);
  return typeof value === 'number' ? value : 0;
};

const pending = (message: string): RolloutStatus => ({ message: `${message}...\n`, done: false });

const isObserved = (object: JsonObject): boolean =>
  numberAt(object, 'metadata', 'generation') <= numberAt(object, 'status', 'observedGeneration');

function deploymentStatus(object: JsonObject, expected: ExpectedRevision): RolloutStatus {
  const name = JSON.stringify(nameOf(object));
  checkRevision(object, expected);
  if (!isObserved(object)) return pending('Waiting for deployment spec update to be observed');
  const exceedsDeadline = listAt(object, 'status', 'conditions').some(
    (condition) =>
      condition['type'] === 'Progressing' && condition['reason'] === 'ProgressDeadlineExceeded',
  );
  if (exceedsDeadline) throw new CliError(`deployment ${name} exceeded its progress deadline`);
  const wait = (what: string) =>
    pending(`Waiting for deployment ${name} rollout to finish: ${what}`);
  const replicas = numberAt(object, 'spec', 'replicas');
  const updated = numberAt(object, 'status', 'updatedReplicas');
  const current = numberAt(object, 'status', 'replicas');
  const available = numberAt(object, 'status', 'availableReplicas');
  if (updated < replicas) {
    return wait(`${updated} out of ${replicas} new replicas have been updated`);
  }
  if (current > updated) return wait(`${current - updated} old replicas are pending termination`);
  if (available < updated) return wait(`${available} of ${updated} updated replicas are available`);
  return { message: `deployment ${name} successfully rolled out\n`, done: true };
}

function checkRevision(object: JsonObject, { revision, annotation }: ExpectedRevision): void {
  if (revision === 0) return;
  const text = textAt(object, 'metadata', 'annotations', annotation) || '0';
  if (Number(text) === revision) return;
  throw new CliError(
    `desired revision (${revision}) is different from the running revision (${text})`,
  );
}

function daemonSetStatus(object: JsonObject): RolloutStatus {
  const name = JSON.stringify(nameOf(object));
  if (!isObserved(object)) return pending('Waiting for daemon set spec update to be observed');
  const wait = (what: string) =>
    pending(`Waiting for daemon set ${name} rollout to finish: ${what}`);
  const updated = numberAt(object, 'status', 'updatedNumberScheduled');
  const desired = numberAt(object, 'status', 'desiredNumberScheduled');
  const available = numberAt(object, 'status', 'numberAvailable');
  if (updated < desired) return wait(`${updated} out of ${desired} new pods have been updated`);
  if (available < desired) return wait(`${available} of ${desired} updated pods are available`);
  return { message: `daemon set ${name} successfully rolled out\n`, done: true };
}

function statefulSetStatus(object: JsonObject): RolloutStatus {
  if (numberAt(object, 'status', 'observedGeneration') === 0 || !isObserved(object)) {
    return pending('Waiting for statefulset spec update to be observed');
  }
  const replicas = numberAt(object, 'spec', 'replicas');
  const ready = numberAt(object, 'status', 'readyReplicas');
  const updated = numberAt(object, 'status', 'updatedReplicas');
  if (ready < replicas) return pending(`Waiting for ${replicas - ready} pods to be ready`);
  if (valueAt(object, 'spec', 'updateStrategy', 'rollingUpdate') !== undefined) {
    const partition = numberAt(object, 'spec', 'updateStrategy', 'rollingUpdate', 'partition');
    const expected = replicas - partition;
    if (updated < expected) {
      return pending(
        `Waiting for partitioned roll out to finish: ${updated} out of ${expected} new pods ` +
          'have been updated',
      );
    }
    const message = `partitioned roll out complete: ${updated} new pods have been updated...\n`;
    return { message, done: true };
  }
  const [update, current] = ['updateRevision', 'currentRevision'].map((member) =>
    textAt(object, 'status', member),
  );
  if (update !== current) {
    return pending(
      `waiting for statefulset rolling update to complete ${updated} pods at revision ${update}`,
    );
  }
  const pods = numberAt(object, 'status', 'currentReplicas');
  return {
    message: `statefulset rolling update complete ${pods} pods at revision ${current}...\n`,
    done: true,
  };
}

/**
 * Prints the progress of rollouts and, unless `--watch=false`, waits for their end. Fails if a
 * Deployment exceeds its progress deadline.
 */
export const statusCommand: Command = {
  name: 'status',
  completes: 'objects',
  summary: 'Show the status of the rollout',
  usage: '(TYPE NAME | TYPE/NAME)',
  flags: [
    ...workloadFlags,
    {
      name: 'watch',
      short: 'w',
      type: 'boolean',
      help: 'Wait until the rollout is complete (default)',
    },
    {
      name: 'revision',
      type: 'integer',
      help: 'Fail unless the rollout is at this revision; 0 for any',
    },
    { name: 'timeout', type: 'duration', help: 'How long to wait; 0 for no limit' },
  ],
  async run(session, args) {
    const revision = session.flags.integer('revision') ?? 0;
    if (revision < 0) throw new CliError(`revision must be a positive integer: ${revision}`);
    const { workloads, failures } = await findWorkloads(session, args);
    const visit = async (workload: Workload): Promise<void> => {
      const { resource } = workload.target;
      if (!isAppsKind(resource, revisionedKinds)) {
        throw new CliError(`no status viewer has been implemented for ${groupKind(resource)}`);
      }
      await withProgress(session, `waiting for ${workloadLabel(workload)}`, () =>
        awaitRollout(session, workload, revision),
      );
    };
    await visitEach(session.io, workloads, visit, failures);
    if (failures.length === 0 && workloads.length === 0) reportNoResources(session);
    return reportFailures(session.io, failures);
  },
};

/** Prints each change of a rollout until it is complete. Rejects with CliError if it fails. */
async function awaitRollout(
  session: Session,
  { target }: Workload,
  revision: number,
): Promise<void> {
  const annotation = (await session.dialect()).label('revision', 'deployment');
  const deadline = session.deadline(session.flags.durationMs('timeout') || undefined);
  const { signal } = deadline;
  const statusOf = (object: JsonObject) =>
    rolloutStatus(target.resource.kind, object, { revision, annotation });
  try {
    for await (const state of followObject(session, { target, signal })) {
      if (state.type === 'deleted') throw new CliError('object has been deleted');
      // The object may not exist yet.
      if (state.type !== 'present') continue;
      const { message, done } = statusOf(state.object);
      session.io.out(message);
      if (done || !session.flags.boolean('watch', true)) return;
    }
  } catch (error) {
    if (deadline.isOver() && !(error instanceof CliError)) {
      throw new CliError('timed out waiting for the condition');
    }
    throw error;
  }
}

import type { JsonObject } from '@wheelhouse/machinery';
import { CliError } from '../io.ts';
import { listAt, nameOf, textAt, valueAt } from '../objects.ts';

/** What there is to say of a rollout, and whether it is over. */
export interface RolloutStatus {
  readonly message: string;
  readonly done: boolean;
}

/** The revision that a Deployment must be of, 0 for any, and the annotation that tells its own. */
interface Wanted {
  readonly revision: number;
  readonly annotation: string;
}

/** Reads how far the rollout of a workload is. Throws CliError when it has failed. */
export function rolloutStatus(kind: string, object: JsonObject, wanted: Wanted): RolloutStatus {
  if (kind === 'Deployment') return deploymentStatus(object, wanted);
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

const waiting = (message: string): RolloutStatus => ({ message: `${message}...\n`, done: false });

const isObserved = (object: JsonObject): boolean =>
  numberAt(object, 'metadata', 'generation') <= numberAt(object, 'status', 'observedGeneration');

function deploymentStatus(object: JsonObject, wanted: Wanted): RolloutStatus {
  const name = JSON.stringify(nameOf(object));
  checkRevision(object, wanted);
  if (!isObserved(object)) return waiting('Waiting for deployment spec update to be observed');
  const isLate = listAt(object, 'status', 'conditions').some(
    (one) => one['type'] === 'Progressing' && one['reason'] === 'ProgressDeadlineExceeded',
  );
  if (isLate) throw new CliError(`deployment ${name} exceeded its progress deadline`);
  const wait = (what: string) =>
    waiting(`Waiting for deployment ${name} rollout to finish: ${what}`);
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

function checkRevision(object: JsonObject, { revision, annotation }: Wanted): void {
  if (revision === 0) return;
  const text = textAt(object, 'metadata', 'annotations', annotation) || '0';
  if (Number(text) === revision) return;
  throw new CliError(
    `desired revision (${revision}) is different from the running revision (${text})`,
  );
}

function daemonSetStatus(object: JsonObject): RolloutStatus {
  const name = JSON.stringify(nameOf(object));
  if (!isObserved(object)) return waiting('Waiting for daemon set spec update to be observed');
  const wait = (what: string) =>
    waiting(`Waiting for daemon set ${name} rollout to finish: ${what}`);
  const updated = numberAt(object, 'status', 'updatedNumberScheduled');
  const desired = numberAt(object, 'status', 'desiredNumberScheduled');
  const available = numberAt(object, 'status', 'numberAvailable');
  if (updated < desired) return wait(`${updated} out of ${desired} new pods have been updated`);
  if (available < desired) return wait(`${available} of ${desired} updated pods are available`);
  return { message: `daemon set ${name} successfully rolled out\n`, done: true };
}

function statefulSetStatus(object: JsonObject): RolloutStatus {
  if (numberAt(object, 'status', 'observedGeneration') === 0 || !isObserved(object)) {
    return waiting('Waiting for statefulset spec update to be observed');
  }
  const replicas = numberAt(object, 'spec', 'replicas');
  const ready = numberAt(object, 'status', 'readyReplicas');
  const updated = numberAt(object, 'status', 'updatedReplicas');
  if (ready < replicas) return waiting(`Waiting for ${replicas - ready} pods to be ready`);
  if (valueAt(object, 'spec', 'updateStrategy', 'rollingUpdate') !== undefined) {
    const partition = numberAt(object, 'spec', 'updateStrategy', 'rollingUpdate', 'partition');
    const wanted = replicas - partition;
    if (updated < wanted) {
      return waiting(
        `Waiting for partitioned roll out to finish: ${updated} out of ${wanted} new pods ` +
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
    return waiting(
      `waiting for statefulset rolling update to complete ${updated} pods at revision ${update}`,
    );
  }
  const pods = numberAt(object, 'status', 'currentReplicas');
  return {
    message: `statefulset rolling update complete ${pods} pods at revision ${current}...\n`,
    done: true,
  };
}

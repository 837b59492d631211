import { ApiError } from '@wheelhouse/client';
import {
  compareText,
  humanDuration,
  isObject,
  type JsonObject,
  type JsonValue,
  member,
} from '@wheelhouse/machinery';
import {
  controllerOf,
  listAt,
  nameOf,
  namespaceOf,
  objectAt,
  textAt,
  valueAt,
} from '../objects.ts';
import { isSameTemplate, selectorText } from '../rollout/workloads.ts';
import { metadataLines } from './metadata.ts';
import {
  containerBlock,
  longTime,
  podTemplateLines,
  resourceLines,
  seccompLines,
  spreadLines,
  tolerationLines,
} from './pod-template.ts';
import type { RelatedDescriber, RelatedObjects } from './related.ts';
import { optional, valuePairs } from './tabs.ts';
import { volumeBlock } from './volumes.ts';

const numberAt = (object: JsonObject, ...path: readonly string[]): number =>
  Number(valueAt(object, ...path) ?? 0);

/** The line of the controller that owns an object, if any. */
function controlledBy(object: JsonObject): string[] {
  const owner = controllerOf(object);
  return owner === undefined
    ? []
    : [`Controlled By:\t${textAt(owner, 'kind')}/${textAt(owner, 'name')}`];
}

const describePod: RelatedDescriber = (pod, { now }) => {
  const [spec, status] = [objectAt(pod, 'spec'), objectAt(pod, 'status')];
  const node = textAt(spec, 'nodeName');
  const start = textAt(status, 'startTime');
  const { priority, readinessGates, resources } = spec;
  const conditions = listAt(status, 'conditions');
  const containers = (title: string, name: string, list: string) =>
    containerBlock(title, listAt(spec, list), {
      indent: '',
      pod,
      statuses: listAt(status, `${name}Statuses`),
    });
  const hasInitial = listAt(spec, 'initContainers').length > 0;
  const hasEphemeral = listAt(spec, 'ephemeralContainers').length > 0;
  return [
    `Name:\t${nameOf(pod)}`,
    `Namespace:\t${namespaceOf(pod)}`,
    ...(priority === undefined ? [] : [`Priority:\t${String(priority)}`]),
    ...optional('Priority Class Name', textAt(spec, 'priorityClassName')),
    ...optional('Runtime Class Name', textAt(spec, 'runtimeClassName')),
    ...optional('Service Account', textAt(spec, 'serviceAccountName')),
    `Node:\t${node === '' ? '<none>' : `${node}/${textAt(status, 'hostIP')}`}`,
    ...(start === '' ? [] : [`Start Time:\t${longTime(start)}`]),
    ...metadataLines(pod),
    ...phaseLines(pod, now),
    ...optional('Reason', textAt(status, 'reason')),
    ...optional('Message', textAt(status, 'message')),
    ...seccompLines(spec, ''),
    `IP:\t${textAt(status, 'podIP')}`,
    ...addressLines(status),
    ...controlledBy(pod),
    ...optional('NominatedNodeName', textAt(status, 'nominatedNodeName')),
    ...(isObject(resources)
      ? ['Resources:', ...resourceLines(resources).map((line) => `  ${line}`)]
      : []),
    ...(hasInitial ? containers('Init Containers', 'initContainer', 'initContainers') : []),
    ...containers('Containers', 'container', 'containers'),
    ...(hasEphemeral
      ? containers('Ephemeral Containers', 'ephemeralContainer', 'ephemeralContainers')
      : []),
    ...(readinessGates === undefined ? [] : gateLines(spec, conditions)),
    ...(conditions.length === 0 ? [] : ['Conditions:', '  Type\tStatus']),
    ...conditions.map(
      (condition) => `  ${textAt(condition, 'type')} \t${textAt(condition, 'status')} `,
    ),
    ...volumeBlock(listAt(spec, 'volumes'), ''),
    `QoS Class:\t${textAt(status, 'qosClass')}`,
    ...valuePairs('Node-Selectors', objectAt(spec, 'nodeSelector')),
    ...tolerationLines('Tolerations', spec),
    ...spreadLines(spec, ''),
  ];
};

function phaseLines(pod: JsonObject, now: number): string[] {
  const phase = textAt(pod, 'status', 'phase');
  const deleted = textAt(pod, 'metadata', 'deletionTimestamp');
  if (deleted === '' || phase === 'Failed' || phase === 'Succeeded') return [`Status:\t${phase}`];
  const grace = numberAt(pod, 'metadata', 'deletionGracePeriodSeconds');
  const lasts = humanDuration(now - Date.parse(deleted));
  return [`Status:\tTerminating (lasts ${lasts})`, `Termination Grace Period:\t${grace}s`];
}

function addressLines(status: JsonObject): string[] {
  const addresses = listAt(status, 'podIPs').map(({ ip }) => `  IP:\t${String(ip)}`);
  return addresses.length === 0 ? ['IPs:\t<none>'] : ['IPs:', ...addresses];
}

function gateLines(spec: JsonObject, conditions: readonly JsonObject[]): string[] {
  const rows = listAt(spec, 'readinessGates').map((gate) => {
    const type = textAt(gate, 'conditionType');
    const condition = conditions.find((candidate) => textAt(candidate, 'type') === type);
    return `  ${type} \t${condition === undefined ? '<none>' : textAt(condition, 'status')} `;
  });
  return ['Readiness Gates:', '  Type\tStatus', ...rows];
}

/** Counts the Pods of a controller by phase. */
async function podCounts(
  controller: JsonObject,
  labelSelector: string,
  related: RelatedObjects,
): Promise<string> {
  const uid = textAt(controller, 'metadata', 'uid');
  const pods = await related.list('Pod', { labelSelector });
  const own = pods.filter((pod) => textAt(controllerOf(pod), 'uid') === uid);
  const count = (phase: string) =>
    own.filter((pod) => textAt(pod, 'status', 'phase') === phase).length;
  return (
    `Pods Status:\t${count('Running')} Running / ${count('Pending')} Waiting / ` +
    `${count('Succeeded')} Succeeded / ${count('Failed')} Failed`
  );
}

function conditionLines(object: JsonObject): string[] {
  const conditions = listAt(object, 'status', 'conditions');
  if (conditions.length === 0) return [];
  const rows = conditions.map((condition) => {
    const [type, status, reason] = ['type', 'status', 'reason'].map((name) =>
      textAt(condition, name),
    );
    return `  ${type} \t${status}\t${reason}`;
  });
  return ['Conditions:', '  Type\tStatus\tReason', '  ----\t------\t------', ...rows];
}

/** Formats the selector of a workload; a ReplicationController's is a map of labels. */
function selectorOf(object: JsonObject): string {
  const selector = objectAt(object, 'spec', 'selector');
  const isMap = textAt(object, 'kind') === 'ReplicationController';
  return selectorText(isMap ? { matchLabels: selector } : selector);
}

const templateLines = (object: JsonObject): string[] =>
  podTemplateLines(objectAt(object, 'spec', 'template'));

const describeReplicaSet: RelatedDescriber = async (object, related) => {
  const selector = selectorOf(object);
  const isReplicaSet = textAt(object, 'kind') === 'ReplicaSet';
  const [current, desired] = [numberAt(object, 'status', 'replicas'), replicasOf(object)];
  return [
    `Name:\t${nameOf(object)}`,
    `Namespace:\t${namespaceOf(object)}`,
    `Selector:\t${selector || '<none>'}`,
    ...metadataLines(object),
    ...(isReplicaSet ? controlledBy(object) : []),
    `Replicas:\t${current} current / ${desired} desired`,
    await podCounts(object, selector, related).catch((error: unknown) => {
      if (!isReplicaSet || !(error instanceof ApiError)) throw error;
      return `Pods Status:\terror in fetching pods: ${error.message}`;
    }),
    ...templateLines(object),
    ...conditionLines(object),
  ];
};

const replicasOf = (object: JsonObject): number => numberAt(object, 'spec', 'replicas');

const describeDaemonSet: RelatedDescriber = async (object, related) => {
  const selector = selectorOf(object);
  const nodeSelector = objectAt(object, 'spec', 'template', 'spec', 'nodeSelector');
  const count = (name: string) => numberAt(object, 'status', name);
  return [
    `Name:\t${nameOf(object)}`,
    `Selector:\t${selector}`,
    `Node-Selector:\t${selectorText({ matchLabels: nodeSelector }) || '<none>'}`,
    ...metadataLines(object),
    `Desired Number of Nodes Scheduled: ${count('desiredNumberScheduled')}`,
    `Current Number of Nodes Scheduled: ${count('currentNumberScheduled')}`,
    `Number of Nodes Scheduled with Up-to-date Pods: ${count('updatedNumberScheduled')}`,
    `Number of Nodes Scheduled with Available Pods: ${count('numberAvailable')}`,
    `Number of Nodes Misscheduled: ${count('numberMisscheduled')}`,
    await podCounts(object, selector, related),
    ...templateLines(object),
  ];
};

const describeStatefulSet: RelatedDescriber = async (object, related) => {
  const selector = selectorOf(object);
  const strategy = objectAt(object, 'spec', 'updateStrategy');
  const { partition, maxUnavailable } = objectAt(strategy, 'rollingUpdate');
  return [
    `Name:\t${nameOf(object)}`,
    `Namespace:\t${namespaceOf(object)}`,
    `CreationTimestamp:\t${longTime(textAt(object, 'metadata', 'creationTimestamp'))}`,
    `Selector:\t${selector}`,
    ...metadataLines(object),
    `Replicas:\t${replicasOf(object)} desired | ${numberAt(object, 'status', 'replicas')} total`,
    `Update Strategy:\t${textAt(strategy, 'type')}`,
    ...(partition === undefined ? [] : [`  Partition:\t${String(partition)}`]),
    ...(partition === undefined || maxUnavailable === undefined
      ? []
      : [`  MaxUnavailable:\t${String(maxUnavailable)}`]),
    await podCounts(object, selector, related),
    ...templateLines(object),
    ...claimLines(object),
  ];
};

function claimLines(object: JsonObject): string[] {
  const claims = listAt(object, 'spec', 'volumeClaimTemplates');
  if (claims.length === 0) return ['Volume Claims:\t<none>'];
  return [
    'Volume Claims:',
    ...claims.flatMap((claim) => [
      `  Name:\t${nameOf(claim)}`,
      `  StorageClass:\t${textAt(claim, 'spec', 'storageClassName')}`,
      ...valuePairs('  Labels', objectAt(claim, 'metadata', 'labels')),
      ...valuePairs('  Annotations', objectAt(claim, 'metadata', 'annotations')),
      `  Capacity:\t${textAt(claim, 'spec', 'resources', 'requests', 'storage') || '<default>'}`,
      `  Access Modes:\t[${[valueAt(claim, 'spec', 'accessModes') ?? []].flat().map(String).join(' ')}]`,
    ]),
  ];
}

const describeDeployment: RelatedDescriber = async (object, related) => {
  const [spec, status] = [objectAt(object, 'spec'), objectAt(object, 'status')];
  const selector = selectorOf(object);
  const rolling = member(objectAt(spec, 'strategy'), 'rollingUpdate');
  const { maxUnavailable, maxSurge } = objectAt(spec, 'strategy', 'rollingUpdate');
  const counts = ['updatedReplicas', 'replicas', 'availableReplicas', 'unavailableReplicas'];
  const [updated, total, available, unavailable] = counts.map((name) => numberAt(status, name));
  return [
    `Name:\t${nameOf(object)}`,
    `Namespace:\t${namespaceOf(object)}`,
    `CreationTimestamp:\t${longTime(textAt(object, 'metadata', 'creationTimestamp'))}`,
    ...metadataLines(object),
    `Selector:\t${selector}`,
    `Replicas:\t${replicasOf(object)} desired | ${updated} updated | ${total} total | ` +
      `${available} available | ${unavailable} unavailable`,
    `StrategyType:\t${textAt(spec, 'strategy', 'type')}`,
    `MinReadySeconds:\t${numberAt(spec, 'minReadySeconds')}`,
    ...(rolling === undefined
      ? []
      : [
          `RollingUpdateStrategy:\t${String(maxUnavailable)} max unavailable, ` +
            `${String(maxSurge)} max surge`,
        ]),
    ...templateLines(object),
    ...conditionLines(object),
    ...(await replicaSetLines(object, selector, related)),
  ];
};

const creationOf = (object: JsonObject): string => textAt(object, 'metadata', 'creationTimestamp');

/** The ReplicaSets of a deployment: those of former templates, and that of the current one. */
async function replicaSetLines(
  deployment: JsonObject,
  labelSelector: string,
  related: RelatedObjects,
): Promise<string[]> {
  const uid = textAt(deployment, 'metadata', 'uid');
  const template = objectAt(deployment, 'spec', 'template');
  const sets = (await related.listOrNone('ReplicaSet', { labelSelector })).filter(
    (set) => textAt(controllerOf(set), 'uid') === uid,
  );
  if (sets.length === 0) return [];
  // Of several sets with the current template, the oldest one is the current set.
  const current = sets
    .toSorted((left, right) => compareText(creationOf(left), creationOf(right)))
    .find((set) => isSameTemplate(objectAt(set, 'spec', 'template'), template));
  const text = (list: readonly JsonObject[]) =>
    list
      .map((set) => {
        const created = numberAt(set, 'status', 'replicas');
        return `${nameOf(set)} (${created}/${replicasOf(set)} replicas created)`;
      })
      .join(', ') || '<none>';
  return [
    `OldReplicaSets:\t${text(sets.filter((set) => set !== current))}`,
    `NewReplicaSet:\t${text(current === undefined ? [] : [current])}`,
  ];
}

/** Describers of Pods and of the kinds that create them. */
export const workloadDescribers: Readonly<Record<string, RelatedDescriber>> = {
  Pod: describePod,
  ReplicationController: describeReplicaSet,
  'apps/DaemonSet': describeDaemonSet,
  'apps/Deployment': describeDeployment,
  'apps/ReplicaSet': describeReplicaSet,
  'apps/StatefulSet': describeStatefulSet,
};

/** A title with a value; no line without the value. */
const ifSet = (title: string, value: JsonValue | undefined, unit = ''): string[] =>
  value === undefined ? [] : [`${title}:\t${String(value)}${unit}`];

/** A title with a value, or with a mark that there is none. */
const orUnset = (title: string, value: JsonValue | undefined, unit = ''): string =>
  ifSet(title, value, unit)[0] ?? `${title}:\t<unset>`;

const describeJob: RelatedDescriber = (job) => {
  const [spec, status] = [objectAt(job, 'spec'), objectAt(job, 'status')];
  const [start, end] = [textAt(status, 'startTime'), textAt(status, 'completionTime')];
  return [
    `Name:\t${nameOf(job)}`,
    `Namespace:\t${namespaceOf(job)}`,
    `Selector:\t${selectorText(objectAt(spec, 'selector'))}`,
    ...metadataLines(job),
    ...controlledBy(job),
    ...ifSet('Parallelism', spec.parallelism),
    orUnset('Completions', spec.completions),
    ...ifSet('Completion Mode', spec.completionMode),
    ...ifSet('Suspend', spec.suspend),
    ...ifSet('Backoff Limit', spec.backoffLimit),
    ...ifSet('TTL Seconds After Finished', spec.ttlSecondsAfterFinished),
    ...(start === '' ? [] : [`Start Time:\t${longTime(start)}`]),
    ...(end === '' ? [] : [`Completed At:\t${longTime(end)}`]),
    ...(start === '' || end === ''
      ? []
      : [`Duration:\t${humanDuration(Date.parse(end) - Date.parse(start))}`]),
    ...ifSet('Active Deadline Seconds', spec.activeDeadlineSeconds, 's'),
    podsLine(status),
    ...(spec.completionMode === 'Indexed' ? [indexesLine(status)] : []),
    ...podTemplateLines(objectAt(spec, 'template')),
  ];
};

function podsLine(status: JsonObject): string {
  const { active = 0, ready, succeeded = 0, failed = 0 } = status;
  const readyText = ready === undefined ? '' : ` (${String(ready)} Ready)`;
  return (
    `Pods Statuses:\t${String(active)} Active${readyText} / ${String(succeeded)} Succeeded / ` +
    `${String(failed)} Failed`
  );
}

/** Length from which a list of indexes ends at its next comma. */
const indexesLength = 50;

function indexesLine(status: JsonObject): string {
  const indexes = textAt(status, 'completedIndexes');
  const comma = indexes.indexOf(',', indexesLength);
  const text = comma < 0 ? indexes : `${indexes.slice(0, comma + 1)}...`;
  return `Completed Indexes:\t${text === '' ? '<none>' : text}`;
}

const describeCronJob: RelatedDescriber = (cronJob) => {
  const [spec, status] = [objectAt(cronJob, 'spec'), objectAt(cronJob, 'status')];
  const { suspend } = spec;
  const last = textAt(status, 'lastScheduleTime');
  const active = listAt(status, 'active').map((job) => textAt(job, 'name'));
  return [
    `Name:\t${nameOf(cronJob)}`,
    `Namespace:\t${namespaceOf(cronJob)}`,
    ...metadataLines(cronJob),
    `Schedule:\t${textAt(spec, 'schedule')}`,
    `Concurrency Policy:\t${textAt(spec, 'concurrencyPolicy')}`,
    orUnset('Suspend', suspend === undefined ? suspend : suspend === true ? 'True' : 'False'),
    orUnset('Successful Job History Limit', spec.successfulJobsHistoryLimit),
    orUnset('Failed Job History Limit', spec.failedJobsHistoryLimit),
    orUnset('Starting Deadline Seconds', spec.startingDeadlineSeconds, 's'),
    ...jobTemplateLines(objectAt(spec, 'jobTemplate', 'spec')),
    `Last Schedule Time:\t${last === '' ? '<unset>' : longTime(last)}`,
    `Active Jobs:\t${active.length === 0 ? '<none>' : active.join(', ')}`,
  ];
};

function jobTemplateLines(spec: JsonObject): string[] {
  const selector =
    spec.selector === undefined ? spec.selector : selectorText(objectAt(spec, 'selector'));
  return [
    orUnset('Selector', selector),
    orUnset('Parallelism', spec.parallelism),
    orUnset('Completions', spec.completions),
    ...ifSet('Active Deadline Seconds', spec.activeDeadlineSeconds, 's'),
    ...podTemplateLines(objectAt(spec, 'template')),
  ];
}

/** Describers of Jobs and of the kind that creates them. */
export const jobDescribers: Readonly<Record<string, RelatedDescriber>> = {
  'batch/CronJob': describeCronJob,
  'batch/Job': describeJob,
};

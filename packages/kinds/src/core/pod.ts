import {
  type ApiObject,
  type Dialect,
  dnsLabel,
  dnsSubdomain,
  type FieldError,
  forbiddenField,
  type JsonObject,
  joined,
} from '@wheelhouse/machinery';
import { age, ageColumn, at, column, nameColumn, numberAt, textAt } from '../cells.ts';
import { defineKind, steppedDefaults, virtualKind } from '../define.ts';
import { defaultFeatures, type Features } from '../features/features.ts';
import { droppingFields } from '../features/gated-fields.ts';
import { podStatusFields } from '../features/gated-tables.ts';
import type {
  Container,
  ContainerStateTerminated,
  ContainerStatus,
  Pod,
  PodCondition,
  PodStatus,
} from '../gen/types/core/v1.ts';
import {
  fillAddresses,
  fillHostPorts,
  fillPodRequests,
  fillPodSpecSteps,
  fillResizePolicies,
  fillResources,
  oldInitContainersRemover,
  requestsFromLimits,
  roundReportedSteps,
} from '../pod/defaults.ts';
import { annotationsOf } from '../pod/fields.ts';
import { preparePod, preparePodUpdate } from '../pod/prepare.ts';
import { validateResize } from '../pod/resize.ts';
import { newlyAllowed, type PodPorts } from '../pod/rules.ts';
import { validatePodStatus } from '../pod/status.ts';
import { validateAddedContainers, validatePod, validatePodUpdate } from '../pod/update.ts';
import { validateProfileAgreement } from '../pod/validation/annotations.ts';
import { podWarnings } from '../pod/warnings.ts';
import type {
  ColumnDef,
  ResourceDef,
  Stored,
  StrategyContext,
  SubresourceDef,
} from '../resource-def.ts';
import { ensure, fill } from '../rules/fill.ts';

const isSidecar = (container: Stored<Container> | undefined) =>
  (container?.restartPolicy ?? '') === 'Always';

/** The restarts of containers. */
interface Restarts {
  readonly count: number;
  /** Time at which the last restarted container had ended, in RFC 3339; empty if unknown. */
  readonly lastEnd: string;
}

const noRestarts: Restarts = { count: 0, lastEnd: '' };

const options = (kind: string) => ({ group: '', version: 'v1', kind });

const hasCondition = (object: Stored<Pod>, type: string) =>
  (object.status?.conditions ?? []).some(
    (condition) => (condition.type ?? '') === type && isTrue(condition),
  );

const isTrue = (condition: Stored<PodCondition>) => (condition.status ?? '') === 'True';

/** The final phases of a pod, with the messages of table rows. */
const finalPhases: ReadonlyMap<string, string> = new Map([
  ['Failed', 'The pod failed.'],
  ['Succeeded', 'The pod has completed successfully.'],
]);

const firstAddress = (object: Stored<Pod>) =>
  ((object.status?.podIPs ?? [])[0]?.ip ?? '') || '<none>';

const podColumns: readonly ColumnDef[] = [
  nameColumn,
  column('Ready', readyCell, { description: 'Number of ready containers and of all containers.' }),
  column('Status', statusCell, {
    description: 'Phase of the pod, or the reason why it is not running.',
  }),
  column('Restarts', restartsCell, { description: 'Number of restarts of the containers.' }),
  ageColumn,
  column('IP', firstAddress, { priority: 1, description: 'Address of the pod.' }),
  column('Node', (object) => textAt(object, 'spec', 'nodeName') || '<none>', {
    priority: 1,
    description: 'Node that the pod runs on.',
  }),
  column('Nominated Node', (object) => textAt(object, 'status', 'nominatedNodeName') || '<none>', {
    priority: 1,
    description: 'Node that the pod may run on after preemption.',
  }),
  column('Readiness Gates', gatesCell, {
    priority: 1,
    description: 'Number of readiness gates that are met and of all gates.',
  }),
];

/** The endpoints whose writes drop members of disabled features from the status. */
const changesSpec: ReadonlySet<string> = new Set(['', 'ephemeralcontainers', 'resize']);

/** Pod: containers that run together on one node and are deleted gracefully. */
export function pod(dialect: Dialect, features: Features = defaultFeatures): ResourceDef {
  const ports = { dialect, features };
  const removeOld = oldInitContainersRemover(dialect, []);
  const dropFromStatus = droppingFields(podStatusFields, features);
  return defineKind<Pod>({
    dialect,
    features,
    facts: 'core',
    kind: 'Pod',
    scope: 'Namespaced',
    shortNames: ['po'],
    categories: ['all'],
    versions: [
      {
        version: 'v1',
        ...steppedDefaults(function* (object: Stored<Pod>) {
          removeOld(object);
          yield* fillDefaults(object, features);
        }),
        columns: podColumns,
        rowConditions: podRowConditions,
      },
    ],
    storage: { fieldsOf },
    // Preparation sets the quality of service in status.
    keepsStatusOnCreate: true,
    strategy: {
      extraMetadataChecks: { '': ['change', 'whole'] },
      validateName: dnsSubdomain,
      hasStatus: true,
      prepareForCreate: preparationOf(dialect, features),
      validateCreate: (_, object) => validateNewPod(object, ports),
      *prepareForUpdate(context, object, old) {
        yield* preparePodUpdate(context, object, old);
        if (!changesSpec.has(context.subresource)) return;
        const dropping = dropFromStatus?.(object, old, '');
        if (dropping) yield* dropping;
      },
      validateUpdate: ({ subresource }, object, old) =>
        validatePodChange({ subresource, object, old, ports }),
      fieldLabels: { v1: fieldLabels },
      warnings: (object, old) => (old === undefined ? newPodWarnings(object, dialect) : []),
      resetFields: {
        '': ['status'],
        status: ['spec', 'metadata.deletionTimestamp', 'metadata.ownerReferences'],
      },
      deleteAnswers: 'object',
      gracePeriod: (object, requested) => {
        const phase = textAt(object, 'status', 'phase');
        const unbound = textAt(object, 'spec', 'nodeName') === '';
        if (unbound || phase === 'Failed' || phase === 'Succeeded') return 0;
        return requested ?? Number(at(object, 'spec', 'terminationGracePeriodSeconds') ?? 30);
      },
    },
    subresources: subresourcesOf(features),
    example: () => ({
      metadata: { name: 'example', namespace: 'default', labels: { app: 'example' } },
      spec: {
        containers: [
          { name: 'main', image: 'example.com/main:1.0', ports: [{ containerPort: 8080 }] },
        ],
      },
    }),
  });
}

function preparationOf(dialect: Dialect, features: Features) {
  return function* (context: StrategyContext, object: Stored<Pod>): Generator<void, void> {
    yield* preparePod(context, object, dialect);
    // Admission may have set requests.
    if (features.enabled('InPlacePodVerticalScaling')) {
      yield* fillResizePolicies(object.spec ?? {});
    }
  };
}

function* fillDefaults(object: Stored<Pod>, features: Features): Generator<void, void> {
  const spec = ensure(object, 'spec');
  yield* requestsFromLimits(spec);
  if (features.enabled('PodLevelResources')) {
    fillResources(spec.resources);
    yield* fillPodRequests(spec);
  }
  if (features.enabled('InPlacePodVerticalScaling')) yield* fillResizePolicies(spec);
  yield* fillPodSpecSteps(spec);
  // For pods only, not for templates.
  const grace = 'terminationGracePeriodSeconds';
  if (numberAt(spec, grace) < 0) spec[grace] = 1;
  fill(spec, { enableServiceLinks: true });
  yield* fillHostPorts(spec);
  fillAddresses(object.status);
  yield* roundReportedSteps(object.status);
}

function readyCell(object: Stored<Pod>): string {
  const sidecars = (object.spec?.initContainers ?? []).filter(isSidecar).length;
  const all = (object.spec?.containers ?? []).length + sidecars;
  return `${progress(object).ready}/${all}`;
}

interface Progress {
  readonly ready: number;
  readonly reason: string;
  readonly restarts: Restarts;
}

function progress(object: Stored<Pod>): Progress {
  const init = initProgress(object);
  let reason = init.reason || ownReason(object);
  let { ready, restarts } = init;
  if (init.reason !== '' && !hasCondition(object, 'Initialized'))
    return { ready, reason, restarts };
  restarts = init.ofSidecars;
  let isAnyRunning = false;
  for (const status of [...(object.status?.containerStatuses ?? [])].reverse()) {
    restarts = withRestarts(restarts, status);
    const own = containerReason(status);
    if (own !== '') reason = own;
    else if (at(status, 'ready') === true && at(status, 'state', 'running') !== undefined) {
      isAnyRunning = true;
      ready += 1;
    }
  }
  if (reason === 'Completed' && isAnyRunning) {
    reason = hasCondition(object, 'Ready') ? 'Running' : 'NotReady';
  }
  return { ready, reason, restarts };
}

/** The progress of the init containers; `reason` is empty if none of them blocks the pod. */
function initProgress(object: Stored<Pod>): Progress & { readonly ofSidecars: Restarts } {
  const specs = object.spec?.initContainers ?? [];
  const sidecars = new Set(specs.filter(isSidecar).map(({ name }) => name ?? ''));
  let [restarts, ofSidecars, ready] = [noRestarts, noRestarts, 0];
  for (const [index, status] of (object.status?.initContainerStatuses ?? []).entries()) {
    const sidecar = sidecars.has(status.name ?? '');
    restarts = withRestarts(restarts, status);
    if (sidecar) ofSidecars = withRestarts(ofSidecars, status);
    const reason = initReason(status, { sidecar, place: `${index}/${specs.length}` });
    if (reason !== '') return { ready, reason, restarts, ofSidecars };
    const { terminated } = status.state ?? {};
    const hasSucceeded = terminated !== undefined && (terminated.exitCode ?? 0) === 0;
    if (sidecar && !hasSucceeded && status.ready === true) ready += 1;
  }
  return { ready, reason: '', restarts, ofSidecars };
}

function withRestarts(
  { count, lastEnd }: Restarts,
  status: Stored<PodStatus | ContainerStatus>,
): Restarts {
  const end = textAt(status, 'lastState', 'terminated', 'finishedAt');
  return {
    count: count + numberAt(status, 'restartCount'),
    lastEnd: end > lastEnd ? end : lastEnd,
  };
}

/** The reason that an init container blocks the pod; empty if it has finished or is a sidecar. */
function initReason(
  status: Stored<ContainerStatus>,
  options: { sidecar: boolean; place: string },
): string {
  const ended = status.state?.terminated;
  if (ended !== undefined && (ended.exitCode ?? 0) === 0) return '';
  if (options.sidecar && status.started === true) return '';
  if (ended !== undefined) return `Init:${endReason(ended)}`;
  const waiting = status.state?.waiting?.reason ?? '';
  return waiting === '' || waiting === 'PodInitializing'
    ? `Init:${options.place}`
    : `Init:${waiting}`;
}

/** The reason that a container ended: the runtime's, the signal, or the exit code. */
function endReason(ended: Stored<ContainerStateTerminated>): string {
  const signal = ended.signal ?? 0;
  const code = signal === 0 ? `ExitCode:${ended.exitCode ?? 0}` : `Signal:${signal}`;
  return (ended.reason ?? '') || code;
}

/** The pod's own reason, ignoring its containers. */
function ownReason(object: Stored<Pod>): string {
  const gated = 'SchedulingGated';
  const isGated = (object.status?.conditions ?? []).some(
    (condition) => (condition.type ?? '') === 'PodScheduled' && (condition.reason ?? '') === gated,
  );
  if (isGated) return gated;
  return (object.status?.reason ?? '') || (object.status?.phase ?? '');
}

function containerReason(status: Stored<ContainerStatus>): string {
  const waiting = status.state?.waiting?.reason ?? '';
  if (waiting !== '') return waiting;
  const ended = status.state?.terminated;
  return ended === undefined ? '' : endReason(ended);
}

function statusCell(object: Stored<Pod>): string {
  const { reason } = progress(object);
  if (object.metadata.deletionTimestamp === undefined) return reason;
  if ((object.status?.reason ?? '') === 'NodeLost') return 'Unknown';
  return finalPhases.has(object.status?.phase ?? '') ? reason : 'Terminating';
}

function restartsCell(object: Stored<Pod>, nowMs: number): string {
  const { count, lastEnd } = progress(object).restarts;
  return count === 0 || lastEnd === '' ? String(count) : `${count} (${age(lastEnd, nowMs)} ago)`;
}

function gatesCell(object: Stored<Pod>): string {
  const gates = object.spec?.readinessGates ?? [];
  if (gates.length === 0) return '<none>';
  const conditions = (object.status?.conditions ?? []).filter(isTrue);
  const types = new Set(conditions.map(({ type }) => type ?? ''));
  const met = gates.filter((gate) => types.has(gate.conditionType ?? ''));
  return `${met.length}/${gates.length}`;
}

/** The row condition by which clients can hide pods that have ended. */
function podRowConditions(object: Stored<Pod>): readonly JsonObject[] {
  const phase = object.status?.phase ?? '';
  const message = finalPhases.get(phase);
  return message === undefined
    ? []
    : [{ type: 'Completed', status: 'True', reason: phase, message }];
}

function fieldsOf(object: Stored<Pod>): Record<string, string> {
  return {
    'spec.nodeName': object.spec?.nodeName ?? '',
    'spec.restartPolicy': object.spec?.restartPolicy ?? '',
    'spec.schedulerName': object.spec?.schedulerName ?? '',
    'spec.serviceAccountName': object.spec?.serviceAccountName ?? '',
    'spec.hostNetwork': String(object.spec?.hostNetwork === true),
    'status.phase': object.status?.phase ?? '',
    'status.podIP': object.status?.podIP ?? '',
    // kube-apiserver accepts this label, but it has no value.
    'status.podIPs': '',
    'status.nominatedNodeName': object.status?.nominatedNodeName ?? '',
  };
}

const storedLabels = Object.keys(fieldsOf({ apiVersion: 'v1', kind: 'Pod', metadata: {} }));
const fieldLabels: Readonly<Record<string, string>> = {
  ...Object.fromEntries(storedLabels.map((label) => [label, label])),
  // The name of the label in early versions.
  'spec.host': 'spec.nodeName',
};

/** Validates a new Pod. */
function* validateNewPod(object: Stored<Pod>, ports: PodPorts): Generator<void, FieldError[]> {
  const { dialect } = ports;
  const spec = ensure(object, 'spec');
  const errors = yield* validatePod(object, {
    ...ports,
    pod: object,
    allow: newlyAllowed(ports.features),
  });
  if ((spec.ephemeralContainers ?? []).length > 0) {
    errors.push(forbiddenField('spec.ephemeralContainers', 'cannot be set on create'));
  }
  if ((spec.nodeName ?? '') !== '' && (spec.schedulingGates ?? []).length > 0) {
    const detail = 'cannot be set until all schedulingGates have been cleared';
    errors.push(forbiddenField('spec.nodeName', detail));
  }
  return joined<FieldError>(
    errors,
    validateProfileAgreement(annotationsOf(object), spec, { path: 'spec', dialect }),
  );
}

/** Validates a changed Pod by the rules of the endpoint. */
function* validatePodChange(change: {
  subresource: string;
  object: ApiObject;
  old: ApiObject;
  ports: PodPorts;
}): Generator<void, readonly FieldError[]> {
  const { subresource, object, old, ports } = change;
  switch (subresource) {
    case '':
      return yield* validatePodUpdate(object, old, ports);
    case 'status':
      return yield* validatePodStatus(object, old, ports);
    case 'ephemeralcontainers':
      return yield* validateAddedContainers(object, old, ports);
    case 'resize':
      return yield* validateResize(object, old, ports);
    default:
      return [];
  }
}

/** Returns warnings about a new Pod, in steps. Updates, which programs make, cause none. */
function* newPodWarnings(object: Stored<Pod>, dialect: Dialect): Generator<void, string[]> {
  const messages = dnsLabel(object.metadata.name ?? '');
  const named =
    "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; " +
    `a DNS label is recommended: [${messages.join(' ')}]`;
  return [...(messages.length === 0 ? [] : [named]), ...(yield* podWarnings(object, '', dialect))];
}

const subresources: readonly SubresourceDef[] = [
  { name: 'attach', verbs: ['create', 'get'], kind: options('PodAttachOptions') },
  { name: 'binding', verbs: ['create'], kind: options('Binding') },
  { name: 'ephemeralcontainers', verbs: ['get', 'patch', 'update'] },
  {
    name: 'eviction',
    verbs: ['create'],
    kind: { group: 'policy', version: 'v1', kind: 'Eviction' },
  },
  { name: 'exec', verbs: ['create', 'get'], kind: options('PodExecOptions') },
  { name: 'log', verbs: ['get'] },
  { name: 'portforward', verbs: ['create', 'get'], kind: options('PodPortForwardOptions') },
  {
    name: 'proxy',
    verbs: ['create', 'delete', 'get', 'patch', 'update'],
    kind: options('PodProxyOptions'),
  },
  { name: 'status', verbs: ['get', 'patch', 'update'] },
];

const resize: SubresourceDef = { name: 'resize', verbs: ['get', 'patch', 'update'] };

/** The subresources of a Pod, ordered by name. */
function subresourcesOf(features: Features): readonly SubresourceDef[] {
  if (!features.enabled('InPlacePodVerticalScaling')) return subresources;
  const last = subresources.length - 1;
  return [...subresources.slice(0, last), resize, ...subresources.slice(last)];
}

/** Binding: assigns a Pod to a node; the older alternative to the Pod's `binding` subresource. */
export function binding(dialect: Dialect): ResourceDef {
  const def = virtualKind({ dialect, facts: 'core', kind: 'Binding', scope: 'Namespaced' });
  return {
    ...def,
    example: () => ({
      apiVersion: 'v1',
      kind: 'Binding',
      metadata: { name: 'example', namespace: 'default' },
      target: { kind: 'Node', name: 'node-1' },
    }),
  };
}

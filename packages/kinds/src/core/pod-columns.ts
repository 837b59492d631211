import type { JsonObject } from '@wheelhouse/machinery';
import { age, ageColumn, at, column, nameColumn, numberAt, textAt } from '../cells.ts';
import type {
  Container,
  ContainerStateTerminated,
  ContainerStatus,
  Pod,
  PodCondition,
  PodStatus,
} from '../gen/types/core/v1.ts';
import type { ColumnDef } from '../resource-def.ts';
import type { Stored } from '../stored.ts';

/** What a table shows of a pod: how far its containers are says more than its phase. */

/** How often containers were started again, and when the last of them had ended; RFC 3339. */
interface Restarts {
  readonly count: number;
  readonly lastEnd: string;
}

interface Progress {
  readonly ready: number;
  readonly reason: string;
  readonly restarts: Restarts;
}

const noRestarts: Restarts = { count: 0, lastEnd: '' };

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

/** Why a container ended, in the words of who ran it or by its code. */
function endReason(ended: Stored<ContainerStateTerminated>): string {
  const signal = ended.signal ?? 0;
  const code = signal === 0 ? `ExitCode:${ended.exitCode ?? 0}` : `Signal:${signal}`;
  return (ended.reason ?? '') || code;
}

const isSidecar = (container: Stored<Container> | undefined) =>
  (container?.restartPolicy ?? '') === 'Always';

/** What the pod says of itself, before its containers are looked at. */
function ownReason(object: Stored<Pod>): string {
  const gated = 'SchedulingGated';
  const isGated = (object.status?.conditions ?? []).some(
    (one) => (one.type ?? '') === 'PodScheduled' && (one.reason ?? '') === gated,
  );
  if (isGated) return gated;
  return (object.status?.reason ?? '') || (object.status?.phase ?? '');
}

const isTrue = (condition: Stored<PodCondition>) => (condition.status ?? '') === 'True';

const hasCondition = (object: Stored<Pod>, type: string) =>
  (object.status?.conditions ?? []).some((one) => (one.type ?? '') === type && isTrue(one));

/** Where an init container stands: past its work, running beside the others, or in the way. */
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

/** As far as the init containers are; `reason` is empty when none is in the way. */
function initProgress(object: Stored<Pod>): Progress & { readonly ofSidecars: Restarts } {
  const specs = object.spec?.initContainers ?? [];
  const sidecars = new Set(specs.filter(isSidecar).map((one) => one.name ?? ''));
  let [restarts, ofSidecars, ready] = [noRestarts, noRestarts, 0];
  for (const [index, status] of (object.status?.initContainerStatuses ?? []).entries()) {
    const sidecar = sidecars.has(status.name ?? '');
    restarts = withRestarts(restarts, status);
    if (sidecar) ofSidecars = withRestarts(ofSidecars, status);
    const reason = initReason(status, { sidecar, place: `${index}/${specs.length}` });
    if (reason !== '') return { ready, reason, restarts, ofSidecars };
    const hasEnded = status.state?.terminated !== undefined;
    if (sidecar && !hasEnded && status.ready === true) ready += 1;
  }
  return { ready, reason: '', restarts, ofSidecars };
}

function containerReason(status: Stored<ContainerStatus>): string {
  const waiting = status.state?.waiting?.reason ?? '';
  if (waiting !== '') return waiting;
  const ended = status.state?.terminated;
  return ended === undefined ? '' : endReason(ended);
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

function readyCell(object: Stored<Pod>): string {
  const sidecars = (object.spec?.initContainers ?? []).filter(isSidecar).length;
  const all = (object.spec?.containers ?? []).length + sidecars;
  return `${progress(object).ready}/${all}`;
}

function statusCell(object: Stored<Pod>): string {
  const { reason } = progress(object);
  if (object.metadata.deletionTimestamp === undefined) return reason;
  if ((object.status?.reason ?? '') === 'NodeLost') return 'Unknown';
  return endings.has(object.status?.phase ?? '') ? reason : 'Terminating';
}

function restartsCell(object: Stored<Pod>, nowMs: number): string {
  const { count, lastEnd } = progress(object).restarts;
  return count === 0 || lastEnd === '' ? String(count) : `${count} (${age(lastEnd, nowMs)} ago)`;
}

function gatesCell(object: Stored<Pod>): string {
  const gates = object.spec?.readinessGates ?? [];
  if (gates.length === 0) return '<none>';
  const conditions = (object.status?.conditions ?? []).filter(isTrue);
  const types = new Set(conditions.map((one) => one.type ?? ''));
  const met = gates.filter((gate) => types.has(gate.conditionType ?? ''));
  return `${met.length}/${gates.length}`;
}

const firstAddress = (object: Stored<Pod>) =>
  ((object.status?.podIPs ?? [])[0]?.ip ?? '') || '<none>';

export const podColumns: readonly ColumnDef[] = [
  nameColumn,
  column('Ready', readyCell, { description: 'Containers that are ready, of all.' }),
  column('Status', statusCell, { description: 'Phase, or what is in the way.' }),
  column('Restarts', restartsCell, { description: 'How often containers were started again.' }),
  ageColumn,
  column('IP', firstAddress, { priority: 1, description: 'Address of the pod.' }),
  column('Node', (object) => textAt(object, 'spec', 'nodeName') || '<none>', {
    priority: 1,
    description: 'Node it runs on.',
  }),
  column('Nominated Node', (object) => textAt(object, 'status', 'nominatedNodeName') || '<none>', {
    priority: 1,
    description: 'Node it may run on once others have gone.',
  }),
  column('Readiness Gates', gatesCell, {
    priority: 1,
    description: 'Gates that are met, of all.',
  }),
];

/** The phases in which a pod has come to its end, and what its row says of it then. */
const endings: ReadonlyMap<string, string> = new Map([
  ['Failed', 'The pod failed.'],
  ['Succeeded', 'The pod has completed successfully.'],
]);

/** A condition of a row by which clients leave out pods that have ended. */
export function podRowConditions(object: Stored<Pod>): readonly JsonObject[] {
  const phase = object.status?.phase ?? '';
  const message = endings.get(phase);
  return message === undefined
    ? []
    : [{ type: 'Completed', status: 'True', reason: phase, message }];
}

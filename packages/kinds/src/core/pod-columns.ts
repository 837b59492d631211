import type { JsonObject } from '@wheelhouse/machinery';
import { age, ageColumn, at, column, nameColumn, numberAt, textAt } from '../cells.ts';
import type { ColumnDef } from '../resource-def.ts';
import { objectAt, objectsAt } from '../rules/fill.ts';

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

function withRestarts({ count, lastEnd }: Restarts, status: JsonObject): Restarts {
  const end = textAt(status, 'lastState', 'terminated', 'finishedAt');
  return {
    count: count + numberAt(status, 'restartCount'),
    lastEnd: end > lastEnd ? end : lastEnd,
  };
}

/** Why a container ended, in the words of who ran it or by its code. */
function endReason(ended: JsonObject): string {
  const signal = numberAt(ended, 'signal');
  const code = signal === 0 ? `ExitCode:${numberAt(ended, 'exitCode')}` : `Signal:${signal}`;
  return textAt(ended, 'reason') || code;
}

const isSidecar = (container: JsonObject | undefined) =>
  textAt(container, 'restartPolicy') === 'Always';

/** What the pod says of itself, before its containers are looked at. */
function ownReason(object: JsonObject): string {
  const gated = 'SchedulingGated';
  const isGated = objectsAt(object, 'status', 'conditions').some(
    (one) => textAt(one, 'type') === 'PodScheduled' && textAt(one, 'reason') === gated,
  );
  if (isGated) return gated;
  return textAt(object, 'status', 'reason') || textAt(object, 'status', 'phase');
}

const isTrue = (condition: JsonObject) => textAt(condition, 'status') === 'True';

const hasCondition = (object: JsonObject, type: string) =>
  objectsAt(object, 'status', 'conditions').some(
    (one) => textAt(one, 'type') === type && isTrue(one),
  );

/** Where an init container stands: past its work, running beside the others, or in the way. */
function initReason(status: JsonObject, options: { sidecar: boolean; place: string }): string {
  const ended = objectAt(status, 'state', 'terminated');
  if (ended !== undefined && numberAt(ended, 'exitCode') === 0) return '';
  if (options.sidecar && at(status, 'started') === true) return '';
  if (ended !== undefined) return `Init:${endReason(ended)}`;
  const waiting = textAt(status, 'state', 'waiting', 'reason');
  return waiting === '' || waiting === 'PodInitializing'
    ? `Init:${options.place}`
    : `Init:${waiting}`;
}

/** As far as the init containers are; `reason` is empty when none is in the way. */
function initProgress(object: JsonObject): Progress & { readonly ofSidecars: Restarts } {
  const specs = objectsAt(object, 'spec', 'initContainers');
  const sidecars = new Set(specs.filter(isSidecar).map((one) => textAt(one, 'name')));
  let [restarts, ofSidecars, ready] = [noRestarts, noRestarts, 0];
  for (const [index, status] of objectsAt(object, 'status', 'initContainerStatuses').entries()) {
    const sidecar = sidecars.has(textAt(status, 'name'));
    restarts = withRestarts(restarts, status);
    if (sidecar) ofSidecars = withRestarts(ofSidecars, status);
    const reason = initReason(status, { sidecar, place: `${index}/${specs.length}` });
    if (reason !== '') return { ready, reason, restarts, ofSidecars };
    const hasEnded = at(status, 'state', 'terminated') !== undefined;
    if (sidecar && !hasEnded && at(status, 'ready') === true) ready += 1;
  }
  return { ready, reason: '', restarts, ofSidecars };
}

function containerReason(status: JsonObject): string {
  const waiting = textAt(status, 'state', 'waiting', 'reason');
  if (waiting !== '') return waiting;
  const ended = objectAt(status, 'state', 'terminated');
  return ended === undefined ? '' : endReason(ended);
}

function progress(object: JsonObject): Progress {
  const init = initProgress(object);
  let reason = init.reason || ownReason(object);
  let { ready, restarts } = init;
  if (init.reason !== '' && !hasCondition(object, 'Initialized'))
    return { ready, reason, restarts };
  restarts = init.ofSidecars;
  let isAnyRunning = false;
  for (const status of [...objectsAt(object, 'status', 'containerStatuses')].reverse()) {
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

function readyCell(object: JsonObject): string {
  const sidecars = objectsAt(object, 'spec', 'initContainers').filter(isSidecar).length;
  const all = objectsAt(object, 'spec', 'containers').length + sidecars;
  return `${progress(object).ready}/${all}`;
}

function statusCell(object: JsonObject): string {
  const { reason } = progress(object);
  if (at(object, 'metadata', 'deletionTimestamp') === undefined) return reason;
  if (textAt(object, 'status', 'reason') === 'NodeLost') return 'Unknown';
  return endings.has(textAt(object, 'status', 'phase')) ? reason : 'Terminating';
}

function restartsCell(object: JsonObject, nowMs: number): string {
  const { count, lastEnd } = progress(object).restarts;
  return count === 0 || lastEnd === '' ? String(count) : `${count} (${age(lastEnd, nowMs)} ago)`;
}

function gatesCell(object: JsonObject): string {
  const gates = objectsAt(object, 'spec', 'readinessGates');
  if (gates.length === 0) return '<none>';
  const conditions = objectsAt(object, 'status', 'conditions').filter(isTrue);
  const types = new Set(conditions.map((one) => textAt(one, 'type')));
  const met = gates.filter((gate) => types.has(textAt(gate, 'conditionType')));
  return `${met.length}/${gates.length}`;
}

const firstAddress = (object: JsonObject) =>
  textAt(objectsAt(object, 'status', 'podIPs')[0], 'ip') || '<none>';

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
export function podRowConditions(object: JsonObject): readonly JsonObject[] {
  const phase = textAt(object, 'status', 'phase');
  const message = endings.get(phase);
  return message === undefined
    ? []
    : [{ type: 'Completed', status: 'True', reason: phase, message }];
}

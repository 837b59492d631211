import { at, objectAt, objectsAt, type ResourceDef, textAt } from '@wheelhouse/kinds';
import {
  type ApiObject,
  asApiObject,
  forbidden,
  formatTime,
  isObject,
  type JsonObject,
  type LabelSelector,
  StatusError,
  selects,
} from '@wheelhouse/machinery';
import type { WriteContext } from '../../registry/contract.ts';
import { decodeEntry } from '../../registry/object-codec.ts';
import { consequentPermit } from '../../registry/permit.ts';
import { write } from '../../registry/write.ts';
import type { ApiCall } from '../call.ts';

/**
 * Disruption budgets in evictions: which pods may be disrupted, and how disruptions are counted.
 */

/** Retry-After in seconds for a budget whose status is not current. */
const retrySeconds = 10;
/** Most allowed evictions that the disruption controller has not processed. */
const disruptedPodsMax = 2000;
const allowedCondition = 'DisruptionAllowed';

const countAt = (object: JsonObject | undefined, name: string) => Number(object?.[name] ?? 0);

const budgetsOf = (call: ApiCall): ResourceDef | undefined =>
  call.context.catalogue.snapshot().builtin('policy', 'poddisruptionbudgets');

/** The budget of a pod; undefined if it has none. Throws a 500 for several budgets. */
export async function budgetOf(call: ApiCall, pod: ApiObject): Promise<ApiObject | undefined> {
  const def = budgetsOf(call);
  if (def === undefined) return undefined;
  const list = await call.context.registry.caches.of(def).list({
    namespace: call.target.namespace,
    resourceVersion: undefined,
    resourceVersionMatch: undefined,
    limit: undefined,
    continueToken: undefined,
    filter: undefined,
  });
  const labels = pod.metadata.labels ?? {};
  const found = Array.from(list.entries(), decodeEntry).filter((budget) => {
    const selector = objectAt(budget, 'spec', 'selector');
    return selector !== undefined && selects(selector as LabelSelector, labels);
  });
  if (found.length <= 1) return found[0];
  const message =
    'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.';
  throw new StatusError({ code: 500, reason: '', message });
}

/** Whether a pod may be evicted without counting: it is not ready, and its budget allows that. */
export function isUncounted(budget: ApiObject, pod: ApiObject): boolean {
  const conditions = objectsAt(pod, 'status', 'conditions');
  const ready = conditions.find((one) => textAt(one, 'type') === 'Ready');
  if (textAt(ready, 'status') === 'True') return false;
  if (at(budget, 'spec', 'unhealthyPodEvictionPolicy') === 'AlwaysAllow') return true;
  const status = objectAt(budget, 'status');
  const desired = countAt(status, 'desiredHealthy');
  return desired > 0 && countAt(status, 'currentHealthy') >= desired;
}

/** Takes one disruption from a budget. Throws if the budget forbids it. */
export async function takeDisruption(
  call: ApiCall,
  disruption: { readonly budget: string; readonly context: WriteContext },
): Promise<void> {
  const { context, target } = call;
  const { budget } = disruption;
  const def = budgetsOf(call);
  const version = def?.versions[0];
  if (def === undefined || version === undefined) return;
  const { namespace } = target;
  const status = { def, version, namespace, name: budget, subresource: 'status' };
  await write(context.registry, {
    operation: 'update',
    target: status,
    context: { ...disruption.context, permit: consequentPermit(call.permit, 'update', status) },
    transform: (current) => {
      const object = asApiObject(current);
      checkBudget(object);
      const now = formatTime(context.clock.now());
      return { ...object, status: disrupted(object, { evicted: target.name, now }) };
    },
    source: 'patched',
    onAbsent: 'refuse',
  });
}

function checkBudget(budget: ApiObject): void {
  const name = budget.metadata.name ?? '';
  const status = objectAt(budget, 'status');
  if (countAt(status, 'observedGeneration') < Number(budget.metadata.generation ?? 0)) {
    throw stillProcessed(name);
  }
  const resource = { group: 'policy', resource: 'poddisruptionbudget' };
  const allowed = countAt(status, 'disruptionsAllowed');
  if (allowed < 0) throw forbidden(resource, name, 'pdb disruptions allowed is negative');
  if (Object.keys(objectAt(status, 'disruptedPods') ?? {}).length > disruptedPodsMax) {
    const why = 'DisruptedPods map too big - too many evictions not confirmed by PDB controller';
    throw forbidden(resource, name, why);
  }
  if (allowed === 0) throw tooManyDisruptions(whyNone(name, status), undefined);
}

/**
 * Explains a refusal; a failed computation of the status comes first, because it voids the numbers.
 */
function whyNone(name: string, status: JsonObject | undefined): string {
  const conditions = objectsAt(status, 'conditions');
  const condition = conditions.find((one) => textAt(one, 'type') === allowedCondition);
  const message = textAt(condition, 'status') === 'False' ? textAt(condition, 'message') : '';
  const reason = textAt(condition, 'reason');
  const refused = `The disruption budget ${name} does not allow evicting pods currently`;
  if (message !== '' && reason === 'SyncFailed') {
    return `${refused} because it failed sync: ${message}`;
  }
  const [current, desired] = [countAt(status, 'currentHealthy'), countAt(status, 'desiredHealthy')];
  if (current <= desired) {
    return `The disruption budget ${name} needs ${desired} healthy pods and has ${current} currently`;
  }
  return message === '' ? refused : `${refused} (${reason}): ${message}`;
}

/** The status of a budget after one disruption; its condition changes with the last one. */
function disrupted(budget: ApiObject, eviction: { evicted: string; now: string }): JsonObject {
  const { evicted, now } = eviction;
  const status = objectAt(budget, 'status') ?? {};
  const left = countAt(status, 'disruptionsAllowed') - 1;
  const disruptedPods = { ...objectAt(status, 'disruptedPods'), [evicted]: now };
  const next = { ...status, disruptionsAllowed: left, disruptedPods };
  return left > 0 ? next : { ...next, conditions: noneAllowed(status, now) };
}

function noneAllowed(status: JsonObject, now: string): JsonObject[] {
  const conditions = objectsAt(status, 'conditions');
  const before = conditions.find((one) => textAt(one, 'type') === allowedCondition);
  const isSame = textAt(before, 'status') === 'False';
  const none: JsonObject = {
    type: allowedCondition,
    status: 'False',
    reason: 'InsufficientPods',
    message: '',
    observedGeneration: countAt(status, 'observedGeneration'),
    lastTransitionTime: isSame ? (before?.['lastTransitionTime'] ?? now) : now,
  };
  const kept = conditions.map((one) => (one === before ? none : one));
  return before === undefined ? [...kept, none] : kept;
}

/** The 429 for a budget whose latest generation the disruption controller has not processed. */
export function stillProcessed(budget: string): StatusError {
  const why = `The disruption budget ${budget} is still being processed by the server.`;
  return tooManyDisruptions(why, retrySeconds);
}

function tooManyDisruptions(why: string, retryAfterSeconds: number | undefined): StatusError {
  return new StatusError({
    code: 429,
    reason: 'TooManyRequests',
    message: "Cannot evict pod as it would violate the pod's disruption budget.",
    details: {
      causes: [{ reason: 'DisruptionBudget', message: why }],
      ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
    },
  });
}

/**
 * Whether an eviction disrupts nothing, because the pod is not running or is already terminating.
 */
export function disturbsNobody(pod: ApiObject): boolean {
  return isEnding(pod) || textAt(objectAt(pod, 'status'), 'phase') === 'Pending';
}

/** Whether a pod has terminated or is terminating. */
export function isEnding(pod: ApiObject): boolean {
  const phase = isObject(pod.status) ? pod.status.phase : undefined;
  const isOver = phase === 'Succeeded' || phase === 'Failed';
  return isOver || pod.metadata.deletionTimestamp !== undefined;
}

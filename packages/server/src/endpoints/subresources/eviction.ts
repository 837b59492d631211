import { at, objectAt, objectsAt, type ResourceDef, textAt } from '@wheelhouse/kinds';
import {
  type ApiObject,
  asApiObject,
  badRequest,
  conflict,
  forbidden,
  formatTime,
  invalid,
  invalidObject,
  isObject,
  type JsonObject,
  type LabelSelector,
  modifiedMessage,
  StatusError,
  selects,
} from '@wheelhouse/machinery';
import { sendValue, successStatus } from '../../answer/respond.ts';
import type { DeleteRequestOptions, WriteContext } from '../../registry/contract.ts';
import { checkPreconditions } from '../../registry/deletion.ts';
import { decodedEntries, decodedInSlices } from '../../registry/object-codec.ts';
import { consequentPermit } from '../../registry/permit.ts';
import { existingEntry, groupResourceOf } from '../../registry/registry.ts';
import { write } from '../../registry/write.ts';
import { parseDeleteOptions, type WriteOptions } from '../../request/options.ts';
import type { Entry } from '../../watchcache/entry.ts';
import { recordFields, virtualAdmission, virtualRequest } from '../body/virtual-body.ts';
import type { ApiCall } from '../call.ts';
import { writeContext } from '../write.ts';

/** Maximum number of attempts to evict a pod that changes concurrently. */
const attemptsMax = 20;

interface Removal {
  readonly options: DeleteRequestOptions;
  readonly context: WriteContext;
}

/**
 * POST to `eviction`: deletes a Pod if its disruption budget allows it, else 429 (API-6). The
 * Eviction itself is not stored.
 */
export async function evictionEndpoint(call: ApiCall): Promise<void> {
  const { context, target } = call;
  const request = await virtualRequest(call, 'policy.v1.Eviction', { alike: 'policy/v1beta1' });
  const { object, options } = request;
  await recordFields(call, request, request.body);
  const admission = virtualAdmission(call, request);
  await admission.mutate();
  // Admission may have changed the name and the options.
  if (object.metadata.name !== target.name) {
    throw badRequest('name in URL does not match name in Eviction object');
  }
  const admitted = isObject(object.deleteOptions) ? object.deleteOptions : undefined;
  checkOptions(call, admitted, options);
  if (admitted !== undefined && options.dryRun) propagateDryRun(admitted);
  await admission.validate();
  // A missing pod is reported before invalid delete options.
  await existingEntry(call.context.registry, call.target);
  const removal = parseDeleteOptions(new URLSearchParams(), context.dialect, withoutType(admitted));
  const writing = writeContext(call, { ...options, dryRun: options.dryRun || removal.dryRun });
  await evict(call, { options: removal, context: writing });
  await sendValue(call, { status: 201, value: successStatus({ code: 201 }) });
}

/** Returns options without a type, which inside of an Eviction may be any. */
function withoutType(options: JsonObject | undefined): JsonObject | undefined {
  if (options === undefined) return undefined;
  const { kind: _kind, apiVersion: _apiVersion, ...rest } = options;
  return rest;
}

/** Adds the dry run of the query to the delete options, which validating admission sees. */
function propagateDryRun(deleteOptions: JsonObject): void {
  const { dryRun } = deleteOptions;
  if (!Array.isArray(dryRun) || dryRun.length === 0) deleteOptions.dryRun = ['All'];
}

/** Validates the delete options first, as kube-apiserver does. */
function checkOptions(
  { info, target }: ApiCall,
  deleteOptions: JsonObject | undefined,
  { dryRun }: WriteOptions,
): void {
  if (deleteOptions?.ignoreStoreReadErrorWithClusterBreakingPotential === true) {
    const field = 'deleteOptions.ignoreStoreReadErrorWithClusterBreakingPotential';
    const why = 'can not be set for pod eviction, try after removing the option';
    throw invalidObject({ group: 'policy', kind: 'Eviction' }, target.name, [
      invalid(field, true, why),
    ]);
  }
  const inside = Array.isArray(deleteOptions?.dryRun) ? deleteOptions.dryRun.map(String) : [];
  const outside = info.query.getAll('dryRun');
  if (!dryRun || inside.length === 0 || inside.join(' ') === outside.join(' ')) return;
  const lists = `[${outside.join(' ')}] and [${inside.join(' ')}]`;
  throw badRequest(`Non-matching dry-run options in request and content: ${lists}`);
}

async function evict(call: ApiCall, removal: Removal): Promise<void> {
  const isPinned = removal.options.preconditions?.resourceVersion !== undefined;
  for (let attempt = 1; ; attempt += 1) {
    const entry = await existingEntry(call.context.registry, call.target);
    const pod = await decodedInSlices(entry, call.context.clock);
    if (!disturbsNobody(pod)) return evictCounted(call, { removal, entry, pod });
    try {
      // A pending pod may become ready, and then its budget applies.
      return await remove(call, isEnding(pod) ? removal : pinned(removal, entry), entry);
    } catch (error) {
      if (!isConflict(error) || isPinned || attempt >= attemptsMax) throw error;
    }
  }
}

async function evictCounted(
  call: ApiCall,
  { removal, entry, pod }: { removal: Removal; entry: Entry; pod: ApiObject },
): Promise<void> {
  const budget = await budgetOf(call, pod);
  if (budget === undefined) return remove(call, removal, entry);
  const name = budget.metadata.name ?? '';
  if (!isUncounted(budget, pod)) {
    await takeDisruption(call, { budget: name, context: removal.context });
    return remove(call, removal, entry);
  }
  try {
    return await remove(call, pinned(removal, entry), entry);
  } catch (error) {
    const isTheirs = removal.options.preconditions?.resourceVersion !== undefined;
    throw isConflict(error) && !isTheirs ? stillProcessed(name) : error;
  }
}

const isConflict = (error: unknown) => error instanceof StatusError && error.reason === 'Conflict';

/** Restricts the deletion to the checked version of the pod, unless the client stated one. */
function pinned(removal: Removal, { revision }: Entry): Removal {
  const { preconditions } = removal.options;
  if (preconditions?.resourceVersion !== undefined) return removal;
  return withVersion(removal, revision);
}

function withVersion(removal: Removal, revision: number): Removal {
  const resourceVersion = String(revision);
  const preconditions = { ...removal.options.preconditions, resourceVersion };
  return { ...removal, options: { ...removal.options, preconditions } };
}

/**
 * Sets the disruption condition of the pod and deletes it. Admission has validated the Eviction.
 */
async function remove(call: ApiCall, removal: Removal, entry: Entry): Promise<void> {
  const { options, context } = removal;
  const target = { ...call.target, subresource: '' };
  checkPreconditions({ target, options }, entry);
  const marked = context.dryRun ? undefined : await mark(call, removal);
  const isPinned = options.preconditions?.resourceVersion !== undefined;
  const last = isPinned && marked !== undefined ? withVersion(removal, marked.revision) : removal;
  await write(call.context.registry, {
    operation: 'delete',
    admission: 'done',
    target,
    context: { ...context, permit: consequentPermit(call.permit, 'delete', target) },
    options: last.options,
  });
}

async function mark(call: ApiCall, removal: Removal): Promise<Entry> {
  const { context } = call;
  const target = { ...call.target, subresource: 'status' };
  const expectedVersion = removal.options.preconditions?.resourceVersion;
  const { entry } = await write(context.registry, {
    operation: 'update',
    admission: 'done',
    target,
    context: { ...removal.context, permit: consequentPermit(call.permit, 'update', target) },
    transform: ({ current }) => {
      const pod = asApiObject(current);
      if (expectedVersion !== undefined && expectedVersion !== pod.metadata.resourceVersion) {
        throw conflict(groupResourceOf(target.def), target.name, modifiedMessage);
      }
      return withDisruption(pod, formatTime(context.clock.now()));
    },
    source: 'merged',
    onAbsent: 'refuse',
  });
  return entry;
}

function withDisruption(pod: ApiObject, now: string): ApiObject {
  const type = 'DisruptionTarget';
  const status = isObject(pod.status) ? pod.status : {};
  const conditions = objectsAt(status, 'conditions');
  const before = conditions.find((existing) => textAt(existing, 'type') === type);
  const since = textAt(before, 'status') === 'True' ? before?.['lastTransitionTime'] : undefined;
  const condition: JsonObject = {
    type,
    status: 'True',
    lastProbeTime: null,
    lastTransitionTime: since ?? now,
    reason: 'EvictionByEvictionAPI',
    message: 'Eviction API: evicting',
  };
  const next = conditions.map((existing) => (existing === before ? condition : existing));
  if (before === undefined) next.push(condition);
  return { ...pod, status: { ...status, conditions: next } };
}

/**
 * Disruption budgets in evictions: which pods may be disrupted, and how disruptions are counted.
 */

/** Retry-After in seconds for a budget whose status is not current. */
const retrySeconds = 10;
/** Maximum number of allowed evictions that the disruption controller has not processed. */
const disruptedPodsMax = 2000;
const allowedCondition = 'DisruptionAllowed';

const countAt = (object: JsonObject | undefined, name: string) => Number(object?.[name] ?? 0);

const budgetsOf = (call: ApiCall): ResourceDef | undefined =>
  call.context.catalogue.snapshot().builtin('policy', 'poddisruptionbudgets');

/** The budget of a pod; undefined if it has none. Throws a 500 for several budgets. */
async function budgetOf(call: ApiCall, pod: ApiObject): Promise<ApiObject | undefined> {
  const def = budgetsOf(call);
  if (def === undefined) return undefined;
  const { namespace } = call.target;
  const list = await call.context.registry.caches.of(def).list({ namespace });
  const labels = pod.metadata.labels ?? {};
  const budgets: ApiObject[] = [];
  for await (const budget of decodedEntries(list.entries(), call.context.clock)) {
    const selector = objectAt(budget, 'spec', 'selector');
    if (selector === undefined || !selects(selector as LabelSelector, labels)) continue;
    budgets.push(budget);
  }
  if (budgets.length <= 1) return budgets[0];
  const message =
    'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.';
  throw new StatusError({ code: 500, reason: '', message });
}

/** Whether a pod may be evicted without counting: it is not ready, and its budget allows that. */
function isUncounted(budget: ApiObject, pod: ApiObject): boolean {
  const conditions = objectsAt(pod, 'status', 'conditions');
  const ready = conditions.find((condition) => textAt(condition, 'type') === 'Ready');
  if (textAt(ready, 'status') === 'True') return false;
  if (at(budget, 'spec', 'unhealthyPodEvictionPolicy') === 'AlwaysAllow') return true;
  const status = objectAt(budget, 'status');
  const desired = countAt(status, 'desiredHealthy');
  return desired > 0 && countAt(status, 'currentHealthy') >= desired;
}

/** Takes one disruption from a budget. Throws if the budget forbids it. */
async function takeDisruption(
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
    context: {
      ...disruption.context,
      // The server, not the client, counts disruptions.
      fieldManager: context.dialect.serverProgram,
      permit: consequentPermit(call.permit, 'update', status),
    },
    transform: ({ current }) => {
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
  if (allowed > 0) return;
  const [healthy, desired] = [countAt(status, 'currentHealthy'), countAt(status, 'desiredHealthy')];
  const why = `The disruption budget ${name} needs ${desired} healthy pods and has ${healthy} currently`;
  throw tooManyDisruptions(why, undefined);
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
  const before = conditions.find((condition) => textAt(condition, 'type') === allowedCondition);
  const isSame = textAt(before, 'status') === 'False';
  const none: JsonObject = {
    type: allowedCondition,
    status: 'False',
    reason: 'InsufficientPods',
    message: '',
    observedGeneration: countAt(status, 'observedGeneration'),
    lastTransitionTime: isSame ? (before?.['lastTransitionTime'] ?? now) : now,
  };
  const kept = conditions.map((condition) => (condition === before ? none : condition));
  return before === undefined ? [...kept, none] : kept;
}

/** The 429 for a budget whose latest generation the disruption controller has not processed. */
function stillProcessed(budget: string): StatusError {
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
function disturbsNobody(pod: ApiObject): boolean {
  return isEnding(pod) || textAt(objectAt(pod, 'status'), 'phase') === 'Pending';
}

/** Whether a pod has terminated or is terminating. */
function isEnding(pod: ApiObject): boolean {
  const phase = isObject(pod.status) ? pod.status.phase : undefined;
  const isOver = phase === 'Succeeded' || phase === 'Failed';
  return isOver || pod.metadata.deletionTimestamp !== undefined;
}

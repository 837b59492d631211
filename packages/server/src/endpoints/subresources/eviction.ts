import { objectsAt, textAt } from '@wheelhouse/kinds';
import {
  type ApiObject,
  asApiObject,
  badRequest,
  conflict,
  formatTime,
  invalid,
  invalidObject,
  isObject,
  type JsonObject,
  modifiedMessage,
  notFound,
  StatusError,
} from '@wheelhouse/machinery';
import { sendValue, successStatus } from '../../answer/respond.ts';
import type { DeleteRequestOptions, WriteContext } from '../../registry/contract.ts';
import { checkPreconditions } from '../../registry/deletion.ts';
import { decodeEntry, objectKey } from '../../registry/object-codec.ts';
import { consequentPermit } from '../../registry/permit.ts';
import { groupResourceOf } from '../../registry/registry.ts';
import { write } from '../../registry/write.ts';
import { parseDeleteOptions, type WriteOptions } from '../../request/options.ts';
import type { Entry } from '../../watchcache/entry.ts';
import { admitVirtual, virtualRequest } from '../body/virtual-body.ts';
import type { ApiCall } from '../call.ts';
import { writeContext } from '../write.ts';
import {
  budgetOf,
  disturbsNobody,
  isEnding,
  isUncounted,
  stillProcessed,
  takeDisruption,
} from './disruption.ts';

/** Most attempts for a pod that changes concurrently. */
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
  const { object, options } = await virtualRequest(call, 'policy.v1.Eviction', 'policy/v1beta1');
  if (object.metadata.name !== target.name) {
    throw badRequest('name in URL does not match name in Eviction object');
  }
  const requestedOptions = isObject(object.deleteOptions) ? object.deleteOptions : undefined;
  checkOptions(call, requestedOptions, options);
  parseDeleteOptions(new URLSearchParams(), context.dialect, requestedOptions);
  await admitVirtual(call, { object, options });
  // Admission may have changed the options.
  const admitted = isObject(object.deleteOptions) ? object.deleteOptions : undefined;
  const removal = parseDeleteOptions(new URLSearchParams(), context.dialect, admitted);
  const writing = writeContext(call, { ...options, dryRun: options.dryRun || removal.dryRun });
  await evict(call, { options: removal, context: writing });
  await sendValue(call, { status: 201, value: successStatus({ code: 201 }) });
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
    const entry = await readPod(call);
    const pod = decodeEntry(entry);
    if (!disturbsNobody(pod)) return evictCounted(call, removal, entry);
    try {
      // A pending pod may become ready, and then its budget applies.
      return await remove(call, isEnding(pod) ? removal : pinned(removal, entry), entry);
    } catch (error) {
      if (!isConflict(error) || isPinned || attempt >= attemptsMax) throw error;
    }
  }
}

async function evictCounted(call: ApiCall, removal: Removal, entry: Entry): Promise<void> {
  const pod = decodeEntry(entry);
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

async function readPod({ context, target }: ApiCall): Promise<Entry> {
  const key = objectKey(target.namespace, target.name);
  const entry = await context.registry.caches.of(target.def).get(key, undefined);
  if (entry === undefined) throw notFound(groupResourceOf(target.def), target.name);
  return entry;
}

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
    admission: 'judged',
    target,
    context: { ...context, permit: consequentPermit(call.permit, 'delete', target) },
    options: last.options,
  });
}

async function mark(call: ApiCall, removal: Removal): Promise<Entry> {
  const { context } = call;
  const target = { ...call.target, subresource: 'status' };
  const wanted = removal.options.preconditions?.resourceVersion;
  const { entry } = await write(context.registry, {
    operation: 'update',
    admission: 'judged',
    target,
    context: { ...removal.context, permit: consequentPermit(call.permit, 'update', target) },
    transform: (current) => {
      const pod = asApiObject(current);
      if (wanted !== undefined && wanted !== pod.metadata.resourceVersion) {
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
  const before = conditions.find((one) => textAt(one, 'type') === type);
  const since = textAt(before, 'status') === 'True' ? before?.['lastTransitionTime'] : undefined;
  const condition: JsonObject = {
    type,
    status: 'True',
    lastTransitionTime: since ?? now,
    reason: 'EvictionByEvictionAPI',
    message: 'Eviction API: evicting',
  };
  const next = conditions.map((one) => (one === before ? condition : one));
  if (before === undefined) next.push(condition);
  return { ...pod, status: { ...status, conditions: next } };
}

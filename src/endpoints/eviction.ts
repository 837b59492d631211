import { isObject, type JsonObject } from '../base/json.ts';
import type { ResourceDef } from '../catalogue/resource-def.ts';
import { type LabelSelector, selects } from '../meta/label-selector.ts';
import { badRequest, internalError, notFound, StatusError } from '../meta/status.ts';
import { formatTime } from '../meta/times.ts';
import type { Target } from '../registry/contract.ts';
import { deleteObject } from '../registry/delete.ts';
import { decodeEntry, objectKey } from '../registry/object-codec.ts';
import { groupResourceOf } from '../registry/registry.ts';
import { updateObject } from '../registry/update.ts';
import { parseDeleteOptions } from '../request/options.ts';
import type { ApiCall } from './call.ts';
import { sendValue } from './respond.ts';
import { admitVirtual, virtualRequest } from './virtual-body.ts';
import { writeContext } from './write-context.ts';

/** Seconds a client waits before it asks again while a budget forbids the eviction. */
const retrySeconds = 10;

/**
 * POST to `eviction`: deletes a Pod if its disruption budget allows it, 429 if not now (API-6). The
 * Eviction itself is not stored.
 */
export async function evictionEndpoint(call: ApiCall): Promise<void> {
  const { context, target } = call;
  const { object, options } = await virtualRequest(call, 'policy.v1.Eviction');
  checkName(call, object.metadata.name);
  const pods = context.registry.caches.of(target.def);
  const entry = await pods.get(objectKey(target.namespace, target.name), undefined);
  if (entry === undefined) throw notFound(groupResourceOf(target.def), target.name);
  const pod = decodeEntry(entry);
  await admitVirtual(call, { object, options });
  const given = isObject(object.deleteOptions) ? object.deleteOptions : undefined;
  const removal = parseDeleteOptions(new URLSearchParams(), context.dialect, given);
  const write = writeContext(call, { ...options, dryRun: options.dryRun || removal.dryRun });
  if (isDisruptive(pod)) await takeDisruption(call, { labels: entry.index.labels, write });
  await deleteObject(context.registry, {
    target: { ...target, subresource: '' },
    context: write,
    options: removal,
  });
  const value: JsonObject = {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Success',
    code: 201,
  };
  await sendValue(call, { status: 201, value });
}

function checkName(call: ApiCall, given: string | undefined): void {
  if (given === call.target.name) return;
  throw badRequest('name in URL does not match name in Eviction object');
}

/** Evicting what runs nowhere, or goes anyway, disrupts nobody. */
function isDisruptive(pod: JsonObject): boolean {
  const phase = isObject(pod.status) ? pod.status.phase : undefined;
  const metadata = isObject(pod.metadata) ? pod.metadata : {};
  return (
    metadata.deletionTimestamp === undefined &&
    phase !== 'Succeeded' &&
    phase !== 'Failed' &&
    phase !== 'Pending'
  );
}

interface Disruption {
  readonly labels: Readonly<Record<string, string>>;
  readonly write: ReturnType<typeof writeContext>;
}

/** Counts the eviction against the one budget that selects the pod. */
async function takeDisruption(call: ApiCall, { labels, write }: Disruption): Promise<void> {
  const { context, target } = call;
  const def = context.catalogue.snapshot().builtin('policy', 'poddisruptionbudgets');
  const version = def?.versions[0];
  if (def === undefined || version === undefined) return;
  const names = await selectingBudgets(call, { def, labels });
  const [name] = names;
  if (name === undefined) return;
  if (names.length > 1) {
    throw internalError(
      'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.',
    );
  }
  const { namespace } = target;
  const budget: Target = { def, version, namespace, name, subresource: 'status' };
  const evicted = target.name;
  await updateObject(context.registry, {
    target: budget,
    context: write,
    transform: (current) => {
      const object = current as NonNullable<typeof current>;
      const now = formatTime(context.clock.now());
      return { ...object, status: disrupted(object, { name, evicted, now }) };
    },
    record: true,
    onAbsent: 'refuse',
  });
}

async function selectingBudgets(
  call: ApiCall,
  { def, labels }: { def: ResourceDef; labels: Disruption['labels'] },
): Promise<readonly string[]> {
  const list = await call.context.registry.caches.of(def).list({
    namespace: call.target.namespace,
    resourceVersion: undefined,
    resourceVersionMatch: undefined,
    limit: undefined,
    continueToken: undefined,
    filter: undefined,
  });
  const names: string[] = [];
  for (const entry of list.entries()) {
    const { spec } = decodeEntry(entry);
    const selector = isObject(spec) ? spec.selector : undefined;
    if (!isObject(selector)) continue;
    if (selects(selector as LabelSelector, labels)) names.push(entry.index.name);
  }
  return names;
}

function disrupted(
  budget: JsonObject,
  eviction: { name: string; evicted: string; now: string },
): JsonObject {
  const status = isObject(budget.status) ? budget.status : {};
  const metadata = isObject(budget.metadata) ? budget.metadata : {};
  const { name } = eviction;
  if (Number(status.observedGeneration ?? 0) < Number(metadata.generation ?? 0)) {
    throw tooManyDisruptions(
      `The disruption budget ${name} is still being processed by the server.`,
    );
  }
  const allowed = Number(status.disruptionsAllowed ?? 0);
  if (allowed <= 0) {
    throw tooManyDisruptions(
      `The disruption budget ${name} needs ${Number(status.desiredHealthy ?? 0)} healthy pods ` +
        `and has ${Number(status.currentHealthy ?? 0)} currently`,
    );
  }
  const before = isObject(status.disruptedPods) ? status.disruptedPods : {};
  const disruptedPods = { ...before, [eviction.evicted]: eviction.now };
  return { ...status, disruptionsAllowed: allowed - 1, disruptedPods };
}

function tooManyDisruptions(why: string): StatusError {
  return new StatusError({
    code: 429,
    reason: 'TooManyRequests',
    message: "Cannot evict pod as it would violate the pod's disruption budget.",
    details: {
      causes: [{ reason: 'DisruptionBudget', message: why }],
      retryAfterSeconds: retrySeconds,
    },
  });
}

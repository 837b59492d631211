import { parseAhead } from '@wheelhouse/codec';
import {
  type Amounts,
  addAmounts,
  type CatalogueSnapshot,
  largerAmounts,
  objectAt,
  type ResourceDef,
} from '@wheelhouse/kinds';
import {
  type ApiObject,
  background,
  type Clock,
  type Dialect,
  type JsonObject,
  jsonEqualSteps,
  type Quantity,
  qualifiedResource,
  runInSlices,
  type Timer,
} from '@wheelhouse/machinery';
import type { QuotaLedger } from '../admission/quota/quota-ledger.ts';
import {
  countName,
  type QuotaEvaluator,
  quotaEvaluator,
  type ScopeRequirement,
  scopesOf,
} from '../admission/quota/quota-usage.ts';
import { decodedEntries, decodedInSlices, decodeEntry } from '../registry/object-codec.ts';
import type { EntryChange, ResourceCache } from '../watchcache/contract.ts';
import type { Entry } from '../watchcache/entry.ts';
import { type ControllerTools, listEntries } from './tools.ts';
import { type Controller, createWorkQueue, runningQueue } from './work-queue.ts';

/** Number of namespaces recounted concurrently. */
const workers = 4;
/** Deletions within this time are recounted together, in milliseconds. */
const batchMs = 20;

/** The dependencies of a recount. */
interface QuotaTools extends ControllerTools {
  readonly quotas: ResourceDef;
  readonly catalogue: {
    snapshot(): CatalogueSnapshot;
    subscribe(listener: () => void): () => void;
  };
  readonly dialect: Dialect;
  readonly ledger: QuotaLedger;
  /** Interval between full recounts, in milliseconds. */
  readonly resyncMs: number;
}

/**
 * Maintains the status of quotas (ADM-1): the limits from the spec, and the usage of the namespace,
 * which is recounted when a quota is new or changed and when a counted object is deleted or
 * shrinks. Admission charges for new usage; the ledger serializes charges and recounts.
 */
export function startResourceQuotas(tools: QuotaTools): Controller {
  const { quotas, catalogue, caches, clock, logger, resyncMs } = tools;
  const { ledger } = tools;
  const run = (namespace: string): Promise<void> =>
    ledger.inTurn(namespace, () => recount(tools, namespace, followers.follow));
  const name = 'resourcequota-controller';
  const queue = createWorkQueue({ ...tools, name, run, workers });
  const followers = createFollowers(tools, (namespace) => queue.addAfter(namespace, batchMs));
  const delayedChecks = createDelayedChecks(
    { clock, afterMs: ledger.lateMs + batchMs },
    (namespace) => {
      if (ledger.takeLost(namespace)) queue.add(namespace);
    },
  );
  const subscription = caches.of(quotas).subscribe(({ previous, current }) => {
    if (current === undefined) return;
    const { namespace } = current.index;
    delayedChecks.schedule(namespace);
    const review = async () => {
      if (await isReported({ previous, current }, clock)) return;
      queue.add(namespace);
    };
    background({ where: 'controller' }, review());
  });
  const enqueueAll = async (): Promise<void> => {
    try {
      const entries = await listEntries(caches, { def: quotas, namespace: '' });
      for (const { index } of entries) queue.add(index.namespace);
    } catch (error) {
      logger.error('cannot list resource quotas', { error: String(error) });
    }
  };
  const first = enqueueAll();
  const stopUpdates = catalogue.subscribe(() => {
    // Objects may have disappeared before the new caches were loaded.
    if (followers.update(catalogue.snapshot().defs))
      background({ where: 'controller' }, enqueueAll());
  });
  const timer: Timer = clock.every(resyncMs, enqueueAll);
  const sources = [stopUpdates, subscription, followers, delayedChecks, () => first];
  return runningQueue(queue, () => timer.stop(), ...sources);
}

/** Whether a change left the spec of a quota as it was, and its status has the spec's limits. */
async function isReported(
  { previous, current }: { readonly previous: Entry | undefined; readonly current: Entry },
  clock: Clock,
): Promise<boolean> {
  if (previous === undefined) return false;
  const now = await decodedInSlices(current, clock);
  const before = await decodedInSlices(previous, clock);
  const [spec, hard] = [objectAt(now, 'spec') ?? {}, objectAt(now, 'status', 'hard') ?? {}];
  return (
    (await runInSlices(jsonEqualSteps(objectAt(spec, 'hard') ?? {}, hard), clock)) &&
    (await runInSlices(jsonEqualSteps(objectAt(before, 'spec') ?? {}, spec), clock))
  );
}

/** Follows the kinds that quotas count, each since its first quota. */
function createFollowers(
  { caches, ledger }: Pick<QuotaTools, 'caches' | 'ledger'>,
  changed: (namespace: string) => void,
) {
  const followed = new Map<string, { readonly cache: ResourceCache; close(): void }>();
  const onChange = ({ previous, current, revision }: EntryChange) => {
    const index = (current ?? previous)?.index;
    if (index === undefined) return;
    ledger.seen(index.namespace, index.uid, revision);
    // Admission charged for the new state; an update may have reduced usage.
    if (previous !== undefined) changed(index.namespace);
  };
  const follow = (def: ResourceDef) => {
    const { prefix } = def.storage;
    const cache = caches.of(def);
    const before = followed.get(prefix);
    if (before?.cache === cache) return false;
    before?.close();
    const { close } = cache.subscribe(onChange);
    followed.set(prefix, { cache, close });
    return before !== undefined;
  };
  return {
    follow,
    /**
     * Follows the new caches of kinds that have changed, and no longer those of kinds that are
     * gone. Returns whether a kind has changed.
     */
    update(defs: readonly ResourceDef[]): boolean {
      const gone = new Map(followed);
      let isChanged = false;
      for (const def of defs) {
        if (!followed.has(def.storage.prefix)) continue;
        gone.delete(def.storage.prefix);
        if (follow(def)) isChanged = true;
      }
      for (const [prefix, { close }] of gone) {
        close();
        followed.delete(prefix);
      }
      return isChanged;
    },
    close() {
      for (const subscription of followed.values()) subscription.close();
      followed.clear();
    },
  };
}

/** Checks each scheduled namespace once, `afterMs` later. */
function createDelayedChecks(
  { clock, afterMs }: { readonly clock: Clock; readonly afterMs: number },
  check: (namespace: string) => void,
) {
  const timers = new Map<string, Timer>();
  return {
    schedule(namespace: string) {
      if (timers.has(namespace)) return;
      const run = () => {
        timers.delete(namespace);
        check(namespace);
      };
      timers.set(namespace, clock.after(afterMs, run));
    },
    close() {
      for (const timer of timers.values()) timer.stop();
      timers.clear();
    },
  };
}

/** Recounts a namespace and updates its quotas; counted kinds are followed first. */
async function recount(
  tools: QuotaTools,
  namespace: string,
  follow: (def: ResourceDef) => void,
): Promise<void> {
  const entries = await listEntries(tools.caches, { def: tools.quotas, namespace });
  const kept = entries.filter(({ index }) => index.deleting !== true);
  const quotas: ApiObject[] = [];
  for await (const quota of decodedEntries(kept, tools.clock)) quotas.push(quota);
  const counters = await runInSlices(countersOf(tools, quotas), tools.clock);
  for (const { def } of counters) follow(def);
  const counts = await Promise.all(
    counters.map((counter) => countObjects(tools, { counter, namespace, quotas })),
  );
  for (const [index, quota] of quotas.entries()) {
    const used: JsonObject = {};
    for (const { names, totals } of counts.map((count) => count[index] as Count)) {
      for (const name of names) used[name] = totals.get(name)?.text ?? '0';
    }
    const hard = objectAt(quota, 'spec', 'hard') ?? {};
    const at = { def: tools.quotas, namespace, name: quota.metadata.name ?? '' };
    await tools.writer.change({ ...at, subresource: 'status' }, (current) => ({
      ...current,
      status: { ...objectAt(current, 'status'), hard: { ...hard }, used },
    }));
  }
}

interface Counter {
  readonly def: ResourceDef;
  readonly evaluator: QuotaEvaluator;
}

/** What one quota counts of one kind. */
interface Count {
  /** The quota's names that the kind counts against. */
  readonly names: ReadonlySet<string>;
  readonly scopes: readonly ScopeRequirement[];
  /** The usage by those names. */
  readonly totals: Map<string, Quantity>;
}

const coreResources = [
  'pods',
  'services',
  'persistentvolumeclaims',
  'configmaps',
  'resourcequotas',
  'replicationcontrollers',
  'secrets',
];

function* countersOf(
  tools: QuotaTools,
  quotas: readonly ApiObject[],
): Generator<void, readonly Counter[]> {
  const names = new Set(
    quotas.flatMap((quota) => Object.keys(objectAt(quota, 'spec', 'hard') ?? {})),
  );
  const all = [...names];
  const counted = new Set(all.filter((name) => name.startsWith('count/')));
  const counters: Counter[] = [];
  for (const def of tools.catalogue.snapshot().defs) {
    if (def.scope !== 'Namespaced' || def.isVirtual === true) continue;
    const { group, resource } = def;
    const isCore = group === '' && coreResources.includes(resource);
    if (!isCore && !counted.has(countName(def))) continue;
    const evaluator = quotaEvaluator({ group, resource }, tools.dialect);
    if (evaluator.matching(all).length > 0) counters.push({ def, evaluator });
    yield;
  }
  return counters;
}

/** Counts the objects of a kind for each quota, in slices (TRUST-2). */
async function countObjects(
  tools: QuotaTools,
  options: {
    readonly counter: Counter;
    readonly namespace: string;
    readonly quotas: readonly ApiObject[];
  },
): Promise<readonly Count[]> {
  const { counter, namespace, quotas } = options;
  const { def, evaluator } = counter;
  const resource = qualifiedResource(def);
  // Read before the objects: a reservation that is missing here was either stored or dropped.
  const reserved = await tools.ledger.reserved(namespace, resource);
  const entries = await listEntries(tools.caches, { def, namespace });
  const nowMs = tools.clock.now();
  const work = countsOf(quotas, { evaluator, entries, reserved, nowMs });
  return runInSlices(work, tools.clock);
}

/**
 * Counts stored and reserved objects, in the order of the quotas. A namespace may have many
 * thousands, so they are decoded one after the other, and only if their content counts.
 * @param objects.reserved objects that admission has charged for, by uid
 */
export function* countsOf(
  quotas: readonly ApiObject[],
  objects: {
    readonly evaluator: QuotaEvaluator;
    readonly entries: readonly Entry[];
    readonly reserved: ReadonlyMap<string, ApiObject>;
    readonly nowMs: number;
  },
): Generator<void, readonly Count[]> {
  const { evaluator, entries, reserved, nowMs } = objects;
  const counts: Count[] = [];
  for (const quota of quotas) {
    const hard = objectAt(quota, 'spec', 'hard') ?? {};
    const names = new Set(evaluator.matching(Object.keys(hard)));
    counts.push({ names, scopes: scopesOf(quota), totals: new Map() });
    yield;
  }
  const stored = new Set(entries.map(({ index }) => index.uid));
  const unstored = [...reserved].filter(([uid]) => !stored.has(uid)).map(([, object]) => object);
  const { usageOfNumber } = evaluator;
  if (usageOfNumber !== undefined) {
    const totals = usageOfNumber(entries.length + unstored.length);
    for (const count of counts) if (count.scopes.length === 0) addCounted(count, totals);
    return counts;
  }
  const concerned = counts.filter(({ names }) => names.size > 0);
  for (const entry of entries) {
    yield;
    yield* parseAhead(entry.json);
    const next = reserved.get(entry.index.uid);
    const forms = [decodeEntry(entry), ...(next === undefined ? [] : [next])];
    yield* addUsage(concerned, { evaluator, forms, nowMs });
  }
  for (const object of unstored) {
    yield;
    yield* addUsage(concerned, { evaluator, forms: [object], nowMs });
  }
  return counts;
}

/** Adds the usage of an object to the counts whose scopes it is in, in steps. */
function* addUsage(
  counts: readonly Count[],
  object: {
    readonly evaluator: QuotaEvaluator;
    /** The object and its possible future state. */
    readonly forms: readonly ApiObject[];
    readonly nowMs: number;
  },
): Generator<void, void> {
  const { evaluator, forms, nowMs } = object;
  const [current] = forms;
  if (current === undefined) return;
  let usage: Amounts = new Map();
  for (const form of forms) {
    const found = evaluator.usage(form, nowMs);
    usage = largerAmounts(usage, 'next' in found ? yield* found : found);
  }
  for (const count of counts) {
    yield;
    const isIn = count.scopes.every((scope) => evaluator.matchesScope(current, scope));
    if (isIn) addCounted(count, usage);
  }
}

/** Objects may use any number of other resources, such as those of their storage classes. */
function addCounted({ names, totals }: Count, usage: Amounts): void {
  addAmounts(
    totals,
    [...usage].filter(([name]) => names.has(name)),
  );
}

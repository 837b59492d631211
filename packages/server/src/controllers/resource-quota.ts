import {
  type Amounts,
  type CatalogueSnapshot,
  largerAmounts,
  objectAt,
  type ResourceDef,
  type Stored,
  sumAmounts,
} from '@wheelhouse/kinds';
import type { ResourceQuota } from '@wheelhouse/kinds/types/core/v1';
import {
  type ApiObject,
  type Clock,
  type Dialect,
  type JsonObject,
  jsonEqual,
  type Timer,
} from '@wheelhouse/machinery';
import type { QuotaLedger } from '../admission/quota/quota-ledger.ts';
import { type QuotaEvaluator, quotaEvaluator, scopesOf } from '../admission/quota/quota-usage.ts';
import { decodeEntry } from '../registry/object-codec.ts';
import type { EntryChange } from '../watchcache/contract.ts';
import { type ControllerTools, listEntries } from './tools.ts';
import { createWorkQueue } from './work-queue.ts';

/** Number of namespaces recounted concurrently. */
const workers = 4;
/** Deletions within this time are recounted together, in milliseconds. */
const batchMs = 20;

/** The dependencies of a recount. */
interface QuotaTools extends ControllerTools {
  readonly quotas: ResourceDef;
  readonly snapshot: () => CatalogueSnapshot;
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
export function startResourceQuotas(tools: QuotaTools): { close(): Promise<void> } {
  const { quotas, caches, clock, logger, resyncMs } = tools;
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
    delayedChecks.schedule(current.index.namespace);
    const before = previous === undefined ? undefined : decodeEntry(previous).spec;
    const now = decodeEntry(current);
    const isReported = jsonEqual(objectAt(now, 'spec', 'hard'), objectAt(now, 'status', 'hard'));
    if (!isReported || before === undefined || !jsonEqual(before, now.spec)) {
      queue.add(current.index.namespace);
    }
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
  const timer: Timer = clock.every(resyncMs, enqueueAll);
  return {
    async close() {
      timer.stop();
      subscription.close();
      followers.close();
      delayedChecks.close();
      await Promise.all([queue.close(), first]);
    },
  };
}

/** Follows the kinds that quotas count, each since its first quota. */
function createFollowers(
  { caches, ledger }: Pick<QuotaTools, 'caches' | 'ledger'>,
  changed: (namespace: string) => void,
) {
  const followed = new Map<ResourceDef, { close(): void }>();
  const onChange = ({ previous, current, revision }: EntryChange) => {
    const index = (current ?? previous)?.index;
    if (index === undefined) return;
    ledger.seen(index.namespace, index.uid, revision);
    // Admission charged for the new state; an update may have reduced usage.
    if (previous !== undefined) changed(index.namespace);
  };
  return {
    follow: (def: ResourceDef) => {
      if (!followed.has(def)) followed.set(def, caches.of(def).subscribe(onChange));
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
  const quotas = entries.filter(({ index }) => index.deleting !== true).map(decodeEntry);
  const counters = countersOf(tools, quotas);
  for (const { def } of counters) follow(def);
  const filledCounters = await Promise.all(
    counters.map(async (counter) => ({
      ...counter,
      objects: await objectsOf(tools, counter, namespace),
    })),
  );
  for (const quota of quotas) {
    const hard = objectAt(quota, 'spec', 'hard') ?? {};
    const used = usedOf(quota, { filledCounters, nowMs: tools.clock.now() });
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

/** An object with its possible future states. */
interface Counted {
  readonly forms: readonly ApiObject[];
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

function countersOf(tools: QuotaTools, quotas: readonly ApiObject[]): readonly Counter[] {
  const names = new Set(
    quotas.flatMap((quota) => Object.keys(objectAt(quota, 'spec', 'hard') ?? {})),
  );
  const { defs } = tools.snapshot();
  const counted = [...names].filter((name) => name.startsWith('count/'));
  const resources = [
    ...coreResources.map((resource) => ({ group: '', resource })),
    ...counted.map((name) => {
      const [resource = '', ...group] = name.slice('count/'.length).split('.');
      return { group: group.join('.'), resource };
    }),
  ];
  const evaluators = new Map<ResourceDef, QuotaEvaluator>();
  for (const { group, resource } of resources) {
    const def = defs.find(
      (candidate) => candidate.group === group && candidate.resource === resource,
    );
    if (def === undefined || def.scope !== 'Namespaced' || def.isVirtual === true) continue;
    const evaluator = quotaEvaluator(def, tools.dialect);
    if (evaluator.matching([...names]).length > 0) evaluators.set(def, evaluator);
  }
  return [...evaluators].map(([def, evaluator]) => ({ def, evaluator }));
}

async function objectsOf(
  tools: QuotaTools,
  { def }: Counter,
  namespace: string,
): Promise<readonly Counted[]> {
  const resource = def.group === '' ? def.resource : `${def.resource}.${def.group}`;
  // Read before the objects: a reservation that is missing here was either stored or dropped.
  const reserved = new Map(await tools.ledger.reserved(namespace, resource));
  const entries = await listEntries(tools.caches, { def, namespace });
  const stored = entries.map((entry) => {
    const reservedObject = reserved.get(entry.index.uid);
    reserved.delete(entry.index.uid);
    return {
      forms: [decodeEntry(entry), ...(reservedObject === undefined ? [] : [reservedObject])],
    };
  });
  return [...stored, ...[...reserved.values()].map((object) => ({ forms: [object] }))];
}

function usedOf(
  quota: Stored<ResourceQuota>,
  counted: {
    readonly filledCounters: readonly (Counter & { readonly objects: readonly Counted[] })[];
    readonly nowMs: number;
  },
): JsonObject {
  const names = Object.keys(quota.spec?.hard ?? {});
  const scopes = scopesOf(quota);
  const used: JsonObject = {};
  for (const { evaluator, objects } of counted.filledCounters) {
    const matching = evaluator.matching(names);
    let total: Amounts = new Map();
    for (const { forms } of objects) {
      const [first] = forms;
      if (first === undefined) continue;
      if (!scopes.every((scope) => evaluator.matchesScope(first, scope))) continue;
      const usages = forms.map((form) => evaluator.usage(form, counted.nowMs));
      total = sumAmounts(total, usages.reduce(largerAmounts));
    }
    for (const name of matching) used[name] = total.get(name)?.text ?? '0';
  }
  return used;
}

import type { ResourceDef } from '@wheelhouse/kinds';
import {
  type ApiObject,
  type Dialect,
  type JsonObject,
  type JsonValue,
  jsonEqual,
  Slices,
} from '@wheelhouse/machinery';
import type { Catalogue } from '../../catalogue/catalogue.ts';
import { decodedInSlices } from '../../registry/object-codec.ts';
import type { Entry } from '../../watchcache/entry.ts';
import { type ControllerTools, createAbsent, listEntries, type ObjectAt } from '../tools.ts';
import { type Controller, createWorkQueue, runningQueue } from '../work-queue.ts';

/** The rank of a group version in merged discovery. */
export interface Priority {
  readonly groupPriorityMinimum: number;
  readonly versionPriority: number;
}

/** kube-apiserver's ranks of groups, by stem. */
const groups: Readonly<Record<string, number>> = {
  '': 18_000,
  apps: 17_800,
  events: 17_750,
  authentication: 17_700,
  authorization: 17_600,
  autoscaling: 17_500,
  batch: 17_400,
  certificates: 17_300,
  networking: 17_200,
  extensions: 17_150,
  policy: 17_100,
  'rbac.authorization': 17_000,
  storage: 16_800,
  apiextensions: 16_700,
  admissionregistration: 16_700,
  scheduling: 16_600,
  coordination: 16_500,
  node: 16_300,
  discovery: 16_200,
  resource: 16_200,
  'flowcontrol.apiserver': 16_100,
  'internal.apiserver': 16_000,
  storagemigration: 15_800,
};

/** Ranks of versions that differ from the rank of their stage, by the group's stem and version. */
const versions: Readonly<Record<string, number>> = {
  '/v1': 1,
  'admissionregistration/v1beta1': 12,
  'admissionregistration/v1alpha1': 9,
  'autoscaling/v2': 30,
  'autoscaling/v2beta2': 1,
  'coordination/v1alpha2': 12,
  'discovery/v1beta1': 12,
  'events/v1beta1': 5,
  'extensions/v1beta1': 1,
  'flowcontrol.apiserver/v1': 21,
  'flowcontrol.apiserver/v1beta3': 18,
  'flowcontrol.apiserver/v1beta2': 15,
  'flowcontrol.apiserver/v1beta1': 12,
  'internal.apiserver/v1alpha1': 9,
  'rbac.authorization/v1beta1': 12,
  'scheduling/v1beta1': 12,
  'storagemigration/v1alpha1': 9,
};

/** The rank of the groups of custom kinds, which come last. */
export const customPriority: Priority = { groupPriorityMinimum: 1000, versionPriority: 100 };

/** Returns a function that ranks built-in group versions; undefined for an unranked group. */
export function prioritiesOf(
  dialect: Dialect,
): (group: string, version: string) => Priority | undefined {
  const stems = new Map(Object.keys(groups).map((stem) => [dialect.group(stem), stem]));
  return (group, version) => {
    const stem = stems.get(group);
    const groupPriorityMinimum = stem === undefined ? undefined : groups[stem];
    if (groupPriorityMinimum === undefined) return undefined;
    const versionPriority = versions[`${stem}/${version}`] ?? stageRank(version);
    return { groupPriorityMinimum, versionPriority };
  };
}

function stageRank(version: string): number {
  if (version.includes('alpha')) return 1;
  return version.includes('beta') ? 9 : 15;
}

/** The dependencies of the APIServices controller. */
export interface ApiServicesOptions extends ControllerTools {
  readonly apiServices: ResourceDef;
  readonly catalogue: Catalogue;
  readonly dialect: Dialect;
}

/**
 * Maintains an APIService for each group version that this server serves. Those of built-in groups
 * are created and updated once, at startup, so a deleted or changed one is restored by the next
 * start; those of custom kinds follow the kinds. An APIService without the label belongs to its
 * author and is not changed.
 */
export function startApiServices(options: ApiServicesOptions): Controller {
  const { apiServices, catalogue, caches } = options;
  const registrar = new Registrar(options);
  const queue = createWorkQueue({
    ...options,
    name: 'autoregister',
    workers: 1,
    run: () => registrar.reconcile(),
  });
  const subscription = caches.of(apiServices).subscribe(() => queue.add('all'));
  const unsubscribe = catalogue.subscribe(() => queue.add('all'));
  queue.add('all');
  return runningQueue(queue, subscription, unsubscribe);
}

/** Creates the missing APIServices concurrently, during startup (HEALTH-2). */
export function createApiServices(options: ApiServicesOptions): Promise<void> {
  return new Registrar(options).createMissing();
}

/**
 * How an APIService is managed, its label: created at startup, or kept in sync with custom kinds.
 */
type Management = 'onstart' | 'true';

interface DesiredService {
  readonly spec: JsonObject;
  readonly management: Management;
}

/** What a reconciliation reads of a stored APIService. */
interface StoredService {
  readonly spec: JsonValue | undefined;
  /** Undefined if it belongs to its author. */
  readonly management: Management | undefined;
}

class Registrar {
  readonly #options: ApiServicesOptions;
  readonly #label: string;
  /** Names reconciled since startup; built-in ones are left alone from then on. */
  readonly #reconciled = new Set<string>();
  /** Decoded once, since each change of a custom kind looks at all of them. */
  readonly #stored = new WeakMap<Entry, StoredService>();
  /** Until a reconciliation succeeds. */
  #isFirst = true;

  constructor(options: ApiServicesOptions) {
    this.#options = options;
    this.#label = options.dialect.label('automanaged', 'kube-aggregator');
  }

  /** Creates the missing APIServices; the first `reconcile` updates and removes others. */
  async createMissing(): Promise<void> {
    const creations = [...this.#desired()].map(([name, desired]) =>
      createAbsent(this.#options, this.#objectFor(name, desired)),
    );
    await Promise.all(creations);
  }

  /** Reconciles all APIServices. */
  async reconcile(): Promise<void> {
    const { apiServices, caches, clock } = this.#options;
    const desired = this.#desired();
    const all = { def: apiServices, namespace: '' };
    const entries = await listEntries(caches, all, { unreadable: 'omitted' });
    const present = new Map<string, StoredService>();
    const slices = new Slices(clock);
    for (const entry of entries) {
      if (slices.over) await slices.pause();
      present.set(entry.key, this.#stored.get(entry) ?? (await this.#storedService(entry)));
    }
    for (const [name, service] of desired) await this.#ensure(name, service, present.get(name));
    for (const [name, { management }] of present) {
      if (!desired.has(name)) await this.#removeStale(name, management);
    }
    this.#isFirst = false;
  }

  #desired(): ReadonlyMap<string, DesiredService> {
    const { catalogue, dialect, apiServices } = this.#options;
    const snapshot = catalogue.snapshot();
    const isServed = ({ versions }: ResourceDef) => versions.some(({ served }) => served);
    const own = new Set(snapshot.builtins.filter(isServed).map(({ group }) => group));
    const builtin = prioritiesOf(dialect);
    const desired = new Map<string, DesiredService>();
    for (const group of snapshot.groups()) {
      // The group of APIServices itself is not registered.
      if (group === apiServices.group) continue;
      for (const version of snapshot.groupVersions(group)) {
        const priority = own.has(group) ? builtin(group, version) : customPriority;
        if (priority === undefined) continue;
        const spec = { ...(group === '' ? {} : { group }), version, ...priority };
        const management = own.has(group) ? 'onstart' : 'true';
        desired.set(`${version}.${group}`, { spec, management });
      }
    }
    return desired;
  }

  #objectFor(
    name: string,
    { spec, management }: DesiredService,
  ): { at: ObjectAt; object: ApiObject } {
    const { apiServices } = this.#options;
    const object = {
      apiVersion: apiServices.storage.apiVersion,
      kind: apiServices.kind,
      metadata: { name, labels: { [this.#label]: management } },
      spec,
      status: {},
    };
    return { at: { def: apiServices, namespace: '', name }, object };
  }

  async #ensure(name: string, desired: DesiredService, found: StoredService | undefined) {
    const { spec, management } = desired;
    const { writer } = this.#options;
    if (management === 'onstart' && this.#reconciled.has(name)) return;
    const { at, object } = this.#objectFor(name, desired);
    if (found === undefined) await writer.create(at, object);
    else if (found.management !== undefined && !jsonEqual(found.spec, spec)) {
      await writer.change(at, (current) => ({ ...current, spec }));
    }
    this.#reconciled.add(name);
  }

  async #removeStale(name: string, management: Management | undefined): Promise<void> {
    const { apiServices, writer } = this.#options;
    if (management === 'true' || (management === 'onstart' && this.#isFirst)) {
      await writer.remove({ def: apiServices, namespace: '', name });
    }
  }

  async #storedService(entry: Entry): Promise<StoredService> {
    const { spec, metadata } = await decodedInSlices(entry, this.#options.clock);
    const label = metadata.labels?.[this.#label];
    const management = label === 'onstart' || label === 'true' ? label : undefined;
    const stored: StoredService = { spec, management };
    this.#stored.set(entry, stored);
    return stored;
  }
}

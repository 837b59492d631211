import type { ResourceDef } from '@wheelhouse/kinds';
import { type ApiObject, type Dialect, type JsonObject, jsonEqual } from '@wheelhouse/machinery';
import type { Catalogue } from '../../catalogue/catalogue.ts';
import { decodeEntry } from '../../registry/object-codec.ts';
import { type ControllerTools, createAbsent, listEntries, type ObjectAt } from '../tools.ts';
import { createWorkQueue } from '../work-queue.ts';

/** The rank of a group version in merged discovery. */
export interface Priority {
  readonly groupPriorityMinimum: number;
  readonly versionPriority: number;
}

/** Ranks of groups, by stem, as in kube-apiserver. */
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
  'flowcontrol.apiserver': 16_100,
  'internal.apiserver': 16_000,
  resource: 15_900,
  storagemigration: 15_800,
};

/** Versions without the usual rank of their stage, by the group's stem. */
const versions: Readonly<Record<string, number>> = {
  '/v1': 1,
  'admissionregistration/v1beta1': 12,
  'autoscaling/v2': 30,
  'autoscaling/v2beta2': 1,
  'discovery/v1beta1': 12,
  'events/v1beta1': 5,
  'extensions/v1beta1': 1,
  'flowcontrol.apiserver/v1': 21,
  'flowcontrol.apiserver/v1beta3': 18,
  'flowcontrol.apiserver/v1beta2': 15,
  'flowcontrol.apiserver/v1beta1': 12,
  'rbac.authorization/v1beta1': 12,
  'scheduling/v1beta1': 12,
};

/** Custom kinds come last. */
export const customPriority: Priority = { groupPriorityMinimum: 1000, versionPriority: 100 };

/** The ranks of built-in group versions; undefined for an unranked group. */
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

export interface ApiServicesOptions extends ControllerTools {
  readonly apiServices: ResourceDef;
  readonly catalogue: Catalogue;
  readonly dialect: Dialect;
}

/**
 * Maintains an APIService for each group version that this server serves. Those of built-in groups
 * are created at the start, so a deleted one returns with the next start; those of custom kinds
 * follow the kinds. One without the label belongs to its author.
 */
export function startApiServices(options: ApiServicesOptions): { close(): Promise<void> } {
  const { apiServices, catalogue, caches } = options;
  const registrar = new Registrar(options);
  const queue = createWorkQueue({
    ...options,
    name: 'autoregister',
    workers: 1,
    run: () => registrar.settle(),
  });
  const subscription = caches.of(apiServices).subscribe(() => queue.add('all'));
  const unsubscribe = catalogue.subscribe(() => queue.add('all'));
  queue.add('all');
  return {
    close() {
      subscription.close();
      unsubscribe();
      return queue.close();
    },
  };
}

/** Creates the missing APIServices concurrently (HEALTH-2). */
export function createApiServices(options: ApiServicesOptions): Promise<void> {
  return new Registrar(options).create();
}

/** What keeps an APIService: the start of the server, or the custom kinds of its group. */
type Keeper = 'onstart' | 'true';

interface Wanted {
  readonly spec: JsonObject;
  readonly keeper: Keeper;
}

class Registrar {
  readonly #options: ApiServicesOptions;
  readonly #label: string;
  /** Names created since the start, which are not recreated after a deletion. */
  #made: Set<string> | undefined;

  constructor(options: ApiServicesOptions) {
    this.#options = options;
    this.#label = options.dialect.label('automanaged', 'kube-aggregator');
  }

  /** Creates the missing ones; the first `settle` does the rest. */
  async create(): Promise<void> {
    const creations = [...this.#wanted()].map(([name, wanted]) =>
      createAbsent(this.#options, this.#placed(name, wanted)),
    );
    await Promise.all(creations);
  }

  /** Reconciles all APIServices. */
  async settle(): Promise<void> {
    const { apiServices, caches } = this.#options;
    const wanted = this.#wanted();
    const all = { def: apiServices, namespace: '' };
    const entries = await listEntries(caches, all, { unreadable: 'left-out' });
    const present = new Map(entries.map((entry) => [entry.key, decodeEntry(entry)]));
    const isFirst = this.#made === undefined;
    this.#made ??= new Set();
    for (const [name, one] of wanted) await this.#keep(name, one, present.get(name));
    for (const [name, one] of present) {
      if (!wanted.has(name)) await this.#leave(name, one, isFirst);
    }
  }

  #wanted(): ReadonlyMap<string, Wanted> {
    const { catalogue, dialect, apiServices } = this.#options;
    const snapshot = catalogue.snapshot();
    const isServed = ({ versions }: ResourceDef) => versions.some(({ served }) => served);
    const own = new Set(snapshot.builtins.filter(isServed).map(({ group }) => group));
    const builtin = prioritiesOf(dialect);
    const wanted = new Map<string, Wanted>();
    for (const group of snapshot.groups()) {
      // The group of APIServices itself is not registered.
      if (group === apiServices.group) continue;
      for (const version of snapshot.groupVersions(group)) {
        const priority = own.has(group) ? builtin(group, version) : customPriority;
        if (priority === undefined) continue;
        const spec = { ...(group === '' ? {} : { group }), version, ...priority };
        const keeper = own.has(group) ? 'onstart' : 'true';
        wanted.set(`${version}.${group}`, { spec, keeper });
      }
    }
    return wanted;
  }

  #placed(name: string, { spec, keeper }: Wanted): { at: ObjectAt; object: ApiObject } {
    const { apiServices } = this.#options;
    const object = {
      apiVersion: apiServices.storage.apiVersion,
      kind: apiServices.kind,
      metadata: { name, labels: { [this.#label]: keeper } },
      spec,
      status: {},
    };
    return { at: { def: apiServices, namespace: '', name }, object };
  }

  async #keep(name: string, wanted: Wanted, found: ApiObject | undefined) {
    const { spec, keeper } = wanted;
    const { apiServices, writer } = this.#options;
    const made = this.#made as Set<string>;
    const place = { def: apiServices, namespace: '', name };
    if (found === undefined) {
      if (keeper === 'onstart' && made.has(name)) return;
      made.add(name);
      const { at, object } = this.#placed(name, wanted);
      await writer.create(at, object);
      return;
    }
    made.add(name);
    if (this.#keeperOf(found) === undefined || jsonEqual(found['spec'], spec)) return;
    await writer.change(place, (current) => ({ ...current, spec }));
  }

  async #leave(name: string, found: ApiObject, isFirst: boolean): Promise<void> {
    const { apiServices, writer } = this.#options;
    const keeper = this.#keeperOf(found);
    if (keeper === 'true' || (keeper === 'onstart' && isFirst)) {
      await writer.remove({ def: apiServices, namespace: '', name });
    }
  }

  #keeperOf(object: ApiObject): string | undefined {
    return object.metadata.labels?.[this.#label];
  }
}

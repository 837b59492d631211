import type { ResourceDef } from '@wheelhouse/kinds';
import { type ApiObject, type Dialect, type JsonObject, jsonEqual } from '@wheelhouse/machinery';
import type { Catalogue } from '../../catalogue/catalogue.ts';
import { decodeEntry } from '../../registry/object-codec.ts';
import { createAbsent } from '../create-absent.ts';
import type { ControllerTools, ObjectAt } from '../inside.ts';
import { listEntries } from '../removal.ts';
import { createWorkQueue } from '../work-queue.ts';
import { customPriority, prioritiesOf } from './api-service-priorities.ts';

export interface ApiServicesOptions extends ControllerTools {
  readonly apiServices: ResourceDef;
  readonly catalogue: Catalogue;
  readonly dialect: Dialect;
}

/**
 * Keeps an APIService for each group version that this server answers. Those of built-in groups are
 * made at the start, so one that somebody deletes comes back with the next start; those of custom
 * kinds come and go with the kinds. One without the label is its author's own.
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

/** Creates the absent APIServices, all at once (HEALTH-2). */
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
  /** Names made since the start: what is deleted after that stays away. */
  #made: Set<string> | undefined;

  constructor(options: ApiServicesOptions) {
    this.#options = options;
    this.#label = options.dialect.label('automanaged', 'kube-aggregator');
  }

  /** Creates what is absent. The rest is left to the first `settle`. */
  async create(): Promise<void> {
    const creations = [...this.#wanted()].map(([name, wanted]) =>
      createAbsent(this.#options, this.#placed(name, wanted)),
    );
    await Promise.all(creations);
  }

  /** Brings all in order. */
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
      // The group of these objects themselves is not among those registered.
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
    const { apiServices, inside } = this.#options;
    const made = this.#made as Set<string>;
    const place = { def: apiServices, namespace: '', name };
    if (found === undefined) {
      if (keeper === 'onstart' && made.has(name)) return;
      made.add(name);
      const { at, object } = this.#placed(name, wanted);
      await inside.create(at, object);
      return;
    }
    made.add(name);
    if (this.#keeperOf(found) === undefined || jsonEqual(found['spec'], spec)) return;
    await inside.change(place, (current) => ({ ...current, spec }));
  }

  async #leave(name: string, found: ApiObject, isFirst: boolean): Promise<void> {
    const { apiServices, inside } = this.#options;
    const keeper = this.#keeperOf(found);
    if (keeper === 'true' || (keeper === 'onstart' && isFirst)) {
      await inside.remove({ def: apiServices, namespace: '', name });
    }
  }

  #keeperOf(object: ApiObject): string | undefined {
    return object.metadata.labels?.[this.#label];
  }
}

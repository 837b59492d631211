import type { Clock } from '../base/clock.ts';
import { isObject, type JsonObject, jsonEqual, member } from '../base/json.ts';
import type { Logger } from '../base/log.ts';
import type { Catalogue } from '../catalogue/catalogue.ts';
import type { ResourceDef } from '../catalogue/resource-def.ts';
import type { Dialect } from '../dialect.ts';
import { availableCondition } from '../kinds/apiregistration/api-service.ts';
import { formatTime } from '../meta/times.ts';
import type { ApiObject } from '../meta/types.ts';
import type { CachePool } from '../registry/cache-pool.ts';
import { decodeEntry, objectKey } from '../registry/object-codec.ts';
import { customPriority, prioritiesOf } from './api-service-priorities.ts';
import type { Inside } from './inside.ts';
import { listEntries } from './removal.ts';
import { createWorkQueue } from './work-queue.ts';

export interface ApiServicesOptions {
  readonly apiServices: ResourceDef;
  readonly services: ResourceDef;
  readonly catalogue: Catalogue;
  readonly caches: CachePool;
  readonly inside: Inside;
  readonly dialect: Dialect;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** How long the look at a Service that another server stands behind is good for. */
const lookAgainMs = 30_000;

/**
 * Keeps an APIService for each group version that this server answers, and says of those of others
 * that they are not available, as nothing is passed on. Those of built-in groups are made at the
 * start, so one that somebody deletes comes back with the next start; those of custom kinds come and
 * go with the kinds. One without the label is its author's own.
 */
export function startApiServices(options: ApiServicesOptions): { close(): Promise<void> } {
  const { apiServices, catalogue, caches, clock, logger } = options;
  const registrar = new Registrar(options);
  const queue = createWorkQueue({
    name: 'autoregister',
    clock,
    logger,
    workers: 1,
    run: async () => {
      if (await registrar.settle()) queue.addAfter('all', lookAgainMs);
    },
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

  /** Brings all in order; true when there are some of other servers, to look at again. */
  async settle(): Promise<boolean> {
    const { apiServices, caches } = this.#options;
    const wanted = this.#wanted();
    const entries = await listEntries(caches, { def: apiServices, namespace: '' });
    const present = new Map(entries.map(decodeEntry).map((one) => [one.metadata.name ?? '', one]));
    const isFirst = this.#made === undefined;
    this.#made ??= new Set();
    for (const [name, one] of wanted) await this.#keep(name, one, present.get(name));
    for (const [name, one] of present) {
      if (!wanted.has(name)) await this.#leave(name, one, isFirst);
    }
    const remote = [...present.values()].filter((one) => serviceOf(one) !== undefined);
    for (const one of remote) await this.#tellUnavailable(one);
    return remote.length > 0;
  }

  #wanted(): ReadonlyMap<string, Wanted> {
    const { catalogue, dialect, apiServices } = this.#options;
    const snapshot = catalogue.snapshot();
    const custom = new Set(snapshot.defs.filter(({ custom }) => custom).map(({ group }) => group));
    const builtin = prioritiesOf(dialect);
    const wanted = new Map<string, Wanted>();
    for (const group of snapshot.groups()) {
      // The group of these objects themselves is not among those registered.
      if (group === apiServices.group) continue;
      for (const version of snapshot.groupVersions(group)) {
        const priority = custom.has(group) ? customPriority : builtin(group, version);
        if (priority === undefined) continue;
        const spec = { ...(group === '' ? {} : { group }), version, ...priority };
        const keeper = custom.has(group) ? 'true' : 'onstart';
        wanted.set(`${version}.${group}`, { spec, keeper });
      }
    }
    return wanted;
  }

  async #keep(name: string, { spec, keeper }: Wanted, found: ApiObject | undefined) {
    const { apiServices, inside } = this.#options;
    const made = this.#made as Set<string>;
    const place = { def: apiServices, namespace: '', name };
    if (found === undefined) {
      if (keeper === 'onstart' && made.has(name)) return;
      made.add(name);
      await inside.create(place, {
        apiVersion: apiServices.storage.apiVersion,
        kind: apiServices.kind,
        metadata: { name, labels: { [this.#label]: keeper } },
        spec,
        status: {},
      });
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

  async #tellUnavailable(object: ApiObject): Promise<void> {
    const { apiServices, inside, clock } = this.#options;
    const { reason, message } = await this.#whyUnavailable(object);
    const before = conditionOf(object);
    if (before?.['reason'] === reason && before['message'] === message) return;
    const name = object.metadata.name ?? '';
    const since = before?.['status'] === 'False' ? before['lastTransitionTime'] : undefined;
    const lastTransitionTime = since ?? formatTime(clock.now());
    const type = availableCondition;
    const condition = { type, status: 'False', lastTransitionTime, reason, message };
    const place = { def: apiServices, namespace: '', name, subresource: 'status' };
    await inside.change(place, (current) => ({
      ...current,
      status: { conditions: [...otherConditions(current), condition] },
    }));
  }

  async #whyUnavailable(object: ApiObject): Promise<{ reason: string; message: string }> {
    const { services, caches } = this.#options;
    const service = serviceOf(object) ?? {};
    const [namespace, name] = [String(service['namespace']), String(service['name'])];
    const entry = await caches.of(services).get(objectKey(namespace, name), undefined);
    if (entry === undefined) {
      const message = `service/${name} in ${JSON.stringify(namespace)} is not present`;
      return { reason: 'ServiceNotFound', message };
    }
    const message = 'this server passes no requests on to other servers';
    return { reason: 'FailedDiscoveryCheck', message };
  }
}

function serviceOf(object: ApiObject): JsonObject | undefined {
  const { spec } = object;
  const service = isObject(spec) ? member(spec, 'service') : undefined;
  return isObject(service) ? service : undefined;
}

function conditionsOf(object: ApiObject): readonly JsonObject[] {
  const { status } = object;
  const conditions = isObject(status) ? member(status, 'conditions') : undefined;
  return Array.isArray(conditions) ? conditions.filter(isObject) : [];
}

const conditionOf = (object: ApiObject) =>
  conditionsOf(object).find((one) => one['type'] === availableCondition);

const otherConditions = (object: ApiObject) =>
  conditionsOf(object).filter((one) => one['type'] !== availableCondition);

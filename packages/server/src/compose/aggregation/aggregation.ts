import { availableCondition, type ResourceDef } from '@wheelhouse/kinds';
import {
  type ApiObject,
  andThen,
  appendAll,
  type Clock,
  type Counter,
  type Family,
  isObject,
  type MaybePromise,
  type Timer,
} from '@wheelhouse/machinery';
import type { Aggregation } from '../../aggregation/aggregation.ts';
import { requiredKind } from '../../catalogue/catalogue.ts';
import { customPriority, prioritiesOf } from '../../controllers/aggregation/api-services.ts';
import { listContent, listEntries } from '../../controllers/tools.ts';
import type { AggregationPort, AggregationSlot } from '../../endpoints/call.ts';
import { openProxyCertificate } from '../../files/followed-files.ts';
import type { CachePool } from '../../registry/caches.ts';
import { EntryDecoder } from '../../registry/entry-decoder.ts';
import { decodedInSlices } from '../../registry/object-codec.ts';
import type { EntryChange } from '../../watchcache/contract.ts';
import type { Entry } from '../../watchcache/entry.ts';
import type { Base, ObjectApi } from '../context.ts';
import type { Metrics } from '../observability/metrics.ts';
import type { AggregationSources } from './open-aggregation.ts';

/**
 * Exposes which APIServices are unavailable; returns the counter of those that became so, by name
 * and reason.
 */
function countUnavailable(
  metrics: Pick<Metrics, 'registry' | 'beforeRender'>,
  of: { readonly caches: CachePool; readonly apiServices: ResourceDef; readonly clock: Clock },
): Family<Counter> {
  const { registry } = metrics;
  const stability = 'ALPHA';
  const unavailable = registry.gauge({
    name: 'aggregator_unavailable_apiservice',
    help: 'Gauge of APIServices which are marked as unavailable broken down by APIService name.',
    stability,
    labels: ['name'],
  });
  const availability = new WeakMap<Entry, boolean>();
  metrics.beforeRender(async () => {
    const at = { def: of.apiServices, namespace: '' };
    let list: Awaited<ReturnType<typeof listContent>>;
    try {
      const options = { resourceVersion: '0', unreadable: 'omitted' } as const;
      list = await listContent(of.caches, at, options);
    } catch {
      // The gauge keeps its last values while the store is unavailable.
      return;
    }
    const states: (readonly [name: string, isAvailable: boolean])[] = [];
    for (const entry of list.entries()) {
      const found = availability.get(entry) ?? isAvailable(entry, of.clock);
      const isNow = found instanceof Promise ? await found : found;
      availability.set(entry, isNow);
      states.push([entry.index.name, isNow]);
    }
    unavailable.clear();
    for (const [name, isNow] of states) unavailable.of(name).set(isNow ? 0 : 1);
  });
  return registry.counter({
    name: 'aggregator_unavailable_apiservice_total',
    help: 'Counter of APIServices which are marked as unavailable broken down by APIService name and reason.',
    stability,
    labels: ['name', 'reason'],
  });
}

function isAvailable(entry: Entry, clock: Clock): MaybePromise<boolean> {
  return andThen(decodedInSlices(entry, clock), hasAvailableCondition);
}

function hasAvailableCondition({ status }: ApiObject): boolean {
  const conditions = isObject(status) ? status['conditions'] : undefined;
  if (!Array.isArray(conditions)) return false;
  return conditions.some(
    (condition) =>
      isObject(condition) &&
      condition['type'] === availableCondition &&
      condition['status'] === 'True',
  );
}

/** The slot as its host fills it. */
interface MutableSlot {
  active: AggregationPort | undefined;
}

/** Answers for the groups of other servers; the code is loaded with the first such APIService. */
export interface AggregationHost {
  /** Its port changes with the APIServices. */
  readonly slot: AggregationSlot;
  /**
   * Resolves when all APIServices of other servers are loaded. If the stored bytes contain none,
   * loads no code.
   */
  start(): Promise<void>;
  /** Follows the APIServices from `ready` on, if `start` did not already. */
  followAfter(ready: Promise<void>): void;
  /**
   * Publishes the CAs this server trusts once `namespaces` resolves; does nothing without such CAs.
   */
  publishTrust(namespaces: Promise<void>): Promise<void>;
  close(): Promise<void>;
}

/**
 * Follows the APIServices that this server does not manage: those of other servers, and those that
 * users created or whose ranks they changed. Throws when the client certificate for other servers
 * cannot be read.
 */
export function createAggregationHost(
  options: Base & ObjectApi & { readonly slot: MutableSlot },
): AggregationHost {
  const { dialect, catalogue, registry, metrics } = options;
  const group = dialect.group('apiregistration');
  const apiServices = requiredKind(catalogue.snapshot(), group, 'apiservices');
  const { clock } = options.config;
  const lost = countUnavailable(metrics, { caches: registry.caches, apiServices, clock });
  return new Host({ ...options, apiServices, lost });
}

class Host implements AggregationHost {
  readonly slot: MutableSlot;
  readonly #sources: AggregationSources;
  readonly #automanaged: string;
  readonly #rankOf: ReturnType<typeof prioritiesOf>;
  readonly #foreign = new Map<string, ApiObject>();
  readonly #decoder: EntryDecoder;
  #closers: { close(): void }[] = [];
  #subscription: { close(): void } | undefined;
  #loading: Promise<void> | undefined;
  #loaded: Aggregation | undefined;
  #isClosed = false;
  #following: Promise<void> | undefined;
  #timer: Timer | undefined;
  #trust: { close(): Promise<void> } | undefined;

  constructor(sources: Omit<AggregationSources, 'certificate'> & { readonly slot: MutableSlot }) {
    const { config, slot } = sources;
    this.slot = slot;
    const files = config.aggregation?.certificate;
    const changed = () => this.#loaded?.certificateChanged();
    const certificate = files && openProxyCertificate(files, { ...config, changed });
    this.#sources = { ...sources, certificate };
    this.#automanaged = sources.dialect.label('automanaged', 'kube-aggregator');
    this.#rankOf = prioritiesOf(sources.dialect);
    this.#decoder = new EntryDecoder(config.clock);
  }

  async start(): Promise<void> {
    const { registry, apiServices } = this.#sources;
    const { prefix } = apiServices.storage;
    const { records } = await registry.store.range({ prefix });
    const isOwn = ({ key, value }: (typeof records)[number]) =>
      this.#isOwn(key.slice(prefix.length), value);
    if (!records.every(isOwn)) await this.#followOnce();
  }

  followAfter(ready: Promise<void>): void {
    const { clock, controllersPauseMs, logger } = this.#sources.config;
    const begin = () => {
      if (this.#isClosed) return;
      this.#followOnce().catch((error: unknown) =>
        logger.error('cannot watch APIServices', { error: String(error) }),
      );
    };
    const beginSoon = () => {
      if (controllersPauseMs === undefined) begin();
      else this.#timer = clock.after(controllersPauseMs, begin);
    };
    ready.then(beginSoon, () => {});
  }

  /** Later calls share the work of the first one, unless that has failed. */
  #followOnce(): Promise<void> {
    this.#following ??= this.#follow().catch((error: unknown) => {
      this.#following = undefined;
      throw error;
    });
    return this.#following;
  }

  async #follow(): Promise<void> {
    const { registry, apiServices } = this.#sources;
    const cache = registry.caches.of(apiServices);
    this.#subscription ??= cache.subscribe((change) => this.#changed(change));
    await cache.ready();
    const all = { def: apiServices, namespace: '' };
    const entries = await listEntries(registry.caches, all, { unreadable: 'omitted' });
    for (const { key } of entries) {
      const current = cache.peek(key);
      if (current !== undefined) this.#note({ name: key, entry: current }, () => {});
    }
    await this.#decoder.settled();
    await this.#update();
  }

  async publishTrust(namespaces: Promise<void>): Promise<void> {
    const { clientCaFile, requestHeader } = this.#sources.config.authentication;
    if (clientCaFile === undefined && requestHeader === undefined) return;
    const { publishTrust } = await import('../authentication/published-trust.ts');
    await namespaces;
    if (this.#isClosed) return;
    const published = publishTrust(this.#sources);
    this.#trust = published;
    await published.settled;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.slot.active = undefined;
    this.#timer?.stop();
    this.#subscription?.close();
    for (const closer of this.#closers.splice(0)) closer.close();
    this.#sources.certificate?.close();
    await this.#trust?.close();
    await this.#loading?.catch(() => {});
    await this.#loaded?.close();
  }

  #changed({ previous, current }: EntryChange): void {
    const name = (current ?? previous)?.index.name ?? '';
    this.#note({ name, entry: current }, () => {
      this.#update().catch((error: unknown) => {
        const { logger } = this.#sources.config;
        logger.error('cannot proxy requests to other servers', { error: String(error) });
      });
    });
  }

  /** @param changed called if the state of an APIService of another server has changed */
  #note(
    { name, entry }: { readonly name: string; readonly entry: Entry | undefined },
    changed: () => void,
  ): void {
    const isForeign = entry !== undefined && !this.#isOwn(name, entry.json);
    this.#decoder.pass(name, isForeign ? entry : undefined, (object) => {
      if (object !== undefined) this.#foreign.set(name, object);
      else if (!this.#foreign.delete(name)) return;
      changed();
    });
  }

  /**
   * Whether this server manages an APIService, and nobody changed its rank. Most are, so the bytes
   * are searched without decoding.
   */
  #isOwn(name: string, json: Buffer): boolean {
    if (!json.includes(`"${this.#automanaged}":"`) || json.includes('"service":')) return false;
    const point = name.indexOf('.');
    const rank = this.#rankOf(name.slice(point + 1), name.slice(0, point)) ?? customPriority;
    return Object.entries(rank).every(
      ([field, value]) =>
        json.includes(`"${field}":${value},`) || json.includes(`"${field}":${value}}`),
    );
  }

  async #update(): Promise<void> {
    if (this.#foreign.size === 0) this.slot.active = undefined;
    if (this.#foreign.size === 0 && this.#loading === undefined) return;
    if (this.#loaded === undefined) {
      this.#loading ??= this.#load().catch((error: unknown) => {
        this.#loading = undefined;
        throw error;
      });
      await this.#loading;
    }
    const loaded = this.#loaded;
    if (this.#isClosed || loaded === undefined) return;
    loaded.update(new Map(this.#foreign));
    this.slot.active = this.#foreign.size === 0 ? undefined : loaded;
  }

  async #load(): Promise<void> {
    const { openAggregation } = await import('./open-aggregation.ts');
    const { aggregation, closers } = openAggregation(this.#sources);
    appendAll(this.#closers, closers);
    this.#loaded = aggregation;
  }
}

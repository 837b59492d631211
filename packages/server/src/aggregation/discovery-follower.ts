import {
  type Clock,
  type Dialect,
  errorText,
  type JsonObject,
  type Logger,
  type UserInfo,
} from '@wheelhouse/machinery';
import type { QueueMeters } from '../controllers/queue-metrics.ts';
import { createWorkQueue, type WorkQueue } from '../controllers/work-queue.ts';
import { discoveryPathOf, type RemoteApi } from './api-service.ts';
import {
  isAggregated,
  type RemoteVersions,
  readAggregated,
  readResourceList,
} from './discovery-documents.ts';
import type { DocumentQuery, FetchedDocument } from './fetch-document.ts';

/** Asks a document of the server that answers for a group version. */
export type AskServer = (api: RemoteApi, query: DocumentQuery) => Promise<FetchedDocument>;

const timeoutMs = 5_000;
const documentBytesMax = 4 * 1024 * 1024;
const refreshMs = 60_000;
const firstRetryMs = 500;

const aggregator: UserInfo = {
  name: 'system:kube-aggregator',
  uid: '',
  groups: ['system:masters'],
  extra: {},
};

interface Followed {
  readonly api: RemoteApi;
  /** Undefined before the first look. */
  version: JsonObject | undefined;
  failures: number;
}

/**
 * The discovery documents of other servers, fetched when an APIService changes and every minute. A
 * group version whose server cannot be reached is marked stale.
 */
export class DiscoveryFollower {
  readonly #options: {
    readonly dialect: Dialect;
    readonly clock: Clock;
    readonly logger: Logger;
    readonly queues?: QueueMeters | undefined;
    readonly ask: AskServer;
  };
  readonly #queue: WorkQueue;
  #followed: ReadonlyMap<string, Followed> = new Map();
  /** The last whole document of each Service, for comparison by its tag. */
  readonly #documents = new Map<string, { etag: string; versions: RemoteVersions }>();
  #generation = 0;
  #firstLook: Promise<unknown> | undefined;

  constructor(options: {
    readonly dialect: Dialect;
    readonly clock: Clock;
    readonly logger: Logger;
    readonly queues?: QueueMeters | undefined;
    readonly ask: AskServer;
  }) {
    this.#options = options;
    const { clock, logger } = options;
    const run = (name: string) => this.#look(name);
    this.#queue = createWorkQueue({
      queues: options.queues,
      name: 'discovery-manager',
      clock,
      logger,
      workers: 2,
      run,
    });
  }

  /** Counts changes of what is known. */
  get generation(): number {
    return this.#generation;
  }

  /** Sets the servers to follow. Fetches from those that are new or changed. */
  update(apis: readonly RemoteApi[]): void {
    const before = this.#followed;
    const next = new Map<string, Followed>();
    for (const api of apis) {
      const previous = before.get(api.name);
      if (previous?.api === api) next.set(api.name, previous);
      else next.set(api.name, { api, version: previous?.version, failures: 0 });
    }
    this.#followed = next;
    this.#generation += 1;
    const services = new Set(apis.map(serviceKey));
    for (const key of this.#documents.keys()) if (!services.has(key)) this.#documents.delete(key);
    if (this.#firstLook === undefined && apis.length > 0) {
      this.#firstLook = Promise.all(apis.map(({ name }) => this.#look(name)));
      return;
    }
    for (const [name, one] of next) if (before.get(name) !== one) this.#queue.add(name);
  }

  /** Resolves when the servers that were there first have been asked; that takes some seconds at most. */
  async firstLook(): Promise<void> {
    await this.#firstLook;
  }

  /** The discovery entry of a group version; undefined before the first fetch. */
  versionOf({ name }: RemoteApi): JsonObject | undefined {
    return this.#followed.get(name)?.version;
  }

  close(): Promise<void> {
    this.#followed = new Map();
    return this.#queue.close();
  }

  async #look(name: string): Promise<void> {
    const one = this.#followed.get(name);
    if (one === undefined) return;
    const { api } = one;
    let entry: JsonObject;
    try {
      const found = await this.#ask(api);
      entry = { version: api.version, ...found, freshness: 'Current' };
      one.failures = 0;
    } catch (error) {
      const why = errorText(error);
      this.#options.logger.debug(2, 'discovery of another server failed', { name, error: why });
      entry = { version: api.version, freshness: 'Stale' };
      one.failures += 1;
    }
    if (this.#followed.get(name) !== one) return;
    one.version = entry;
    this.#generation += 1;
    const retryMs = firstRetryMs * 2 ** Math.min(one.failures - 1, 10);
    this.#queue.addAfter(name, one.failures === 0 ? refreshMs : Math.min(refreshMs, retryMs));
  }

  async #ask(api: RemoteApi): Promise<JsonObject | undefined> {
    const { ask, dialect } = this.#options;
    const key = serviceKey(api);
    const cached = this.#documents.get(key);
    const group = dialect.group('apidiscovery');
    const accept = (['v2', 'v2beta1'] as const)
      .map((version) => `application/json;g=${group};v=${version};as=APIGroupDiscoveryList`)
      .join(',');
    const query = { user: aggregator, timeoutMs, bytesMax: documentBytesMax };
    const answer = await ask(api, { ...query, path: '/apis', accept, etag: cached?.etag });
    const place = `${api.group}/${api.version}`;
    if (answer.status === 304 && cached !== undefined) return cached.versions.get(place);
    if (answer.status === 503) throw new Error(`${key} answered with status 503`);
    if (answer.status === 200 && isAggregated(answer.contentType)) {
      const versions = readAggregated(answer.body);
      this.#documents.set(key, { etag: answer.etag, versions });
      return versions.get(place);
    }
    const path = discoveryPathOf(api);
    const user = { ...aggregator, groups: [] };
    const list = await ask(api, { ...query, user, path, accept: 'application/json' });
    if (list.status !== 200) throw new Error(`${key} answered with status ${list.status}`);
    return readResourceList(list.body, api.version);
  }
}

function serviceKey({ remote }: RemoteApi): string {
  const { namespace, name, port } = remote.service;
  return `${namespace}/${name}:${port}`;
}

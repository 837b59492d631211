import { decodeJsonInSlices, parseAccept } from '@wheelhouse/codec';
import {
  acceptedDiscoveryGroups,
  type Clock,
  type Dialect,
  errorText,
  isObject,
  type JsonObject,
  type JsonValue,
  jsonEqual,
  type Logger,
  member,
} from '@wheelhouse/machinery';
import { createWorkQueue, type QueueMeters, type WorkQueue } from '../controllers/work-queue.ts';
import { aggregator, discoveryPathOf, type RemoteApi } from './api-service.ts';
import type { DocumentQuery, FetchedDocument } from './fetch-document.ts';

/** Fetches a document from the server of a group version. Rejects if the server does not answer. */
export type FetchFromServer = (api: RemoteApi, query: DocumentQuery) => Promise<FetchedDocument>;

/** Timeout of a fetch, milliseconds. */
const timeoutMs = 5_000;
const documentBytesMax = 4 * 1024 * 1024;
const refreshMs = 60_000;
const firstRetryMs = 500;

interface Followed {
  readonly api: RemoteApi;
  /** Undefined before the first fetch. */
  version: JsonObject | undefined;
  failures: number;
}

/**
 * The discovery documents of other servers, fetched when an APIService changes and every minute.
 * The group versions of an unreachable server are marked stale.
 */
export class DiscoveryFollower {
  readonly #options: {
    readonly dialect: Dialect;
    readonly clock: Clock;
    readonly logger: Logger;
    readonly queues?: QueueMeters | undefined;
    readonly fetch: FetchFromServer;
  };
  readonly #queue: WorkQueue;
  #followed: ReadonlyMap<string, Followed> = new Map();
  /** The last whole document of each Service, for revalidation by its ETag. */
  readonly #documents = new Map<string, { etag: string; versions: RemoteVersions }>();
  #generation = 0;
  #firstFetch: Promise<unknown> | undefined;

  constructor(options: {
    readonly dialect: Dialect;
    readonly clock: Clock;
    readonly logger: Logger;
    readonly queues?: QueueMeters | undefined;
    readonly fetch: FetchFromServer;
  }) {
    this.#options = options;
    const { clock, logger } = options;
    const run = (name: string) => this.#refresh(name);
    this.#queue = createWorkQueue({
      queues: options.queues,
      name: 'discovery-manager',
      clock,
      logger,
      workers: 2,
      run,
    });
  }

  /** The number of changes of the discovery data so far. */
  get generation(): number {
    return this.#generation;
  }

  /** Replaces the servers to follow, and fetches from those that are new or changed. */
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
    if (this.#firstFetch === undefined && apis.length > 0) {
      this.#firstFetch = Promise.all(apis.map(({ name }) => this.#refresh(name)));
      return;
    }
    for (const [name, followed] of next) if (before.get(name) !== followed) this.#queue.add(name);
  }

  /** Resolves within seconds, when all servers of the first update have answered or failed. */
  async firstFetch(): Promise<void> {
    await this.#firstFetch;
  }

  /** The discovery entry of a group version; undefined before the first fetch. */
  versionOf({ name }: RemoteApi): JsonObject | undefined {
    return this.#followed.get(name)?.version;
  }

  /** Stops fetching. */
  close(): Promise<void> {
    this.#followed = new Map();
    return this.#queue.close();
  }

  async #refresh(name: string): Promise<void> {
    const followed = this.#followed.get(name);
    if (followed === undefined) return;
    const { api } = followed;
    let entry: JsonObject;
    try {
      const fetched = await this.#fetchVersion(api);
      entry = { version: api.version, ...fetched, freshness: 'Current' };
      followed.failures = 0;
    } catch (error) {
      const why = errorText(error);
      this.#options.logger.debug(2, 'cannot fetch the discovery of an APIService', {
        name,
        error: why,
      });
      entry = { version: api.version, freshness: 'Stale' };
      followed.failures += 1;
    }
    if (this.#followed.get(name) !== followed) return;
    if (followed.version === undefined || !jsonEqual(followed.version, entry)) {
      followed.version = entry;
      this.#generation += 1;
    }
    const retryMs = firstRetryMs * 2 ** Math.min(followed.failures - 1, 10);
    this.#queue.addAfter(name, followed.failures === 0 ? refreshMs : Math.min(refreshMs, retryMs));
  }

  async #fetchVersion(api: RemoteApi): Promise<JsonObject | undefined> {
    const { fetch, clock, dialect } = this.#options;
    const key = serviceKey(api);
    const cached = this.#documents.get(key);
    const group = dialect.group('apidiscovery');
    const accept = (['v2', 'v2beta1'] as const)
      .map((version) => `application/json;g=${group};v=${version};as=APIGroupDiscoveryList`)
      .join(',');
    const query = { user: aggregator, timeoutMs, bytesMax: documentBytesMax };
    const answer = await fetch(api, { ...query, path: '/apis', accept, etag: cached?.etag });
    const place = `${api.group}/${api.version}`;
    if (answer.status === 304 && cached !== undefined) return cached.versions.get(place);
    if (answer.status === 503) throw new Error(`${key} answered with status 503`);
    if (answer.status === 200 && isAggregated(answer.contentType)) {
      const versions = readAggregated(await decoded(answer.body, clock));
      this.#documents.set(key, { etag: answer.etag, versions });
      return versions.get(place);
    }
    const path = discoveryPathOf(api);
    const user = { ...aggregator, groups: [] };
    const list = await fetch(api, { ...query, user, path, accept: 'application/json' });
    if (list.status !== 200) throw new Error(`${key} answered with status ${list.status}`);
    return readResourceList(await decoded(list.body, clock), api.version);
  }
}

function serviceKey({ remote }: RemoteApi): string {
  const { namespace, name, port } = remote.service;
  return `${namespace}/${name}:${port}`;
}

/** The discovery entries of a server by `<group>/<version>`. */
type RemoteVersions = ReadonlyMap<string, JsonObject>;

/** Whether a content type is that of aggregated discovery. */
function isAggregated(contentType: string): boolean {
  return parseAccept(contentType).some(({ parameters }) => {
    const isList = parameters.get('as') === 'APIGroupDiscoveryList';
    const isSupported = ['v2', 'v2beta1'].includes(parameters.get('v') ?? '');
    return isList && isSupported && acceptedDiscoveryGroups.includes(parameters.get('g') ?? '');
  });
}

/**
 * Reads another server's aggregated discovery, without members that clients do not need. Throws if
 * a member has the wrong type.
 */
function readAggregated(document: JsonObject): RemoteVersions {
  const versionsByName = new Map<string, JsonObject>();
  for (const group of objectsIn(document, 'items')) {
    const metadata = objectIn(group, 'metadata') ?? {};
    const name = textIn(metadata, 'name');
    for (const version of objectsIn(group, 'versions')) {
      const resources = objectsIn(version, 'resources').map(resourceOf);
      const text = textIn(version, 'version');
      versionsByName.set(`${name}/${text}`, versionEntry(text, resources));
    }
  }
  return versionsByName;
}

function versionEntry(version: string, resources: readonly JsonObject[]): JsonObject {
  return resources.length === 0 ? { version } : { version, resources: [...resources] };
}

function resourceOf(from: JsonObject): JsonObject {
  const subresources = objectsIn(from, 'subresources').map((subresource) => ({
    subresource: textIn(subresource, 'subresource'),
    responseKind: kindOf(objectIn(subresource, 'responseKind')),
    ...optionalList(
      subresource,
      'acceptedTypes',
      objectsIn(subresource, 'acceptedTypes').map(kindOf),
    ),
    verbs: verbsOf(subresource),
  }));
  return {
    resource: textIn(from, 'resource'),
    responseKind: kindOf(objectIn(from, 'responseKind')),
    scope: textIn(from, 'scope'),
    singularResource: textIn(from, 'singularResource'),
    verbs: verbsOf(from),
    ...optionalList(from, 'shortNames', textsIn(from, 'shortNames')),
    ...optionalList(from, 'categories', textsIn(from, 'categories')),
    ...optionalList(from, 'subresources', subresources),
  };
}

/**
 * Reads the resource list of a version, which servers without aggregated discovery provide. Throws
 * if a member has the wrong type.
 */
function readResourceList(document: JsonObject, version: string): JsonObject {
  const list = objectsIn(document, 'resources');
  const resources = new Map<string, JsonObject & { subresources: JsonObject[] }>();
  for (const resource of list) {
    const name = textIn(resource, 'name');
    if (name.includes('/')) continue;
    resources.set(name, { ...topResource(resource, name), subresources: [] });
  }
  for (const resource of list) {
    const [name = '', ...rest] = textIn(resource, 'name').split('/');
    if (rest.length === 0) continue;
    const orphan = {
      resource: name,
      responseKind: kindOf(undefined),
      scope: scopeOf(resource),
      singularResource: '',
      verbs: null,
    };
    const parent = resources.get(name) ?? { ...orphan, subresources: [] };
    resources.set(name, parent);
    if (parent['scope'] !== scopeOf(resource)) {
      throw new Error(`the scopes of ${name} and ${name}/${rest.join('/')} do not match`);
    }
    parent.subresources.push({
      subresource: rest.join('/'),
      responseKind: kindOf(textIn(resource, 'kind') === '' ? undefined : resource),
      verbs: verbsOf(resource),
    });
  }
  return versionEntry(
    version,
    [...resources.values()].map(({ subresources, ...rest }) =>
      subresources.length === 0 ? rest : { ...rest, subresources },
    ),
  );
}

function topResource(resource: JsonObject, name: string): JsonObject {
  return {
    resource: name,
    responseKind: kindOf(resource),
    scope: scopeOf(resource),
    singularResource: textIn(resource, 'singularName'),
    verbs: verbsOf(resource),
    ...optionalList(resource, 'shortNames', textsIn(resource, 'shortNames')),
    ...optionalList(resource, 'categories', textsIn(resource, 'categories')),
  };
}

/** The verbs of a resource; like kube-apiserver, null if the other server states none. */
function verbsOf(resource: JsonObject): string[] | null {
  const verbs = textsIn(resource, 'verbs');
  return verbs.length === 0 && !Array.isArray(member(resource, 'verbs')) ? null : verbs;
}

function scopeOf(resource: JsonObject): string {
  const namespaced = member(resource, 'namespaced') ?? false;
  if (typeof namespaced !== 'boolean') throw wrongType('namespaced');
  return namespaced ? 'Namespaced' : 'Cluster';
}

function kindOf(from: JsonObject | undefined): JsonObject {
  const read = (name: string) => (from === undefined ? '' : textIn(from, name));
  return { group: read('group'), version: read('version'), kind: read('kind') };
}

function optionalList(from: JsonObject, name: string, values: JsonValue[]): JsonObject {
  const original = member(from, name);
  return original === undefined || original === null || values.length === 0
    ? {}
    : { [name]: values };
}

async function decoded(body: Buffer, clock: Clock): Promise<JsonObject> {
  const { value } = await decodeJsonInSlices(body, { clock });
  if (!isObject(value)) throw new Error('the discovery document is not an object');
  return value;
}

const wrongType = (name: string) =>
  new Error(`${JSON.stringify(name)} in the discovery document has the wrong type`);

function objectIn(from: JsonObject, name: string): JsonObject | undefined {
  const value = member(from, name) ?? undefined;
  if (value === undefined || isObject(value)) return value;
  throw wrongType(name);
}

function listIn(from: JsonObject, name: string): readonly JsonValue[] {
  const value = member(from, name) ?? [];
  if (!Array.isArray(value)) throw wrongType(name);
  return value;
}

function objectsIn(from: JsonObject, name: string): readonly JsonObject[] {
  return listIn(from, name).map((item) => {
    if (!isObject(item)) throw wrongType(name);
    return item;
  });
}

function textIn(from: JsonObject, name: string): string {
  const value = member(from, name) ?? '';
  if (typeof value !== 'string') throw wrongType(name);
  return value;
}

function textsIn(from: JsonObject, name: string): string[] {
  return listIn(from, name).map((item) => {
    if (typeof item !== 'string') throw wrongType(name);
    return item;
  });
}

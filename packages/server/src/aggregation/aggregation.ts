import type { StreamingClient } from '@wheelhouse/client';
import { type CatalogueSnapshot, compareVersions } from '@wheelhouse/kinds';
import {
  type ApiObject,
  type Clock,
  type Dialect,
  isObject,
  type JsonObject,
  type Logger,
  objectsOf,
  runInSlices,
  sharedPromise,
} from '@wheelhouse/machinery';
import { aggregatedFormOf } from '../answer/rendering.ts';
import { sendLine } from '../answer/respond.ts';
import {
  customPriority,
  type Priority,
  prioritiesOf,
} from '../controllers/aggregation/api-services.ts';
import { aggregatedDiscovery, groupBody } from '../documents/discovery.ts';
import type { AggregationPort, AuthorizedCall } from '../endpoints/call.ts';
import {
  sendAggregated,
  sendDocument,
  sendIndex,
  type TaggedBody,
  taggedBodySteps,
} from '../endpoints/non-resource.ts';
import { answerPart } from '../endpoints/openapi.ts';
import type { ClientCertificate } from '../files/followed-files.ts';
import { requireRequest } from '../registry/permit.ts';
import type { ResolveService, ServiceEndpoint } from '../webhooks/service-address.ts';
import { type ApiRegistration, isRemote, type RemoteApi, registrationOf } from './api-service.ts';
import { Availability, type AvailabilityOptions } from './availability.ts';
import { DiscoveryFollower, type FetchFromServer } from './discovery-follower.ts';
import { type DocumentQuery, fetchDocument } from './fetch-document.ts';
import { MergedOpenApi } from './merged-openapi.ts';
import { ownClient } from './own-client.ts';
import { aggregatedPlan, Relay, type RelaySettings } from './relay.ts';
import { createTransports, type Transport, type Transports } from './transport.ts';

/** The sources of the merged discovery documents. */
interface DiscoverySource {
  readonly snapshot: CatalogueSnapshot;
  /**
   * The APIServices that users created or changed, including those for this server's own group
   * versions.
   */
  readonly registrations: readonly ApiRegistration[];
  /** Returns the rank of a built-in group version; undefined for other versions. */
  readonly priorityOf: (group: string, version: string) => Priority | undefined;
  /** The group of APIServices, which is listed first. */
  readonly firstGroup: string;
}

interface Ranked extends Priority {
  readonly group: string;
  readonly version: string;
}

const firstRank: Priority = { groupPriorityMinimum: 20_000, versionPriority: 1000 };

function localVersions({ snapshot, priorityOf, firstGroup }: DiscoverySource): Ranked[] {
  const named = snapshot.groups().filter((group) => group !== '');
  return named.flatMap((group) => {
    const rank = (version: string) =>
      group === firstGroup ? firstRank : (priorityOf(group, version) ?? customPriority);
    return snapshot.groupVersions(group).map((version) => ({ group, version, ...rank(version) }));
  });
}

/** The registered group versions, and this server's other group versions. */
function merged(source: DiscoverySource, registrations: readonly ApiRegistration[]): Ranked[] {
  const registered = new Map<string, Ranked>();
  for (const registration of registrations) {
    const isMergeable = registration.group !== '' && registration.group !== source.firstGroup;
    if (isMergeable) registered.set(`${registration.group}/${registration.version}`, registration);
  }
  const local = localVersions(source).filter(
    ({ group, version }) => !registered.has(`${group}/${version}`),
  );
  return [...local, ...registered.values()];
}

const byVersion = (left: Ranked, right: Ranked) =>
  right.versionPriority - left.versionPriority || compareVersions(left.version, right.version);

/** Groups sorted by the highest rank of their versions, then by the name that `nameOf` returns. */
function grouped(
  ranked: readonly Ranked[],
  nameOf: (groupVersion: Ranked) => string,
): readonly { readonly group: string; readonly versions: readonly string[] }[] {
  const byRank = (left: Ranked, right: Ranked) =>
    right.groupPriorityMinimum - left.groupPriorityMinimum ||
    (nameOf(left) < nameOf(right) ? -1 : Number(nameOf(left) > nameOf(right)));
  const groups = new Map<string, Ranked[]>();
  for (const groupVersion of [...ranked].sort(byRank)) {
    const versions = groups.get(groupVersion.group);
    if (versions === undefined) groups.set(groupVersion.group, [groupVersion]);
    else versions.push(groupVersion);
  }
  return [...groups].map(([group, versions]) => ({
    group,
    versions: versions.sort(byVersion).map(({ version }) => version),
  }));
}

const byServiceName = ({ group, version }: Ranked) => `${version}.${group}`;

/** The document of `/apis`, with the groups of this server and others. */
function mergedGroupList(source: DiscoverySource): JsonObject {
  const groups = grouped(merged(source, source.registrations), byServiceName);
  return { kind: 'APIGroupList', apiVersion: 'v1', groups: groups.map(groupBody) };
}

/** The document of `/apis/<group>`; undefined if no registration has the group. */
function mergedGroup(source: DiscoverySource, group: string): JsonObject | undefined {
  if (!source.registrations.some((registration) => registration.group === group)) return undefined;
  const ofGroup = merged(source, source.registrations).filter(
    (groupVersion) => groupVersion.group === group,
  );
  const [found] = grouped(ofGroup, byServiceName);
  return found === undefined
    ? undefined
    : { kind: 'APIGroup', apiVersion: 'v1', ...groupBody(found) };
}

/** The paths of registered groups and group versions, which `/` lists. */
function registeredPaths(registrations: readonly ApiRegistration[]): string[] {
  const named = registrations.filter(({ group }) => group !== '');
  return named.flatMap(({ group, version }) => [`/apis/${group}`, `/apis/${group}/${version}`]);
}

/**
 * Merges the aggregated discovery of this server with that of others, in steps.
 *
 * @param parts.local this server's own document
 * @param parts.versionOf returns another server's entry; undefined if it has not been fetched
 */
function* mergedAggregated(
  source: DiscoverySource,
  parts: {
    readonly local: JsonObject;
    readonly versionOf: (api: RemoteApi) => JsonObject | undefined;
  },
): Generator<void, JsonObject> {
  const remote = source.registrations.filter(isRemote);
  const versionsByName = new Map<string, JsonObject>(localEntries(parts.local));
  const available: RemoteApi[] = [];
  for (const api of remote) {
    const version = parts.versionOf(api);
    if (version === undefined) continue;
    available.push(api);
    versionsByName.set(`${api.group}/${api.version}`, version);
  }
  yield;
  const groups = grouped(merged(source, available), ({ group }) => group);
  yield;
  const items = groups.map(({ group, versions }) => ({
    metadata: { name: group, creationTimestamp: null },
    versions: versions.map((version) => versionsByName.get(`${group}/${version}`) ?? { version }),
  }));
  return { ...parts.local, items };
}

function localEntries(local: JsonObject): [string, JsonObject][] {
  return objectsOf(local['items']).flatMap(({ metadata, versions }) => {
    const name = isObject(metadata) ? metadata['name'] : '';
    return objectsOf(versions).map((version): [string, JsonObject] => [
      `${name}/${version['version']}`,
      version,
    ]);
  });
}

interface AggregationOptions
  extends Pick<AvailabilityOptions, 'facts' | 'writeStatus' | 'onUnavailable' | 'queues'> {
  readonly dialect: Dialect;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly snapshot: () => CatalogueSnapshot;
  readonly settings: RelaySettings;
  readonly resolve: ResolveService;
  /** Returns the current client certificate. */
  readonly certificate: () => ClientCertificate | undefined;
  /** Returns the CAs that the host trusts, in PEM; undefined if there are none. */
  readonly hostRoots: () => string | undefined;
}

/**
 * Serves the group versions of other servers (ADM-4): proxies their requests, merges discovery and
 * OpenAPI, and tracks availability.
 */
export class Aggregation implements AggregationPort {
  readonly #options: AggregationOptions;
  readonly #transports: Transports;
  readonly #discovery: DiscoveryFollower;
  readonly #openApi: MergedOpenApi;
  readonly #availability: Availability;
  readonly #stopped = new AbortController();
  #objects: ReadonlyMap<string, ApiObject> = new Map();
  #registrations: readonly ApiRegistration[] = [];
  /** By `<group>/<version>`. */
  #remotes: ReadonlyMap<string, RemoteApi> = new Map();
  readonly #registrationsByObject = new WeakMap<ApiObject, ApiRegistration>();
  /** The aggregated documents by the state of their sources and by version; of one state. */
  readonly #documents = new Map<string, Promise<TaggedBody>>();

  constructor(options: AggregationOptions) {
    this.#options = options;
    const { dialect, clock, logger, queues, resolve } = options;
    this.#transports = createTransports(options);
    const fetch: FetchFromServer = async (api, query) => {
      const place = await resolve(api.remote.service);
      const transport = this.#transports.of(api.remote);
      const fault = await transport.fault();
      if (fault !== undefined) throw new Error(fault);
      return this.#fetch(transport, { ...query, place });
    };
    this.#discovery = new DiscoveryFollower({ dialect, clock, logger, queues, fetch });
    this.#openApi = new MergedOpenApi({ clock, logger, fetch });
    this.#availability = new Availability({
      ...options,
      read: (name) => this.#objects.get(name),
      probe: async (api, query) => {
        const transport = this.#transports.forProbes(api.remote);
        const answer = await this.#fetch(transport, { ...query, bytesMax: undefined });
        return answer.status;
      },
    });
  }

  /**
   * Replaces the APIServices.
   *
   * @param objects the APIServices that this server does not manage, by name
   */
  update(objects: ReadonlyMap<string, ApiObject>): void {
    const before = this.#objects;
    this.#objects = objects;
    this.#registrations = [...objects.values()].map((object) => this.#registration(object));
    const remotes = this.#registrations.filter(isRemote);
    this.#remotes = new Map(remotes.map((api) => [`${api.group}/${api.version}`, api]));
    this.#transports.keepOnly(remotes.map(({ remote }) => remote));
    this.#discovery.update(remotes);
    this.#openApi.update(remotes);
    this.#documents.clear();
    for (const [name, object] of objects) {
      if (before.get(name) !== object) this.#availability.enqueue(name);
    }
  }

  /** Checks the availability of a Service's APIServices. Call it when the Service changes. */
  serviceChanged(place: { readonly namespace: string; readonly name: string }): void {
    for (const { name, remote } of this.#remotes.values()) {
      const { service } = remote;
      const isSame = service.namespace === place.namespace && service.name === place.name;
      if (isSame) this.#availability.enqueue(name);
    }
  }

  /** Retires connections with the previous client certificate. Call it when that changes. */
  certificateChanged(): void {
    this.#transports.keepOnly([...this.#remotes.values()].map(({ remote }) => remote));
  }

  /** Answers a request for another server, or for a merged document; returns false for others. */
  async serve(call: AuthorizedCall): Promise<boolean> {
    const { path, verb } = call.info;
    requireRequest(call.permit, call.info);
    const api = this.#remoteAt(path);
    if (api !== undefined) {
      await this.#proxy(call, api);
      return true;
    }
    if (verb !== 'get' && verb !== 'head') return false;
    if (path === '/' || path === '/index.html') {
      sendIndex(call, registeredPaths(this.#registrations));
      return true;
    }
    if (path.startsWith('/apis')) return this.#serveDiscovery(call);
    return path.startsWith('/openapi/') && this.#serveOpenApi(call);
  }

  clientFor(path: string): StreamingClient | undefined {
    const api = this.#remoteAt(path);
    if (api === undefined) return undefined;
    const reach = async () => {
      if (!api.remote.isAvailable) return undefined;
      const place = await this.#options.resolve(api.remote.service).catch(() => undefined);
      return place && { transport: this.#transports.of(api.remote), place };
    };
    return ownClient({ reach, redirects: this.#options.settings.redirects });
  }

  /** Cancels fetches and probes, and closes connections. */
  async close(): Promise<void> {
    this.#stopped.abort();
    this.#remotes = new Map();
    this.#objects = new Map();
    await Promise.all([this.#discovery.close(), this.#availability.close()]);
    this.#transports.close();
  }

  #registration(object: ApiObject): ApiRegistration {
    const cached = this.#registrationsByObject.get(object);
    if (cached !== undefined) return cached;
    const registration = registrationOf(object);
    this.#registrationsByObject.set(object, registration);
    return registration;
  }

  /** The other server that serves a path; undefined if this one does. */
  #remoteAt(path: string): RemoteApi | undefined {
    const [start, root, group = '', version = ''] = path.split('/', 4);
    if (start !== '') return undefined;
    if (root === 'api') return this.#remotes.get('/v1');
    if (root !== 'apis' || group === '' || version === '') return undefined;
    return this.#remotes.get(`${group}/${version}`);
  }

  async #proxy(call: AuthorizedCall, api: RemoteApi): Promise<void> {
    const { resolve, settings, logger } = this.#options;
    const unavailable = { status: 503, text: 'service unavailable' };
    if (call.exchange.header('via')?.includes(settings.via) === true) {
      sendLine(call, { status: 508, text: 'the APIService leads back to this server' });
      return;
    }
    if (!api.remote.isAvailable) {
      reject(call, unavailable);
      return;
    }
    const transport = this.#transports.of(api.remote);
    const fault = await transport.fault();
    if (fault !== undefined) {
      reject(call, { status: 500, text: fault });
      return;
    }
    let place: ServiceEndpoint;
    try {
      place = await resolve(api.remote.service);
    } catch (error) {
      logger.error('cannot resolve a Service', { name: api.name, error: String(error) });
      reject(call, unavailable);
      return;
    }
    const plan = aggregatedPlan(call, { settings, place });
    await new Relay({ call, transport, plan }).run();
  }

  #fetch(transport: Transport, query: DocumentQuery & { readonly place: ServiceEndpoint }) {
    const { clock } = this.#options;
    return fetchDocument({ ...query, transport, clock, signal: this.#stopped.signal });
  }

  async #serveDiscovery(call: AuthorizedCall): Promise<boolean> {
    const { info, exchange, context } = call;
    const path = info.path.replace(/\/$/, '');
    if (path !== '/apis') {
      const [group = '', ...rest] = path.slice('/apis/'.length).split('/');
      if (rest.length > 0 || !path.startsWith('/apis/')) return false;
      const discoveryGroup = mergedGroup(this.#source(), group);
      if (discoveryGroup === undefined) return false;
      await sendDocument(call, discoveryGroup);
      return true;
    }
    const form = aggregatedFormOf(exchange.header('accept'), context.encodings.documents);
    if (form === undefined) {
      await sendDocument(call, mergedGroupList(this.#source()));
      return true;
    }
    await this.#discovery.firstFetch();
    const document = await this.#aggregated(form.version, context.metrics);
    await sendAggregated(call, { form, document });
    return true;
  }

  async #serveOpenApi(call: AuthorizedCall): Promise<boolean> {
    const { path } = call.info;
    if (path === '/openapi/v2') return this.#openApi.answerWhole(call);
    if (path === '/openapi/v3') return this.#openApi.answerIndex(call);
    const name = path.slice('/openapi/v3/'.length);
    const [root, group, version, ...rest] = name.split('/');
    const api = this.#remotes.get(`${group}/${version}`);
    const isOne = path.startsWith('/openapi/v3/') && root === 'apis' && rest.length === 0;
    const owner = isOne && api !== undefined ? await this.#openApi.ownerOf(api) : undefined;
    if (owner === undefined || api === undefined) return false;
    if (owner !== 'server') return answerPart(call, { name, document: owner });
    await this.#proxy(call, api);
    return true;
  }

  #source(): DiscoverySource {
    const { snapshot, dialect } = this.#options;
    return {
      snapshot: snapshot(),
      registrations: this.#registrations,
      priorityOf: prioritiesOf(dialect),
      firstGroup: dialect.group('apiregistration'),
    };
  }

  /** The current document, built once per state of its sources. */
  #aggregated(version: string, metrics: AuthorizedCall['context']['metrics']): Promise<TaggedBody> {
    const { clock, dialect } = this.#options;
    const source = this.#source();
    const { snapshot } = source;
    const state = `${snapshot.generation} ${this.#discovery.generation}`;
    const isOther = (key: string) => !key.startsWith(`${state} `);
    for (const key of this.#documents.keys()) if (isOther(key)) this.#documents.delete(key);
    const versionOf = (api: RemoteApi) => this.#discovery.versionOf(api);
    function* steps() {
      const apiVersion = `${dialect.group('apidiscovery')}/${version}`;
      const local = yield* aggregatedDiscovery({ snapshot, part: 'named', apiVersion });
      const document = yield* mergedAggregated(source, { local, versionOf });
      metrics.countDiscoveryAggregation();
      return yield* taggedBodySteps(document);
    }
    const make = async () => runInSlices(steps(), clock);
    return sharedPromise(this.#documents, `${state} ${version}`, make);
  }
}

/** Answers for an unavailable server and counts the request as rejected. */
function reject(call: AuthorizedCall, answer: Parameters<typeof sendLine>[1]): void {
  sendLine(call, answer);
  call.context.metrics.countAggregatorRejection(call.exchange, call.info, answer.status);
}

import type { CatalogueSnapshot } from '@wheelhouse/kinds';
import type { ApiObject, Clock, Dialect, Logger } from '@wheelhouse/machinery';
import { aggregatedFormOf } from '../answer/rendering.ts';
import { prioritiesOf } from '../controllers/aggregation/api-service-priorities.ts';
import type { AggregationPort, AuthorizedCall } from '../endpoints/call.ts';
import {
  sendAggregated,
  sendDocument,
  sendIndex,
  type TaggedBody,
  taggedBody,
} from '../endpoints/non-resource.ts';
import { answerPart } from '../endpoints/openapi.ts';
import { requireRequest } from '../registry/permit.ts';
import { aggregatedDiscovery } from '../views/discovery.ts';
import { type ApiRegistration, isRemote, type RemoteApi, registrationOf } from './api-service.ts';
import { Availability, type AvailabilityOptions, type FindPlace } from './availability.ts';
import { type AskServer, DiscoveryFollower } from './discovery-follower.ts';
import { type DocumentQuery, fetchDocument } from './fetch-document.ts';
import {
  type DiscoverySource,
  mergedAggregated,
  mergedGroup,
  mergedGroupList,
  registeredPaths,
} from './merged-discovery.ts';
import { MergedOpenApi } from './merged-openapi.ts';
import { answerText } from './plain-answer.ts';
import { Relay, type RelaySettings } from './relay.ts';
import type { ClientCertificate, Transport } from './transport.ts';
import { createTransports, type Transports } from './transports.ts';

export interface AggregationOptions
  extends Pick<AvailabilityOptions, 'facts' | 'writeStatus' | 'lost' | 'queues'> {
  readonly dialect: Dialect;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly snapshot: () => CatalogueSnapshot;
  readonly settings: RelaySettings;
  readonly find: FindPlace;
  /** Who this server is to others. */
  readonly certificate: () => ClientCertificate | undefined;
  readonly hostRoots: () => string | undefined;
}

/**
 * What this server and others make together (ADM-4): passes requests for the group versions that
 * APIServices give to other servers on to these, tells of all in one discovery, and keeps watch over
 * who can be asked.
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
  readonly #read = new WeakMap<ApiObject, ApiRegistration>();
  #documents: { readonly of: string; readonly byVersion: Map<string, TaggedBody> } | undefined;

  constructor(options: AggregationOptions) {
    this.#options = options;
    const { dialect, clock, logger, queues, find } = options;
    this.#transports = createTransports(options);
    const ask: AskServer = async (api, query) => {
      const place = await find(api.remote.service);
      const transport = this.#transports.of(api.remote);
      if (transport.fault !== undefined) throw new Error(transport.fault);
      return this.#fetch(transport, { ...query, place });
    };
    this.#discovery = new DiscoveryFollower({ dialect, clock, logger, queues, ask });
    this.#openApi = new MergedOpenApi({ clock, logger, ask });
    this.#availability = new Availability({
      ...options,
      read: (name) => this.#objects.get(name),
      look: async (api, query) => {
        const transport = this.#transports.forLook(api.remote);
        const answer = await this.#fetch(transport, { ...query, bytesMax: undefined });
        return answer.status;
      },
    });
  }

  /** The APIServices there are now that are not this server's own doing, by their names. */
  update(objects: ReadonlyMap<string, ApiObject>): void {
    const before = this.#objects;
    this.#objects = objects;
    this.#registrations = [...objects.values()].map((object) => this.#registration(object));
    const remotes = this.#registrations.filter(isRemote);
    this.#remotes = new Map(remotes.map((one) => [`${one.group}/${one.version}`, one]));
    this.#transports.keepOnly(remotes.map(({ remote }) => remote));
    this.#discovery.update(remotes);
    this.#openApi.update(remotes);
    this.#documents = undefined;
    for (const [name, object] of objects) {
      if (before.get(name) !== object) this.#availability.look(name);
    }
  }

  /** The objects of a Service have changed. */
  serviceChanged(place: { readonly namespace: string; readonly name: string }): void {
    for (const { name, remote } of this.#remotes.values()) {
      const { service } = remote;
      const isSame = service.namespace === place.namespace && service.name === place.name;
      if (isSame) this.#availability.look(name);
    }
  }

  /** Connections with the certificate of before are used no more. */
  certificateChanged(): void {
    this.#transports.keepOnly([...this.#remotes.values()].map(({ remote }) => remote));
  }

  async serve(call: AuthorizedCall): Promise<boolean> {
    const { path, verb } = call.info;
    requireRequest(call.permit, call.info);
    const api = this.#remoteAt(path);
    if (api !== undefined) {
      await this.#pass(call, api);
      return true;
    }
    if (verb !== 'get' && verb !== 'head') return false;
    if (path === '/') {
      sendIndex(call, registeredPaths(this.#registrations));
      return true;
    }
    if (path.startsWith('/apis')) return this.#serveDiscovery(call);
    return path.startsWith('/openapi/') && this.#serveOpenApi(call);
  }

  async close(): Promise<void> {
    this.#stopped.abort();
    this.#remotes = new Map();
    this.#objects = new Map();
    await Promise.all([this.#discovery.close(), this.#availability.close()]);
    this.#transports.close();
  }

  #registration(object: ApiObject): ApiRegistration {
    const cached = this.#read.get(object);
    if (cached !== undefined) return cached;
    const made = registrationOf(object);
    this.#read.set(object, made);
    return made;
  }

  /** Who answers a path, where that is another server. */
  #remoteAt(path: string): RemoteApi | undefined {
    const [start, root, group = '', version = ''] = path.split('/', 4);
    if (start !== '') return undefined;
    if (root === 'api') return this.#remotes.get('/v1');
    if (root !== 'apis' || group === '' || version === '') return undefined;
    return this.#remotes.get(`${group}/${version}`);
  }

  async #pass(call: AuthorizedCall, api: RemoteApi): Promise<void> {
    const { find, settings, logger } = this.#options;
    const unavailable = { status: 503, text: 'service unavailable' };
    if (call.exchange.header('via')?.includes(settings.via) === true) {
      answerText(call, { status: 508, text: 'the APIService leads back to this server' });
      return;
    }
    if (!api.remote.isAvailable) {
      answerText(call, unavailable);
      return;
    }
    const transport = this.#transports.of(api.remote);
    if (transport.fault !== undefined) {
      answerText(call, { status: 500, text: transport.fault });
      return;
    }
    let place: Awaited<ReturnType<FindPlace>>;
    try {
      place = await find(api.remote.service);
    } catch (error) {
      logger.error('a service cannot be resolved', { name: api.name, error: String(error) });
      answerText(call, unavailable);
      return;
    }
    await new Relay({ call, transport, settings, place }).run();
  }

  #fetch(
    transport: Transport,
    query: DocumentQuery & { readonly place: Awaited<ReturnType<FindPlace>> },
  ) {
    const { clock } = this.#options;
    return fetchDocument({ ...query, transport, clock, signal: this.#stopped.signal });
  }

  async #serveDiscovery(call: AuthorizedCall): Promise<boolean> {
    const { info, exchange, context } = call;
    const path = info.path.replace(/\/$/, '');
    if (path !== '/apis') {
      const [group = '', ...rest] = path.slice('/apis/'.length).split('/');
      if (rest.length > 0 || !path.startsWith('/apis/')) return false;
      const found = mergedGroup(this.#source(), group);
      if (found === undefined) return false;
      await sendDocument(call, found);
      return true;
    }
    const form = aggregatedFormOf(exchange.header('accept'), context.encodings.documents);
    if (form === undefined) {
      await sendDocument(call, mergedGroupList(this.#source()));
      return true;
    }
    await this.#discovery.firstLook();
    await sendAggregated(call, { form, document: this.#aggregated(form.version) });
    return true;
  }

  async #serveOpenApi(call: AuthorizedCall): Promise<boolean> {
    const path = call.info.path.replace(/\/$/, '');
    if (path === '/openapi/v2') return this.#openApi.answerWhole(call);
    if (path === '/openapi/v3') return this.#openApi.answerIndex(call);
    const name = path.slice('/openapi/v3/'.length);
    const [root, group, version, ...rest] = name.split('/');
    const api = this.#remotes.get(`${group}/${version}`);
    const isOne = path.startsWith('/openapi/v3/') && root === 'apis' && rest.length === 0;
    const who = isOne && api !== undefined ? await this.#openApi.whoHas(api) : undefined;
    if (who === undefined || api === undefined) return false;
    if (who !== 'server') return answerPart(call, { name, document: who });
    await this.#pass(call, api);
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

  /** The document as it is now; made once for each state of all that goes into it. */
  #aggregated(version: string): TaggedBody {
    const source = this.#source();
    const { snapshot } = source;
    const of = `${snapshot.generation} ${this.#discovery.generation}`;
    if (this.#documents?.of !== of) this.#documents = { of, byVersion: new Map() };
    const cached = this.#documents.byVersion.get(version);
    if (cached !== undefined) return cached;
    const apiVersion = `${this.#options.dialect.group('apidiscovery')}/${version}`;
    const local = aggregatedDiscovery({ snapshot, part: 'named', apiVersion });
    const versionOf = (api: RemoteApi) => this.#discovery.versionOf(api);
    const made = taggedBody(mergedAggregated(source, { local, versionOf }));
    this.#documents.byVersion.set(version, made);
    return made;
  }
}

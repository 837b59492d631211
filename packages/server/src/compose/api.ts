import { builtinGroupOrder, type NumberClaims, type ResourceDef } from '@wheelhouse/kinds';
import { background, type Clock, Deadlines, runInSlices } from '@wheelhouse/machinery';
import { mappedStore, type Store } from '@wheelhouse/store';
import { QuotaLedger, type SharedReservations } from '../admission/quota/quota-ledger.ts';
import { createEncodings } from '../answer/encodings.ts';
import { createCatalogue, requiredKind } from '../catalogue/catalogue.ts';
import { versionDocument } from '../documents/version.ts';
import type {
  AggregationPort,
  AggregationSlot,
  EndpointContext,
  ReviewPort,
} from '../endpoints/call.ts';
import { createIssuerDiscovery, issuerDiscoveryPaths } from '../endpoints/issuer-discovery.ts';
import { defaultGates } from '../flags/feature-gates.ts';
import { createTokenReviewer } from '../gates/authn/authentication.ts';
import type { ExternalSigner } from '../gates/authn/external-signer.ts';
import { createImpersonation } from '../gates/authn/impersonation.ts';
import type { SigningKey } from '../gates/authn/service-account-token.ts';
import {
  type Authorization,
  type Authorizer,
  createAuthorization,
} from '../gates/authz/authorization.ts';
import type { EscalationPort } from '../gates/authz/rbac/escalation-check.ts';
import { WatchCounts } from '../gates/flowcontrol/fair-flow-control.ts';
import type { Health } from '../observe/health.ts';
import type { Gates } from '../pipeline.ts';
import { type CachePool, createCachePool, createComputedCache } from '../registry/caches.ts';
import { storeOfConverted } from '../registry/conversion/converted-kinds.ts';
import { createFieldManager } from '../registry/field-managers.ts';
import {
  createDecodedObjects,
  indexOf,
  refreshSteps,
  refreshStored,
} from '../registry/object-codec.ts';
import { groupResourceOf, type Registry, Turns } from '../registry/registry.ts';
import { attributesOf } from '../request/parse-request.ts';
import { EntryHint } from '../watchcache/entry.ts';
import { createResourceCache } from '../watchcache/resource-cache.ts';
import { createAdmission } from './admission/admission.ts';
import { type AggregationHost, createAggregationHost } from './aggregation/aggregation.ts';
import { followDefinitions } from './apis/served-kinds.ts';
import { type OpenAuthentication, openAuthentication } from './authentication/authentication.ts';
import {
  type Authorizers,
  type ConfiguredAuthorizers,
  createAuthorizers,
  selectorsOf,
} from './authorization/authorizers.ts';
import type { ServerConfig } from './config.ts';
import type { Base, ObjectApi, ReadingBase } from './context.ts';
import { componentStatuses, tokenUse } from './controllers/own-objects.ts';
import { countingWatches, createFlowControl, type FlowGate } from './limits/flow-control.ts';
import { createKubeletPort } from './nodes/kubelets.ts';
import { createZPages, debugAnswer } from './observability/pages.ts';
import { type OpenParts, Port } from './parts.ts';
import {
  accountSettings,
  createServiceAccountTokens,
  type ServiceAccountTokens,
} from './service-accounts/service-account-tokens.ts';
import {
  createReportedAddress,
  createShutdownSignal,
  type ReportedAddress,
} from './serving/listen.ts';
import { onlineBackup } from './storage/open-store.ts';

/** Everything that requests use between the store and the socket. */
export interface Api extends ObjectApi {
  readonly endpoints: EndpointContext;
  readonly gates: Omit<Gates, 'audit'>;
  readonly flow: FlowGate;
  readonly tokens: ServiceAccountTokens;
  readonly aggregation: AggregationHost;
  readonly address: ReportedAddress;
  /** Shared by admission, which charges quotas, and the controller that recounts usage. */
  readonly quotaLedger: QuotaLedger;
  /** Resolves when the caches that every request needs are loaded. */
  informersReady(): Promise<void>;
  customKindsReady(): Promise<void>;
  /** Ends every watch cleanly. */
  endStreams(): void;
}

interface ApiOptions extends Base {
  readonly store: Store;
  readonly health: Health;
  /** The built-in kinds as the configuration serves them. */
  readonly kinds: readonly ResourceDef[];
  readonly authorizers: ConfiguredAuthorizers;
  /** Absent without encryption at rest. */
  readonly isStale?: Registry['isStale'];
  readonly encodeAhead?: Registry['encodeAhead'];
  /** Present when other servers charge the same quotas. */
  readonly reservations?: SharedReservations | undefined;
  /** Present when other servers share the store: claims values that only one of them may use. */
  readonly claims?: NumberClaims | undefined;
  /** Signs service account tokens; read or generated from the configuration when absent. */
  readonly signingKey?: SigningKey | undefined;
  /** An external process that signs service account tokens instead of a key. */
  readonly signer?: ExternalSigner | undefined;
}

/**
 * Builds the API in dependency order: the caches that read objects, the authorizers, the registry
 * that writes objects, and what requests pass and reach. Rejects when a file or webhook named by
 * the configuration is unusable.
 * @param parts collects what must be closed
 */
export async function openApi(options: ApiOptions, parts: OpenParts): Promise<Api> {
  const { config, dialect, metrics, tracing } = options;
  const base = { config, dialect, metrics, tracing };
  const catalogue = createCatalogue(options.kinds, { groupOrder: builtinGroupOrder(dialect) });
  const caches = parts.add(createCaches(options));
  const reading = { ...base, catalogue, caches };
  const queues = metrics.queues();
  const authorizers = parts.add(await createAuthorizers(reading, options.authorizers));
  const authorization = authorizationOf(authorizers, config);
  const quotaLedger = new QuotaLedger(config.clock, options.reservations);
  const escalation = { decide: authorization.decide, rules: authorizers.rules };
  const slot: { active: AggregationPort | undefined } = { active: undefined };
  const writing = { ...options, ...reading, escalation, quotaLedger, aggregation: slot };
  const registry = createRegistry(writing);
  const api = { catalogue, registry, queues };
  const customKinds = parts.add(
    followDefinitions({ ...reading, api, aggregation: slot, claims: options.claims }),
  );
  const { signer, signingKey } = options;
  const tokens = createServiceAccountTokens({
    ...reading,
    signer,
    signingKey,
    onLegacyUse: tokenUse({ config, dialect, api }),
  });
  const authentication = await openAuthentication({ ...reading, tokens }, parts);
  const watches = new WatchCounts();
  const flow = parts.add(createFlowControl({ ...reading, watches }));
  const aggregation = parts.add(createAggregationHost({ ...base, ...api, slot }));
  const { clock } = config;
  const shutdown = createShutdownSignal({ clock, graceMs: config.traffic?.watchGraceMs });
  const kubelets = parts.add(createKubeletPort(config));
  // Kubelet streams end together with the watches.
  shutdown.subscribe(kubelets.close);
  const address = createReportedAddress(config);
  const endpoints = createEndpoints({
    ...options,
    ...api,
    reviews: reviewPort(reading, { authorizers, authorization, authentication }),
    authorization,
    tokens,
    flow,
    watches,
    aggregation,
    kubelets,
    address,
    onShutdown: shutdown.subscribe,
  });
  return {
    ...api,
    endpoints,
    gates: {
      authenticate: authentication.authenticate,
      impersonate: createImpersonation({ authorization, dialect }),
      flowControl: flow.gate,
      authorization,
    },
    flow,
    tokens,
    aggregation,
    address,
    quotaLedger,
    informersReady: () => caches.of(requiredKind(catalogue.snapshot(), '', 'namespaces')).ready(),
    customKindsReady: () => customKinds.ready,
    endStreams: shutdown.fire,
  };
}

/** Number of trims per history window. */
const trimsPerHistory = 10;

/** The watch caches, each created on first use. */
function createCaches({
  config,
  dialect,
  store,
  metrics,
}: Base & { readonly store: Store }): CachePool {
  const { clock, logger, compactionIntervalMs, featureGates: features = defaultGates } = config;
  const historyMs = compactionIntervalMs === 0 ? 300_000 : compactionIntervalMs;
  const caches: CachePool = createCachePool((def, forget) => {
    if (def.isComputed === true) {
      const objects = () => componentStatuses({ config, dialect, store });
      return createComputedCache({ storage: def.storage, objects });
    }
    return createResourceCache({
      store: storeFor(def, { store, caches, clock }),
      onEnded: forget,
      prefix: def.storage.prefix,
      namespaced: def.scope === 'Namespaced',
      clock,
      logger,
      ...(readsAreFresh(config, def) ? { reads: 'fresh' as const } : {}),
      consistentLists: features.enabled('ConsistentListFromCache') ? 'cache' : 'store',
      indexOf: (object) => indexOf(def.storage, object),
      groupResource: groupResourceOf(def),
      tokenVersion: `${dialect.group('meta')}/v1`,
      historyMs,
      // The cache of a converted kind shares the objects of the stored kind's cache, so only that cache is measured.
      meter: def.convertedFrom === undefined ? metrics.cacheMeter(def) : undefined,
    });
  });
  const trimming = clock.every(historyMs / trimsPerHistory, () =>
    background({ where: 'watch' }, runInSlices(caches.trimSteps(), clock)),
  );
  return {
    ...caches,
    close() {
      trimming.stop();
      caches.close();
    },
  };
}

/** Whether every read of a kind waits for the store, regardless of the version that it accepts. */
function readsAreFresh(
  { freshReads }: ServerConfig,
  { group, resource, storage }: ResourceDef,
): boolean {
  // The Events of both groups share a cache.
  const isCore = group === '' || storage.prefix === '/registry/events/';
  const name = isCore ? resource : `${resource}.${group}`;
  if (freshReads === 'all') return true;
  return (freshReads?.get(name) ?? (name === 'events' ? 'fresh' : 'cached')) === 'fresh';
}

/** The store that the watch cache of a kind follows: objects in the form that readers see. */
function storeFor(
  def: ResourceDef,
  around: { readonly store: Store; readonly caches: CachePool; readonly clock: Clock },
): Store {
  const { store, caches, clock } = around;
  const whole = def.convertedFrom;
  if (whole !== undefined) return storeOfConverted(def, { store, base: caches.of(whole) });
  if (!def.behavior.refreshesStored) return store;
  return mappedStore(store, {
    read: (value, key) => refreshStored(def, { key, value }),
    readSteps: (value, key) => refreshSteps(def, { key, value }),
    clock,
    isMapped: (hint) => hint instanceof EntryHint && hint.form === def.storage,
  });
}

function authorizationOf(
  chain: { readonly list: readonly Authorizer[] },
  { logger }: ServerConfig,
): Authorization {
  return createAuthorization({
    chain,
    onError: ({ authorizer, error }) =>
      logger.error('an authorizer failed', { authorizer, error: String(error) }),
  });
}

/** The port through which reviews reach authorization and authentication. */
function reviewPort(
  { config, dialect }: Base,
  gates: {
    readonly authorizers: Authorizers;
    readonly authorization: Authorization;
    readonly authentication: OpenAuthentication;
  },
): ReviewPort {
  const { audiences } = accountSettings(config, dialect);
  return {
    decide: gates.authorization.decide,
    rulesFor: gates.authorizers.rulesFor,
    reviewToken: createTokenReviewer({ ...gates.authentication, audiences }),
    selectors: selectorsOf(config),
  };
}

function createRegistry(
  options: ReadingBase &
    Pick<ApiOptions, 'store' | 'isStale' | 'encodeAhead'> & {
      readonly escalation: EscalationPort;
      readonly quotaLedger: QuotaLedger;
      readonly aggregation: AggregationSlot;
    },
): Registry {
  const { config, dialect, catalogue, caches, store } = options;
  const { clock, logger, featureGates: features = defaultGates } = config;
  // Some plugins write, so they need the registry that is built from them.
  const own = new Port<Registry>('the registry');
  const registry: Registry = {
    store,
    clock,
    caches,
    decoded: createDecodedObjects({ form: config.sharedObjects ?? 'plain' }),
    generatedNames: features.enabled('RetryGenerateName') ? 'retried' : 'once',
    turns: new Turns(clock),
    isStale: options.isStale,
    encodeAhead: options.encodeAhead,
    fieldManager: createFieldManager({ dialect, logger, snapshot: catalogue.snapshot }),
    admission: createAdmission({
      ...options,
      authorization: options.escalation,
      aggregation: options.aggregation,
      ledger: options.quotaLedger,
      registry: own.get,
    }),
  };
  own.connect(registry);
  return registry;
}

/** What endpoints are built from. */
interface EndpointParts extends ApiOptions, ObjectApi {
  readonly reviews: ReviewPort;
  readonly authorization: Authorization;
  readonly tokens: ServiceAccountTokens;
  readonly flow: FlowGate;
  readonly watches: WatchCounts;
  readonly aggregation: AggregationHost;
  readonly kubelets: EndpointContext['kubelets'];
  readonly address: ReportedAddress;
  readonly onShutdown: EndpointContext['onShutdown'];
}

function createEndpoints(options: EndpointParts): EndpointContext {
  const { config, dialect, metrics, catalogue, authorization, tokens, address } = options;
  const features = config.featureGates ?? defaultGates;
  return {
    registry: options.registry,
    catalogue,
    dialect,
    features,
    clock: config.clock,
    tap: config.embedding?.tap,
    logger: config.logger,
    limits: config.limits,
    deadlines: new Deadlines(config.clock),
    compressResponses: config.compressResponses,
    unreadableDeletion: features.enabled('AllowUnsafeMalformedObjectDeletion')
      ? 'allowed'
      : 'ignored',
    metrics: countingWatches(metrics.requests(catalogue.snapshot), options.watches),
    encodings: createEncodings({ dialect, cbor: config.cborServed === true ? 'served' : 'off' }),
    address: address.text,
    kubelets: options.kubelets,
    aggregation: options.aggregation.slot,
    version: versionDocument(config.emulatedMinor),
    reviews: options.reviews,
    tokens: tokens.issuer,
    onShutdown: options.onShutdown,
    ...plainPages(options),
    profiling: config.profiling ?? 'on',
    backup: onlineBackup(config, options.store),
    authorize: async (user, info, verb) =>
      authorization.authorize(attributesOf(info, user, undefined, verb)),
  };
}

/**
 * Paths that serve no objects: metrics, health, the issuer's keys, and the state of the process.
 */
function plainPages(options: EndpointParts): Pick<EndpointContext, 'plainPath' | 'plainPaths'> {
  const { config, dialect, metrics, health, address, tokens, flow } = options;
  const pages = createZPages(config);
  const keysUri = () => `https://${address.text()}${issuerDiscoveryPaths.keys}`;
  const discovery = createIssuerDiscovery({
    issuer: accountSettings(config, dialect).issuer,
    jwksUri: () => config.serviceAccounts?.jwksUri ?? keysUri(),
    keys: tokens.keys,
  });
  const debugPages = flow.debugPage === undefined ? [] : [flow.debugPage];
  return {
    plainPath: (path, query, accept) =>
      pages.answer(path, accept) ??
      metrics.answer(path) ??
      health.answer(path, query) ??
      discovery.answer(path) ??
      debugAnswer(debugPages, { path, query }),
    plainPaths: () => [...metrics.paths(), ...health.paths(), ...discovery.paths, ...pages.paths()],
  };
}

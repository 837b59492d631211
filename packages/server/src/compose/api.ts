import {
  builtinGroupOrder,
  cleanupFinalizerName,
  customKindDeps,
  type NumberClaims,
  type ResourceDef,
} from '@wheelhouse/kinds';
import { Deadlines, type Dialect } from '@wheelhouse/machinery';
import { mappedStore, type Store } from '@wheelhouse/store';
import { QuotaLedger, type SharedReservations } from '../admission/quota/quota-ledger.ts';
import { createEncodings } from '../answer/encodings.ts';
import { type Catalogue, createCatalogue } from '../catalogue/catalogue.ts';
import { startCustomKinds } from '../controllers/custom-kinds.ts';
import { createInside } from '../controllers/inside.ts';
import type { QueueMeters } from '../controllers/queue-metrics.ts';
import type { EndpointContext } from '../endpoints/call.ts';
import { bundleProblems } from '../gates/authn/certificate.ts';
import type { Authenticator } from '../gates/authn/contract.ts';
import type { ExternalSigner } from '../gates/authn/external-signer.ts';
import type { SigningKey } from '../gates/authn/service-account-token.ts';
import type { EscalationPort } from '../gates/authz/rbac/escalation-check.ts';
import { WatchCounts } from '../gates/flowcontrol/watch-counts.ts';
import { type CachePool, createCachePool } from '../registry/cache-pool.ts';
import { createComputedCache } from '../registry/computed-cache.ts';
import { viewStore } from '../registry/conversion/view-store.ts';
import { createFieldManager } from '../registry/field-managers.ts';
import { createDecodedObjects, indexOf, reshapeStored } from '../registry/object-codec.ts';
import { groupResourceOf, type Registry } from '../registry/registry.ts';
import { Turns } from '../registry/turns.ts';
import { attributesOf } from '../request/parse-request.ts';
import { EntryHint } from '../watchcache/contract.ts';
import { createResourceCache } from '../watchcache/resource-cache.ts';
import { createAdmission } from './admission/admission.ts';
import { type AggregationHost, createAggregationHost } from './aggregation/aggregation.ts';
import { createConversions } from './apis/conversion.ts';
import { defaultGates } from './apis/feature-gates.ts';
import { measuredRules } from './apis/rule-engine.ts';
import { versionDocument } from './apis/version.ts';
import {
  type AuthorizationSlot,
  createAuthorizationSlot,
} from './authorization/authorization-slot.ts';
import { selectorsOf } from './authorization/configured-authorizers.ts';
import type { ServerConfig } from './config.ts';
import { controllerSelection } from './controllers/controller-selection.ts';
import { countingWatches } from './controllers/counting-watches.ts';
import { componentStatuses } from './health/component-statuses.ts';
import { type DebugPage, debugAnswer } from './health/debug-pages.ts';
import type { Health } from './health/health.ts';
import { createShutdownSignal, type ShutdownSignal } from './health/shutdown-signal.ts';
import { createKubeletPort } from './nodes/kubelets.ts';
import type { Metrics } from './observability/metrics.ts';
import { createZPages } from './observability/pages.ts';
import {
  createIssuerDiscovery,
  issuerDiscoveryPaths,
} from './service-accounts/issuer-discovery.ts';
import {
  accountSettings,
  createServiceAccountTokens,
} from './service-accounts/service-account-tokens.ts';
import { tokenUse } from './service-accounts/token-use.ts';
import { createReportedAddress, type ReportedAddress } from './serving/own-address.ts';
import { onlineBackup } from './storage/open-store.ts';

/** The parts that requests work with, wired; shared by endpoints, hooks and controllers. */
export interface Api {
  readonly catalogue: Catalogue;
  readonly registry: Registry;
  readonly endpoints: EndpointContext;
  /** Learns the port, once the server listens, that clients are told of. */
  readonly listensOn: (port: number) => void;
  /** Accepts the service account tokens that the endpoints issue. */
  readonly tokenAuthenticator: Authenticator;
  /** The watches that stand, for what estimates the work of writes. */
  readonly watches: WatchCounts;
  /** Answers debug paths; filled by whoever has something to show there. */
  readonly debugPages: DebugPage[];
  /** Filled once the gates exist: asked for verbs behind the request's own. */
  readonly authorization: AuthorizationSlot;
  readonly aggregation: AggregationHost;
  /** Between admission, which charges quotas, and the controller that counts. */
  readonly quotaLedger: QuotaLedger;
  /** Counts what the queues of controllers do. */
  readonly queues: QueueMeters;
  /** Resolves when the caches that every request needs are loaded. */
  informersReady(): Promise<void>;
  customKindsReady(): Promise<void>;
  /** Default roles and bindings, when RBAC is on; those in namespaces after `namespaces`. */
  createDefaultRoles(namespaces: Promise<void>): Promise<void>;
  /** Ends every watch cleanly. */
  endStreams(): void;
  close(): Promise<void>;
}

export interface ApiOptions {
  readonly config: ServerConfig;
  readonly dialect: Dialect;
  readonly store: Store;
  readonly health: Health;
  /** The built-in kinds, with what the configuration serves of them. */
  readonly kinds: readonly ResourceDef[];
  readonly metrics: Metrics;
  /** Absent where nothing is encrypted. */
  readonly isStale?: ((storeKey: string) => Promise<boolean>) | undefined;
  readonly encodeAhead?: Registry['encodeAhead'];
  /** Where other servers charge the same quotas. */
  readonly reservations?: SharedReservations | undefined;
  /** Of which one of the servers on a store has each at a time. */
  readonly claims?: NumberClaims | undefined;
  /** Signs service account tokens; read or made as the configuration says when absent. */
  readonly signingKey?: SigningKey | undefined;
  /** The process that signs service account tokens in place of a key. */
  readonly signer?: ExternalSigner | undefined;
}

export function createApi(options: ApiOptions): Api {
  const { config, dialect, store, health, metrics } = options;
  const catalogue = createCatalogue(options.kinds, { groupOrder: builtinGroupOrder(dialect) });
  const closed = new Set<string>();
  const queues = metrics.queues();
  const authorization = createAuthorizationSlot(selectorsOf(config));
  const quotaLedger = new QuotaLedger(config.clock, options.reservations);
  const wired = { ...options, catalogue, closed, quotaLedger };
  const registry = createRegistry({ ...wired, escalation: authorization });
  const customKinds = followDefinitions({ ...wired, registry, claims: options.claims, queues });
  const { caches } = registry;
  const onLegacyUse = tokenUse(config, { dialect, registry, catalogue });
  const counted = { registry: metrics.registry, onLegacyUse };
  const tokens = createServiceAccountTokens({ ...wired, caches, ...counted });
  const shutdown = createShutdownSignal({
    clock: config.clock,
    graceMs: config.traffic?.watchGraceMs,
  });
  const [watches, debugPages] = [new WatchCounts(), []];
  const address = createReportedAddress(config);
  const aggregation = createAggregationHost({ ...wired, registry, queues });
  const parts = {
    catalogue,
    registry,
    authorization,
    tokens,
    shutdown,
    watches,
    debugPages,
    aggregation,
    address,
  };
  const endpoints = createEndpoints({ config, dialect, store, health, metrics, ...parts });
  return {
    catalogue,
    registry,
    endpoints,
    listensOn: address.listensOn,
    tokenAuthenticator: tokens.authenticator,
    authorization,
    watches,
    debugPages,
    quotaLedger,
    queues,
    aggregation,
    informersReady: () => registry.caches.of(namespaceDef(catalogue)).ready(),
    customKindsReady: () => customKinds.ready,
    createDefaultRoles: (namespaces) =>
      createDefaultRoles({ config, registry, catalogue, dialect, namespaces }),
    endStreams: shutdown.fire,
    async close() {
      await aggregation.close();
      await customKinds.close();
      options.signer?.close();
      registry.caches.close();
    },
  };
}

async function createDefaultRoles(options: {
  readonly config: ServerConfig;
  readonly dialect: Dialect;
  readonly catalogue: Catalogue;
  readonly registry: Registry;
  readonly namespaces: Promise<void>;
}): Promise<void> {
  const { config, catalogue, ...parts } = options;
  if (!config.authorizationModes.includes('RBAC')) return;
  const snapshot = catalogue.snapshot();
  const { reconcileDefaultRoles } = await import('./authorization/default-roles.ts');
  const features = config.featureGates ?? defaultGates;
  const aggregates = controllerSelection(config.controllers ?? ['*'])(
    'clusterrole-aggregation-controller',
  );
  const { logger } = config;
  await reconcileDefaultRoles({ ...parts, aggregates, logger, features, snapshot });
}

function createEndpoints(options: {
  readonly config: ServerConfig;
  readonly dialect: Dialect;
  readonly store: Store;
  readonly health: Health;
  readonly metrics: Metrics;
  readonly catalogue: Catalogue;
  readonly registry: Registry;
  readonly authorization: AuthorizationSlot;
  readonly tokens: ReturnType<typeof createServiceAccountTokens>;
  readonly shutdown: ShutdownSignal;
  readonly aggregation: AggregationHost;
  readonly watches: WatchCounts;
  readonly debugPages: readonly DebugPage[];
  readonly address: ReportedAddress;
}): EndpointContext {
  const { config, dialect, health, metrics, catalogue, authorization } = options;
  const { address } = options;
  const jwksUri = config.serviceAccounts?.jwksUri;
  const pages = createZPages(config);
  const kubelets = createKubeletPort(config);
  options.shutdown.subscribe(kubelets.close);
  const discovery = createIssuerDiscovery({
    issuer: accountSettings(config, dialect).issuer,
    jwksUri: () => jwksUri ?? `https://${address.text()}${issuerDiscoveryPaths.keys}`,
    keys: options.tokens.keys,
  });
  return {
    registry: options.registry,
    catalogue,
    dialect,
    features: config.featureGates ?? defaultGates,
    clock: config.clock,
    tap: config.embedding?.tap,
    logger: config.logger,
    limits: config.limits,
    deadlines: new Deadlines(config.clock),
    compressResponses: config.compressResponses,
    unreadableDeletion: (config.featureGates ?? defaultGates).enabled(
      'AllowUnsafeMalformedObjectDeletion',
    )
      ? 'allowed'
      : 'ignored',
    metrics: countingWatches(metrics.requests(catalogue.snapshot), options.watches),
    encodings: createEncodings({ dialect, cbor: config.cborServed === true ? 'served' : 'off' }),
    address: address.text,
    kubelets,
    aggregation: options.aggregation.slot,
    version: versionDocument(config.emulatedMinor),
    reviews: authorization,
    tokens: options.tokens.issuer,
    onShutdown: options.shutdown.subscribe,
    plainPath: (path, query, accept) =>
      pages.answer(path, accept) ??
      metrics.answer(path) ??
      health.answer(path, query) ??
      discovery.answer(path) ??
      debugAnswer(options.debugPages, { path, query }),
    plainPaths: () => [...metrics.paths(), ...health.paths(), ...discovery.paths, ...pages.paths()],
    backup: onlineBackup(config, options.store),
    authorize: async (user, info, verb) =>
      authorization.authorize(attributesOf(info, user, undefined, verb)),
  };
}

/** Serves the custom kinds that definitions declare; `closed` gets those that are going. */
function followDefinitions(options: {
  readonly config: ServerConfig;
  readonly dialect: Dialect;
  readonly catalogue: Catalogue;
  readonly closed: Set<string>;
  readonly registry: Registry;
  readonly claims: NumberClaims | undefined;
  readonly metrics: Metrics;
  readonly queues: QueueMeters;
}): ReturnType<typeof startCustomKinds> {
  const { config, dialect, catalogue, registry, claims, queues } = options;
  const converterFor = createConversions({ ...options, caches: registry.caches });
  return startCustomKinds({
    definitions: definitionsDef(catalogue, dialect),
    catalogue,
    caches: registry.caches,
    inside: createInside({ registry, controller: 'customresourcedefinition-controller' }),
    clock: config.clock,
    logger: config.logger,
    deps: customKindDeps(dialect, {
      compileRules: measuredRules(options.metrics.registry, config.clock),
      converterFor,
      features: config.featureGates ?? defaultGates,
    }),
    dialect,
    checkBundle: bundleProblems,
    cleanupFinalizer: cleanupFinalizerName(dialect),
    terminating: options.closed,
    claims,
    queues,
  });
}

function createRegistry(options: {
  readonly config: ServerConfig;
  readonly dialect: Dialect;
  readonly store: Store;
  readonly catalogue: Catalogue;
  readonly closed: ReadonlySet<string>;
  readonly escalation: EscalationPort;
  readonly quotaLedger: QuotaLedger;
  readonly metrics: Metrics;
  readonly isStale?: Registry['isStale'];
  readonly encodeAhead?: Registry['encodeAhead'];
}): Registry {
  const { config, dialect, store, catalogue } = options;
  const { clock, logger } = config;
  const caches: CachePool = createCachePool((def, forget) => {
    if (def.isComputed === true) {
      const objects = () => componentStatuses({ config, dialect, store });
      return createComputedCache({ storage: def.storage, objects });
    }
    return createResourceCache({
      store: storeFor(def, { store, caches }),
      onGivenUp: forget,
      prefix: def.storage.prefix,
      namespaced: def.scope === 'Namespaced',
      clock,
      logger,
      ...(readsAreFresh(config, def) ? { reads: 'fresh' as const } : {}),
      indexOf: (object) => indexOf(def.storage, object),
      groupResource: groupResourceOf(def),
      tokenVersion: `${dialect.group('meta')}/v1`,
      historyMs: config.compactionIntervalMs === 0 ? 300_000 : config.compactionIntervalMs,
      // A view's objects are those of the cache that it is a view of.
      meter: def.viewOf === undefined ? options.metrics.cacheMeter(def) : undefined,
    });
  });
  const registry: Registry = {
    store,
    clock,
    caches,
    decoded: createDecodedObjects({ form: config.sharedObjects ?? 'plain' }),
    turns: new Turns(clock),
    isStale: options.isStale,
    encodeAhead: options.encodeAhead,
    fieldManager: createFieldManager({ dialect, logger, snapshot: catalogue.snapshot }),
    admission: createAdmission({
      config,
      dialect,
      catalogue,
      caches,
      closed: options.closed,
      authorization: options.escalation,
      ledger: options.quotaLedger,
      metrics: options.metrics.registry,
      registry: () => registry,
    }),
  };
  return registry;
}

/** Whether reads of a kind wait for the store whatever version they would take. */
function readsAreFresh(
  { freshReads = [] }: ServerConfig,
  { group, resource }: ResourceDef,
): boolean {
  const name = group === '' ? resource : `${resource}.${group}`;
  return freshReads === 'all' || freshReads.includes(name);
}

/** The store as the watch cache of a kind reads it: in the form that readers see. */
function storeFor(
  def: ResourceDef,
  { store, caches }: { readonly store: Store; readonly caches: CachePool },
): Store {
  const whole = def.viewOf;
  if (whole !== undefined) return viewStore(def, { store, base: caches.of(whole) });
  if (!def.behavior.reshapesStored) return store;
  return mappedStore(store, {
    read: (value, key) => reshapeStored(def, { key, value }),
    isRead: (hint) => hint instanceof EntryHint && hint.form === def.storage,
  });
}

function definitionsDef(catalogue: Catalogue, dialect: Dialect): ResourceDef {
  const group = dialect.group('apiextensions');
  const def = catalogue.snapshot().builtin(group, 'customresourcedefinitions');
  if (def === undefined) throw new Error('the catalogue has no custom resource definitions');
  return def;
}

function namespaceDef(catalogue: Catalogue): ResourceDef {
  const def = catalogue.snapshot().builtin('', 'namespaces');
  if (def === undefined) throw new Error('the catalogue has no namespaces');
  return def;
}

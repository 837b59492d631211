import { builtinKinds, type CertificateOptions, loadPrivilegedPods } from '@wheelhouse/kinds';
import {
  type Dialect,
  dialectOf,
  type Logger,
  LoopOccupancy,
  type MemoryBudget,
  type MetricRegistry,
  type OnExchange,
  systemClock,
} from '@wheelhouse/machinery';
import { needsConfiguration } from '../admission/plugin-list.ts';
import type { AuditGate } from '../gates/audit/gate.ts';
import { createAuditMetrics } from '../gates/audit/metrics.ts';
import { bundleProblems } from '../gates/authn/certificate.ts';
import { createPipeline } from '../pipeline.ts';
import { type HttpServer, startHttpServer } from '../serving/server.ts';
import type { OpenConfigurations } from './admission/admission-configuration.ts';
import { createApi } from './api.ts';
import { certificateMetrics } from './apis/certificate-metrics.ts';
import { emulatedKinds } from './apis/emulation.ts';
import { defaultGates } from './apis/feature-gates.ts';
import { checkExpression, checkRules, judgeDefault } from './apis/rule-engine.ts';
import { configuredKinds } from './apis/runtime-config.ts';
import {
  type AuthorizationSettings,
  readAuthorization,
} from './authorization/configured-authorizers.ts';
import { suppliedPair } from './certificates/certificates.ts';
import type { ServerConfig } from './config.ts';
import { openConsole } from './console.ts';
import { type FeatureControllers, startFeatures } from './controllers/feature-controllers.ts';
import { controllersAfter } from './controllers/led-controllers.ts';
import { createGates } from './gates.ts';
import { createHealth, createHealthMetrics, type Health } from './health/health.ts';
import { ownLease } from './health/own-records.ts';
import { once, runStartHooks } from './health/start-hooks.ts';
import { connectionsWithin } from './limits/file-limit.ts';
import { followFlowObjects } from './limits/flow-control.ts';
import { createServerMemory } from './limits/memory.ts';
import { recordFaults } from './observability/faults.ts';
import { watchEventLoop } from './observability/loop-watchdog.ts';
import { createMetrics, readAllowedLabels } from './observability/metrics.ts';

import {
  createNumberMeter,
  createServiceNumbers,
  type ServiceNumbers,
  serviceNumbersLook,
} from './service-network/service-numbers.ts';
import { closedConnectionCounter, handshakeCounter } from './serving/connection-metrics.ts';
import { type OpenServingTls, openServingTls } from './serving/serving-tls.ts';
import { isAlwaysServed, refusalWhileStopping, withFilters } from './serving/traffic.ts';
import { encodedObjects, openStore, sealedStore } from './storage/open-store.ts';
import { alarmLook } from './storage/store-metrics.ts';

/** A server that listens. */
export interface RunningServer {
  /** `https://127.0.0.1:6443`, without a slash at the end. */
  readonly url: string;
  /** The CA to trust, when the server made its own. */
  readonly caPem: string | undefined;
  /** Resolves when readyz would answer 200 for the first time. */
  readonly ready: Promise<void>;
  /**
   * Stops as on SIGTERM (HEALTH-3): readyz fails, the delay passes, watches end, requests in flight
   * finish, the store closes. Stopping twice is one stop.
   */
  stop(): Promise<void>;
}

/**
 * Starts a control plane: opens the store, makes certificates when none are given, wires the gates
 * and endpoints, begins what belongs after the start, and listens. Rejects with a clear error when
 * the store is locked or damaged, a file cannot be read, or the port is taken.
 */
export async function startServer(settings: ServerConfig): Promise<RunningServer> {
  const config = { ...settings, listen: await listenSettings(settings.listen) };
  const authorization = await readAuthorization(config, dialectOf(config.dialect));
  const authorizationModes = authorization.authorizers.map(({ type }) => type);
  const plugins = await openPlugins(config);
  const { configurations, webhookCredentials = {} } = plugins;
  const admission = { ...config.admission, configurations, webhookCredentials };
  try {
    const running = await start({ ...config, authorizationModes, admission }, authorization);
    const stop = () => running.stop().finally(plugins.close);
    return { ...running, stop };
  } catch (error) {
    plugins.close();
    throw error;
  }
}

/** Where a user put a pair into the directory for certificates, that pair is as one of flags. */
async function listenSettings(listen: ServerConfig['listen']): Promise<ServerConfig['listen']> {
  const { tls } = listen;
  const pair = tls !== 'plaintext' && 'certDir' in tls ? suppliedPair(tls.certDir) : undefined;
  if (pair === undefined) return listen;
  const { checkFiles } = await import('./flags/flag-files.ts');
  const { certFile, keyFile } = pair;
  const flag = 'cert-dir';
  checkFiles([
    { flag, path: certFile, content: 'certificates' },
    { flag, path: keyFile, content: 'private key', keyOf: { path: certFile, name: certFile } },
  ]);
  return { ...listen, tls: pair };
}

/** What admission plugins are told by a file; the reader is loaded only where there is one. */
async function openPlugins(config: ServerConfig): Promise<OpenConfigurations> {
  const { admission = {} } = config;
  if (admission.configFile === undefined && !needsConfiguration(admission)) {
    return { configurations: {}, close: () => {} };
  }
  const loaded = await import('./admission/admission-configuration.ts');
  return loaded.openPluginConfigurations(config);
}

async function start(
  config: ServerConfig,
  authorization: AuthorizationSettings,
): Promise<RunningServer> {
  const dialect = dialectOf(config.dialect);
  const serving = openServingTls(config);
  const { storage, health, metrics, api, memory, services } = await openApi(config, dialect);
  const { registry } = metrics;
  const { occupancy, watchdog } = watchLoop(health, { registry, logger: config.logger });
  const stopRecording = recordFaults({ registry, logger: config.logger, clock: config.clock });
  let audit: AuditGate | undefined;
  let features: FeatureControllers | undefined;
  const close = async () => {
    memory.close();
    watchdog.stop();
    await features?.close();
    await audit?.close();
    await api.close();
    await storage.close();
    stopRecording();
  };
  const giveUp = async (error: unknown): Promise<never> => {
    await close();
    throw error;
  };
  audit = await openAudit(config, registry).catch(giveUp);
  const of = { config, dialect, api, registry, metrics, authorization };
  const gates = { ...(await createGates(of).catch(giveUp)), audit };
  metrics.countInFlight(gates.flowControl);
  const { shared, space } = storage;
  const peers = shared?.presence;
  const { flowControl } = gates;
  features = await startFeatures({ config, dialect, api }).catch(giveUp);
  const lease = ownLease({ config, dialect, api });
  const stored = { checks: shared?.checks, space, peers, services, lease, more: features.hooks };
  const hooks = runStartHooks({ config, api, dialect, health, flowControl, ...stored });
  features.startAfter(hooks.done);
  await hooks.headStart;
  const answer = createPipeline(gates, api.endpoints);
  const on = { answer, registry, memory: memory.budget, occupancy };
  const server = await listen(config, serving, on).catch((error: unknown) => {
    gates.close();
    return giveUp(error);
  });
  server.takeUpgrades();
  api.aggregation.followAfter(hooks.done);
  const { port } = server.address;
  api.listensOn(port);
  hooks.listensOn(port);
  const compactor = storage.startCompactor();
  const { caPem } = serving;
  const around = { config, dialect, api, caPem, port, presence: peers, lease };
  const controllers = controllersAfter(hooks.done, around);
  const flowObjects = followFlowObjects(hooks.done, { ...around, flowControl });
  const stop = async () => {
    hooks.beginShutdown();
    await pause(config, config.shutdownDelayMs);
    const timeoutMs = config.limits.requestTimeoutMs;
    if (config.traffic?.whileStopping === 'refuse') {
      await server.turnAway({ refusal: refusalWhileStopping, timeoutMs });
    }
    await Promise.all([controllers.close(), flowObjects.close()]);
    await server.drain({ timeoutMs, endStreams: api.endStreams });
    compactor.stop();
    serving.close();
    gates.close();
    await close();
  };
  return { url: urlOf(config, server), caPem, ready: hooks.done, stop: once(stop) };
}

/** Watches the event loop of this thread. A blocked one fails `/livez`. */
function watchLoop(
  health: Health,
  reports: { readonly registry: MetricRegistry; readonly logger: Logger },
) {
  const occupancy = new LoopOccupancy(systemClock);
  const watchdog = watchEventLoop({ clock: systemClock, occupancy, ...reports });
  health.addLivez({ name: 'event-loop', run: watchdog.check });
  return { occupancy, watchdog };
}

/** The store, and what requests find there. */
async function openApi(config: ServerConfig, dialect: Dialect) {
  const { clock, logger } = config;
  const services = createServiceNumbers(config);
  let countIssued: CertificateOptions['onIssued'] = () => {};
  const certificates: CertificateOptions = { onIssued: (issued) => countIssued(issued) };
  const kinds = await kindsOf(config, { services, certificates });
  const allowedLabels = await readAllowedLabels(config);
  const metrics = createMetrics({ config, kinds, allowedLabels });
  countIssued = certificateMetrics(metrics.registry, dialect.labelDomain);
  const healthMetrics = createHealthMetrics(config.clock);
  const signer = await openSigner(config, metrics.registry);
  const opened = await openStore(config, kinds).catch((error: unknown) => {
    signer?.close();
    throw error;
  });
  const { livezGracePeriodMs } = config;
  const onChecked = healthMetrics.checked;
  const health = createHealth({ clock, logger, livezGracePeriodMs, onChecked });
  const sealed = await sealedStore(opened, { config, kinds, registry: metrics.registry, health });
  const storage = await encodedObjects(sealed, { config, kinds });
  const { store, shared, isStale, encodeAhead } = storage;
  metrics.serveAt('/metrics/slis', healthMetrics.registry);
  config.embedding?.onMetrics?.([metrics.registry, healthMetrics.registry]);
  const api = createApi({
    config,
    dialect,
    store: metrics.measured(store),
    health,
    kinds,
    metrics,
    reservations: shared?.reservations,
    claims: shared?.claims,
    isStale,
    encodeAhead,
    signer,
  });
  config.embedding?.onCatalogue?.(api.catalogue);
  services.readFrom(api, { claims: shared?.claims, meter: createNumberMeter(metrics.registry) });
  metrics.countObjects(api);
  metrics.measureSize(store);
  if (storage.space !== undefined) metrics.lookAt(alarmLook(metrics.registry, storage.space));
  metrics.lookAt(serviceNumbersLook(metrics.registry, services));
  const { registry, lookAt } = metrics;
  const limitBytes = config.limits.memoryBytes ?? 0;
  const memory = createServerMemory({ limitBytes, clock, logger, registry, lookAt });
  return { storage, health, metrics, api, memory, services };
}

/** Connects to the process that signs tokens, where one does. */
async function openSigner(config: ServerConfig, registry: MetricRegistry) {
  if (config.serviceAccounts?.signingEndpoint === undefined) return undefined;
  const { openExternalSigner } = await import('./service-accounts/external-signing.ts');
  return openExternalSigner(
    { ...config, endpoint: config.serviceAccounts.signingEndpoint },
    registry,
  );
}

/** Loaded only when it is asked for. */
async function openAudit(
  config: ServerConfig,
  registry: MetricRegistry,
): Promise<AuditGate | undefined> {
  const metrics = createAuditMetrics(registry);
  if (config.audit === undefined) return undefined;
  const loaded = await import('./audit/audit.ts');
  return loaded.openAudit(config.audit, { config, metrics });
}

async function kindsOf(
  config: ServerConfig,
  ports: { readonly services: ServiceNumbers; readonly certificates: CertificateOptions },
) {
  const dialect = dialectOf(config.dialect);
  const gates = config.featureGates ?? defaultGates;
  const builtins = builtinKinds(dialect, {
    definitions: { checkRules, judgeDefault, checkBundle: bundleProblems },
    admission: { checkExpression },
    ...ports,
    features: gates,
  });
  const served = { config: config.runtimeConfig ?? new Map(), dialect };
  const ofRelease = await emulatedKinds(builtins, {
    minor: config.emulatedMinor,
    admission: { checkExpression },
    features: gates,
    ...served,
  });
  const kinds = configuredKinds(ofRelease, { ...served, gates });
  if (config.privilegedContainers !== 'refused') return kinds;
  const { withoutPrivileged } = await loadPrivilegedPods();
  return withoutPrivileged(kinds);
}

/** Listens: the console's requests are its own, all others `answer`'s. */
async function listen(
  config: ServerConfig,
  serving: OpenServingTls,
  on: {
    readonly answer: OnExchange;
    readonly registry: MetricRegistry;
    readonly memory: MemoryBudget;
    readonly occupancy: LoopOccupancy;
  },
): Promise<HttpServer> {
  const { limits, logger } = config;
  const clock = config.embedding?.connectionClock ?? config.clock;
  const { streamsPerConnectionMax, connectionsMax = connectionsWithin() } = limits;
  const { host, port, secure } = config.listen;
  const { goAwayChance } = config.traffic ?? {};
  const webConsole = openConsole(config);
  const onExchange = await withFilters(config, (exchange) =>
    webConsole?.takes(exchange.url) === true ? webConsole.answer(exchange) : on.answer(exchange),
  );
  const server = await startHttpServer({
    listen: {
      host,
      port,
      tls: serving.tls,
      ...(secure === undefined ? {} : { http2: secure.http2 }),
    },
    onExchange,
    onHandshakeFailed: handshakeCounter(on.registry),
    logger,
    clock,
    memory: on.memory,
    isAlwaysServed,
    occupancy: on.occupancy,
    ...(goAwayChance === undefined ? {} : { goAwayChance }),
    onConnectionClosed: closedConnectionCounter(on.registry),
    limits: {
      connectionsMax,
      ...(streamsPerConnectionMax === undefined ? {} : { streamsPerConnectionMax }),
    },
  });
  serving.follow(server);
  return server;
}

function urlOf(config: ServerConfig, server: HttpServer): string {
  const scheme = config.listen.tls === 'plaintext' ? 'http' : 'https';
  const { host, port } = server.address;
  const reachable = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
  return `${scheme}://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`;
}

function pause(config: ServerConfig, delayMs: number): Promise<void> {
  if (delayMs <= 0) return Promise.resolve();
  return new Promise((resolve) => {
    config.clock.after(delayMs, resolve);
  });
}

import { dialectOf, pause, systemClock } from '@wheelhouse/machinery';
import type { AuditGate } from '../gates/audit/gate.ts';
import { createAuditMetrics } from '../gates/audit/metrics.ts';
import { recordFaults } from '../observe/faults.ts';
import { createHealth, createHealthMetrics } from '../observe/health.ts';
import { watchEventLoop } from '../observe/process-metrics.ts';
import { alarmUpdater } from '../observe/store-metrics.ts';
import { createPipeline } from '../pipeline.ts';
import { createServerMemory } from '../serving/memory.ts';
import type { HttpServer } from '../serving/server.ts';
import { LoopOccupancy } from '../serving/server-core.ts';
import { openConfigurations } from './admission/admission.ts';
import { type Api, openApi } from './api.ts';
import { certificateMetrics, servedKinds } from './apis/served-kinds.ts';
import { type ConfiguredAuthorizers, readAuthorization } from './authorization/authorizers.ts';
import type { ServerConfig } from './config.ts';
import type { Base } from './context.ts';
import { controllersAfter } from './controllers/controllers.ts';
import { startGatedControllers } from './controllers/gated-controllers.ts';
import { ownLease } from './controllers/own-objects.ts';
import { once, runStartHooks, type StartHooks } from './health/start-hooks.ts';
import { followFlowObjects } from './limits/flow-control.ts';
import { createMetrics, readAllowedLabels } from './observability/metrics.ts';
import type { Tracing } from './observability/tracing.ts';
import { OpenParts } from './parts.ts';
import { openSigner } from './service-accounts/service-account-tokens.ts';
import { createServiceNumbers, serviceNumberPort } from './service-network/service-numbers.ts';
import { listen, refusalWhileStopping, urlOf } from './serving/listen.ts';
import { listenSettings, openServingTls } from './serving/serving-tls.ts';
import { openStorage } from './storage/open-store.ts';

/** A listening server. */
export interface RunningServer {
  /** `https://127.0.0.1:6443`, without a trailing slash. */
  readonly url: string;
  /** The CA certificate to trust; undefined unless the server generated it. */
  readonly caPem: string | undefined;
  /** Resolves when `/readyz` first answers 200. */
  readonly ready: Promise<void>;
  /** Resolves when the controllers that start after the server have started. */
  readonly settled: Promise<void>;
  /**
   * Stops as on SIGTERM (HEALTH-3): readyz fails, the delay passes, watches end, requests in flight
   * finish, the store closes. A second call returns the same promise.
   */
  stop(): Promise<void>;
}

/**
 * Starts a control plane from the settings of its features: reads the files they name, builds each
 * part from those before it, runs the start hooks, and listens. Rejects with a clear error when the
 * store is locked or damaged, a file cannot be read, or the port is taken; then nothing is left
 * open.
 */
export async function startServer(settings: ServerConfig): Promise<RunningServer> {
  const parts = new OpenParts();
  try {
    const { config, authorizers } = await readFiles(settings, parts);
    return await start(await build(config, { authorizers, parts }), parts);
  } catch (error) {
    await parts.close();
    throw error;
  }
}

/** The configuration, completed with the content of its files. */
async function readFiles(
  settings: ServerConfig,
  parts: OpenParts,
): Promise<{ readonly config: ServerConfig; readonly authorizers: ConfiguredAuthorizers }> {
  const config = { ...settings, listen: await listenSettings(settings.listen) };
  const authorizers = await readAuthorization(config, dialectOf(config.dialect));
  const authorizationModes = authorizers.authorizers.map(({ type }) => type);
  const plugins = parts.add(await openConfigurations(config));
  const { configurations, webhookCredentials = {} } = plugins;
  const admission = { ...config.admission, configurations, webhookCredentials };
  return { config: { ...config, authorizationModes, admission }, authorizers };
}

type BuiltServer = Awaited<ReturnType<typeof build>>;

/** Builds the parts of the server in dependency order. */
async function build(
  config: ServerConfig,
  {
    authorizers,
    parts,
  }: { readonly authorizers: ConfiguredAuthorizers; readonly parts: OpenParts },
) {
  const { clock, logger, embedding } = config;
  const dialect = dialectOf(config.dialect);
  const serving = parts.add(openServingTls(config));
  const numbers = serviceNumberPort(config);
  const metrics = createMetrics({ config, allowedLabels: await readAllowedLabels(config) });
  const { registry: metricRegistry, beforeRender } = metrics;
  const tracing = parts.add(await openTracing(config));
  await checkEgress(config);
  const base = { config, dialect, metrics, tracing };
  const onIssued = certificateMetrics(metricRegistry, dialect.labelDomain);
  const kinds = await servedKinds(config, {
    services: numbers.options,
    certificates: { onIssued },
  });
  const health = openHealth(base);
  const signer = parts.add(await openSigner(base));
  const storage = parts.add(await openStorage({ ...base, kinds, health }));
  const { store, shared, space, isStale, encodeAhead } = storage;
  const measured = metrics.measured(store, kinds);
  const api = await openApi(
    {
      ...base,
      kinds,
      health,
      authorizers,
      signer,
      isStale,
      encodeAhead,
      store: tracing?.store(measured) ?? measured,
      reservations: shared?.reservations,
      claims: shared?.claims,
    },
    parts,
  );
  embedding?.onCatalogue?.(api.catalogue);
  const services = createServiceNumbers({ ...base, api, claims: shared?.claims });
  numbers.connect(services);
  metrics.countObjects(api);
  metrics.measureSize(store);
  if (space !== undefined) beforeRender(alarmUpdater(metricRegistry, space));
  metrics.countInFlight(api.flow.gate);
  const limitBytes = config.limits.memoryBytes ?? 0;
  const memory = parts.add(
    createServerMemory({ limitBytes, clock, logger, registry: metricRegistry, beforeRender }),
  );
  const occupancy = new LoopOccupancy(systemClock);
  const loop = { clock: systemClock, occupancy, registry: metricRegistry, logger };
  const watchdog = watchEventLoop(loop);
  parts.add({ close: watchdog.stop });
  health.addLivez({ name: 'event-loop', run: watchdog.check });
  parts.add({ close: recordFaults({ registry: metricRegistry, logger, clock }) });
  const audit = parts.add(await openAudit(base));
  const gated = parts.add(await startGatedControllers({ config, dialect, api }));
  return { ...base, serving, health, storage, api, services, memory, occupancy, audit, gated };
}

/** Runs the start hooks and listens. The server is ready once `ready` of the result resolves. */
async function start(server: BuiltServer, parts: OpenParts): Promise<RunningServer> {
  const { config, dialect, api, serving, storage, gated } = server;
  const { shared, space } = storage;
  const presence = shared?.presence;
  const lease = ownLease({ config, dialect, api });
  const flowControl = api.flow.gate;
  const hooks = runStartHooks({
    ...server,
    flowControl,
    space,
    lease,
    checks: shared?.checks,
    peers: presence,
    more: gated.hooks,
  });
  gated.startAfter(hooks.done);
  await hooks.headStart;
  const { memory, occupancy, metrics, audit, tracing } = server;
  const answer = createPipeline({ ...api.gates, audit }, api.endpoints, tracing?.tracer);
  const on = { answer, registry: metrics.registry, memory: memory.budget, occupancy };
  const http = await listen(config, serving, on).catch((error: unknown) => {
    hooks.beginShutdown();
    throw error;
  });
  api.aggregation.followAfter(hooks.done);
  const { port } = http.address;
  api.address.listensOn(port);
  const compactor = storage.startCompactor();
  const { caPem } = serving;
  const { tokens, quotaLedger } = api;
  const issuer = tokens.issuer;
  const around = {
    config,
    dialect,
    api,
    tokens: issuer,
    quotaLedger,
    caPem,
    port,
    presence,
    lease,
  };
  const controllers = controllersAfter(hooks.done, around);
  const flowObjects = followFlowObjects(hooks.done, { config, dialect, api, flowControl });
  const running = { hooks, http, api, controllers, flowObjects, compactor, parts };
  const stop = once(() => stopServer(config, running));
  const settled = Promise.all([controllers.begun, flowObjects.begun]).then(() => {});
  return { url: urlOf(config, http), caPem, ready: hooks.done, settled, stop };
}

/** Stops a server: refuses new traffic, drains requests, then closes the parts. */
async function stopServer(
  config: ServerConfig,
  running: {
    readonly hooks: StartHooks;
    readonly http: HttpServer;
    readonly api: Api;
    readonly controllers: { close(): Promise<void> };
    readonly flowObjects: { close(): Promise<void> };
    readonly compactor: { stop(): void };
    readonly parts: OpenParts;
  },
): Promise<void> {
  const { hooks, http, api, controllers, flowObjects, compactor, parts } = running;
  hooks.beginShutdown();
  const { clock, shutdownDelayMs } = config;
  if (shutdownDelayMs > 0) await pause(clock, { ms: shutdownDelayMs });
  const timeoutMs = config.limits.requestTimeoutMs;
  if (config.traffic?.whileStopping === 'refuse') {
    await http.turnAway({ refusal: refusalWhileStopping, timeoutMs });
  }
  await Promise.all([controllers.close(), flowObjects.close()]);
  await http.drain({ timeoutMs, endStreams: api.endStreams });
  compactor.stop();
  await parts.close();
}

/** The health checks; their metrics are served at `/metrics/slis`. */
function openHealth({ config, metrics }: Base) {
  const { clock, logger, livezGracePeriodMs } = config;
  const { registry, observe: onChecked } = createHealthMetrics(clock);
  metrics.serveAt('/metrics/slis', registry);
  config.embedding?.onMetrics?.([metrics.registry, registry]);
  return createHealth({ clock, logger, livezGracePeriodMs, onChecked });
}

/** Loads tracing only if it is configured. */
async function openTracing(config: ServerConfig): Promise<Tracing | undefined> {
  if (config.tracing === undefined) return undefined;
  const module = await import('./observability/tracing.ts');
  return module.openTracing(config.tracing, config);
}

async function checkEgress(config: ServerConfig): Promise<void> {
  if (config.egressFile === undefined) return;
  const module = await import('../aggregation/egress.ts');
  await module.checkEgress(config.egressFile, config);
}

/** Loads the audit log only if it is configured. */
async function openAudit({ config, metrics }: Base): Promise<AuditGate | undefined> {
  const auditMetrics = createAuditMetrics(metrics.registry);
  if (config.audit === undefined) return undefined;
  const module = await import('./audit/audit.ts');
  return module.openAudit(config.audit, { config, metrics: auditMetrics });
}

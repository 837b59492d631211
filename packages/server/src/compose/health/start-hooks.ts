import type { CatalogueSnapshot, ResourceDef } from '@wheelhouse/kinds';
import {
  type ApiObject,
  asError,
  type Clock,
  type Dialect,
  type DialectName,
  type Logger,
  nextTurn,
  pause,
  StatusError,
  waitAtMost,
} from '@wheelhouse/machinery';
import { StoreError } from '@wheelhouse/store';
import { requiredKind } from '../../catalogue/catalogue.ts';
import type { IdentityLease } from '../../controllers/identity/identity-lease.ts';
import { createTrackingRecord } from '../../controllers/identity/legacy-tokens.ts';
import { systemNamespaces } from '../../controllers/namespaces.ts';
import type { ServerPeers } from '../../controllers/services/default-service.ts';
import { storedVersion } from '../../controllers/tools.ts';
import type { FlowControl } from '../../gates/flowcontrol/contract.ts';
import type { Health } from '../../observe/health.ts';
import type { StoreSpace } from '../../observe/store-metrics.ts';
import { type Registry, serverContext } from '../../registry/registry.ts';
import { write } from '../../registry/write.ts';
import { CorruptObjectError } from '../../watchcache/store-errors.ts';
import type { Api } from '../api.ts';
import { createDefaultRoles } from '../authorization/authorizers.ts';
import type { ServerConfig } from '../config.ts';
import {
  createOwnApiServices,
  createOwnService,
  tokenTracking,
} from '../controllers/own-objects.ts';
import { createFlowObjects, flowHooks } from '../limits/flow-control.ts';
import type { ServiceNumbers } from '../service-network/service-numbers.ts';
import type { StoreChecks } from '../storage/etcd.ts';

/**
 * How long the hooks run before the port opens, in milliseconds. Each handshake of a polling client
 * delays the hooks; a server that starts slowly must still open the port and report why.
 */
const headStartMs = 500;

/** The check of a hook whose name lacks the usual prefix. */
const autoregisterCompletion = 'autoregister-completion';

/** Runs the start hooks, each with a health check of kube-apiserver's name (HEALTH-2). */
export interface StartHooks {
  /** Resolves when all hooks have succeeded. */
  readonly done: Promise<void>;
  /**
   * Resolves when the hooks have ended, with or without success, or have used up their head start.
   */
  readonly headStart: Promise<void>;
  /**
   * Makes readyz fail, so that no new traffic arrives (HEALTH-3). Hooks that the end of the server
   * interrupts are not logged.
   */
  beginShutdown(): void;
}

/** The name of a check without its prefix, and the work that the check reports. */
export type Hook = readonly [name: string, run: () => Promise<unknown>];

interface StartHookOptions {
  readonly config: ServerConfig;
  readonly api: Api;
  readonly dialect: Dialect;
  readonly health: Health;
  readonly flowControl: FlowControl;
  /** Checks of an external store; the server's own store is checked directly when absent. */
  readonly checks: StoreChecks | undefined;
  /** Whether the store is writable; undefined if unknown. */
  readonly space: StoreSpace | undefined;
  /** Other servers on the same store. */
  readonly peers: ServerPeers | undefined;
  readonly services: Pick<ServiceNumbers, 'usage'>;
  readonly lease: IdentityLease | undefined;
  /** Hooks of features that are off by default. */
  readonly more: readonly Hook[];
}

/** Runs the start hooks and adds the checks of the hooks and of the store. */
export function runStartHooks(options: StartHookOptions): StartHooks {
  const { dialect, health, config } = options;
  addStoreChecks(options);
  let shuttingDown = false;
  const tasks = startTasks(options, () => shuttingDown);
  const names: Readonly<Record<string, readonly string[]>> = namesFor(dialect, config);
  const { flowControl, api } = options;
  const around = { config, dialect, api, flowControl, informersReady: api.informersReady };
  const flow = dialect.name === 'kubernetes' ? flowHooks(around) : [];
  const pending = [...Object.entries(tasks), ...flow, ...options.more].map(([task, run]) => {
    const running = run();
    for (const name of names[task] ?? [task]) addHook(health, name, running);
    return { task, running };
  });
  if (dialect.name === 'kubernetes') addInformerSync(options);
  health.addReadyz({
    name: 'shutdown',
    run: () => {
      if (shuttingDown) throw new Error('process is shutting down');
    },
  });
  const all = (hooks: typeof pending) =>
    Promise.all(hooks.map(({ running }) => running)).then(() => {});
  const done = all(pending);
  // A server that cannot listen closes its store while hooks run; nobody awaits them then.
  done.catch(() => {});
  return {
    done,
    headStart: headStart(all(pending.filter(({ task }) => task !== 'service')), config.clock),
    beginShutdown: () => {
      shuttingDown = true;
    },
  };
}

type TaskName = keyof ReturnType<typeof startTasks>;

/** The work before the server is ready. All tasks start at once. */
function startTasks(options: StartHookOptions, isShuttingDown: () => boolean) {
  const { api, dialect, config } = options;
  const { clock, storageWaitMs } = config;
  const around = { config, dialect, api };
  const parts = { registry: api.registry, snapshot: api.catalogue.snapshot(), dialect };
  /** Repeats work on a store that other servers share, whose cluster may be electing a leader. */
  const lasting = (run: () => Promise<void>): Promise<void> =>
    api.registry.store.sharing === 'shared'
      ? untilStored(run, { ...config, isShuttingDown })
      : run();
  const namespaces = once(() => lasting(() => createSystemNamespaces(parts)));
  return {
    informers: () =>
      storageWaitMs === undefined
        ? api.informersReady()
        : waitAtMost(clock, storageWaitMs, api.informersReady()),
    customKinds: () => api.customKindsReady(),
    namespaces,
    priorities: () => lasting(() => createSystemPriorities(parts)),
    aggregation: () => lasting(() => api.aggregation.start()),
    trust: () => api.aggregation.publishTrust(namespaces()),
    roles: () => lasting(() => createDefaultRoles(around, namespaces())),
    flowObjects: () =>
      lasting(() => createFlowObjects({ ...around, flowControl: options.flowControl })),
    apiServices: () =>
      lasting(() => createOwnApiServices({ ...around, customKindsReady: api.customKindsReady })),
    identityLease: async () => {
      await namespaces();
      await announce(options, isShuttingDown);
    },
    tokenTracking: async () => {
      const tracking = tokenTracking(around);
      if (tracking === undefined) return;
      await namespaces();
      await lasting(() => createTrackingRecord(tracking));
    },
    admission: () => admissionReady(options),
    serviceNumbers: () => lasting(() => serviceNumbersRead(options)),
    /** The only task that needs the port. */
    service: async () => {
      const [port] = await Promise.all([api.address.port, namespaces()]);
      await lasting(() => createOwnService({ ...around, port, peers: options.peers }));
    },
  };
}

/** How long start hooks wait for a store that is unavailable, and the pause between attempts. */
const storeWaitMs = 30_000;
const storeRetryMs = 1000;

/**
 * Runs the work of a start hook, again each second while the store is unavailable, for at most 30
 * seconds like kube-apiserver. Rejects with the error of the last attempt.
 */
export async function untilStored(
  run: () => Promise<void>,
  options: {
    readonly clock: Clock;
    readonly logger: Logger;
    readonly isShuttingDown: () => boolean;
  },
): Promise<void> {
  const { clock, logger, isShuttingDown } = options;
  const endMs = clock.monotonic() + storeWaitMs;
  for (;;) {
    try {
      return await run();
    } catch (error) {
      const isOutage =
        error instanceof StoreError || (error instanceof StatusError && error.code >= 500);
      if (!isOutage || isShuttingDown() || clock.monotonic() >= endMs) throw error;
      logger.warn('waiting for the store before starting', { error: error.message });
    }
    await pause(clock, { ms: storeRetryMs });
  }
}

/**
 * Stores the identity Lease. If the store rejects it, for example because the disk is full, the
 * start continues and a later renewal stores it.
 */
async function announce(
  { lease, config }: StartHookOptions,
  isShuttingDown: () => boolean,
): Promise<void> {
  try {
    await lease?.renew();
  } catch (error) {
    if (isShuttingDown()) return;
    config.logger.error('cannot store the Lease of this server', { error: String(error) });
  }
}

/** Resolves when the objects that configure admission are cached. */
async function admissionReady({ api, dialect }: StartHookOptions): Promise<void> {
  const { builtins } = api.catalogue.snapshot();
  const group = dialect.group('admissionregistration');
  const defs = builtins.filter((def) => def.group === group);
  await Promise.all(defs.map((def) => api.registry.caches.of(def).ready()));
}

/** A damaged Service fails only the requests that allocate numbers, not the start. */
async function serviceNumbersRead({ services, config }: StartHookOptions): Promise<void> {
  try {
    await services.usage();
  } catch (error) {
    if (!(error instanceof CorruptObjectError)) throw error;
    config.logger.error('cannot read the allocated addresses and ports of Services', {
      error: error.message,
    });
  }
}

/** The well-known names of the checks of each task (HEALTH-2). */
type HookNames = Readonly<Record<TaskName, readonly string[]>>;

const commonNames: HookNames = {
  informers: ['generic-apiserver-start-informers'],
  customKinds: [
    'start-apiextensions-informers',
    'start-apiextensions-controllers',
    'crd-informer-synced',
  ],
  namespaces: ['start-system-namespaces-controller'],
  priorities: ['scheduling/bootstrap-system-priority-classes'],
  aggregation: ['apiservice-registration-controller'],
  trust: ['start-cluster-authentication-info-controller'],
  roles: ['rbac/bootstrap-roles'],
  flowObjects: ['priority-and-fairness-config-producer'],
  apiServices: [autoregisterCompletion],
  identityLease: [],
  tokenTracking: ['start-legacy-token-tracking-controller'],
  admission: [],
  serviceNumbers: [],
  service: ['bootstrap-controller'],
};

const hookNames: Readonly<Record<DialectName, HookNames>> = {
  svc: commonNames,
  kubernetes: {
    ...commonNames,
    aggregation: [
      'apiservice-registration-controller',
      'start-kube-aggregator-informers',
      'apiservice-status-remote-available-controller',
      'apiservice-wait-for-first-sync',
      'apiservice-discovery-controller',
      'apiservice-openapi-controller',
      'apiservice-openapiv3-controller',
    ],
    apiServices: [
      'kube-apiserver-autoregistration',
      autoregisterCompletion,
      'apiservice-status-local-available-controller',
    ],
    identityLease: [
      'start-kube-apiserver-identity-lease-controller',
      'start-kube-apiserver-identity-lease-garbage-collector',
    ],
    admission: ['start-apiserver-admission-initializer'],
    serviceNumbers: ['start-service-ip-repair-controllers'],
  },
};

/**
 * The names of checks by task; a client certificate for other servers is read again in one of them.
 */
function namesFor({ name }: Dialect, { aggregation }: ServerConfig): HookNames {
  const names = hookNames[name];
  if (name !== 'kubernetes' || aggregation?.certificate === undefined) return names;
  return { ...names, aggregation: [...names.aggregation, 'aggregator-reload-proxy-client-cert'] };
}

function addStoreChecks({ api, dialect, health, checks, space }: StartHookOptions): void {
  const own = [{ suffix: '', run: () => api.registry.store.ping() }];
  for (const { suffix, run } of checks?.health ?? own) {
    health.add({ name: dialect.storeCheck + suffix, run });
  }
  for (const { suffix, run } of checks?.ready ?? []) {
    health.addReadyz({ name: dialect.storeCheck + suffix, run });
  }
  // On readyz alone, since a restart does not free disk space.
  if (space !== undefined) health.addReadyz({ name: 'storage-writable', run: space.check });
}

/** Resolves when `done` has settled or the head start is over. */
export function headStart(done: Promise<void>, clock: Clock): Promise<void> {
  return waitAtMost(clock, headStartMs, done).catch(() => {});
}

/**
 * Runs the work on the first call; later calls return the same promise. Drops the work then, so that
 * the function that stopped a server does not keep the server's memory.
 */
export function once(run: () => Promise<void>): () => Promise<void> {
  let work: (() => Promise<void>) | Promise<void> = run;
  return () => {
    if (typeof work === 'function') work = work();
    return work;
  };
}

/** Adds the check that the caches needed by every request follow the store. */
function addInformerSync({ api, health }: StartHookOptions): void {
  const notYet = Symbol();
  const run = async () => {
    const first = await Promise.race([api.informersReady(), settled(notYet)]);
    if (first === notYet) throw new Error('caches are not synced');
  };
  health.addReadyz({ name: 'informer-sync', run });
}

const settled = <T>(value: T): Promise<T> => nextTurn().then(() => value);

/** Adds a task's check, which passes once the task has succeeded. */
function addHook(health: Health, name: string, task: Promise<unknown>): void {
  let state: 'running' | 'done' | Error = 'running';
  task.then(
    () => {
      state = 'done';
    },
    (error: unknown) => {
      state = asError(error);
    },
  );
  const check = {
    name: name === autoregisterCompletion ? name : `poststarthook/${name}`,
    run: () => {
      if (state === 'running') throw new Error('not finished');
      if (state !== 'done') throw state;
    },
  };
  health.add(check, { boot: true });
}

interface SystemObjects {
  readonly registry: Registry;
  readonly snapshot: CatalogueSnapshot;
  readonly dialect: Dialect;
}

/** Creates the missing system namespaces; existing ones are unchanged. */
function createSystemNamespaces({ registry, snapshot, dialect }: SystemObjects): Promise<void> {
  const namespaces = systemNamespaces(dialect);
  return createMissing(registry, requiredKind(snapshot, '', 'namespaces'), namespaces);
}

/** Priority classes of critical system pods, with kube-apiserver's names and values. */
const systemPriorities = [
  ['system-node-critical', 2_000_001_000, 'For pods that must stay on the node they are on.'],
  ['system-cluster-critical', 2_000_000_000, 'For pods that must run, on whatever node.'],
] as const;

/** Creates the missing system priority classes (ADM-1); existing ones are unchanged. */
function createSystemPriorities({ registry, snapshot, dialect }: SystemObjects): Promise<void> {
  const group = dialect.group('scheduling');
  return createMissing(
    registry,
    requiredKind(snapshot, group, 'priorityclasses'),
    systemPriorities.map(([name, value, description]) => ({
      apiVersion: `${group}/v1`,
      kind: 'PriorityClass',
      metadata: { name },
      value,
      description,
      preemptionPolicy: 'PreemptLowerPriority',
    })),
  );
}

/** Creates the cluster-scoped objects whose names are free, concurrently. */
async function createMissing(
  registry: Registry,
  def: ResourceDef,
  objects: readonly (ApiObject & { readonly metadata: { readonly name: string } })[],
): Promise<void> {
  const cache = registry.caches.of(def);
  const create = async (object: (typeof objects)[number]): Promise<void> => {
    const { name } = object.metadata;
    if ((await cache.get(name, undefined)) !== undefined) return;
    const target = { def, version: storedVersion(def), namespace: '', name, subresource: '' };
    try {
      await write(registry, { operation: 'create', target, object, context: serverContext });
    } catch (error) {
      if (!(error instanceof StatusError) || error.reason !== 'AlreadyExists') throw error;
    }
  };
  await Promise.all(objects.map(create));
}

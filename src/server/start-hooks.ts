import type { Clock } from '../base/clock.ts';
import type { Dialect } from '../dialect.ts';
import type { Api } from './api.ts';
import { createSystemNamespaces, createSystemPriorities } from './bootstrap.ts';
import type { Health } from './health.ts';
import type { StoreSpace } from './opened-store.ts';
import type { StoreChecks } from './store-check.ts';

/**
 * How long the hooks have before the port opens. Who keeps asking whether a server is ready takes
 * from it, with every handshake, what it needs to become so; one that is slow is to say why.
 */
const headStartMs = 500;

/** Runs what belongs after the start, each hook with a health check of upstream's name (HEALTH-2). */
export interface StartHooks {
  /** All hooks have succeeded. */
  readonly done: Promise<void>;
  /** Resolves when the hooks have ended, well or not, or have had their head start. */
  readonly headStart: Promise<void>;
  /** From here on readyz fails, so that no new traffic comes (HEALTH-3). */
  beginShutdown(): void;
}

/** A check's name without its prefix, and the work it stands for. */
export type Hook = readonly [name: string, run: () => Promise<unknown>];

export function runStartHooks(options: {
  readonly api: Api;
  readonly dialect: Dialect;
  readonly clock: Clock;
  readonly health: Health;
  /** How a store that is elsewhere is asked; the store itself when absent. */
  readonly checks: StoreChecks | undefined;
  /** Whether the store can be written, where that is known. */
  readonly space: StoreSpace | undefined;
  /** How long the caches that every request needs are waited for; for ever when absent. */
  readonly storageWaitMs?: number | undefined;
  /** Hooks of features that are off by default. */
  readonly more?: readonly Hook[];
}): StartHooks {
  const { api, dialect, clock, health, checks, space } = options;
  const { registry } = api;
  const snapshot = () => api.catalogue.snapshot();
  const own = [{ suffix: '', run: () => registry.store.ping() }];
  for (const { suffix, run } of checks?.health ?? own) {
    health.add({ name: dialect.storeCheck + suffix, run });
  }
  for (const { suffix, run } of checks?.ready ?? []) {
    health.addReadyz({ name: dialect.storeCheck + suffix, run });
  }
  // On readyz alone: a new start makes no room on a disk.
  if (space !== undefined) health.addReadyz({ name: 'storage-writable', run: space.check });
  const namespaces = once(() =>
    createSystemNamespaces({ registry, snapshot: snapshot(), dialect }),
  );
  const { storageWaitMs, more = [] } = options;
  const informersReady = () =>
    storageWaitMs === undefined
      ? api.informersReady()
      : waitAtMost({ task: api.informersReady(), clock, timeMs: storageWaitMs });
  const hooks: readonly Hook[] = [
    ['generic-apiserver-start-informers', informersReady],
    ['start-apiextensions-informers', () => api.customKindsReady()],
    ['start-apiextensions-controllers', () => api.customKindsReady()],
    ['crd-informer-synced', () => api.customKindsReady()],
    ['start-system-namespaces-controller', namespaces],
    ['bootstrap-controller', namespaces],
    [
      'scheduling/bootstrap-system-priority-classes',
      () => createSystemPriorities({ registry, snapshot: snapshot(), dialect }),
    ],
    ['apiservice-registration-controller', () => api.aggregation.start()],
    [
      'start-cluster-authentication-info-controller',
      () => api.aggregation.publishTrust(namespaces()),
    ],
    ['rbac/bootstrap-roles', () => api.createDefaultRoles(namespaces())],
  ];
  const pending = [...hooks, ...more].map(([name, run]) => hook(health, name, run));
  let shuttingDown = false;
  health.add({ name: 'autoregister-completion', run: () => {} });
  health.addReadyz({
    name: 'shutdown',
    run: () => {
      if (shuttingDown) throw new Error('process is shutting down');
    },
  });
  const done = Promise.all(pending).then(() => {});
  return {
    done,
    headStart: headStart(done, clock),
    beginShutdown: () => {
      shuttingDown = true;
    },
  };
}

/** Resolves with the task, or when its time is up; rejects as the task does before that. */
function waitAtMost(options: {
  readonly task: Promise<void>;
  readonly clock: Clock;
  readonly timeMs: number;
}): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = options.clock.after(options.timeMs, resolve);
    options.task.then(resolve, reject).finally(() => timer.stop());
  });
}

/** Resolves when `done` has ended, well or not, or after the head start. */
export function headStart(done: Promise<void>, clock: Clock): Promise<void> {
  return new Promise((resolve) => {
    const timer = clock.after(headStartMs, resolve);
    const end = () => {
      timer.stop();
      resolve();
    };
    done.then(end, end);
  });
}

/** Runs the work at the first call; later ones get the same promise. */
export function once(run: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  return () => {
    running ??= run();
    return running;
  };
}

function hook(health: Health, name: string, run: () => Promise<unknown>): Promise<void> {
  let state: 'running' | 'done' | Error = 'running';
  health.add(
    {
      name: `poststarthook/${name}`,
      run: () => {
        if (state === 'running') throw new Error('not finished');
        if (state !== 'done') throw state;
      },
    },
    { boot: true },
  );
  return run().then(
    () => {
      state = 'done';
    },
    (error: unknown) => {
      state = error instanceof Error ? error : new Error(String(error));
      throw state;
    },
  );
}

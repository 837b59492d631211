import { readFileSync } from 'node:fs';
import { startEtcdCompactor } from '../storage/etcd/compaction.ts';
import { type EtcdStore, openEtcdStore } from '../storage/etcd/etcd-store.ts';
import type { EtcdSettings, ServerConfig } from './config.ts';
import type { OpenedStore } from './open-store.ts';
import { boundedCheck } from './store-check.ts';

/** What a server on an etcd does besides keeping objects there. */
export interface SharedStore {
  /** Asks etcd, for the health check and the readiness check. */
  readonly checks: { health(): Promise<void>; ready(): Promise<void> };
}

/** How all keys of kinds begin. */
const keyStart = '/registry';
/** How long etcd may take to be reached at the start, as upstream. */
const startTimeoutMs = 20_000;
/** A call may not take longer, however long its request may. */
const callTimeoutMaxMs = 15_000;

/**
 * Connects to etcd. Rejects with one clear line when a file cannot be read or etcd does not answer.
 */
export async function openSharedStore(
  config: ServerConfig,
  settings: EtcdSettings,
): Promise<OpenedStore> {
  const { clock, logger, compactionIntervalMs: intervalMs } = config;
  const store = await openStoreOf(config, settings);
  const { client } = store;
  const ping = () => store.ping();
  const check = (timeoutMs: number) => boundedCheck({ ping, clock, timeoutMs });
  return {
    store,
    startCompactor: () => startEtcdCompactor({ client, store, clock, logger, intervalMs }),
    shared: {
      checks: {
        health: check(settings.healthcheckTimeoutMs),
        ready: check(settings.readycheckTimeoutMs),
      },
    },
  };
}

function openStoreOf(config: ServerConfig, settings: EtcdSettings): Promise<EtcdStore> {
  const { clock, logger, eventTtlMs, limits } = config;
  const { servers, caFile, certFile, keyFile, leaseReuseMs } = settings;
  const events = { prefix: `${keyStart}/events/`, ttlMs: eventTtlMs, leaseReuseMs };
  return openEtcdStore({
    connection: {
      servers,
      ...(caFile === undefined ? {} : { ca: readFileSync(caFile) }),
      ...(certFile === undefined ? {} : { certificate: readFileSync(certFile) }),
      ...(keyFile === undefined ? {} : { key: readFileSync(keyFile) }),
    },
    clock,
    logger,
    keys: { ours: keyStart, theirs: settings.prefix },
    expiring: eventTtlMs > 0 ? [events] : [],
    callTimeoutMs: Math.min(limits.requestTimeoutMs, callTimeoutMaxMs),
    startTimeoutMs,
  });
}

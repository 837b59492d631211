import { readFileSync } from 'node:fs';
import { reservationMs, type SharedReservations } from '../admission/quota-ledger.ts';
import type { Clock } from '../base/clock.ts';
import type { NumberClaims } from '../kinds/core/service/claimed.ts';
import { doubtMs } from '../kinds/core/service/ledger.ts';
import { StoreError } from '../storage/contract.ts';
import { EtcdClaims } from '../storage/etcd/claims.ts';
import { startEtcdCompactor } from '../storage/etcd/compaction.ts';
import { type EtcdStore, openEtcdStore } from '../storage/etcd/etcd-store.ts';
import { unservedBy } from '../watchcache/store-errors.ts';
import type { EtcdSettings, ServerConfig } from './config.ts';
import type { OpenedStore } from './open-store.ts';
import { sharedReservations } from './shared-reservations.ts';
import { boundedCheck } from './store-check.ts';

/** What a server on an etcd does besides keeping objects there. */
export interface SharedStore {
  /** Asks etcd, for the health check and the readiness check. */
  readonly checks: { health(): Promise<void>; ready(): Promise<void> };
  /** Numbers that this server is about to give to a Service. */
  readonly claims: NumberClaims;
  /** What the servers charge quotas for. */
  readonly reservations: SharedReservations;
  /** Gives up what this server holds; before the store is closed. */
  close(): Promise<void>;
}

/** How all keys of kinds begin. */
const keyStart = '/registry';
const reservationStart = `${keyStart}/reservations/`;
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
  const prefix = `${settings.prefix}/ranges/claims/`;
  const claims = new EtcdClaims({ client, clock, logger, prefix });
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
      claims: numberClaims(claims, clock),
      reservations: sharedReservations(store, reservationStart),
      close: () => claims.close(),
    },
  };
}

/** Claims for Services, whose errors are answers to requests. */
function numberClaims(claims: EtcdClaims, clock: Clock): NumberClaims {
  return {
    async take(keys) {
      try {
        const claim = await claims.take(keys);
        if (claim === undefined) return undefined;
        const release = () => void claim.release();
        return { release, doubt: () => void clock.after(doubtMs, release) };
      } catch (error) {
        throw error instanceof StoreError ? unservedBy(error) : error;
      }
    },
  };
}

function openStoreOf(config: ServerConfig, settings: EtcdSettings): Promise<EtcdStore> {
  const { clock, logger, eventTtlMs, limits } = config;
  const { servers, caFile, certFile, keyFile, leaseReuseMs } = settings;
  const events = { prefix: `${keyStart}/events/`, ttlMs: eventTtlMs, leaseReuseMs };
  const reserved = { prefix: reservationStart, ttlMs: reservationMs, leaseReuseMs };
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
    expiring: eventTtlMs > 0 ? [events, reserved] : [reserved],
    callTimeoutMs: Math.min(limits.requestTimeoutMs, callTimeoutMaxMs),
    startTimeoutMs,
  });
}

import { readFileSync } from 'node:fs';
import { connectVerified } from '@wheelhouse/client';
import { encodeEnvelope } from '@wheelhouse/codec';
import { type NumberClaims, type ResourceDef, schemaOf, unknownOutcomeMs } from '@wheelhouse/kinds';
import { background, type Clock, type Logger, waitAtMost } from '@wheelhouse/machinery';
import {
  type Compactor,
  EtcdClaims,
  type EtcdStore,
  openEtcdStore,
  type Route,
  routedStore,
  type Store,
  type StoreWatch,
  startEtcdCompactor,
} from '@wheelhouse/store';
import {
  reservationMs,
  type SharedReservations,
  sharedReservations,
} from '../../admission/quota/quota-ledger.ts';
import { readTlsPair } from '../../files/followed-files.ts';
import { boundedCheck } from '../../observe/health.ts';
import type { StoreSpace } from '../../observe/store-metrics.ts';
import { throwStatusOf } from '../../watchcache/store-errors.ts';
import type { ServerConfig } from '../config.ts';
import type { EtcdSettings } from './settings.ts';

/** Checks of external stores; a suffix extends the name of the store check. */
export interface StoreChecks {
  readonly health: readonly StoreCheck[];
  /** For readyz alone. */
  readonly ready: readonly StoreCheck[];
}

interface StoreCheck {
  readonly suffix: string;
  run(): Promise<void>;
}

/** An open store and what comes with it. */
export interface OpenedStore {
  readonly store: Store;
  /** The key of the service behind the store to which a key is mapped; absent if it is the same. */
  readonly outerKey?: (key: string) => string;
  /** Starts to discard history that is older than the retention period. */
  startCompactor(): Compactor;
  /** Whether the store is writable; present if it has its own disk (TRUST-8). */
  readonly space?: StoreSpace;
  /** Coordination of several servers on one store; absent if there can be only one. */
  readonly shared?: SharedStore;
  /** Closes the store after releasing this server's claims. */
  close(): Promise<void>;
}

/** Coordination through a store that several servers share. */
interface SharedStore {
  /** Health checks that query the store. */
  readonly checks: StoreChecks;
  /** Claims on numbers for Services and on names in groups. */
  readonly claims: NumberClaims;
  /** Quota reservations of all servers. */
  readonly reservations: SharedReservations;
  /** The running servers. */
  readonly presence: Presence;
}

/** The addresses of the servers on one store, which each server keeps announcing. */
export interface Presence {
  /** Announces an address of this server until it is closed. */
  announce(address: string): { close(): Promise<void> };
  /** The recently announced addresses, sorted. Rejects with the store's errors. */
  addresses(): Promise<readonly string[]>;
  /** Calls `changed` when an address may have appeared or disappeared. */
  follow(changed: () => void): { close(): void };
}

/** Prefix of the keys of all kinds. */
const keyStart = '/registry';
const presenceStart = `${keyStart}/masterleases/`;
const reservationStart = `${keyStart}/reservations/`;
/** Time limit for the first contact with etcd; kube-apiserver's figure. */
const startTimeoutMs = 20_000;
/** Maximum duration of a call, in milliseconds, regardless of the request's timeout. */
const callTimeoutMaxMs = 15_000;

/**
 * Connects to etcd. Rejects with a one-line error when a file is unreadable, etcd does not answer,
 * or an override names an unknown resource.
 */
export async function openSharedStore(
  config: ServerConfig,
  settings: EtcdSettings,
  kinds: readonly ResourceDef[],
): Promise<OpenedStore> {
  const { clock, logger, compactionIntervalMs: intervalMs } = config;
  const main = await openStoreOf(config, settings);
  const stores = [main];
  const routes: Route[] = [];
  try {
    for (const { servers, ...place } of settings.overrides ?? []) {
      const prefix = prefixOf(kinds, place);
      const store = await openStoreOf(config, { ...settings, servers });
      stores.push(store);
      routes.push({ prefix, store });
    }
  } catch (error) {
    await Promise.all(stores.map((store) => store.close()));
    throw error;
  }
  const prefix = `${settings.prefix}/ranges/claims/`;
  const claims = new EtcdClaims({ client: main.client, clock, logger, prefix });
  const store = routes.length === 0 ? main : routedStore(main, routes);
  return {
    store,
    outerKey: main.keys.toEtcd,
    startCompactor: () =>
      joinCompactors(
        stores.map((etcd) =>
          startEtcdCompactor({ client: etcd.client, store: etcd, clock, logger, intervalMs }),
        ),
      ),
    shared: {
      checks: checksOf(stores, { clock, settings }),
      claims: numberClaims(claims, clock),
      reservations: sharedReservations(main, reservationStart),
      presence: createPresence({
        store: main,
        prefix: presenceStart,
        encode: endpointsAt,
        clock,
        logger,
      }),
    },
    async close() {
      await claims.close();
      await store.close();
    },
  };
}

/** An address in the form that a kube-apiserver on the same etcd reads: as Endpoints. */
function endpointsAt(ip: string): Buffer {
  return encodeEnvelope(schemaOf('core.v1.Endpoints'), {
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: {},
    subsets: [{ addresses: [{ ip }] }],
  });
}

function prefixOf(
  kinds: readonly ResourceDef[],
  { group, resource }: { readonly group: string; readonly resource: string },
): string {
  const def = kinds.find((kind) => kind.group === group && kind.resource === resource);
  if (def !== undefined) return def.storage.prefix;
  throw new Error(`--etcd-servers-overrides names ${group}/${resource}, which is not built in`);
}

function joinCompactors(compactors: readonly Compactor[]): Compactor {
  return {
    stop() {
      for (const compactor of compactors) compactor.stop();
    },
    async idle() {
      await Promise.all(compactors.map((compactor) => compactor.idle()));
    },
  };
}

/** A pair of checks for each etcd, with kube-apiserver's names. */
function checksOf(
  stores: readonly EtcdStore[],
  { clock, settings }: { readonly clock: Clock; readonly settings: EtcdSettings },
): StoreChecks {
  const checks = stores.map((store, index) => {
    const ping = () => store.ping();
    const [suffix, place] = index === 0 ? ['', ''] : [`-${index - 1}`, '-override'];
    const health = boundedCheck({ ping, clock, timeoutMs: settings.healthcheckTimeoutMs });
    const ready = boundedCheck({ ping, clock, timeoutMs: settings.readycheckTimeoutMs });
    return {
      health: { suffix: `${place}${suffix}`, run: health },
      ready: { suffix: `${place}-readiness${suffix}`, run: ready },
    };
  });
  return { health: checks.map(({ health }) => health), ready: checks.map(({ ready }) => ready) };
}

/** Number claims whose errors are answers to requests. */
function numberClaims(claims: EtcdClaims, clock: Clock): NumberClaims {
  return {
    async take(keys) {
      try {
        const claim = await claims.take(keys);
        if (claim === undefined) return undefined;
        const release = () => background({ where: 'store' }, claim.release());
        const letExpire = () => {
          clock.after(unknownOutcomeMs, release);
        };
        return { release, letExpire };
      } catch (error) {
        throwStatusOf(error);
      }
    },
  };
}

/**
 * The current key pair of the files; the previous one while they do not match. Throws at the start.
 */
function renewedPair(files: { certFile: string; keyFile: string }, logger: Logger) {
  let pair = readTlsPair(files);
  return () => {
    try {
      pair = readTlsPair(files);
    } catch (error) {
      logger.warn('cannot reload the certificate for etcd', { error: String(error) });
    }
    return pair;
  };
}

function openStoreOf(config: ServerConfig, settings: EtcdSettings): Promise<EtcdStore> {
  const { clock, logger, eventTtlMs, limits } = config;
  const { servers, caFile, certFile, keyFile, leaseReuseMs } = settings;
  const events = { prefix: `${keyStart}/events/`, ttlMs: eventTtlMs, leaseReuseMs };
  const presence = { prefix: presenceStart, ttlMs: presenceMs, leaseReuseMs };
  const reservations = { prefix: reservationStart, ttlMs: reservationMs, leaseReuseMs };
  return openEtcdStore({
    connection: {
      servers,
      connectTls: connectVerified,
      ...(caFile === undefined ? {} : { ca: readFileSync(caFile) }),
      ...(certFile === undefined || keyFile === undefined
        ? {}
        : { identity: renewedPair({ certFile, keyFile }, logger) }),
    },
    clock,
    logger,
    keys: { storePrefix: keyStart, etcdPrefix: settings.prefix },
    expiring: [presence, reservations, ...(eventTtlMs > 0 ? [events] : [])],
    // Half the timeout, since a read may wait for the one before it.
    callTimeoutMs: Math.min(limits.requestTimeoutMs / 2, callTimeoutMaxMs),
    startTimeoutMs,
  });
}

/** Lifetime of an announced address; kube-apiserver's figure. */
const presenceMs = 15_000;
const announceIntervalMs = 10_000;
const retryMs = 1000;
/** Maximum time in milliseconds that a stopping server waits to withdraw its address. */
const withdrawTimeoutMs = 2000;

interface PresenceOptions {
  readonly store: Store;
  /** Prefix of keys that expire `presenceMs` after a write. */
  readonly prefix: string;
  /** The value stored for an address. */
  readonly encode: (address: string) => Buffer;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Announces servers by keys of a store that expires them. */
function createPresence(options: PresenceOptions): Presence {
  const { store, prefix } = options;
  return {
    announce: (address) => announce(options, address),
    async addresses() {
      const { records } = await store.range({ prefix });
      return records.map(({ key }) => key.slice(prefix.length)).sort();
    },
    follow: (changed) => follow(options, changed),
  };
}

function announce(
  { store, prefix, encode, clock, logger }: PresenceOptions,
  address: string,
): { close(): Promise<void> } {
  const key = prefix + address;
  const value = encode(address);
  let writing: Promise<unknown> | undefined;
  const write = async () => {
    const expect = (await store.get(key))?.modRevision ?? 0;
    await store.put({ key, value, expect });
  };
  const tick = () => {
    writing ??= write()
      .catch((error: unknown) =>
        logger.warn('cannot announce this server to its peers', { error: String(error) }),
      )
      .finally(() => {
        writing = undefined;
      });
  };
  const withdraw = async () => {
    await writing;
    try {
      const record = await store.get(key);
      if (record !== undefined) await store.delete({ key, expect: record.modRevision });
    } catch (error) {
      logger.debug(2, 'the presence of this server is left to expire', { error: String(error) });
    }
  };
  tick();
  const timer = clock.every(announceIntervalMs, tick);
  return {
    async close() {
      timer.stop();
      await waitAtMost(clock, withdrawTimeoutMs, withdraw());
    },
  };
}

function follow({ store, prefix, clock }: PresenceOptions, changed: () => void): { close(): void } {
  let watch: StoreWatch | undefined;
  let closed = false;
  const retry = () => {
    watch = undefined;
    clock.after(retryMs, () => {
      if (!closed) open().catch(retry);
    });
  };
  const open = async () => {
    const after = await store.currentRevision(prefix);
    watch = await store.watch({ prefix, after, onEvents: changed, onEnd: retry });
    if (closed) watch.close();
    else changed();
  };
  open().catch(retry);
  return {
    close() {
      closed = true;
      watch?.close();
    },
  };
}

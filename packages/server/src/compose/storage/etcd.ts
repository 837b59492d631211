import { readFileSync } from 'node:fs';
import { encodeEnvelope } from '@wheelhouse/codec';
import { doubtMs, type NumberClaims, type ResourceDef, schemaOf } from '@wheelhouse/kinds';
import {
  type ApiObject,
  asApiObject,
  background,
  type Clock,
  isObject,
  type JsonObject,
  type JsonValue,
  type Logger,
  randomUuid,
} from '@wheelhouse/machinery';
import {
  type Compactor,
  EtcdClaims,
  type EtcdStore,
  openEtcdStore,
  type Route,
  routedStore,
  type Store,
  StoreError,
  type StoreWatch,
  startEtcdCompactor,
} from '@wheelhouse/store';
import { reservationMs, type SharedReservations } from '../../admission/quota/quota-ledger.ts';
import { readKeyPair } from '../../files/followed-files.ts';
import { unservedBy } from '../../watchcache/store-errors.ts';
import type { ServerConfig } from '../config.ts';
import { boundedCheck, type OpenedStore, type Presence, type StoreChecks } from './opened-store.ts';
import type { EtcdSettings } from './settings.ts';

interface Reservation {
  /** Identity of the server that made the reservation. */
  readonly by: string;
  readonly object: ApiObject;
}

const attemptsMax = 8;

/** Quota reservations as records under `prefix` in a store that expires them. */
export function sharedReservations(
  store: Pick<Store, 'get' | 'put' | 'delete' | 'range'>,
  prefix: string,
): SharedReservations {
  const by = randomUuid();
  const keyOf = (namespace: string, resource: string, uid: string) =>
    `${prefix}${namespace}/${resource}/${uid}`;
  return {
    put: (namespace, resource, object) =>
      answering(async () => {
        const key = keyOf(namespace, resource, object.metadata.uid ?? '');
        const reservation: Reservation = { by, object: countedPart(resource, object) };
        const value = Buffer.from(JSON.stringify(reservation));
        let expect = 0;
        for (let attempt = 1; attempt <= attemptsMax; attempt += 1) {
          const result = await store.put({ key, value, expect });
          if (result.ok) return;
          expect = result.current?.modRevision ?? 0;
        }
      }),
    async remove(namespace, resource, object) {
      const key = keyOf(namespace, resource, object.metadata.uid ?? '');
      try {
        const found = await store.get(key);
        if (found !== undefined) await store.delete({ key, expect: found.modRevision });
      } catch {
        // The record expires.
      }
    },
    list: (namespace, resource) =>
      answering(async () => {
        const { records } = await store.range({ prefix: keyOf(namespace, resource, '') });
        return records.flatMap(({ key, value, modRevision: revision }) => {
          const reservation = JSON.parse(value.toString('utf8')) as Reservation;
          const uid = key.slice(key.lastIndexOf('/') + 1);
          return reservation.by === by ? [] : [{ uid, object: reservation.object, revision }];
        });
      }),
  };
}

/** How to reduce objects to what quotas measure, by resource; other resources are only counted. */
const contents: Readonly<Record<string, (object: ApiObject) => JsonObject>> = {
  pods: (pod) => ({ spec: podPart(members(pod['spec'])), status: pick(pod['status'], ['phase']) }),
  services: ({ spec }) => ({
    spec: pick(spec, ['type', 'ports', 'allocateLoadBalancerNodePorts']),
  }),
  persistentvolumeclaims: ({ spec }) => ({ spec: pick(spec, ['storageClassName', 'resources']) }),
};

const podMembers = [
  'overhead',
  'resources',
  'priorityClassName',
  'activeDeadlineSeconds',
  'affinity',
];
const containerMembers = ['name', 'resources', 'restartPolicy'];

function podPart(spec: JsonObject): JsonObject {
  const containers = (list: JsonValue | undefined) =>
    Array.isArray(list) ? list.map((one) => pick(one, containerMembers)) : [];
  return {
    ...pick(spec, podMembers),
    containers: containers(spec['containers']),
    initContainers: containers(spec['initContainers']),
  };
}

/** Keeps only the measured part, so that nothing encrypted at rest is written in the clear. */
function countedPart(resource: string, object: ApiObject): ApiObject {
  const { apiVersion, kind, metadata } = object;
  const { labels: _, managedFields: __, annotations = {}, ...rest } = metadata;
  const isClaim = resource === 'persistentvolumeclaims';
  const counted = isClaim ? { ...rest, annotations } : rest;
  const content = Object.hasOwn(contents, resource) ? contents[resource]?.(object) : undefined;
  return asApiObject({ apiVersion, kind, metadata: counted, ...content });
}

function members(value: JsonValue | undefined): JsonObject {
  return isObject(value) ? value : {};
}

function pick(value: JsonValue | undefined, names: readonly string[]): JsonObject {
  const from = members(value);
  return Object.fromEntries(
    names.flatMap((name) => (Object.hasOwn(from, name) ? [[name, from[name]]] : [])),
  );
}

/** Converts errors of the store to answers of requests. */
async function answering<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw error instanceof StoreError ? unservedBy(error) : error;
  }
}

/** Prefix of the keys of all kinds. */
const keyStart = '/registry';
const presenceStart = `${keyStart}/masterleases/`;
const reservationStart = `${keyStart}/reservations/`;
/** Time limit for the first contact with etcd; kube-apiserver's figure. */
const startTimeoutMs = 20_000;
/** Maximum time of a call, however long its request may take. */
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
    startCompactor: () =>
      together(
        stores.map((one) =>
          startEtcdCompactor({ client: one.client, store: one, clock, logger, intervalMs }),
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
  const def = kinds.find((one) => one.group === group && one.resource === resource);
  if (def !== undefined) return def.storage.prefix;
  throw new Error(`--etcd-servers-overrides names ${group}/${resource}, which is not built in`);
}

function together(compactors: readonly Compactor[]): Compactor {
  return {
    stop() {
      for (const one of compactors) one.stop();
    },
    async idle() {
      await Promise.all(compactors.map((one) => one.idle()));
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
        const doubt = () => {
          clock.after(doubtMs, release);
        };
        return { release, doubt };
      } catch (error) {
        throw error instanceof StoreError ? unservedBy(error) : error;
      }
    },
  };
}

/**
 * The current key pair of the files; the previous one while they do not match. Throws at the start.
 */
function renewedPair(files: { certFile: string; keyFile: string }, logger: Logger) {
  const read = () => {
    const { certificatePem, keyPem } = readKeyPair(files);
    return { certificate: certificatePem, key: keyPem };
  };
  let pair = read();
  return () => {
    try {
      pair = read();
    } catch (error) {
      logger.warn('the certificate for etcd could not be reloaded', { error: String(error) });
    }
    return pair;
  };
}

function openStoreOf(config: ServerConfig, settings: EtcdSettings): Promise<EtcdStore> {
  const { clock, logger, eventTtlMs, limits } = config;
  const { servers, caFile, certFile, keyFile, leaseReuseMs } = settings;
  const events = { prefix: `${keyStart}/events/`, ttlMs: eventTtlMs, leaseReuseMs };
  const present = { prefix: presenceStart, ttlMs: presenceMs, leaseReuseMs };
  const reserved = { prefix: reservationStart, ttlMs: reservationMs, leaseReuseMs };
  return openEtcdStore({
    connection: {
      servers,
      ...(caFile === undefined ? {} : { ca: readFileSync(caFile) }),
      ...(certFile === undefined || keyFile === undefined
        ? {}
        : { identity: renewedPair({ certFile, keyFile }, logger) }),
    },
    clock,
    logger,
    keys: { ours: keyStart, theirs: settings.prefix },
    expiring: [present, reserved, ...(eventTtlMs > 0 ? [events] : [])],
    // Half the timeout, since a read may wait for the one before it.
    callTimeoutMs: Math.min(limits.requestTimeoutMs / 2, callTimeoutMaxMs),
    startTimeoutMs,
  });
}

/** Lifetime of an announced address; kube-apiserver's figure. */
const presenceMs = 15_000;
const tellMs = 10_000;
const retryMs = 1000;
/** Maximum time that a stopping server waits to withdraw its address. */
const farewellMs = 2000;

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
  let telling: Promise<unknown> | undefined;
  const tell = async () => {
    const expect = (await store.get(key))?.modRevision ?? 0;
    await store.put({ key, value, expect });
  };
  const tick = () => {
    telling ??= tell()
      .catch((error: unknown) =>
        logger.warn('the presence of this server could not be announced', { error: String(error) }),
      )
      .finally(() => {
        telling = undefined;
      });
  };
  const take = async () => {
    await telling;
    try {
      const found = await store.get(key);
      if (found !== undefined) await store.delete({ key, expect: found.modRevision });
    } catch (error) {
      logger.debug(2, 'the presence of this server is left to expire', { error: String(error) });
    }
  };
  tick();
  const timer = clock.every(tellMs, tick);
  return {
    async close() {
      timer.stop();
      const late = new Promise<void>((resolve) => clock.after(farewellMs, resolve));
      await Promise.race([take(), late]);
    },
  };
}

function follow({ store, prefix, clock }: PresenceOptions, changed: () => void): { close(): void } {
  let watch: StoreWatch | undefined;
  let closed = false;
  const again = () => {
    watch = undefined;
    clock.after(retryMs, () => {
      if (!closed) open().catch(again);
    });
  };
  const open = async () => {
    const after = await store.currentRevision(prefix);
    watch = await store.watch({ prefix, after, onEvents: changed, onEnd: again });
    if (closed) watch.close();
    else changed();
  };
  open().catch(again);
  return {
    close() {
      closed = true;
      watch?.close();
    },
  };
}

import {
  type ApiObject,
  asApiObject,
  type Clock,
  type JsonObject,
  type JsonValue,
  objectOf,
  randomUuid,
  type Timer,
} from '@wheelhouse/machinery';
import type { Store } from '@wheelhouse/store';
import { throwStatusOf } from '../../watchcache/store-errors.ts';

/** How long a charge counts before its object is seen; a write that takes longer has failed. */
export const reservationMs = 10_000;

/** How long a namespace counts as lost where no controller recounts it. */
const lostMs = 600_000;

/** A charge by another server, with the revision at which it was announced. */
interface SharedReservation {
  readonly uid: string;
  readonly object: ApiObject;
  readonly revision: number;
}

/** Announces charges among the servers of a store; entries expire. */
export interface SharedReservations {
  put(namespace: string, resource: string, object: ApiObject): Promise<void>;
  remove(namespace: string, resource: string, object: ApiObject): Promise<void>;
  /** Announcements of other servers. */
  list(namespace: string, resource: string): Promise<readonly SharedReservation[]>;
}

interface Reservation {
  readonly resource: string;
  /** What quotas measure of the object. */
  readonly object: ApiObject;
  readonly untilMs: number;
}

/**
 * Records charges whose objects may not be stored yet, so that a recount of the namespace does not
 * free them, and serializes charges and recounts per namespace.
 */
export class QuotaLedger {
  readonly #clock: Clock;
  /** By namespace and UID, the oldest first. */
  readonly #reservations = new Map<string, Map<string, Reservation>>();
  /**
   * Namespaces with charges whose objects did not appear in time, and when that no longer matters.
   */
  readonly #lost = new Map<string, number>();
  #expiry: Timer | undefined;
  readonly #turns = new Map<string, Promise<unknown>>();
  readonly #shared: SharedReservations | undefined;
  /**
   * The last seen change of each object, for the current and the previous period; used if other
   * servers charge too.
   */
  #changes = { recent: new Map<string, number>(), older: new Map<string, number>(), untilMs: 0 };

  /** @param shared announcements of other servers that charge the same quotas */
  constructor(clock: Clock, shared?: SharedReservations) {
    this.#clock = clock;
    this.#shared = shared;
  }

  /** Time in milliseconds after which a charge without an object is known to be lost. */
  get lateMs(): number {
    // The reservations of others depend on another clock, hence the margin.
    return this.#shared === undefined ? reservationMs : reservationMs * 1.5;
  }

  /** Number of charges of this server that still count. */
  get count(): number {
    return [...this.#reservations.values()].reduce((sum, own) => sum + own.size, 0);
  }

  /** Runs the work after all earlier work of the namespace. */
  async inTurn<T>(namespace: string, work: () => Promise<T>): Promise<T> {
    const before = this.#turns.get(namespace) ?? Promise.resolve();
    const mine = before.then(work, work);
    const settled = mine.then(
      () => {},
      () => {},
    );
    this.#turns.set(namespace, settled);
    try {
      return await mine;
    } finally {
      if (this.#turns.get(namespace) === settled) this.#turns.delete(namespace);
    }
  }

  /**
   * Announces a charge to other servers before it is made. The returned function withdraws the
   * announcement if the charge is not made.
   */
  async announce(
    namespace: string,
    resource: string,
    object: ApiObject,
  ): Promise<(() => Promise<void>) | undefined> {
    const shared = this.#shared;
    if (shared === undefined) return undefined;
    await shared.put(namespace, resource, object);
    return () => shared.remove(namespace, resource, object);
  }

  /** Records that an object of a resource is about to be stored in this form. */
  reserve(namespace: string, resource: string, object: ApiObject): void {
    const untilMs = this.#clock.monotonic() + reservationMs;
    const { uid = '' } = object.metadata;
    const own = this.#reservations.get(namespace) ?? new Map<string, Reservation>();
    this.#reservations.set(namespace, own);
    own.delete(uid);
    own.set(uid, { resource, object: countedPart(resource, object), untilMs });
    this.#expireLater();
  }

  /** The objects of a resource that may not be stored yet, by UID. */
  async reserved(namespace: string, resource: string): Promise<ReadonlyMap<string, ApiObject>> {
    const announced = (await this.#shared?.list(namespace, resource)) ?? [];
    const unseen = announced.filter(({ uid, revision }) => this.#lastChange(uid) < revision);
    const objects = new Map(unseen.map(({ uid, object }) => [uid, object]));
    this.#expire(namespace);
    for (const [uid, reservation] of this.#reservations.get(namespace) ?? []) {
      if (reservation.resource === resource) objects.set(uid, reservation.object);
    }
    return objects;
  }

  /**
   * Records that as of a revision an object is stored, or was removed again, and can be counted.
   */
  seen(namespace: string, uid: string, revision: number): void {
    if (this.#shared !== undefined) this.#noteChange(uid, revision);
    const own = this.#reservations.get(namespace);
    own?.delete(uid);
    if (own?.size === 0) this.#reservations.delete(namespace);
  }

  /** Records that the namespace has charges without objects. */
  markLost(namespace: string): void {
    this.#lost.set(namespace, this.#clock.monotonic() + lostMs);
    this.#expireLater();
  }

  /**
   * Whether charges since the last call never led to an object, so that the namespace must be
   * recounted.
   */
  takeLost(namespace: string): boolean {
    this.#expire(namespace);
    // Other servers cannot announce that their charges came to nothing.
    return this.#lost.delete(namespace) || this.#shared !== undefined;
  }

  #lastChange(uid: string): number {
    return this.#changes.recent.get(uid) ?? this.#changes.older.get(uid) ?? 0;
  }

  #noteChange(uid: string, revision: number): void {
    const nowMs = this.#clock.monotonic();
    if (nowMs >= this.#changes.untilMs) {
      const { recent: older } = this.#changes;
      this.#changes = { recent: new Map(), older, untilMs: nowMs + this.lateMs };
    }
    this.#changes.recent.set(uid, revision);
  }

  #expire(namespace: string): void {
    const nowMs = this.#clock.monotonic();
    const own = this.#reservations.get(namespace);
    if (own === undefined) return;
    for (const [uid, { untilMs }] of own) {
      if (untilMs > nowMs) return;
      own.delete(uid);
      this.markLost(namespace);
    }
    this.#reservations.delete(namespace);
  }

  /** Nothing else removes the reservations of a process whose controllers do not run. */
  #expireLater(): void {
    this.#expiry ??= this.#clock.after(reservationMs, () => {
      this.#expiry = undefined;
      for (const namespace of [...this.#reservations.keys()]) this.#expire(namespace);
      const nowMs = this.#clock.monotonic();
      for (const [namespace, untilMs] of this.#lost) {
        if (untilMs <= nowMs) this.#lost.delete(namespace);
      }
      if (this.#reservations.size + this.#lost.size > 0) this.#expireLater();
    });
  }
}

/** How to reduce objects to what quotas measure, by resource; other resources are only counted. */
const contents: Readonly<Record<string, (object: ApiObject) => JsonObject>> = {
  pods: (pod) => ({ spec: podPart(objectOf(pod['spec'])), status: pick(pod['status'], ['phase']) }),
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
    Array.isArray(list) ? list.map((container) => pick(container, containerMembers)) : [];
  return {
    ...pick(spec, podMembers),
    containers: containers(spec['containers']),
    initContainers: containers(spec['initContainers']),
  };
}

/**
 * Returns the part of an object that quotas measure, so that reservations hold little, and nothing
 * that is encrypted at rest.
 */
function countedPart(resource: string, object: ApiObject): ApiObject {
  const { apiVersion, kind, metadata } = object;
  const { labels: _, managedFields: __, annotations = {}, ...rest } = metadata;
  const isClaim = resource === 'persistentvolumeclaims';
  const counted = isClaim ? { ...rest, annotations } : rest;
  const content = Object.hasOwn(contents, resource) ? contents[resource]?.(object) : undefined;
  return asApiObject({ apiVersion, kind, metadata: counted, ...content });
}

function pick(value: JsonValue | undefined, names: readonly string[]): JsonObject {
  const from = objectOf(value);
  return Object.fromEntries(
    names.flatMap((name) => (Object.hasOwn(from, name) ? [[name, from[name]]] : [])),
  );
}

/** A reservation as it is stored. */
interface StoredReservation {
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
        const reservation: StoredReservation = { by, object: countedPart(resource, object) };
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
        const record = await store.get(key);
        if (record !== undefined) await store.delete({ key, expect: record.modRevision });
      } catch {
        // The record expires.
      }
    },
    list: (namespace, resource) =>
      answering(async () => {
        const { records } = await store.range({ prefix: keyOf(namespace, resource, '') });
        return records.flatMap(({ key, value, modRevision: revision }) => {
          const reservation = JSON.parse(value.toString('utf8')) as StoredReservation;
          const uid = key.slice(key.lastIndexOf('/') + 1);
          return reservation.by === by ? [] : [{ uid, object: reservation.object, revision }];
        });
      }),
  };
}

/** Converts errors of the store to answers of requests. */
const answering = <T>(work: () => Promise<T>): Promise<T> => work().catch(throwStatusOf);

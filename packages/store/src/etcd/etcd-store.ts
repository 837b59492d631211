import { appendAll, type Clock, type Logger, pause, silentLogger } from '@wheelhouse/machinery';
import {
  closedStore,
  type DeleteRequest,
  type PutRequest,
  pieceBytes,
  type RangeRequest,
  type RangeResult,
  type Revision,
  type Store,
  type StoredRecord,
  StoreError,
  type StoreWatch,
  type WatchRequest,
  type WriteResult,
} from '../contract.ts';
import { EtcdClient, type EtcdConnection } from './client.ts';
import { isLeaseExpired, isTransient, storeErrorOf, timedOut } from './errors.ts';
import { EventFeed, PastWatch } from './event-feed.ts';
import { createKeySpace, type KeySpace, streamEvents } from './event-stream.ts';
import { compareTarget, type KeyValue, methods, prefixEnd } from './protocol.ts';

/** Keys that etcd removes on its own. */
interface ExpiringKeys {
  /** Keys with this prefix expire `ttlMs` after their last write. */
  readonly prefix: string;
  readonly ttlMs: number;
  /** Period in which new keys share a lease, milliseconds. */
  readonly leaseReuseMs: number;
}

/** How to reach an etcd and which of its keys the store uses. */
export interface EtcdStoreOptions {
  readonly connection: EtcdConnection;
  readonly clock: Clock;
  readonly logger?: Logger;
  /** Prefixes of all keys in the store and in etcd. By default, keys are the same in both. */
  readonly keys?: { readonly storePrefix: string; readonly etcdPrefix: string };
  readonly expiring?: readonly ExpiringKeys[];
  /** Timeout of a call, milliseconds. */
  readonly callTimeoutMs: number;
  /** Maximum time to wait for etcd at startup, milliseconds. */
  readonly startTimeoutMs: number;
}

/** A store in etcd, with the client and keys through which servers on one etcd coordinate. */
export interface EtcdStore extends Store {
  readonly client: EtcdClient;
  readonly keys: KeySpace;
}

const samePrefix = { storePrefix: '', etcdPrefix: '' };
/** Records of the first page of a range, and of any later one. */
const pageRecords = { first: 16, most: 1000 };
const startRetryMs = 200;

/**
 * Opens a store in etcd v3. Revisions are etcd's own, which its other users also advance. Rejects
 * with StoreError `unavailable` if etcd does not respond in time.
 */
export async function openEtcdStore(options: EtcdStoreOptions): Promise<EtcdStore> {
  const { connection, clock, callTimeoutMs } = options;
  const client = new EtcdClient({ connection, clock, callTimeoutMs });
  try {
    const store = new ConnectedStore(client, options);
    store.follow(await firstRevision(store, options));
    return store;
  } catch (error) {
    client.close();
    throw error;
  }
}

async function firstRevision(store: Store, options: EtcdStoreOptions): Promise<Revision> {
  const { clock, startTimeoutMs, connection } = options;
  const endMs = clock.monotonic() + startTimeoutMs;
  for (;;) {
    try {
      return await store.currentRevision();
    } catch (error) {
      const failure = storeErrorOf(error);
      const isFinal = failure.code === 'refused' && !isTransient(failure);
      if (isFinal || clock.monotonic() > endMs) {
        const servers = connection.servers.join(',');
        const message = `etcd at ${servers} is not available: ${failure.message}`;
        throw new StoreError({ code: 'unavailable', message, cause: failure });
      }
    }
    await pause(clock, { ms: startRetryMs });
  }
}

class ConnectedStore implements EtcdStore {
  readonly sharing = 'shared';
  readonly client: EtcdClient;
  readonly keys: KeySpace;
  readonly #options: EtcdStoreOptions;
  readonly #reads: SharedReads<Revision>;
  readonly #leases: readonly { readonly prefix: string; readonly leases: KeyLeases }[];
  #feed: EventFeed | undefined;
  #closed = false;

  constructor(client: EtcdClient, options: EtcdStoreOptions) {
    this.client = client;
    this.#options = options;
    const { clock, expiring = [] } = options;
    this.keys = createKeySpace(options.keys ?? samePrefix);
    this.#reads = new SharedReads(() => this.#fetchRevision());
    this.#leases = expiring.map(({ prefix, ttlMs, leaseReuseMs: reuseMs }) => ({
      prefix,
      leases: new KeyLeases({ client, clock, ttlMs, reuseMs }),
    }));
  }

  /** Must be called once before the first watch or write. */
  follow(revision: Revision): void {
    const { clock, logger = silentLogger } = this.#options;
    const { client, keys } = this;
    const newestRevision = () => this.currentRevision();
    this.#feed = new EventFeed({ client, keys, clock, logger, revision, newestRevision });
  }

  shownKey(key: string): string {
    return this.keys.toEtcd(key);
  }

  currentRevision(): Promise<Revision> {
    return this.#reads.read();
  }

  /**
   * Starts a watch to find the compaction revision, which etcd reports only when it rejects a
   * watch.
   */
  async compactRevision(): Promise<Revision> {
    this.#assertOpen();
    // Before the first write there are no events and nothing is compacted.
    if ((await this.currentRevision()) <= 1) return 0;
    const { client, keys } = this;
    const { clock, callTimeoutMs } = this.#options;
    return new Promise((resolve, reject) => {
      const settle = (complete: () => void) => {
        timer.stop();
        stream.close();
        complete();
      };
      const timer = clock.after(callTimeoutMs, () => settle(() => reject(timedOut())));
      const stream = streamEvents({
        client,
        keys,
        from: 1,
        onEvents: () => settle(() => resolve(0)),
        onEnd: (error) =>
          settle(() => (error.code === 'compacted' ? resolve(error.revision ?? 0) : reject(error))),
      });
    });
  }

  async get(key: string, at?: Revision): Promise<StoredRecord | undefined> {
    this.#assertOpen();
    const request = { key: this.keys.toEtcd(key), ...revisionOf(at) };
    const { kvs } = await this.#readAt(at, () =>
      this.client.call(methods.range, request, { repeatable: true }),
    );
    return kvs[0] === undefined ? undefined : this.#recordOf(kvs[0]);
  }

  async range(request: RangeRequest): Promise<RangeResult> {
    this.#assertOpen();
    const { prefix, limit = Number.POSITIVE_INFINITY } = request;
    const bytesMax = request.limit === undefined ? Number.POSITIVE_INFINITY : pieceBytes;
    const records: StoredRecord[] = [];
    let { after, revision } = request;
    let bytes = 0;
    for (;;) {
      const room = Math.min(limit - records.length, nextPageRecords(records.length, bytes));
      const page = await this.#page({ prefix, after, revision, room });
      revision = page.revision;
      appendAll(records, page.records);
      for (const { value } of page.records) bytes += value.length;
      after = records.at(-1)?.key ?? after;
      const isFull = records.length >= limit || bytes >= bytesMax;
      if (!page.more || isFull) return { records, revision, more: page.more };
    }
  }

  async put(request: PutRequest): Promise<WriteResult> {
    const expiring = this.#leases.find(({ prefix }) => request.key.startsWith(prefix));
    // Most keys do not expire, so their writes do not wait for a lease.
    if (expiring === undefined) return this.#put(request, undefined);
    try {
      return await this.#put(request, await expiring.leases.take());
    } catch (error) {
      if (!isLeaseExpired(error)) throw error;
      expiring.leases.discard();
      return this.#put(request, await expiring.leases.take());
    }
  }

  async delete(request: DeleteRequest): Promise<WriteResult> {
    const { key, expect } = request;
    if (expect === 0) return { ok: false, current: await this.get(key) };
    return this.#write({ key, expect, operation: { delete: { key: this.keys.toEtcd(key) } } });
  }

  async watch(request: WatchRequest): Promise<StoreWatch> {
    const feed = this.#assertOpen();
    if (request.after >= feed.floor) return feed.hub.watch(request);
    const { client, keys } = this;
    const { clock, callTimeoutMs: timeoutMs } = this.#options;
    return PastWatch.open({ request, feed, client, keys, clock, timeoutMs });
  }

  async compact(revision: Revision): Promise<void> {
    const feed = this.#assertOpen();
    try {
      await this.client.call(methods.compact, { revision }, { repeatable: true });
      await feed.whenDelivered(revision);
      feed.forget(revision);
    } catch (error) {
      const failure = storeErrorOf(error);
      if (failure.code === 'compacted') return;
      throw await this.#withRevision(failure);
    }
  }

  async ping(): Promise<void> {
    await this.currentRevision();
  }

  async sizeBytes(): Promise<number> {
    this.#assertOpen();
    const { sizeBytes } = await this.client.call(methods.status, {}, { repeatable: true });
    return sizeBytes;
  }

  /** Only etcd's own snapshots preserve its revisions. */
  async snapshot(): Promise<never> {
    const message = 'the objects are stored in etcd; back them up with etcdctl snapshot save';
    throw new StoreError({ code: 'unavailable', message });
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#feed?.close(closedStore());
    this.client.close();
  }

  async #put(request: PutRequest, lease: number | bigint | undefined): Promise<WriteResult> {
    const feed = this.#assertOpen();
    const { key, value, expect } = request;
    const operation = {
      put: { key: this.keys.toEtcd(key), value, ...(lease === undefined ? {} : { lease }) },
    };
    feed.puts.add(request);
    try {
      return await this.#write({ key, expect, operation });
    } finally {
      feed.puts.remove(request);
    }
  }

  #assertOpen(): EventFeed {
    if (this.#closed || this.#feed === undefined) throw closedStore();
    return this.#feed;
  }

  async #fetchRevision(): Promise<Revision> {
    if (this.#closed) throw closedStore();
    const { storePrefix, etcdPrefix } = this.#options.keys ?? samePrefix;
    // The key is readable and never exists; the read shows that a quorum responds.
    const request = {
      key: `${etcdPrefix === '' ? storePrefix : etcdPrefix}/health`,
      countOnly: true,
    };
    const { header } = await this.client.call(methods.range, request, { repeatable: true });
    return header?.revision ?? 0;
  }

  async #page(request: {
    readonly prefix: string;
    readonly after: string | undefined;
    readonly revision: Revision | undefined;
    readonly room: number;
  }): Promise<RangeResult> {
    const { prefix, after, revision } = request;
    const key = this.keys.toEtcd(prefix);
    const afterKey = after === undefined ? key : `${this.keys.toEtcd(after)}\0`;
    const end = prefixEnd(key);
    const from = Buffer.compare(Buffer.from(afterKey), Buffer.from(key)) > 0 ? afterKey : key;
    const isEmpty = Buffer.compare(Buffer.from(from), end) >= 0;
    const rangeRequest = {
      key: isEmpty ? key : from,
      rangeEnd: end,
      // An empty range still queries etcd for the revision.
      limit: isEmpty ? 1 : request.room,
      ...revisionOf(revision),
    };
    const response = await this.#readAt(revision, () =>
      this.client.call(methods.range, rangeRequest, { repeatable: true }),
    );
    return {
      records: isEmpty ? [] : response.kvs.map((kv) => this.#recordOf(kv)),
      revision: revision ?? response.header?.revision ?? 0,
      more: !isEmpty && response.more,
    };
  }

  async #write(write: {
    readonly key: string;
    readonly expect: Revision;
    readonly operation: { readonly put: object } | { readonly delete: object };
  }): Promise<WriteResult> {
    const feed = this.#assertOpen();
    const key = this.keys.toEtcd(write.key);
    const { modRevision: target } = compareTarget;
    const request = {
      compare: [{ key, target, modRevision: write.expect }],
      success: [write.operation],
      failure: [{ range: { key } }],
    };
    const response = await this.client.call(methods.txn, request, { repeatable: false });
    if (!response.succeeded) {
      const kv = response.responses[0]?.range?.kvs[0];
      return { ok: false, current: kv === undefined ? undefined : this.#recordOf(kv) };
    }
    const revision = response.header?.revision ?? 0;
    await feed.whenDelivered(revision);
    return { ok: true, revision };
  }

  async #readAt<T>(at: Revision | undefined, read: () => Promise<T>): Promise<T> {
    try {
      return await read();
    } catch (error) {
      if (at === undefined) throw error;
      throw await this.#withRevision(storeErrorOf(error));
    }
  }

  /** Adds the oldest or newest revision to errors about a revision. */
  async #withRevision(error: StoreError): Promise<StoreError> {
    const { code, message } = error;
    if (code === 'compacted') {
      return new StoreError({ code, message, revision: await this.compactRevision() });
    }
    if (code === 'future-revision') {
      return new StoreError({ code, message, revision: await this.currentRevision() });
    }
    return error;
  }

  #recordOf(kv: KeyValue): StoredRecord {
    const { value, createRevision, modRevision } = kv;
    return { key: this.keys.fromEtcd(kv.key) ?? kv.key, value, createRevision, modRevision };
  }
}

/**
 * Number of records of a range's next page, which then has about `pieceBytes` if its records are
 * like the earlier ones: etcd sends a page as one message, however large.
 */
function nextPageRecords(count: number, bytes: number): number {
  if (count === 0) return pageRecords.first;
  const fitting = Math.ceil((pieceBytes * count) / Math.max(bytes, 1));
  return Math.min(fitting, pageRecords.most);
}

/** etcd interprets 0 as the newest revision; it is empty at 1. */
function revisionOf(at: Revision | undefined): { revision?: Revision } {
  return at === undefined ? {} : { revision: Math.max(1, at) };
}

const inFlightMax = 2;

/**
 * Lets concurrent reads share a response. Each read gets the response to a request that was sent
 * after the read began, so the response reflects every earlier write.
 */
class SharedReads<T> {
  readonly #send: () => Promise<T>;
  readonly #waiting: (() => void)[] = [];
  #inFlight = 0;
  #next: Promise<T> | undefined;

  constructor(send: () => Promise<T>) {
    this.#send = send;
  }

  read(): Promise<T> {
    this.#next ??= this.#begin();
    return this.#next;
  }

  async #begin(): Promise<T> {
    // Reads that begin in this turn of the event loop share the request.
    await undefined;
    if (this.#inFlight >= inFlightMax) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    this.#next = undefined;
    this.#inFlight += 1;
    try {
      return await this.#send();
    } finally {
      this.#inFlight -= 1;
      this.#waiting.shift()?.();
    }
  }
}

/** Maximum number of keys of one lease, as in kube-apiserver. */
const keysMax = 1000;
/** A lease is assigned to new keys for at most this fraction of its lifetime. */
const reuseFraction = 0.05;

/**
 * Leases by which keys expire. Keys that are written at about the same time share one, whose
 * lifetime is extended so that the last of them lives for its full TTL.
 */
class KeyLeases {
  readonly #client: EtcdClient;
  readonly #clock: Clock;
  readonly #ttlSeconds: number;
  readonly #reuseSeconds: number;
  #granted: Promise<number | bigint> | undefined;
  #keys = 0;
  #reusableUntilMs = 0;

  constructor(options: {
    readonly client: EtcdClient;
    readonly clock: Clock;
    readonly ttlMs: number;
    readonly reuseMs: number;
  }) {
    this.#client = options.client;
    this.#clock = options.clock;
    this.#ttlSeconds = Math.max(1, Math.ceil(options.ttlMs / 1000));
    const reuse = Math.min(options.reuseMs / 1000, this.#ttlSeconds * reuseFraction);
    this.#reuseSeconds = Math.floor(reuse);
  }

  /**
   * Returns a lease that expires no earlier than the keys' TTL from now. Rejects with StoreErrors.
   */
  take(): Promise<number | bigint> {
    const nowMs = this.#clock.monotonic();
    this.#keys += 1;
    if (this.#granted !== undefined && this.#keys <= keysMax && nowMs < this.#reusableUntilMs) {
      return this.#granted;
    }
    this.#keys = 1;
    this.#reusableUntilMs = nowMs + this.#reuseSeconds * 1000;
    const granted = this.#grant();
    this.#granted = granted;
    granted.catch(() => {
      if (this.#granted === granted) this.#granted = undefined;
    });
    return granted;
  }

  /** Discards an expired lease, so that new keys get another one. */
  discard(): void {
    this.#granted = undefined;
  }

  async #grant(): Promise<number | bigint> {
    const ttlSeconds = this.#ttlSeconds + this.#reuseSeconds;
    const request = { ttlSeconds };
    const { id } = await this.#client.call(methods.leaseGrant, request, { repeatable: true });
    return id;
  }
}

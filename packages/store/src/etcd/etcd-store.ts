import { appendAll, type Clock, type Logger, pause, silentLogger } from '@wheelhouse/machinery';
import {
  type DeleteRequest,
  type PutRequest,
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
import { closedStore } from '../revisions.ts';
import { EtcdClient, type EtcdConnection } from './client.ts';
import { isLeaseGone, isTransient, storeErrorOf, timedOut } from './errors.ts';
import { EventFeed } from './event-feed.ts';
import { streamEvents } from './event-stream.ts';
import { createKeySpace, type KeySpace } from './key-space.ts';
import { KeyLeases } from './leases.ts';
import { PastWatch } from './past-watch.ts';
import { compareTarget, type KeyValue, methods, prefixEnd } from './protocol.ts';
import { SharedReads } from './shared-reads.ts';

/** Keys that etcd removes by itself. */
export interface ExpiringKeys {
  /** All keys that start with it, each that long after its last write. */
  readonly prefix: string;
  readonly ttlMs: number;
  /** For how long keys are given the same lease. */
  readonly leaseReuseMs: number;
}

export interface EtcdStoreOptions {
  readonly connection: EtcdConnection;
  readonly clock: Clock;
  readonly logger?: Logger;
  /** What all keys begin with, in the store and in etcd; the same when absent. */
  readonly keys?: { readonly ours: string; readonly theirs: string };
  readonly expiring?: readonly ExpiringKeys[];
  /** How long a call may take. */
  readonly callTimeoutMs: number;
  /** How long to try to reach etcd at the start. */
  readonly startTimeoutMs: number;
}

/** A store whose writes are etcd's, with what several servers on one etcd share besides. */
export interface EtcdStore extends Store {
  readonly client: EtcdClient;
  readonly keys: KeySpace;
}

const pageRecords = 1000;
const startRetryMs = 200;

/**
 * Opens a store in etcd v3. Revisions are etcd's own, which other users of it move too. Rejects
 * with StoreError `unavailable` when etcd does not answer in time.
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
        const message = `etcd at ${servers} does not serve: ${failure.message}`;
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
    this.keys = createKeySpace(options.keys ?? { ours: '', theirs: '' });
    this.#reads = new SharedReads(() => this.#askRevision());
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

  currentRevision(): Promise<Revision> {
    return this.#reads.read();
  }

  /** Asks a watch of everything from the start, since etcd tells only whom it refuses. */
  async compactRevision(): Promise<Revision> {
    this.#assertOpen();
    // Before the first write there is no event to come, and nothing to compact.
    if ((await this.currentRevision()) <= 1) return 0;
    const { client, keys } = this;
    const { clock, callTimeoutMs } = this.#options;
    return new Promise((resolve, reject) => {
      const settle = (give: () => void) => {
        timer.stop();
        stream.close();
        give();
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
    const { limit = Number.POSITIVE_INFINITY } = request;
    const records: StoredRecord[] = [];
    let { after, revision } = request;
    for (;;) {
      const room = limit - records.length;
      const page = await this.#page({ prefix: request.prefix, after, revision, room });
      revision = page.revision;
      appendAll(records, page.records);
      after = records.at(-1)?.key ?? after;
      if (!page.more || records.length >= limit) return { records, revision, more: page.more };
    }
  }

  async put(request: PutRequest): Promise<WriteResult> {
    const expiring = this.#leases.find(({ prefix }) => request.key.startsWith(prefix));
    // Most keys stay, and are spared the wait.
    if (expiring === undefined) return this.#put(request, undefined);
    try {
      return await this.#put(request, await expiring.leases.take());
    } catch (error) {
      if (!isLeaseGone(error)) throw error;
      expiring.leases.forget();
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
      await feed.handedOn(revision);
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

  /** Revisions are etcd's own: only etcd's own copy can be restored with them. */
  async snapshot(): Promise<never> {
    const message = 'the objects are in etcd: etcdctl snapshot save copies them';
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

  async #askRevision(): Promise<Revision> {
    if (this.#closed) throw closedStore();
    const { ours, theirs } = this.#options.keys ?? { ours: '', theirs: '' };
    // A key that is ours to read and never there; what counts is that a quorum answers.
    const request = { key: `${theirs === '' ? ours : theirs}/health`, countOnly: true };
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
    const behind = after === undefined ? key : `${this.keys.toEtcd(after)}\0`;
    const end = prefixEnd(key);
    const from = Buffer.compare(Buffer.from(behind), Buffer.from(key)) > 0 ? behind : key;
    const isEmpty = Buffer.compare(Buffer.from(from), end) >= 0;
    const rangeRequest = {
      key: isEmpty ? key : from,
      rangeEnd: end,
      // An empty range still queries etcd, for the revision.
      limit: isEmpty ? 1 : Math.min(request.room, pageRecords),
      ...revisionOf(revision),
    };
    const found = await this.#readAt(revision, () =>
      this.client.call(methods.range, rangeRequest, { repeatable: true }),
    );
    return {
      records: isEmpty ? [] : found.kvs.map((kv) => this.#recordOf(kv)),
      revision: revision ?? found.header?.revision ?? 0,
      more: !isEmpty && found.more,
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
    const answer = await this.client.call(methods.txn, request, { repeatable: false });
    if (!answer.succeeded) {
      const kv = answer.responses[0]?.range?.kvs[0];
      return { ok: false, current: kv === undefined ? undefined : this.#recordOf(kv) };
    }
    const revision = answer.header?.revision ?? 0;
    await feed.handedOn(revision);
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

  /** Errors about a revision say where the bounds are. */
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

/** Etcd takes 0 for the newest, and is empty at 1. */
function revisionOf(at: Revision | undefined): { revision?: Revision } {
  return at === undefined ? {} : { revision: Math.max(1, at) };
}

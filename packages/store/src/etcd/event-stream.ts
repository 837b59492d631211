import { type Revision, StoreError, type StoreEvent } from '../contract.ts';
import type { EtcdClient, OpenStream } from './client.ts';
import { everyKey, methods, type WatchEvent, type WatchResponse } from './protocol.ts';

/** Maps the store's keys to etcd's by replacing their prefix. */
export interface KeySpace {
  /** The key in etcd. Throws RangeError for a key without the prefix. */
  toEtcd(key: string): string;
  /** The store's key; undefined for a key of another user. */
  fromEtcd(key: string): string | undefined;
}

/**
 * Maps keys by replacing their prefix.
 * @param options.storePrefix prefix of all keys of the store
 * @param options.etcdPrefix prefix of the same keys in etcd
 */
export function createKeySpace(options: {
  readonly storePrefix: string;
  readonly etcdPrefix: string;
}): KeySpace {
  const { storePrefix, etcdPrefix } = options;
  return {
    toEtcd(key) {
      if (!key.startsWith(storePrefix))
        throw new RangeError(`the key ${key} is outside ${storePrefix}`);
      return etcdPrefix + key.slice(storePrefix.length);
    },
    fromEtcd: (key) =>
      key.startsWith(etcdPrefix) ? storePrefix + key.slice(etcdPrefix.length) : undefined,
  };
}

/**
 * Watches all changes in an etcd from a revision on, including those of other users' keys. Every
 * revision changes some key, so the last event gives the exact progress without progress requests
 * (whose responses may overtake events in older servers).
 */
export function streamEvents(options: {
  readonly client: EtcdClient;
  readonly keys: KeySpace;
  /** The first revision to receive, at least 1; fails with `compacted` if its history is gone. */
  readonly from: Revision;
  /** Called with events of the store's keys and the revision up to which they are complete. */
  readonly onEvents: (events: readonly StoreEvent[], through: Revision) => void;
  /** Called once, with `compacted` or the reason for the loss of the stream. */
  readonly onEnd: (error: StoreError) => void;
}): OpenStream {
  const { client, keys, onEvents, onEnd } = options;
  let pending: WatchEvent[] = [];
  const receive = (response: WatchResponse): void => {
    if (response.canceled) {
      stream.close();
      onEnd(canceled(response));
      return;
    }
    // The events of a revision may arrive in fragments; deliver them once all have arrived.
    for (const event of response.events) pending.push(event);
    if (response.fragment || pending.length === 0) return;
    const whole = pending;
    pending = [];
    const through = whole.at(-1)?.kv?.modRevision ?? 0;
    onEvents(storeEventsOf(whole, keys), through);
  };
  const stream = client.stream(
    methods.watch,
    { create: { ...everyKey, startRevision: options.from, fragment: true } },
    {
      onResponse: receive,
      onEnd: (error) => onEnd(error ?? lost('the server closed the stream')),
    },
  );
  return stream;
}

function storeEventsOf(events: readonly WatchEvent[], keys: KeySpace): StoreEvent[] {
  const storeEvents: StoreEvent[] = [];
  for (const { type, kv } of events) {
    const key = kv === undefined ? undefined : keys.fromEtcd(kv.key);
    if (kv === undefined || key === undefined) continue;
    const { createRevision, modRevision: revision, value } = kv;
    if (type === 1) storeEvents.push({ type: 'delete', key, revision });
    else storeEvents.push({ type: 'put', key, value, createRevision, revision });
  }
  return storeEvents;
}

function canceled({ compactRevision, cancelReason }: WatchResponse): StoreError {
  if (compactRevision === 0) return lost(cancelReason);
  return new StoreError({
    code: 'compacted',
    message: `required revision has been compacted; the oldest readable one is ${compactRevision}`,
    revision: compactRevision,
  });
}

function lost(why: string): StoreError {
  return new StoreError({ code: 'unavailable', message: `the watch of etcd ended: ${why}` });
}

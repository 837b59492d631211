import { type Revision, StoreError, type StoreEvent } from '../contract.ts';
import type { EtcdClient, OpenStream } from './client.ts';
import type { KeySpace } from './key-space.ts';
import { everyKey, methods, type WatchEvent, type WatchResponse } from './protocol.ts';

/**
 * Follows all changes of an etcd from a revision on, those of other users' keys too: each of its
 * revisions changes some key, so the last event tells exactly how far we have come, and nobody need
 * be asked. (Older servers' answers about progress overtake events that are still on their way.)
 */
export function streamEvents(options: {
  readonly client: EtcdClient;
  readonly keys: KeySpace;
  /** The first revision of interest, at least 1; refused as compacted when its past is gone. */
  readonly from: Revision;
  /** Our changes, and the revision up to which they are complete. */
  readonly onEvents: (events: readonly StoreEvent[], through: Revision) => void;
  /** With the store's `compacted`, or why the stream was lost. Called once. */
  readonly onEnd: (error: StoreError) => void;
}): OpenStream {
  const { client, keys, onEvents, onEnd } = options;
  let pending: WatchEvent[] = [];
  const take = (response: WatchResponse): void => {
    if (response.canceled) {
      stream.close();
      onEnd(canceled(response));
      return;
    }
    // A revision's events may come in pieces, and count only when they are all there.
    for (const event of response.events) pending.push(event);
    if (response.fragment || pending.length === 0) return;
    const whole = pending;
    pending = [];
    const through = whole.at(-1)?.kv?.modRevision ?? 0;
    onEvents(ownEvents(whole, keys), through);
  };
  const stream = client.stream(
    methods.watch,
    { create: { ...everyKey, startRevision: options.from, fragment: true } },
    {
      onResponse: take,
      onEnd: (error) => onEnd(error ?? lost('the watch was ended')),
    },
  );
  return stream;
}

function ownEvents(events: readonly WatchEvent[], keys: KeySpace): StoreEvent[] {
  const own: StoreEvent[] = [];
  for (const { type, kv } of events) {
    const key = kv === undefined ? undefined : keys.fromEtcd(kv.key);
    if (kv === undefined || key === undefined) continue;
    const { createRevision, modRevision: revision, value } = kv;
    if (type === 1) own.push({ type: 'delete', key, revision });
    else own.push({ type: 'put', key, value, createRevision, revision });
  }
  return own;
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
  return new StoreError({ code: 'unavailable', message: `etcd does not watch: ${why}` });
}

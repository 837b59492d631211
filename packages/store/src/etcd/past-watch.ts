import { type Clock, deferMicrotask, type MaybePromise } from '@wheelhouse/machinery';
import {
  type Revision,
  StoreError,
  type StoreEvent,
  type StoreWatch,
  type WatchRequest,
} from '../contract.ts';
import { closedStore } from '../revisions.ts';
import type { EtcdClient, OpenStream } from './client.ts';
import { timedOut } from './errors.ts';
import type { EventFeed } from './event-feed.ts';
import { streamEvents } from './event-stream.ts';
import type { KeySpace } from './key-space.ts';

interface Waiter {
  readonly revision: Revision;
  readonly resolve: (reached: MaybePromise<void>) => void;
  readonly reject: (error: StoreError) => void;
}

/** A watch that begins before what the feed remembers: reads etcd's history until it has caught up. */
export class PastWatch implements StoreWatch {
  readonly #request: WatchRequest;
  readonly #feed: EventFeed;
  #stream: OpenStream | undefined;
  #live: StoreWatch | undefined;
  #position: Revision;
  #waiters: Waiter[] = [];
  #closed = false;

  private constructor(options: { request: WatchRequest; feed: EventFeed }) {
    this.#request = options.request;
    this.#feed = options.feed;
    this.#position = options.request.after;
  }

  /**
   * Resolves when the past is known to be there; rejects with `compacted` when it is not, and with
   * `timed-out` when etcd does not say.
   */
  static open(options: {
    readonly request: WatchRequest;
    readonly feed: EventFeed;
    readonly client: EtcdClient;
    readonly keys: KeySpace;
    readonly clock: Clock;
    readonly timeoutMs: number;
  }): Promise<PastWatch> {
    const { request, feed, client, keys, clock, timeoutMs } = options;
    const watch = new PastWatch({ request, feed });
    return new Promise((resolve, reject) => {
      let started = false;
      const timer = clock.after(timeoutMs, () => {
        watch.close();
        reject(timedOut());
      });
      watch.#stream = streamEvents({
        client,
        keys,
        // One earlier than need be: a deletion at the compacted revision is forgotten with it.
        from: Math.max(1, request.after),
        onEvents: (events, through) => {
          // Who asked has the watch in hand before the first events come.
          if (!started) resolve(watch);
          started = true;
          timer.stop();
          deferMicrotask({ where: 'watch' }, () => watch.#take(events, through));
        },
        onEnd: (error) => {
          timer.stop();
          if (started) watch.#end(error);
          else reject(error);
        },
      });
    });
  }

  get progress(): Revision {
    return this.#live?.progress ?? this.#position;
  }

  reached(revision: Revision): MaybePromise<void> {
    if (this.#live !== undefined) return this.#live.reached(revision);
    if (this.#position >= revision) return undefined;
    if (this.#closed) return Promise.reject(closedStore());
    return new Promise((resolve, reject) => this.#waiters.push({ revision, resolve, reject }));
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#stream?.close();
    this.#live?.close();
    const reason = new StoreError({ code: 'closed', message: 'the watch has been closed' });
    for (const one of this.#waiters.splice(0)) one.reject(reason);
  }

  #take(events: readonly StoreEvent[], through: Revision): void {
    if (this.#closed || this.#live !== undefined) return;
    const { prefix, onEvents } = this.#request;
    const from = this.#position;
    const matching = events.filter((one) => one.revision > from && one.key.startsWith(prefix));
    this.#position = Math.max(from, through);
    if (matching.length > 0) onEvents(matching);
    if (this.#closed) return;
    if (this.#position >= this.#feed.floor) this.#join();
    this.#wake();
  }

  /** From here on the feed's hub delivers, and ends the watch when it must. */
  #join(): void {
    this.#stream?.close();
    try {
      this.#live = this.#feed.hub.watch({ ...this.#request, after: this.#position });
    } catch (error) {
      this.#end(error instanceof StoreError ? error : closedStore());
    }
  }

  #wake(): void {
    const live = this.#live;
    const due = this.#waiters.filter((one) => live !== undefined || one.revision <= this.#position);
    this.#waiters = this.#waiters.filter((one) => !due.includes(one));
    for (const one of due) one.resolve(live?.reached(one.revision));
  }

  #end(error: StoreError): void {
    if (this.#closed || this.#live !== undefined) return;
    this.#closed = true;
    for (const one of this.#waiters.splice(0)) one.reject(error);
    this.#request.onEnd(error);
  }
}

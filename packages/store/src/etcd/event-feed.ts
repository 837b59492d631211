import {
  type Clock,
  deferMicrotask,
  type Logger,
  type MaybePromise,
  type Timer,
} from '@wheelhouse/machinery';
import {
  closedStore,
  failedCallback,
  type PutRequest,
  type Revision,
  StoreError,
  type StoreEvent,
  type StoreWatch,
  type WatchRequest,
} from '../contract.ts';
import { WatchHub } from '../watch-hub.ts';
import type { EtcdClient, OpenStream } from './client.ts';
import { timedOut } from './errors.ts';
import { type KeySpace, streamEvents } from './event-stream.ts';

const eventsMax = 4096;
const bytesMax = 8 * 1024 * 1024;

/**
 * The last events of a store, from which watches of recent revisions start. etcd would delay their
 * events by 100 ms.
 */
class EventTail {
  #events: StoreEvent[] = [];
  #head = 0;
  #bytes = 0;
  /** All events after this revision are available. */
  floor: Revision;

  constructor(floor: Revision) {
    this.floor = floor;
  }

  add(event: StoreEvent): void {
    this.#events.push(event);
    this.#bytes += sizeOf(event);
    while (this.#events.length - this.#head > eventsMax || this.#bytes > bytesMax) {
      const oldest = this.#events[this.#head];
      if (oldest === undefined) break;
      this.#drop(oldest);
    }
    if (this.#head < eventsMax) return;
    this.#events = this.#events.slice(this.#head);
    this.#head = 0;
  }

  /** Drops events up to and including a revision. */
  forget(revision: Revision): void {
    for (;;) {
      const oldest = this.#events[this.#head];
      if (oldest === undefined || oldest.revision > revision) break;
      this.#drop(oldest);
    }
    this.floor = Math.max(this.floor, revision);
  }

  /** The events after a revision, which must not be below the floor. */
  after(revision: Revision): readonly StoreEvent[] {
    let from = this.#events.length;
    while (from > this.#head && (this.#events[from - 1]?.revision ?? 0) > revision) from -= 1;
    return this.#events.slice(from);
  }

  #drop(oldest: StoreEvent): void {
    this.#head += 1;
    this.#bytes -= sizeOf(oldest);
    this.floor = oldest.revision;
  }
}

function sizeOf(event: StoreEvent): number {
  return event.key.length + (event.type === 'put' ? event.value.length : 0);
}

/**
 * Puts of this process that are in progress, so that their events get their hints. A hint describes
 * the bytes, so it is valid for any event with the same key and bytes.
 */
class PendingPuts {
  readonly #byKey = new Map<string, PutRequest[]>();

  add(put: PutRequest): void {
    if (put.hint === undefined) return;
    const others = this.#byKey.get(put.key);
    if (others === undefined) this.#byKey.set(put.key, [put]);
    else others.push(put);
  }

  remove(put: PutRequest): void {
    const others = this.#byKey.get(put.key);
    const at = others?.indexOf(put) ?? -1;
    if (others === undefined || at < 0) return;
    others.splice(at, 1);
    if (others.length === 0) this.#byKey.delete(put.key);
  }

  /** The event with the hint of the pending put that caused it. */
  withHint(event: StoreEvent): StoreEvent {
    if (event.type !== 'put' || this.#byKey.size === 0) return event;
    const put = this.#byKey.get(event.key)?.find(({ value }) => value.equals(event.value));
    return put === undefined ? event : { ...event, value: put.value, hint: put.hint };
  }
}

/** Pauses before reconnecting to etcd, doubled from the first to the longest. */
const retryMs = { first: 100, longest: 5000 };
/** Maximum time that a write waits for its own event, milliseconds. */
const ownEventTimeoutMs = 2000;

/**
 * A single watch of etcd that serves all watches of the store. After a lost connection it resumes
 * at the last received revision. If etcd has compacted that revision, all watches end with
 * `compacted`.
 */
export class EventFeed {
  readonly puts = new PendingPuts();
  readonly #options: EventFeedOptions;
  #hub: WatchHub;
  #tail: EventTail;
  #published: Revision;
  #stream: OpenStream | undefined;
  #retry: Timer | undefined;
  #closed = false;
  /** Whether etcd has compacted events before they were received. */
  #isCompacted = false;
  #pauseMs = retryMs.first;
  readonly #waiting = new Set<{ readonly revision: Revision; readonly release: () => void }>();

  constructor(options: EventFeedOptions) {
    this.#options = options;
    this.#published = options.revision;
    this.#tail = new EventTail(options.revision);
    this.#hub = this.#newHub();
    this.#open(this.#published + 1);
  }

  get hub(): WatchHub {
    return this.#hub;
  }

  /** Watches that start at this revision or later belong to the hub. */
  get floor(): Revision {
    return this.#tail.floor;
  }

  /** Resolves when the events up to a revision have been delivered, or after a short timeout. */
  whenDelivered(revision: Revision): Promise<void> | undefined {
    if (this.#published >= revision || this.#stream === undefined) return undefined;
    return new Promise((resolve) => {
      const release = () => {
        timer.stop();
        this.#waiting.delete(waiter);
        resolve();
      };
      const timer = this.#options.clock.after(ownEventTimeoutMs, release);
      const waiter = { revision, release };
      this.#waiting.add(waiter);
    });
  }

  /** Drops history up to a revision, which etcd has compacted. */
  forget(revision: Revision): void {
    if (revision <= this.#published) this.#tail.forget(revision);
  }

  close(reason: StoreError): void {
    this.#closed = true;
    this.#retry?.stop();
    this.#stream?.close();
    this.#stream = undefined;
    this.#release();
    this.#hub.end(reason);
  }

  #newHub(): WatchHub {
    const feed = this;
    return new WatchHub({
      logger: this.#options.logger,
      source: {
        get revision() {
          return feed.#published;
        },
        get compactRevision() {
          return feed.#tail.floor;
        },
        history: (after) => ({ events: this.#tail.after(after), through: this.#published }),
      },
    });
  }

  #open(from: Revision): void {
    const { client, keys } = this.#options;
    this.#stream = streamEvents({
      client,
      keys,
      from,
      onEvents: (events, through) => this.#publish(events, through),
      onEnd: (error) => this.#handleLoss(error),
    });
  }

  #publish(events: readonly StoreEvent[], through: Revision): void {
    if (this.#closed) return;
    this.#pauseMs = retryMs.first;
    const publishedRevision = this.#published;
    const unseen = events
      .filter((event) => event.revision > publishedRevision)
      .map((event) => this.puts.withHint(event));
    for (const event of unseen) this.#tail.add(event);
    this.#published = Math.max(publishedRevision, through);
    this.#hub.publish(unseen, this.#published);
    this.#release(this.#published);
  }

  #release(through = Number.POSITIVE_INFINITY): void {
    for (const waiter of this.#waiting) if (waiter.revision <= through) waiter.release();
  }

  #handleLoss(error: StoreError): void {
    if (this.#closed) return;
    this.#stream = undefined;
    this.#release();
    this.#options.logger.warn('the etcd watch was interrupted', { error: error.message });
    if (error.code === 'compacted') this.#isCompacted = true;
    this.#scheduleResume();
  }

  #scheduleResume(): void {
    const pauseMs = this.#pauseMs;
    this.#pauseMs = Math.min(pauseMs * 2, retryMs.longest);
    this.#retry = this.#options.clock.after(pauseMs, () => {
      this.#resume().catch((error: unknown) => {
        if (this.#closed) return;
        this.#options.logger.debug(2, 'The watch of etcd cannot be resumed yet', {
          error: String(error),
        });
        this.#scheduleResume();
      });
    });
  }

  async #resume(): Promise<void> {
    const newest = await this.#options.newestRevision();
    if (this.#closed) return;
    // An older revision means that etcd was restored from a backup, which invalidates all cached
    // state.
    if (this.#isCompacted || newest < this.#published) {
      this.#startOver(newest);
      return;
    }
    // Starts at the last revision itself, because the event after a compacted revision may be lost
    // too.
    this.#open(Math.max(1, this.#published));
  }

  #startOver(revision: Revision): void {
    const hub = this.#hub;
    this.#isCompacted = false;
    this.#published = revision;
    this.#tail = new EventTail(revision);
    this.#hub = this.#newHub();
    this.#open(revision + 1);
    const message = 'etcd no longer has the events after the last delivered one';
    hub.end(new StoreError({ code: 'compacted', message, revision }));
  }
}

/** The dependencies of an event feed. */
interface EventFeedOptions {
  readonly client: EtcdClient;
  readonly keys: KeySpace;
  readonly clock: Clock;
  readonly logger: Logger;
  /** The newest revision, where the watch starts. */
  readonly revision: Revision;
  readonly newestRevision: () => Promise<Revision>;
}

interface Waiter {
  readonly revision: Revision;
  readonly resolve: (reached: MaybePromise<void>) => void;
  readonly reject: (error: StoreError) => void;
}

/**
 * A watch that starts before the feed's first event: it reads etcd's history until it catches up.
 */
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
   * Resolves when etcd confirms that the history exists; rejects with `compacted` if it does not,
   * and with `timed-out` if etcd does not respond.
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
        // One revision earlier than necessary, because a deletion at the compacted revision is
        // lost.
        from: Math.max(1, request.after),
        onEvents: (events, through) => {
          // The caller must have the watch before the first events arrive.
          if (!started) resolve(watch);
          started = true;
          timer.stop();
          deferMicrotask({ where: 'watch' }, () => watch.#receive(events, through));
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
    for (const waiter of this.#waiters.splice(0)) waiter.reject(reason);
  }

  #receive(events: readonly StoreEvent[], through: Revision): void {
    if (this.#closed || this.#live !== undefined) return;
    const { prefix, onEvents } = this.#request;
    const from = this.#position;
    const matching = events.filter(
      (event) => event.revision > from && event.key.startsWith(prefix),
    );
    try {
      if (matching.length > 0) onEvents(matching);
    } catch (error) {
      this.#stream?.close();
      this.#end(failedCallback(error));
    }
    if (this.#closed) return;
    this.#position = Math.max(from, through);
    if (this.#position >= this.#feed.floor) this.#goLive();
    this.#wake();
  }

  /** Hands the watch over to the feed's hub, which delivers later events and ends the watch. */
  #goLive(): void {
    this.#stream?.close();
    try {
      this.#live = this.#feed.hub.watch({ ...this.#request, after: this.#position });
    } catch (error) {
      this.#end(error instanceof StoreError ? error : closedStore());
    }
  }

  #wake(): void {
    const live = this.#live;
    const isDue = ({ revision }: { readonly revision: Revision }) =>
      live !== undefined || revision <= this.#position;
    const due = this.#waiters.filter(isDue);
    this.#waiters = this.#waiters.filter((waiter) => !isDue(waiter));
    for (const waiter of due) waiter.resolve(live?.reached(waiter.revision));
  }

  #end(error: StoreError): void {
    if (this.#closed || this.#live !== undefined) return;
    this.#closed = true;
    for (const waiter of this.#waiters.splice(0)) waiter.reject(error);
    this.#request.onEnd(error);
  }
}

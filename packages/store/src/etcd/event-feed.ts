import type { Clock, Logger, Timer } from '@wheelhouse/machinery';
import { type PutRequest, type Revision, StoreError, type StoreEvent } from '../contract.ts';
import { WatchHub } from '../watch-hub.ts';
import type { EtcdClient, OpenStream } from './client.ts';
import { streamEvents } from './event-stream.ts';
import type { KeySpace } from './key-space.ts';

const eventsMax = 4096;
const bytesMax = 8 * 1024 * 1024;

/**
 * The last events of a store, so that a watch which begins a moment behind the present need not ask
 * etcd, which lets the past wait for a tenth of a second.
 */
class EventTail {
  #events: StoreEvent[] = [];
  #head = 0;
  #bytes = 0;
  /** Everything after this revision is here. */
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

  /** Forgets what came up to a revision. */
  forget(revision: Revision): void {
    for (;;) {
      const oldest = this.#events[this.#head];
      if (oldest === undefined || oldest.revision > revision) break;
      this.#drop(oldest);
    }
    this.floor = Math.max(this.floor, revision);
  }

  /** The events after a revision that is not below the floor. */
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
 * Puts of this process that are in flight, so that their events get their hints. A hint describes
 * the bytes, so it fits any event with the same key and bytes.
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

  /** The event, with the hint of the pending put that caused it. */
  withHint(event: StoreEvent): StoreEvent {
    if (event.type !== 'put' || this.#byKey.size === 0) return event;
    const put = this.#byKey.get(event.key)?.find(({ value }) => value.equals(event.value));
    return put === undefined ? event : { ...event, value: put.value, hint: put.hint };
  }
}

/** Pauses before etcd is followed again: the first, doubled each time up to the longest. */
const retryMs = { first: 100, longest: 5000 };
/** How long a write waits for its own event before it is answered without. */
const ownEventMs = 2000;

/**
 * One watch of etcd for all watches of the store. Lost connections are taken up again where they
 * broke off; when etcd has forgotten that place, all watches end as `compacted` and begin anew.
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
  /** Etcd has compacted what we had yet to be told. */
  #lostPast = false;
  #pauseMs = retryMs.first;
  readonly #waiting = new Set<{ readonly revision: Revision; readonly go: () => void }>();

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

  /** Watches after this revision, or a later one, are the hub's. */
  get floor(): Revision {
    return this.#tail.floor;
  }

  /** Resolves when the events up to a revision have been handed on, or soon if they do not come. */
  handedOn(revision: Revision): Promise<void> | undefined {
    if (this.#published >= revision || this.#stream === undefined) return undefined;
    return new Promise((resolve) => {
      const go = () => {
        timer.stop();
        this.#waiting.delete(waiter);
        resolve();
      };
      const timer = this.#options.clock.after(ownEventMs, go);
      const waiter = { revision, go };
      this.#waiting.add(waiter);
    });
  }

  /** The history up to a revision is no longer etcd's, nor ours. */
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
      onEnd: (error) => this.#lose(error),
    });
  }

  #publish(events: readonly StoreEvent[], through: Revision): void {
    if (this.#closed) return;
    this.#pauseMs = retryMs.first;
    const publishedRevision = this.#published;
    const fresh = events
      .filter((event) => event.revision > publishedRevision)
      .map((event) => this.puts.withHint(event));
    for (const event of fresh) this.#tail.add(event);
    this.#published = Math.max(publishedRevision, through);
    this.#hub.publish(fresh, this.#published);
    this.#release(this.#published);
  }

  #release(through = Number.POSITIVE_INFINITY): void {
    for (const waiter of this.#waiting) if (waiter.revision <= through) waiter.go();
  }

  #lose(error: StoreError): void {
    if (this.#closed) return;
    this.#stream = undefined;
    this.#release();
    this.#options.logger.warn('etcd is not followed any more', { error: error.message });
    if (error.code === 'compacted') this.#lostPast = true;
    this.#again();
  }

  #again(): void {
    const pauseMs = this.#pauseMs;
    this.#pauseMs = Math.min(pauseMs * 2, retryMs.longest);
    this.#retry = this.#options.clock.after(pauseMs, () => {
      this.#resume().catch((error: unknown) => {
        if (this.#closed) return;
        this.#options.logger.debug(2, 'etcd cannot be followed yet', { error: String(error) });
        this.#again();
      });
    });
  }

  async #resume(): Promise<void> {
    const newest = await this.#options.newestRevision();
    if (this.#closed) return;
    // An etcd that has gone back in time was restored from a copy: nothing we know is certain.
    if (this.#lostPast || newest < this.#published) {
      this.#startOver(newest);
      return;
    }
    // From the last revision itself: what comes right behind a compaction may be forgotten too.
    this.#open(Math.max(1, this.#published));
  }

  #startOver(revision: Revision): void {
    const hub = this.#hub;
    this.#lostPast = false;
    this.#published = revision;
    this.#tail = new EventTail(revision);
    this.#hub = this.#newHub();
    this.#open(revision + 1);
    const message = 'etcd has forgotten what came after the last event';
    hub.end(new StoreError({ code: 'compacted', message, revision }));
  }
}

export interface EventFeedOptions {
  readonly client: EtcdClient;
  readonly keys: KeySpace;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Where to begin: the newest revision. */
  readonly revision: Revision;
  readonly newestRevision: () => Promise<Revision>;
}

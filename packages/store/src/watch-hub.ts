import {
  type Containment,
  defer,
  deferMicrotask,
  firstIndex,
  type Logger,
  type MaybePromise,
} from '@wheelhouse/machinery';
import {
  failedCallback,
  type Revision,
  StoreError,
  type StoreEvent,
  type StoreWatch,
  type WatchRequest,
} from './contract.ts';

/** A part of a store's log: all events after some revision, up to and including `through`. */
export interface HistoryChunk {
  readonly events: readonly StoreEvent[];
  /** The events are complete up to and including this revision. */
  readonly through: Revision;
}

/** The store's history as the hub reads it; durable state only. */
interface HistorySource {
  readonly revision: Revision;
  readonly compactRevision: Revision;
  /**
   * Some of the events after `after`, in order; may omit those without the prefix. May throw
   * StoreError `damaged`.
   */
  history(after: Revision, prefix: string): HistoryChunk;
}

interface Waiter {
  readonly revision: Revision;
  readonly resolve: () => void;
  readonly reject: (error: StoreError) => void;
}

/**
 * Delivers a store's durable writes to its watches. A watch first reads history from the log in
 * chunks, yielding to the event loop between them, and goes live in the turn in which it catches
 * up.
 *
 * Invariant: `publish` is called with every batch of writes, in order, in the same turn in which
 * the store makes the batch readable. A write published from inside a callback is delivered after
 * the current batch, so that all watches see the same order.
 */
export class WatchHub {
  readonly #source: HistorySource;
  readonly #logger: Logger;
  readonly #live = new Set<HubWatch>();
  readonly #all = new Set<HubWatch>();
  readonly #backlog: { readonly events: readonly StoreEvent[]; readonly through: Revision }[] = [];
  #publishing = false;
  #ended: StoreError | undefined;
  /** The revision up to which all live watches have received all events. */
  published: Revision;

  constructor(options: { source: HistorySource; logger: Logger }) {
    this.#source = options.source;
    this.#logger = options.logger;
    this.published = options.source.revision;
  }

  /** Starts a watch. Throws StoreError `compacted` if its start revision was compacted. */
  watch(request: WatchRequest): StoreWatch {
    if (this.#ended !== undefined) throw this.#ended;
    if (request.after < this.#source.compactRevision) throw this.#compacted();
    const watch = new HubWatch({ hub: this, request });
    this.#all.add(watch);
    if (request.after >= this.#source.revision) this.#goLive(watch);
    else deferMicrotask(this.#containment(watch), () => this.#catchUp(watch));
    return watch;
  }

  /**
   * Delivers a batch of durable writes, in order of revision, to all live watches. The batch is
   * complete up to and including `through`, which may lie after its last event.
   */
  publish(events: readonly StoreEvent[], through = events.at(-1)?.revision ?? 0): void {
    this.#backlog.push({ events, through });
    if (this.#publishing) return;
    this.#publishing = true;
    try {
      for (let batch = this.#backlog.shift(); batch !== undefined; batch = this.#backlog.shift()) {
        if (batch.events.length > 0) this.#deliver(batch.events);
        this.published = Math.max(this.published, batch.through);
        for (const watch of this.#all) watch.wake();
      }
    } finally {
      this.#publishing = false;
    }
  }

  #deliver(events: readonly StoreEvent[]): void {
    const shared = sharedPrefix(events);
    let runs: readonly Run[] | undefined;
    for (const watch of this.#live) {
      const { prefix } = watch.request;
      if (shared.startsWith(prefix)) this.#pass(watch, events);
      else if (prefix.startsWith(shared)) {
        runs ??= runsOf(events);
        this.#pass(watch, eventsBelow(prefix, runs));
      }
    }
  }

  /** Ends all watches with `reason` and refuses new ones. */
  end(reason: StoreError): void {
    this.#ended = reason;
    for (const watch of this.#all) this.#endWatch(watch, reason);
  }

  /** Removes a closed watch; for HubWatch only. */
  forget(watch: HubWatch): void {
    this.#live.delete(watch);
    this.#all.delete(watch);
  }

  #compacted(): StoreError {
    const revision = this.#source.compactRevision;
    return new StoreError({
      code: 'compacted',
      message: `required revision has been compacted; the oldest readable one is ${revision}`,
      revision,
    });
  }

  #goLive(watch: HubWatch): void {
    watch.position = this.#source.revision;
    watch.live = true;
    this.#live.add(watch);
    watch.wake();
  }

  #catchUp(watch: HubWatch): void {
    if (watch.closed) return;
    try {
      if (watch.position < this.#source.compactRevision) throw this.#compacted();
      const { prefix } = watch.request;
      const chunk = this.#source.history(watch.position, prefix);
      this.#pass(
        watch,
        chunk.events.filter(({ key }) => key.startsWith(prefix)),
      );
      if (watch.closed) return;
      watch.position = chunk.through;
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      this.#endWatch(watch, error);
      return;
    }
    if (watch.position >= this.#source.revision) {
      this.#goLive(watch);
      return;
    }
    watch.wake();
    defer(this.#containment(watch), () => this.#catchUp(watch));
  }

  /** Ends a watch whose catch-up fails unexpectedly; its owner starts another one. */
  #containment(watch: HubWatch): Containment {
    const end = (error: unknown) =>
      this.#endWatch(watch, new StoreError({ code: 'unavailable', message: String(error) }));
    return { where: 'watch', end };
  }

  /** Passes events to a watch, except those that it has received. Ends it if its callback fails. */
  #pass(watch: HubWatch, events: readonly StoreEvent[]): void {
    const [first] = events;
    if (watch.closed || first === undefined) return;
    const { prefix, after, onEvents } = watch.request;
    const from = Math.max(after, watch.position);
    const unseen = first.revision > from ? events : events.filter((event) => event.revision > from);
    if (unseen.length === 0) return;
    try {
      onEvents(unseen);
    } catch (error) {
      this.#endWatch(watch, failedCallback(error));
      this.#logger.error('a store watch callback failed', { prefix, error: String(error) });
    }
  }

  #endWatch(watch: HubWatch, reason: StoreError): void {
    if (watch.closed) return;
    watch.close(reason);
    try {
      watch.request.onEnd(reason);
    } catch (error) {
      this.#logger.error('the end callback of a store watch failed', { error: String(error) });
    }
  }
}

class HubWatch implements StoreWatch {
  readonly request: WatchRequest;
  readonly #hub: WatchHub;
  #waiters: Waiter[] = [];
  /** The last revision delivered from history, or the one at which the watch went live. */
  position: Revision;
  live = false;
  closed = false;

  constructor(options: { hub: WatchHub; request: WatchRequest }) {
    this.#hub = options.hub;
    this.request = options.request;
    this.position = options.request.after;
  }

  get progress(): Revision {
    return this.live ? Math.max(this.position, this.#hub.published) : this.position;
  }

  reached(revision: Revision): MaybePromise<void> {
    if (this.progress >= revision) return undefined;
    if (this.closed) return Promise.reject(closedWatch());
    return new Promise((resolve, reject) => this.#waiters.push({ revision, resolve, reject }));
  }

  /** Resolves the waiters whose revision was reached. */
  wake(): void {
    if (this.#waiters.length === 0) return;
    const progress = this.progress;
    const due = this.#waiters.filter((waiter) => waiter.revision <= progress);
    this.#waiters = this.#waiters.filter((waiter) => waiter.revision > progress);
    for (const waiter of due) waiter.resolve();
  }

  close(reason: StoreError = closedWatch()): void {
    if (this.closed) return;
    this.position = this.progress;
    this.closed = true;
    this.live = false;
    this.#hub.forget(this);
    for (const waiter of this.#waiters) waiter.reject(reason);
    this.#waiters = [];
  }
}

function closedWatch(): StoreError {
  return new StoreError({ code: 'closed', message: 'the watch has been closed' });
}

/** Successive events whose keys ascend. */
type Run = readonly StoreEvent[];

/**
 * Splits a batch into runs. The large batches of restores consist of few long runs, in which each
 * of the many watches finds its events by binary search.
 */
function runsOf(events: readonly StoreEvent[]): readonly Run[] {
  const runs: Run[] = [];
  let from = 0;
  for (let at = 1; at < events.length; at += 1) {
    if (keyAt(events, at - 1) <= keyAt(events, at)) continue;
    runs.push(events.slice(from, at));
    from = at;
  }
  runs.push(from === 0 ? events : events.slice(from));
  return runs;
}

function eventsBelow(prefix: string, runs: readonly Run[]): readonly StoreEvent[] {
  const events: StoreEvent[] = [];
  for (const run of runs) {
    for (let at = firstFrom(prefix, run); at < run.length; at += 1) {
      const event = run[at];
      if (event === undefined || !event.key.startsWith(prefix)) break;
      events.push(event);
    }
  }
  return events;
}

/** Returns the index of the first event whose key is not less than `key`. */
function firstFrom(key: string, run: Run): number {
  return firstIndex({ to: run.length }, (index) => keyAt(run, index) < key);
}

const keyAt = (run: Run, at: number): string => run[at]?.key ?? '';

/** Returns the longest common prefix of the events' keys, by which most watches skip the batch. */
function sharedPrefix(events: readonly StoreEvent[]): string {
  const first = events[0]?.key ?? '';
  let length = first.length;
  for (const { key } of events) {
    while (length > 0 && !key.startsWith(first.slice(0, length))) length = commonLength(first, key);
  }
  return first.slice(0, length);
}

function commonLength(left: string, right: string): number {
  let at = 0;
  while (at < left.length && left.charCodeAt(at) === right.charCodeAt(at)) at += 1;
  return at;
}

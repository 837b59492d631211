import {
  background,
  type Clock,
  deferMicrotask,
  type MaybePromise,
  orderedMapDelete,
  orderedMapGet,
  orderedMapSet,
  orderedMapValues,
  runInSlices,
  StatusError,
} from '@wheelhouse/machinery';
import { type Revision, StoreError, type StoreEvent, type StoreWatch } from '@wheelhouse/store';
import type { CacheMeter } from './cache-meter.ts';
import type { EntryChange } from './contract.ts';
import {
  changeOf,
  decodeAhead,
  type LoaderOptions,
  loadSnapshot,
  readEvents,
  type UnreadableRecord,
} from './loader.ts';
import {
  ChangeWindow,
  checkpointEvery,
  type PastChange,
  type Snapshot,
  type WindowChange,
  type WindowLimits,
} from './window.ts';

interface Waiter {
  readonly revision: Revision;
  readonly settle: (reached: boolean) => void;
}

/**
 * Waits until the cache has followed the store up to a revision. Only the next revision is
 * requested from the store, so that requests for future versions cannot fill its memory.
 */
class Freshness {
  readonly #clock: Clock;
  readonly #progress: () => Revision;
  readonly #waiters = new Set<Waiter>();
  #watch: StoreWatch | undefined;
  #requestedFrom: StoreWatch | undefined;

  constructor(options: { clock: Clock; progress: () => Revision }) {
    this.#clock = options.clock;
    this.#progress = options.progress;
  }

  /** Sets the store watch to follow; undefined while there is none. */
  follow(watch: StoreWatch | undefined): void {
    this.#watch = watch;
    this.check();
  }

  /**
   * Waits for `revision`. Returns true when it is reached, synchronously if it already is, and
   * false after the timeout or on cancellation. `onCancel` receives the function that cancels the
   * wait.
   */
  waitFor(
    revision: Revision,
    options: {
      readonly timeoutMs: number | undefined;
      readonly onCancel?: (cancel: () => void) => void;
    },
  ): MaybePromise<boolean> {
    if (this.#progress() >= revision) return true;
    return new Promise((resolve) => {
      const { timeoutMs } = options;
      const timer =
        timeoutMs === undefined
          ? undefined
          : this.#clock.after(timeoutMs, () => waiter.settle(this.#progress() >= revision));
      const waiter: Waiter = {
        revision,
        settle: (reached) => {
          timer?.stop();
          this.#waiters.delete(waiter);
          resolve(reached);
        },
      };
      this.#waiters.add(waiter);
      options.onCancel?.(() => waiter.settle(false));
      this.check();
    });
  }

  /** Wakes the waiters whose revision has been reached. */
  check(): void {
    if (this.#waiters.size === 0) return;
    const progress = this.#progress();
    for (const waiter of this.#waiters) if (waiter.revision <= progress) waiter.settle(true);
    if (this.#waiters.size > 0) this.#requestProgress(progress + 1);
  }

  /** Resolves all waiters with false. */
  cancelAll(): void {
    for (const waiter of this.#waiters) waiter.settle(false);
  }

  #requestProgress(revision: Revision): void {
    const watch = this.#watch;
    if (watch === undefined || this.#requestedFrom === watch) return;
    const answer = watch.reached(revision);
    if (!(answer instanceof Promise)) {
      deferMicrotask({ where: 'watch' }, () => this.check());
      return;
    }
    this.#requestedFrom = watch;
    const done = () => {
      if (this.#requestedFrom === watch) this.#requestedFrom = undefined;
    };
    answer.then(
      () => {
        done();
        this.check();
      },
      // The watch has ended; the follower opens another.
      done,
    );
  }
}

/** The dependencies and callbacks of a follower. */
interface FollowerOptions extends LoaderOptions {
  readonly clock: Clock;
  readonly limits: WindowLimits;
  readonly meter?: CacheMeter | undefined;
  /** Milliseconds between retries after a failure of the store. */
  readonly retryMs: number;
  /** Called with each new window: after the first load, and after lost history. */
  readonly onLoaded: (window: ChangeWindow) => void;
  /** Called when a load fails while there is no window; it is retried. */
  readonly onFailed: (error: unknown) => void;
  /** Called when values cannot be converted to the required form, which ends the follower. */
  readonly onUnusable: (error: StatusError) => void;
  /** Called before the window is replaced because history was lost. */
  readonly onLost: () => void;
  /** Called for each change in order, after it is in the window. */
  readonly onChange: (change: WindowChange) => void;
  /** Called for changes that a reload finds, for listeners that need no history. */
  readonly onMissed: (change: EntryChange) => void;
}

/** Keeps a window current: loads it, follows the store, and reloads it if history is lost. */
export class Follower {
  readonly freshness: Freshness;
  readonly #options: FollowerOptions;
  #unreadable = new Map<string, UnreadableRecord>();
  /** Loader options that record unreadable objects. */
  #recording: LoaderOptions;
  #window: ChangeWindow | undefined;
  #watch: StoreWatch | undefined;
  #applied: Revision = 0;
  #closed = false;
  /** Whether the window is complete and follows the store. */
  #isLoaded = false;
  #extending: Promise<void> | undefined;
  /** History up to this revision is known to be gone. */
  #lostBefore: Revision = -1;

  constructor(options: FollowerOptions) {
    this.#options = options;
    this.#recording = recordingUnreadable(options, this.#unreadable);
    this.freshness = new Freshness({ clock: options.clock, progress: () => this.progress() });
  }

  /** Unreadable stored objects by key. */
  get unreadable(): ReadonlyMap<string, UnreadableRecord> {
    return this.#unreadable;
  }

  /** Undefined until the first load is complete. */
  get window(): ChangeWindow | undefined {
    return this.#window;
  }

  /** The newest revision up to which the window is complete. */
  progress(): Revision {
    const followed = this.#watch?.progress ?? 0;
    return Math.max(followed, this.#applied);
  }

  /** Begins to load and follow; retries until the follower is closed. */
  start(): void {
    background(
      { where: 'watch' },
      this.#attempt(() => this.#load()),
    );
  }

  close(): void {
    this.#closed = true;
    this.#watch?.close();
    this.#watch = undefined;
    this.freshness.follow(undefined);
    this.freshness.cancelAll();
  }

  /**
   * The window position at which a watch after `revision` starts, after reading older history from
   * the store if necessary (as after a restart); undefined if that is gone too (WATCH-3).
   */
  async positionAfter(revision: Revision): Promise<number | undefined> {
    const window = this.#window;
    for (;;) {
      const position = window?.positionAfter(revision);
      if (position !== undefined || window === undefined) return position;
      if (revision <= this.#lostBefore || this.#closed) return undefined;
      this.#extending ??= this.#extend(window, revision).finally(() => {
        this.#extending = undefined;
      });
      await this.#extending;
    }
  }

  async #extend(window: ChangeWindow, revision: Revision): Promise<void> {
    const { limits, clock } = this.#options;
    const release = window.hold();
    try {
      const eventsMax = Math.floor(limits.changesMax / 2);
      const bytesMax = limits.bytesMax - window.bytes;
      const range = { after: revision, upTo: window.floor, eventsMax, bytesMax };
      const events = await readEvents(this.#options, range);
      const reusable = window.current;
      const { snapshot } = await loadSnapshot(this.#options, { at: revision, reusable });
      const history = { snapshot, events, at: clock.monotonic() };
      const changes = await runInSlices(replay(this.#options, history), clock);
      window.prepend({ revision, snapshot, changes });
    } catch (error) {
      if (!(error instanceof StoreError) || error.code !== 'compacted') throw error;
      this.#lostBefore = Math.max(this.#lostBefore, revision);
    } finally {
      release();
    }
  }

  async #attempt(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#retry(error);
    }
  }

  #retry(error: unknown): void {
    if (this.#closed) return;
    const { logger, prefix, clock, retryMs } = this.#options;
    const code = error instanceof StoreError ? error.code : 'other';
    if (code === 'closed') return;
    const cause = error instanceof StoreError ? error.cause : undefined;
    if (cause instanceof StatusError) {
      this.#options.onUnusable(cause);
      return;
    }
    logger.warn('the watch of the store was interrupted', { prefix, error: String(error) });
    const fromStart = code === 'compacted' || !this.#isLoaded;
    if (!this.#isLoaded) this.#options.onFailed(error);
    clock.after(retryMs, () => {
      if (this.#closed) return undefined;
      const again = fromStart ? () => this.#load() : () => this.#follow();
      return this.#attempt(again);
    });
  }

  async #load(): Promise<void> {
    const unreadable = new Map<string, UnreadableRecord>();
    const loading = recordingUnreadable(this.#options, unreadable);
    const { snapshot: loaded, revision } = await loadSnapshot(loading);
    if (this.#closed) return;
    // The previous set is valid until here, because its objects have not been read again.
    this.#unreadable = unreadable;
    this.#recording = loading;
    const before = this.#window?.current;
    const snapshot = withUnreadable(loaded, { before, keys: unreadable.keys() });
    const { limits, onLost, onLoaded } = this.#options;
    this.#isLoaded = false;
    if (before !== undefined) onLost();
    this.#window = new ChangeWindow({ limits, revision, snapshot });
    this.#applied = revision;
    if (before !== undefined) this.#reportMissed(before, snapshot);
    await this.#follow();
    if (this.#closed) return;
    this.#isLoaded = true;
    onLoaded(this.#window);
  }

  async #follow(): Promise<void> {
    const { store, prefix } = this.#options;
    let ended: StoreError | undefined;
    const watch = await store.watch({
      prefix,
      after: this.#applied,
      onEvents: (events) => this.#apply(events),
      onEnd: (reason) => {
        ended = reason;
        if (this.#watch !== undefined) this.#reconnect(reason);
      },
    });
    if (ended !== undefined) throw ended;
    if (this.#closed) {
      watch.close();
      return;
    }
    this.#watch = watch;
    this.freshness.follow(watch);
  }

  #reconnect(reason: StoreError): void {
    this.#applied = this.progress();
    this.#watch = undefined;
    this.freshness.follow(undefined);
    this.#retry(reason);
  }

  #apply(events: readonly StoreEvent[]): void {
    const window = this.#window;
    if (window === undefined || this.#closed) return;
    this.#options.meter?.countReceived(events.length);
    const at = this.#options.clock.monotonic();
    for (const event of events) {
      if (this.#unreadable.size > 0) {
        this.#unreadable.delete(event.key.slice(this.#options.prefix.length));
      }
      try {
        const change = changeOf(this.#recording, event, { entryAt: window.get, at });
        this.#applied = event.revision;
        if (change !== undefined) this.#options.onChange(window.append(change));
      } catch (error) {
        // The store ends the watch. A window in doubt is not resumed but loaded again.
        this.#applied = event.revision - 1;
        this.#isLoaded = false;
        throw error;
      }
    }
    this.freshness.check();
  }

  #reportMissed(before: Snapshot, now: Snapshot): void {
    const { onMissed } = this.#options;
    const revision = this.#applied;
    for (const previous of orderedMapValues(before)) {
      const current = orderedMapGet(now, previous.key);
      if (current === undefined) onMissed({ previous, current, revision });
    }
    for (const current of orderedMapValues(now)) {
      const previous = orderedMapGet(before, current.key);
      if (previous?.revision !== current.revision) onMissed({ previous, current, revision });
    }
  }
}

/** Adds the last readable states of objects that can no longer be read. */
function withUnreadable(
  snapshot: Snapshot,
  { before, keys }: { before: Snapshot | undefined; keys: Iterable<string> },
): Snapshot {
  let merged = snapshot;
  if (before === undefined) return merged;
  for (const key of keys) {
    const previous = orderedMapGet(before, key);
    if (previous !== undefined) merged = orderedMapSet(merged, key, previous);
  }
  return merged;
}

/** Loader options that add unreadable objects to a map. */
function recordingUnreadable(
  options: FollowerOptions,
  into: Map<string, UnreadableRecord>,
): LoaderOptions {
  const { store, prefix, clock, logger, indexOf, meter } = options;
  const onUnreadable = (unreadable: UnreadableRecord) => {
    meter?.countUnreadable();
    into.set(unreadable.key, unreadable);
  };
  return { store, prefix, clock, logger, indexOf, onUnreadable };
}

/**
 * Converts events to changes, with the previous states from the snapshot and earlier events, in
 * steps.
 */
function* replay(
  options: LoaderOptions,
  history: { snapshot: Snapshot; events: readonly StoreEvent[]; at: number },
): Generator<void, PastChange[]> {
  let { snapshot } = history;
  const changes: PastChange[] = [];
  const entryAt = (key: string) => orderedMapGet(snapshot, key);
  for (const event of history.events) {
    yield* decodeAhead(event);
    yield;
    const change = changeOf(options, event, { entryAt, at: history.at });
    if (change === undefined) continue;
    snapshot =
      change.current === undefined
        ? orderedMapDelete(snapshot, change.key)
        : orderedMapSet(snapshot, change.key, change.current);
    const hasCheckpoint = changes.length % checkpointEvery === 0;
    changes.push({ ...change, checkpoint: hasCheckpoint ? snapshot : undefined });
  }
  return changes;
}

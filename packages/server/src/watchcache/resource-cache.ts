import {
  type ApiObject,
  andThen,
  background,
  type Clock,
  defer,
  expired,
  type GroupResource,
  internalError,
  type Logger,
  type MaybePromise,
  pendingPromise,
  random,
  StatusError,
  serviceUnavailable,
  tooLargeResourceVersion,
} from '@wheelhouse/machinery';
import {
  encodeContinue,
  inconsistentRevision,
  type Revision,
  type Store,
  StoreError,
} from '@wheelhouse/store';
import type { CacheMeter } from './cache-meter.ts';
import type {
  EntryChange,
  ListRequest,
  ListResult,
  ResourceCache,
  WatchEnd,
  WatchHandle,
  WatchSpec,
} from './contract.ts';
import { Dispatcher } from './dispatcher.ts';
import type { Entry, EntryIndex } from './entry.ts';
import { Follower } from './follower.ts';
import { HistoricSnapshots, loadSnapshot } from './loader.ts';
import {
  getPoint,
  type ListPlan,
  listSnapshot,
  planList,
  type ReadPoint,
  watchRevision,
} from './reads.ts';
import { corruptList, corruptObject, statusOfStoreError, throwStatusOf } from './store-errors.ts';
import type { CatchingUp, Initial, Watcher } from './watcher.ts';
import type { ChangeWindow, Snapshot } from './window.ts';

/** The dependencies and limits of a watch cache. */
export interface ResourceCacheOptions {
  readonly store: Store;
  /** Storage prefix, ending in `/`; keys below it are `<namespace>/<name>` or `<name>`. */
  readonly prefix: string;
  readonly namespaced: boolean;
  readonly clock: Clock;
  readonly logger: Logger;
  /** The index of an object in its stored form. */
  readonly indexOf: (object: ApiObject) => EntryIndex;
  /** For errors about a watch's version. */
  readonly groupResource: GroupResource;
  /** The `v` of continue tokens: the dialect's `meta.…/v1`. */
  readonly tokenVersion: string;
  /**
   * Milliseconds for which changes are kept for watches and old snapshots; by default 5 minutes.
   */
  readonly historyMs?: number;
  /**
   * Maximum number of changes that are kept. Only tests set this limit and the next one, to reach
   * them with dozens of changes instead of tens of thousands.
   */
  readonly historyChangesMax?: number;
  /** A watcher that is further behind, in changes, is disconnected (WATCH-7). */
  readonly watchLagChangesMax?: number;
  /** Approximate interval of bookmarks in milliseconds; by default a minute. */
  readonly bookmarkMs?: number;
  /** Milliseconds before a failed store is tried again. */
  readonly retryMs?: number;
  /** Runs a task after the current events; by default in a later turn of the event loop. */
  readonly defer?: (task: () => void) => void;
  readonly random?: () => number;
  /** `fresh`: reads of any version wait for the newest one; by default `cached`. */
  readonly reads?: 'cached' | 'fresh';
  /** `store`: consistent lists are read from the store; by default from the cache. */
  readonly consistentLists?: 'cache' | 'store';
  readonly meter?: CacheMeter | undefined;
  /** Called when the cache ends because stored values cannot be converted to its form. */
  readonly onEnded?: () => void;
}

/** Milliseconds that a read waits for a version that the cache has not reached (LIST-7). */
const freshTimeoutMs = 3000;
const retryAfterSeconds = 1;

const listExpired = 'The resourceVersion for the provided list is too old.';
const continueExpired =
  'The provided continue parameter is too old to display a consistent list result. You can start ' +
  'a new list without the continue parameter, or use the continue token in this response to ' +
  'retrieve the remainder of the results. Continuing with the provided token results in an ' +
  'inconsistent list - objects that were created, modified, or deleted between the time the first ' +
  'chunk was returned and now may show up in the list.';

/** Creates the cache of one resource and begins to load it. */
export function createResourceCache(options: ResourceCacheOptions): ResourceCache {
  return new StoreBackedCache(options);
}

/** Maximum number of bytes of JSON in kept changes. */
const historyBytesMax = 128 * 1024 * 1024;

class StoreBackedCache implements ResourceCache {
  readonly #options: ResourceCacheOptions;
  readonly #follower: Follower;
  readonly #historic: HistoricSnapshots;
  readonly #listeners = new Set<(change: EntryChange) => void>();
  #ready = pendingLoad();
  #dispatcher: Dispatcher | undefined;
  #closed = false;

  constructor(options: ResourceCacheOptions) {
    this.#options = options;
    const historyMs = options.historyMs ?? 5 * 60_000;
    const changesMax = options.historyChangesMax ?? 100_000;
    this.#follower = new Follower({
      ...options,
      limits: { historyMs, changesMax, bytesMax: historyBytesMax },
      retryMs: options.retryMs ?? 1000,
      onLoaded: (window) => this.#onLoaded(window),
      onLost: () => this.#onLost(),
      onFailed: (error) => this.#onFailed(error),
      onUnusable: (error) => this.#endUnusable(error),
      onChange: (change) => {
        this.#dispatcher?.enqueue(change);
        this.#notify(change);
      },
      onMissed: (change) => this.#notify(change),
    });
    this.#historic = new HistoricSnapshots({
      clock: options.clock,
      historyMs,
      load: (revision) =>
        loadSnapshot(options, { at: revision, reusable: this.#follower.window?.current }),
    });
    if (options.meter !== undefined) {
      options.meter.capacity = changesMax;
      options.meter.revision = () =>
        this.#dispatcher === undefined ? undefined : this.#follower.progress();
    }
    this.#follower.start();
  }

  ready(): Promise<void> {
    return this.#whenReady();
  }

  peek(key: string): Entry | undefined {
    return this.#follower.window?.get(key);
  }

  count(): number | undefined {
    return this.#dispatcher === undefined ? undefined : this.#follower.window?.size;
  }

  get(key: string, resourceVersion: string | undefined): MaybePromise<Entry | undefined> {
    return andThen(this.#waitFor(getPoint(this.#versionToRead(resourceVersion))), () => {
      const { unreadable } = this.#follower;
      const unreadableRecord = unreadable.size === 0 ? undefined : unreadable.get(key);
      if (unreadableRecord !== undefined) throw corruptObject(unreadableRecord);
      return this.peek(key);
    });
  }

  list(incoming: ListRequest): MaybePromise<ListResult> {
    const request = this.#normalized(incoming);
    const plan = planList(request, this.#options.tokenVersion);
    if (plan.point.type === 'newest' && this.#options.consistentLists === 'store') {
      return this.#listFromStore(plan, request);
    }
    return andThen(this.#waitFor(plan.point), () => {
      if (request.unreadable === undefined) this.#rejectUnreadable(request);
      if (plan.point.type !== 'exact') {
        const revision = this.#follower.progress();
        return this.#answer({ plan, snapshot: this.#window().current, revision }, request);
      }
      const { revision } = plan.point;
      return andThen(this.#snapshotAt(revision, plan), (snapshot) =>
        this.#answer({ plan, snapshot, revision }, request),
      );
    });
  }

  async watch(spec: WatchSpec): Promise<WatchHandle> {
    const revision = watchRevision(spec.resourceVersion, this.#options.groupResource);
    if (this.#dispatcher === undefined) await this.#ready.promise;
    const dispatcher = this.#dispatcher;
    if (dispatcher === undefined || this.#closed) throw shuttingDown();
    const watcher = dispatcher.open(spec);
    const started = this.#start({ watcher, dispatcher, revision });
    // A watch from a future version waits for it until the watch times out.
    if (revision <= this.#follower.progress() || spec.sendInitialEvents === true) await started;
    return { close: () => dispatcher.close(watcher) };
  }

  subscribe(listener: (change: EntryChange) => void): { close(): void } {
    this.#listeners.add(listener);
    return { close: () => void this.#listeners.delete(listener) };
  }

  *trimSteps(): Generator<void, void> {
    while (this.#follower.window?.trim(this.#options.clock.monotonic()) === true) yield;
  }

  close(): void {
    this.#end(shuttingDown(), { type: 'shutdown' });
  }

  #end(error: StatusError, reason: WatchEnd): void {
    this.#closed = true;
    this.#ready.reject(error);
    this.#follower.close();
    this.#dispatcher?.endAll(reason);
    this.#listeners.clear();
    this.#options.meter?.close();
  }

  /** Rejects pending reads; the pool opens a new cache for later ones. */
  #endUnusable(error: StatusError): void {
    this.#options.onEnded?.();
    this.#end(error, { type: 'error', error });
  }

  /** Throws if a list would omit unreadable objects, which would appear to be deleted. */
  #rejectUnreadable({ namespace, name }: Pick<ListRequest, 'namespace' | 'name'>): void {
    const { unreadable } = this.#follower;
    if (unreadable.size === 0) return;
    const { namespaced, groupResource } = this.#options;
    const matching = [...unreadable.values()].filter(({ key }) => {
      const slash = namespaced ? key.indexOf('/') : -1;
      const isInNamespace = namespace === '' || !namespaced || key.slice(0, slash) === namespace;
      return isInNamespace && (name === undefined || key.slice(slash + 1) === name);
    });
    if (matching.length > 0) throw corruptList(groupResource, matching);
  }

  #window(): ChangeWindow {
    const { window } = this.#follower;
    if (window === undefined || this.#closed) throw shuttingDown();
    return window;
  }

  /** Resolves after the first load, however often the store fails before. */
  async #whenReady(): Promise<void> {
    while (this.#dispatcher === undefined) {
      const { promise } = this.#ready;
      await promise.catch((error: unknown) => {
        if (this.#closed) throw error;
      });
    }
  }

  /** Rejects reads that wait for the first load: the store is unavailable. */
  #onFailed(error: unknown): void {
    if (!(error instanceof StoreError)) return;
    const { reject } = this.#ready;
    this.#ready = pendingLoad();
    reject(statusOfStoreError(error));
  }

  /** Ends all watches, whose clients must list again; reads wait for the new window. */
  #onLost(): void {
    const dispatcher = this.#dispatcher;
    if (dispatcher === undefined) return;
    this.#dispatcher = undefined;
    this.#ready = pendingLoad();
    dispatcher.endAll({ type: 'shutdown' });
  }

  #onLoaded(window: ChangeWindow): void {
    const { clock, logger, namespaced, meter } = this.#options;
    const { bookmarkMs, watchLagChangesMax } = this.#options;
    meter?.countLoad();
    this.#dispatcher = new Dispatcher({
      window,
      clock,
      logger,
      namespaced,
      meter,
      progress: () => this.#follower.progress(),
      defer: this.#options.defer ?? ((task) => defer({ where: 'watch' }, task)),
      bookmarkMs: bookmarkMs ?? 60_000,
      lagChangesMax: watchLagChangesMax ?? 20_000,
      lagBytesMax: 32 * 1024 * 1024,
      random: this.#options.random ?? random,
    });
    this.#ready.resolve();
  }

  #notify(change: EntryChange): void {
    for (const listener of this.#listeners) {
      try {
        listener(change);
      } catch (error) {
        this.#options.logger.error('a listener for changes failed', { error: String(error) });
      }
    }
  }

  /** The version to read; with fresh reads, `0` means the newest. */
  #versionToRead(resourceVersion: string | undefined): string | undefined {
    const isAny = resourceVersion === '0';
    return isAny && this.#options.reads === 'fresh' ? undefined : resourceVersion;
  }

  /** Drops the limit of a list of any version; with fresh reads, makes it a consistent list. */
  #normalized(request: ListRequest): ListRequest {
    if (request.resourceVersion !== '0' || (request.continueToken ?? '') !== '') return request;
    return this.#options.reads === 'fresh'
      ? { ...request, resourceVersion: undefined, resourceVersionMatch: undefined }
      : { ...request, limit: undefined };
  }

  /** Answers a consistent list from the store instead of the cache. */
  async #listFromStore(plan: ListPlan, request: ListRequest): Promise<ListResult> {
    if (this.#dispatcher === undefined) await this.#ready.promise;
    const revision = await this.#newest();
    const snapshot = await this.#historic.at(revision).catch(throwStatusOf);
    if (request.unreadable === undefined) this.#rejectUnreadable(request);
    return this.#answer({ plan, snapshot, revision }, request);
  }

  /** Waits until the cache is as new as the read point requires; throws 504 after a timeout. */
  #waitFor(point: ReadPoint): MaybePromise<void> {
    if (this.#dispatcher === undefined) return this.#ready.promise.then(() => this.#waitFor(point));
    switch (point.type) {
      case 'any':
        return undefined;
      case 'newest':
        return andThen(this.#newest(), (revision) => this.#await(revision, String(revision)));
      case 'notOlderThan':
      case 'exact':
        return this.#await(point.revision, point.requested);
    }
  }

  #newest(): MaybePromise<Revision> {
    try {
      const { store, prefix } = this.#options;
      const revision = store.currentRevision(prefix);
      return revision instanceof Promise ? revision.catch(throwStatusOf) : revision;
    } catch (error) {
      return throwStatusOf(error);
    }
  }

  #await(revision: Revision, requested: string): MaybePromise<void> {
    const reached = this.#follower.freshness.waitFor(revision, { timeoutMs: freshTimeoutMs });
    this.#measureWait(reached);
    return andThen(reached, (ok) => {
      if (ok) return;
      throw tooLargeResourceVersion(requested, this.#follower.progress(), retryAfterSeconds);
    });
  }

  #measureWait(reached: MaybePromise<boolean>): void {
    const { meter, clock } = this.#options;
    if (meter === undefined) return;
    if (!(reached instanceof Promise)) {
      meter.observeWait(0);
      return;
    }
    const startMs = clock.monotonic();
    const waited = reached.then(() => meter.observeWait((clock.monotonic() - startMs) / 1000));
    background({ where: 'watch' }, waited);
  }

  #snapshotAt(revision: Revision, plan: ListPlan): MaybePromise<Snapshot> {
    const kept = this.#window().snapshotAt(revision);
    if (kept !== undefined) return kept;
    return this.#historic.at(revision).catch((error: unknown) => {
      if (!(error instanceof StoreError) || error.code !== 'compacted') {
        return throwStatusOf(error);
      }
      if (plan.continued === undefined) throw expired(listExpired);
      const point = { revision: inconsistentRevision, start: plan.continued.start };
      throw expired(continueExpired, encodeContinue(point, this.#options.tokenVersion));
    });
  }

  #answer(
    at: { plan: ListPlan; snapshot: Snapshot; revision: Revision },
    request: ListRequest,
  ): MaybePromise<ListResult> {
    const { plan, snapshot, revision } = at;
    const { namespaced, tokenVersion, clock } = this.#options;
    const start = plan.continued?.start;
    const source = { snapshot, revision, namespaced, tokenVersion, clock, start };
    return listSnapshot(source, request);
  }

  /**
   * Determines where a watch starts, and starts it; on failure the watch ends with an ERROR event.
   */
  async #start(options: {
    watcher: Watcher;
    dispatcher: Dispatcher;
    revision: Revision;
  }): Promise<void> {
    const { watcher, dispatcher, revision } = options;
    try {
      const state = await this.#startState(watcher, revision);
      if (state === undefined) dispatcher.end(watcher, { type: 'shutdown' });
      else dispatcher.start(watcher, state);
    } catch (error) {
      const cause = error instanceof StoreError ? error.cause : error;
      const isStatusError = cause instanceof StatusError;
      if (!isStatusError)
        this.#options.logger.error('cannot start a watch', { error: String(error) });
      const status = isStatusError ? cause : internalError('the watch cannot be started', error);
      dispatcher.end(watcher, { type: 'error', error: status });
    }
  }

  async #startState(
    watcher: Watcher,
    revision: Revision,
  ): Promise<Initial | CatchingUp | undefined> {
    const { spec } = watcher;
    const { sendInitialEvents, resourceVersion } = spec;
    if (revision > 0 && sendInitialEvents !== true) return this.#startAfter(watcher, revision);
    const unset = resourceVersion === undefined || resourceVersion === '';
    if (unset) await this.#waitFor({ type: 'newest' });
    else if (revision > 0) await this.#await(revision, resourceVersion);
    const window = this.#window();
    const position = window.end;
    if (sendInitialEvents !== false) this.#rejectUnreadable(spec);
    if (sendInitialEvents === false) return { type: 'catchingUp', position };
    if (sendInitialEvents === true && spec.allowBookmarks) {
      watcher.initialEnd = this.#follower.progress();
    }
    return { type: 'initial', snapshot: window.current, sent: 0, position };
  }

  async #startAfter(watcher: Watcher, revision: Revision): Promise<CatchingUp | undefined> {
    const reached = await this.#follower.freshness.waitFor(revision, {
      timeoutMs: undefined,
      onCancel: (cancel) => {
        watcher.whenEnded = cancel;
      },
    });
    if (!reached) return undefined;
    const position = await this.#follower.positionAfter(revision);
    if (position !== undefined) return { type: 'catchingUp', position };
    const oldest = this.#window().floor;
    throw expired(`too old resource version: ${revision} (${oldest})`);
  }
}

/** A pending promise whose rejection need not be handled. */
function pendingLoad() {
  const pending = pendingPromise();
  pending.promise.catch(() => {});
  return pending;
}

function shuttingDown(): StatusError {
  return serviceUnavailable('the server is shutting down');
}

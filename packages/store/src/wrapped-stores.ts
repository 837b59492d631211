import type { Clock, MaybePromise } from '@wheelhouse/machinery';
import { type Store, StoreError, shownKey, unchangedOperations } from './contract.ts';

/** An operation of a store, by the name that kube-apiserver's metrics use. */
export type StoreOperation = 'get' | 'list' | 'create' | 'update' | 'delete';

/**
 * Called for each operation with its duration and whether it failed; a failed expectation is not a
 * failure.
 */
export type StoreObserver = (operation: {
  readonly operation: StoreOperation;
  /** The key, or the prefix of a range. */
  readonly key: string;
  readonly durationMs: number;
  readonly failed: boolean;
}) => void;

/** Called with the number of records that a range returned. */
export type ListObserver = (prefix: string, records: number) => void;

/** Returns a store that reports its operations to `observe` and its ranges to `observeList`. */
export function meteredStore(
  store: Store,
  {
    clock,
    observe,
    observeList = () => {},
  }: {
    readonly clock: Pick<Clock, 'monotonic'>;
    readonly observe: StoreObserver;
    readonly observeList?: ListObserver;
  },
): Store {
  const measure = <Result extends MaybePromise<unknown>>(
    at: { readonly operation: StoreOperation; readonly key: string },
    run: () => Result,
  ): Result => {
    const startMs = clock.monotonic();
    const { operation, key } = at;
    const done = (failed: boolean) =>
      observe({ operation, key, durationMs: clock.monotonic() - startMs, failed });
    let result: Result;
    try {
      result = run();
    } catch (error) {
      done(true);
      throw error;
    }
    if (result instanceof Promise) {
      result.then(
        () => done(false),
        () => done(true),
      );
    } else done(false);
    return result;
  };
  return {
    ...unchangedOperations(store),
    get: (key, at) => measure({ operation: 'get', key }, () => store.get(key, at)),
    async range(request) {
      const { prefix } = request;
      const page = await measure({ operation: 'list', key: prefix }, () => store.range(request));
      observeList(prefix, page.records.length);
      return page;
    },
    put: (request) => {
      const operation = request.expect === 0 ? 'create' : 'update';
      return measure({ operation, key: request.key }, () => store.put(request));
    },
    delete: (request) =>
      measure({ operation: 'delete', key: request.key }, () => store.delete(request)),
    watch: (request) => store.watch(request),
  };
}

/** A prefix whose keys have a separate store. */
export interface Route {
  readonly prefix: string;
  readonly store: Store;
}

/**
 * Combines several stores: keys with a route's prefix are in its store, all others in the main one.
 * Each store has its own revisions, so operations on the whole (size, compaction, snapshots)
 * concern the main store alone.
 */
export function routedStore(main: Store, routes: readonly Route[]): Store {
  const storeOf = (key: string): Store =>
    routes.find(({ prefix }) => key.startsWith(prefix))?.store ?? main;
  const all = [main, ...new Set(routes.map(({ store }) => store))];
  return {
    sharing: all.some(({ sharing }) => sharing === 'shared') ? 'shared' : 'own',
    currentRevision: (prefix) => storeOf(prefix ?? '').currentRevision(prefix),
    compactRevision: () => main.compactRevision(),
    get: (key, at) => storeOf(key).get(key, at),
    range: (request) => storeOf(request.prefix).range(request),
    put: (request) => storeOf(request.key).put(request),
    delete: (request) => storeOf(request.key).delete(request),
    watch: (request) => storeOf(request.prefix).watch(request),
    compact: (revision) => main.compact(revision),
    async ping() {
      await Promise.all(all.map((store) => store.ping()));
    },
    shownKey: (key) => shownKey(storeOf(key), key),
    sizeBytes: () => main.sizeBytes(),
    snapshot: () => {
      const message = 'a store with several parts has no consistent snapshot';
      return Promise.reject(new StoreError({ code: 'unavailable', message }));
    },
    async close() {
      await Promise.all(all.map((store) => store.close()));
    },
  };
}

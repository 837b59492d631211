import { type Store, StoreError, shownKey } from './contract.ts';

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

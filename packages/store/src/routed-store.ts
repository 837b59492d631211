import { type Store, StoreError } from './contract.ts';

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
  const of = (key: string): Store =>
    routes.find(({ prefix }) => key.startsWith(prefix))?.store ?? main;
  const all = [main, ...new Set(routes.map(({ store }) => store))];
  return {
    sharing: all.some(({ sharing }) => sharing === 'shared') ? 'shared' : 'own',
    currentRevision: (prefix) => of(prefix ?? '').currentRevision(prefix),
    compactRevision: () => main.compactRevision(),
    get: (key, at) => of(key).get(key, at),
    range: (request) => of(request.prefix).range(request),
    put: (request) => of(request.key).put(request),
    delete: (request) => of(request.key).delete(request),
    watch: (request) => of(request.prefix).watch(request),
    compact: (revision) => main.compact(revision),
    async ping() {
      await Promise.all(all.map((store) => store.ping()));
    },
    sizeBytes: () => main.sizeBytes(),
    snapshot: () => {
      const message = 'a store in several parts has no copy in one piece';
      return Promise.reject(new StoreError({ code: 'unavailable', message }));
    },
    async close() {
      await Promise.all(all.map((store) => store.close()));
    },
  };
}

/** Modules that are loaded on first use, to keep startup short. */

/** Loads the writer of backups, which only `wheelhouse backup` and `POST /backup` use (STORE-5). */
export const loadBackupWriter = () => import('./backup/writer.ts');
/** Loads the embedded store, which servers on other stores do not need. */
export const loadEmbeddedStore = () => import('./embedded/embedded-store.ts');
/** Loads the memory store, which servers on other stores do not need. */
export const loadMemoryStore = () => import('./memory/memory-store.ts');

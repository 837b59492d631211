/** Modules that are loaded on first use, to keep startup short. */

export const loadBackupWriter = () => import('./backup/writer.ts');
export const loadEmbeddedStore = () => import('./embedded/embedded-store.ts');
export const loadMemoryStore = () => import('./memory/memory-store.ts');

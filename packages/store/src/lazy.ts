/** Parts that are loaded when something first needs them, which keeps them out of a start. */

export const loadBackupWriter = () => import('./backup/writer.ts');
export const loadEmbeddedStore = () => import('./embedded/embedded-store.ts');
export const loadMemoryStore = () => import('./memory/memory-store.ts');

/** Modules loaded on first use, which keeps them out of start-up. */

/** Loads the server of the console's files, which `--web-console` enables (CLIENT-4). */
export const loadStaticFiles = () => import('./static-files.ts');

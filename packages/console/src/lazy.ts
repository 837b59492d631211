/** Modules loaded on first use, which keeps them out of start-up. */

export const loadStaticFiles = () => import('./static-files.ts');

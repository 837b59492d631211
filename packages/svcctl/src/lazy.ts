/** Modules that are loaded on first use, so that they do not delay startup. */

/** Loads the conversion of manifests between versions (VER-8). */
export const loadConvertProgram = () => import('./convert/convert.ts');

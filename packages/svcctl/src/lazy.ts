/** Modules that are loaded on first use, to keep startup short. */

export const loadConvertProgram = () => import('./convert/convert.ts');

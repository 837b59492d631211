/** Parts that are loaded when something first needs them, which keeps them out of a start. */

export const loadConvertProgram = () => import('./convert/convert.ts');

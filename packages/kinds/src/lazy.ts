/** Parts that are loaded when something first needs them, which keeps them out of a start. */

export const loadKindSchema = () => import('./kind-schema.ts');
export const loadOlderReleases = () => import('./older/release.ts');
export const loadPrivilegedPods = () => import('./pod/privileged.ts');

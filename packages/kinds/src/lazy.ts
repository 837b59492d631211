/** Modules that load on first use, so that a start does not evaluate them. */

export const loadKindSchema = () => import('./kind-schema.ts');
export const loadOlderReleases = () => import('./older/release.ts');
export const loadPrivilegedPods = () => import('./pod/privileged.ts');

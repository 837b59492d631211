/** Modules that load on first use, so that a start does not evaluate them. */

/** Loads the schemas of the types that requests contain, by apiVersion and kind. */
export const loadKindSchema = () => import('./kind-schema.ts');
/** Loads the kinds of other releases, and the versions that are off by default (VER-1, VER-2). */
export const loadOlderReleases = () => import('./older/release.ts');
/** Loads the rule against privileged Pods, which applies with `--allow-privileged=false`. */
export const loadPrivilegedPods = () => import('./pod/privileged.ts');

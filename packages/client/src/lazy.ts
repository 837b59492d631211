/** Modules that are loaded on first use, so that they do not delay startup. */

/** Loads the reading and writing of YAML in kubeconfigs, manifests, and output. */
export const loadYaml = () => import('./yaml.ts');

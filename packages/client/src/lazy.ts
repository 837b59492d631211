/** Modules that are loaded on first use, so that they do not delay startup. */

export const loadYaml = () => import('./yaml.ts');

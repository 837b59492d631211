/** Modules that are loaded on first use, to keep startup short. */

export const loadYaml = () => import('./yaml.ts');

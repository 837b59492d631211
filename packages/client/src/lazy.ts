/** Modules loaded on first use, which keeps them out of start-up. */

export const loadYaml = () => import('./yaml.ts');

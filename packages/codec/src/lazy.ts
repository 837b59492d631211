/** Loads the YAML codec, on first use because its library delays the start of the server. */
export const loadYaml = () => import('./yaml.ts');

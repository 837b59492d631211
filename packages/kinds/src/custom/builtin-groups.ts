import type { Dialect } from '@wheelhouse/machinery';

/** Stems of the built-in groups by falling discovery priority, as upstream registers them. */
const stems = [
  '',
  'apiregistration',
  'extensions',
  'apps',
  'events',
  'authentication',
  'authorization',
  'autoscaling',
  'batch',
  'certificates',
  'networking',
  'policy',
  'rbac.authorization',
  'storage',
  'admissionregistration',
  'apiextensions',
  'scheduling',
  'coordination',
  'node',
  'discovery',
  'flowcontrol.apiserver',
  'internal.apiserver',
  'resource',
  'storagemigration',
];

/** Full names of the built-in groups in the order discovery lists them; custom groups follow. */
export function builtinGroupOrder(dialect: Dialect): readonly string[] {
  return stems.map((stem) => dialect.group(stem));
}

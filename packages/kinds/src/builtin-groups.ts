import type { Dialect, GroupVersion } from '@wheelhouse/machinery';
import { directoryOfGroup, groupStems, versionFacts, versionsOfFacts } from './facts.ts';

/** Stems of the built-in groups, in the order of their discovery priority in kube-apiserver. */
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
  'resource',
  'flowcontrol.apiserver',
  'internal.apiserver',
  'storagemigration',
];

/** Full names of the built-in groups in discovery order; custom groups follow them. */
export function builtinGroupOrder(dialect: Dialect): readonly string[] {
  return stems.map((stem) => dialect.group(stem));
}

/** Whether the release has a group of this name, whether or not it is served here. */
export function isKnownGroup(dialect: Dialect, group: string): boolean {
  return factsOf(dialect, group) !== undefined;
}

/** Directories of types that are exchanged but not served as an API group. */
const unservedDirectories = ['admission', 'apidiscovery', 'imagepolicy', 'meta'];

/** The directory of an API group's facts; undefined if there is no such group. */
function factsOf(dialect: Dialect, group: string): string | undefined {
  const facts = directoryOfGroup(dialect, group);
  return facts === undefined || unservedDirectories.includes(facts) ? undefined : facts;
}

/** Whether the release has a group version, whether or not it is served here. */
export function isKnownGroupVersion(
  dialect: Dialect,
  { group, version }: { readonly group: string; readonly version: string },
): boolean {
  const facts = factsOf(dialect, group);
  return facts !== undefined && versionFacts(`${facts}.${version}`) !== undefined;
}

const versionsByDialect = new WeakMap<Dialect, readonly GroupVersion[]>();

/** CustomResourceDefinitions have a schema of their own instead of facts. */
const versionsElsewhere: Readonly<Record<string, readonly string[]>> = {
  apiextensions: ['v1', 'v1beta1'],
};

/** All group versions of the release in order, including those of webhook reviews. */
export function knownGroupVersions(dialect: Dialect): readonly GroupVersion[] {
  let all = versionsByDialect.get(dialect);
  if (all !== undefined) return all;
  all = Object.entries(groupStems)
    .filter(([directory]) => directory !== 'meta' && directory !== 'apidiscovery')
    .flatMap(([directory, stem]) => {
      const versions = versionsElsewhere[directory] ?? versionsOfFacts(directory);
      return versions.map((version) => ({ group: dialect.group(stem), version }));
    })
    .sort((left, right) => (keyOf(left) < keyOf(right) ? -1 : 1));
  versionsByDialect.set(dialect, all);
  return all;
}

const keyOf = ({ group, version }: GroupVersion) => `${group}/${version}`;

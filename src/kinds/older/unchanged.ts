import type { Dialect } from '../../dialect.ts';
import type { OlderKind } from './contract.ts';

/** Versions that differ from the stored one in nothing but their name: facts, version, kinds. */
const table: readonly (readonly [string, string, readonly string[]])[] = [
  ['apps', 'v1beta2', ['ControllerRevision']],
  ['apps', 'v1beta1', ['ControllerRevision']],
  ['authentication', 'v1beta1', ['TokenReview']],
  ['coordination', 'v1beta1', ['Lease']],
  ['networking', 'v1beta1', ['IngressClass']],
  ['node', 'v1beta1', ['RuntimeClass']],
  ['rbac', 'v1beta1', ['ClusterRole', 'ClusterRoleBinding', 'Role', 'RoleBinding']],
  ['scheduling', 'v1beta1', ['PriorityClass']],
  [
    'storage',
    'v1beta1',
    ['CSIDriver', 'CSINode', 'CSIStorageCapacity', 'StorageClass', 'VolumeAttachment'],
  ],
];

/** The kinds of that table. */
export function unchangedKinds(_dialect: Dialect): readonly OlderKind[] {
  const kinds = new Map<string, OlderKind>();
  for (const [facts, version, names] of table) {
    for (const kind of names) {
      const known = kinds.get(`${facts}.${kind}`)?.older ?? [];
      kinds.set(`${facts}.${kind}`, { facts, kind, older: [...known, { facts, version }] });
    }
  }
  return [...kinds.values()];
}

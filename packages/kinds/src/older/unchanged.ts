import type { OlderKind } from './contract.ts';

/** Versions that differ from the stored one in nothing but their name: facts, version, kinds. */
const table: readonly (readonly [string, string, readonly string[]])[] = [
  ['apps', 'v1beta2', ['ControllerRevision']],
  ['apps', 'v1beta1', ['ControllerRevision']],
  ['apiregistration', 'v1beta1', ['APIService']],
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

/** CronJob kept its Jobs when it was deleted through its first version. */
const cronJob: OlderKind = {
  facts: 'batch',
  kind: 'CronJob',
  older: [{ facts: 'batch', version: 'v1beta1', defaultPropagation: 'Orphan' }],
};

/** The kinds of that table. */
export function unchangedKinds(): readonly OlderKind[] {
  const kinds = new Map<string, OlderKind>();
  for (const [facts, version, names] of table) {
    for (const kind of names) {
      const olderVersions = kinds.get(`${facts}.${kind}`)?.older ?? [];
      kinds.set(`${facts}.${kind}`, { facts, kind, older: [...olderVersions, { facts, version }] });
    }
  }
  return [...kinds.values(), cronJob];
}

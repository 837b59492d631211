import type { Dialect } from '@wheelhouse/machinery';
import { defineKind } from '../define.ts';
import type { ClusterRoleBinding } from '../gen/types/rbac/v1.ts';
import type { ResourceDef } from '../resource-def.ts';
import { bindingColumns, bindingStrategy, fillBinding } from './subjects.ts';

/** ClusterRoleBinding: grants a ClusterRole everywhere. */
export function clusterRoleBinding(dialect: Dialect): ResourceDef {
  const group = dialect.group('rbac.authorization');
  return defineKind<ClusterRoleBinding>({
    dialect,
    facts: 'rbac',
    kind: 'ClusterRoleBinding',
    resource: 'clusterrolebindings',
    scope: 'Cluster',
    versions: [
      {
        version: 'v1',
        defaults: (object) => fillBinding(object, dialect),
        columns: bindingColumns,
      },
    ],
    strategy: bindingStrategy({ dialect, roleKinds: ['ClusterRole'], namespaced: false }),
    example: () => ({
      apiVersion: `${group}/v1`,
      kind: 'ClusterRoleBinding',
      metadata: { name: 'readers' },
      roleRef: { apiGroup: group, kind: 'ClusterRole', name: 'reader' },
      subjects: [{ kind: 'ServiceAccount', name: 'bot', namespace: 'default' }],
    }),
  });
}

import type { Dialect } from '@wheelhouse/machinery';
import { defineKind } from '../define.ts';
import type { RoleBinding } from '../gen/types/rbac/v1.ts';
import type { ResourceDef } from '../resource-def.ts';
import { bindingColumns, bindingStrategy, fillBinding } from './subjects.ts';

/** RoleBinding: grants a Role of its namespace, or a ClusterRole within its namespace (RBAC-1). */
export function roleBinding(dialect: Dialect): ResourceDef {
  const group = dialect.group('rbac.authorization');
  return defineKind<RoleBinding>({
    dialect,
    facts: 'rbac',
    kind: 'RoleBinding',
    resource: 'rolebindings',
    scope: 'Namespaced',
    versions: [
      {
        version: 'v1',
        defaults: (object) => fillBinding(object, dialect),
        columns: bindingColumns,
      },
    ],
    strategy: bindingStrategy({
      dialect,
      roleKinds: ['Role', 'ClusterRole'],
      namespaced: true,
    }),
    example: () => ({
      apiVersion: `${group}/v1`,
      kind: 'RoleBinding',
      metadata: { name: 'readers', namespace: 'default' },
      roleRef: { apiGroup: group, kind: 'Role', name: 'reader' },
      subjects: [{ apiGroup: group, kind: 'User', name: 'jane' }],
    }),
  });
}

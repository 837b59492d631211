import { type Dialect, pathSegment } from '@wheelhouse/machinery';
import { createdAtColumn, nameColumn } from '../cells.ts';
import { defineKind } from '../define.ts';
import type { Role } from '../gen/types/rbac/v1.ts';
import type { ResourceDef } from '../resource-def.ts';
import { toldTwice } from '../rules/checks.ts';
import type { Stored } from '../stored.ts';
import { validateRules } from './rules.ts';

/** Role: rules for resources of its own namespace. */
export function role(dialect: Dialect): ResourceDef {
  const validate = (object: Stored<Role>) => validateRules(object, { namespaced: true });
  return defineKind<Role>({
    dialect,
    facts: 'rbac',
    kind: 'Role',
    resource: 'roles',
    scope: 'Namespaced',
    versions: [{ version: 'v1', columns: [nameColumn, createdAtColumn] }],
    strategy: {
      metadataTold: { '': ['whole', 'whole', 'change'] },
      validateName: pathSegment,
      validateCreate: (_, object) => validate(object),
      validateUpdate: (_, object) => toldTwice(validate(object)),
      allowCreateOnUpdate: true,
    },
    example: () => ({
      apiVersion: `${dialect.group('rbac.authorization')}/v1`,
      kind: 'Role',
      metadata: { name: 'reader', namespace: 'default' },
      rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'watch'] }],
    }),
  });
}

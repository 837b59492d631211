import { type Dialect, pathSegment } from '@wheelhouse/machinery';
import { createdAtColumn, nameColumn } from '../cells.ts';
import { defineKind } from '../define.ts';
import type { ResourceDef } from '../resource-def.ts';
import { toldTwice } from '../rules/checks.ts';
import { type RoleLike, validateRules } from './rules.ts';

/** Role: rules for resources of its own namespace. */
export function role(dialect: Dialect): ResourceDef {
  const validate = (object: RoleLike) => validateRules(object, { namespaced: true });
  return defineKind({
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

import type { ResourceDef } from '../../catalogue/resource-def.ts';
import type { Dialect } from '../../dialect.ts';
import { pathSegment } from '../../meta/names.ts';
import { createdAtColumn, nameColumn } from '../cells.ts';
import { toldTwice } from '../checks.ts';
import { defineKind } from '../define.ts';
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

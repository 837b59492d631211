import {
  type Dialect,
  type FieldError,
  invalid,
  pathSegment,
  required,
  validateLabelSelector,
} from '@wheelhouse/machinery';
import { createdAtColumn, nameColumn } from '../cells.ts';
import { defineKind } from '../define.ts';
import type { ClusterRole } from '../gen/types/rbac/v1.ts';
import type { ResourceDef } from '../resource-def.ts';
import { toldTwice } from '../rules/checks.ts';
import type { Stored } from '../stored.ts';
import { validateRules } from './rules.ts';

function validateAggregation(object: Stored<ClusterRole>): FieldError[] {
  if (object.aggregationRule === undefined || object.aggregationRule === null) return [];
  const path = 'aggregationRule.clusterRoleSelectors';
  const selectors = object.aggregationRule.clusterRoleSelectors ?? [];
  if (selectors.length === 0) {
    const detail = 'at least one clusterRoleSelector required if aggregationRule is non-nil';
    return [required(path, detail)];
  }
  return selectors.flatMap((selector, index) => {
    const field = `${path}[${index}]`;
    const errors = validateLabelSelector(selector, field);
    // What is wrong keeps upstream from making a selector, and of that it tells in the selector's place.
    return errors.length === 0 ? [] : [...errors, invalid(field, null, 'invalid label selector.')];
  });
}

/** ClusterRole: rules for all namespaces, cluster-wide resources and paths. */
export function clusterRole(dialect: Dialect): ResourceDef {
  const validate = (object: Stored<ClusterRole>) => [
    ...validateRules(object, { namespaced: false }),
    ...validateAggregation(object),
  ];
  return defineKind<ClusterRole>({
    dialect,
    facts: 'rbac',
    kind: 'ClusterRole',
    resource: 'clusterroles',
    scope: 'Cluster',
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
      kind: 'ClusterRole',
      metadata: { name: 'reader' },
      rules: [
        { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'watch'] },
        { nonResourceURLs: ['/healthz'], verbs: ['get'] },
      ],
    }),
  });
}

import {
  type Dialect,
  type FieldError,
  invalid,
  invalidGo,
  pathSegment,
  required,
  validateLabelSelector,
} from '@wheelhouse/machinery';
import { createdAtColumn, nameColumn } from '../cells.ts';
import { defineKind } from '../define.ts';
import type { ClusterRole, PolicyRule, Role } from '../gen/types/rbac/v1.ts';
import type { ResourceDef, Strategy } from '../resource-def.ts';
import { flatMapSteps, goStrings, items, reportedTwice } from '../rules/checks.ts';
import type { Stored } from '../stored.ts';

/** Role: permissions on resources of its namespace. */
export function role(dialect: Dialect): ResourceDef {
  return defineKind<Role>({
    dialect,
    facts: 'rbac',
    kind: 'Role',
    resource: 'roles',
    scope: 'Namespaced',
    versions: [{ version: 'v1', columns: [nameColumn, createdAtColumn] }],
    strategy: roleStrategy((object) => validateRules(object, { namespaced: true })),
    example: () => ({
      apiVersion: `${dialect.group('rbac.authorization')}/v1`,
      kind: 'Role',
      metadata: { name: 'reader', namespace: 'default' },
      rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['get', 'list', 'watch'] }],
    }),
  });
}

function roleStrategy<O>(
  validate: (object: O) => Generator<void, FieldError[]>,
): Partial<Strategy<O>> & Pick<Strategy, 'validateName'> {
  return {
    extraMetadataChecks: { '': ['whole', 'whole', 'change'] },
    validateName: pathSegment,
    validateCreate: (_, object) => validate(object),
    *validateUpdate(_, object) {
      return reportedTwice(yield* validate(object));
    },
    allowCreateOnUpdate: true,
  };
}

/** Validates the rules of a role; only a ClusterRole can have paths (RBAC-3). */
function validateRules(
  object: Stored<Role | ClusterRole>,
  options: { namespaced: boolean },
): Generator<void, FieldError[]> {
  return flatMapSteps(items(object.rules), (rule, index) =>
    validateRule(rule, { ...options, path: `rules[${index}]` }),
  );
}

function validateRule(
  rule: Stored<PolicyRule>,
  options: { namespaced: boolean; path: string },
): FieldError[] {
  const { namespaced, path } = options;
  const errors: FieldError[] = [];
  const verbs = items(rule.verbs);
  const apiGroups = items(rule.apiGroups);
  const resources = items(rule.resources);
  const resourceNames = items(rule.resourceNames);
  const urls = items(rule.nonResourceURLs);
  if (verbs.length === 0) {
    errors.push(required(`${path}.verbs`, 'verbs must contain at least one value'));
  }
  if (urls.length > 0) {
    const refuse = (detail: string) =>
      errors.push(invalidGo(`${path}.nonResourceURLs`, () => goStrings(urls), detail));
    if (namespaced) refuse('namespaced rules cannot apply to non-resource URLs');
    if (apiGroups.length + resources.length + resourceNames.length > 0) {
      refuse('rules cannot apply to both regular resources and non-resource URLs');
    }
    return errors;
  }
  if (apiGroups.length === 0) {
    const detail = 'resource rules must supply at least one api group';
    errors.push(required(`${path}.apiGroups`, detail));
  }
  if (resources.length === 0) {
    const detail = 'resource rules must supply at least one resource';
    errors.push(required(`${path}.resources`, detail));
  }
  return errors;
}

/** ClusterRole: permissions in all namespaces, on cluster-wide resources, and on paths. */
export function clusterRole(dialect: Dialect): ResourceDef {
  return defineKind<ClusterRole>({
    dialect,
    facts: 'rbac',
    kind: 'ClusterRole',
    resource: 'clusterroles',
    scope: 'Cluster',
    versions: [{ version: 'v1', columns: [nameColumn, createdAtColumn] }],
    strategy: roleStrategy(function* (object) {
      return [
        ...(yield* validateRules(object, { namespaced: false })),
        ...(yield* validateAggregation(object)),
      ];
    }),
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

function* validateAggregation(object: Stored<ClusterRole>): Generator<void, FieldError[]> {
  if (object.aggregationRule === undefined || object.aggregationRule === null) return [];
  const path = 'aggregationRule.clusterRoleSelectors';
  const selectors = object.aggregationRule.clusterRoleSelectors ?? [];
  if (selectors.length === 0) {
    const detail = 'at least one clusterRoleSelector required if aggregationRule is non-nil';
    return [required(path, detail)];
  }
  return yield* flatMapSteps(selectors, (selector, index) => {
    const field = `${path}[${index}]`;
    const errors = validateLabelSelector(selector, field);
    // kube-apiserver cannot build the selector, and reports that as a further error.
    return errors.length === 0 ? [] : [...errors, invalid(field, null, 'invalid label selector.')];
  });
}

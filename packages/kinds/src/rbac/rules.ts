import { type FieldError, invalidGo, required } from '@wheelhouse/machinery';
import type { ClusterRole, PolicyRule, Role } from '../gen/types/rbac/v1.ts';
import { goStrings, items } from '../rules/checks.ts';
import type { Stored } from '../stored.ts';

/** The rules of a role; those of a namespaced one cannot name paths (RBAC-3). */
export function validateRules(
  object: Stored<Role | ClusterRole>,
  options: { namespaced: boolean },
): FieldError[] {
  return items(object.rules).flatMap((rule, index) =>
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

import { type ApiObject, type FieldError, invalidGo, required } from '@wheelhouse/machinery';
import { goStrings, items } from '../rules/checks.ts';

/** One rule of a Role or ClusterRole. */
export interface PolicyRule {
  verbs?: string[] | null;
  apiGroups?: string[];
  resources?: string[];
  resourceNames?: string[];
  nonResourceURLs?: string[];
  [member: string]: string[] | null | undefined;
}

/** What Role and ClusterRole share. */
export interface RoleLike extends ApiObject {
  rules?: PolicyRule[] | null;
}

/** The rules of a role; those of a namespaced one cannot name paths (RBAC-3). */
export function validateRules(object: RoleLike, options: { namespaced: boolean }): FieldError[] {
  return items(object.rules).flatMap((rule, index) =>
    validateRule(rule, { ...options, path: `rules[${index}]` }),
  );
}

function validateRule(
  rule: PolicyRule,
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

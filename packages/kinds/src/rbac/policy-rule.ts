import { isObject, type JsonObject, member, stringsOf } from '@wheelhouse/machinery';

/** A rule of a Role or ClusterRole; absent lists are empty. */
export interface PolicyRule {
  readonly verbs: readonly string[];
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames: readonly string[];
  readonly nonResourceURLs: readonly string[];
}

/** Returns a PolicyRule with these lists; the others are empty. */
export function policyRule(lists: Partial<PolicyRule>): PolicyRule {
  return {
    verbs: lists.verbs ?? [],
    apiGroups: lists.apiGroups ?? [],
    resources: lists.resources ?? [],
    resourceNames: lists.resourceNames ?? [],
    nonResourceURLs: lists.nonResourceURLs ?? [],
  };
}

/** Returns the rules of a role object, without items that are not objects. */
export function rulesOf(role: JsonObject): readonly PolicyRule[] {
  const rules = member(role, 'rules');
  return Array.isArray(rules) ? rules.filter(isObject).map(ruleOf) : [];
}

function ruleOf(value: JsonObject): PolicyRule {
  return {
    verbs: stringsOf(value.verbs),
    apiGroups: stringsOf(value.apiGroups),
    resources: stringsOf(value.resources),
    resourceNames: stringsOf(value.resourceNames),
    nonResourceURLs: stringsOf(value.nonResourceURLs),
  };
}

/** Removes all `*` at the end. */
export function trimStars(url: string): string {
  let end = url.length;
  while (end > 0 && url[end - 1] === '*') end -= 1;
  return url.slice(0, end);
}

/** Whether a path is one of a rule's `nonResourceURLs`: stars at its end stand for any rest. */
export function matchesUrl(url: string, path: string): boolean {
  return url === path || (url.endsWith('*') && path.startsWith(trimStars(url)));
}

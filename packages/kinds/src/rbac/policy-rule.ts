import { isObject, type JsonObject, type JsonValue, member } from '@wheelhouse/machinery';

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
    verbs: strings(value.verbs),
    apiGroups: strings(value.apiGroups),
    resources: strings(value.resources),
    resourceNames: strings(value.resourceNames),
    nonResourceURLs: strings(value.nonResourceURLs),
  };
}

function strings(value: JsonValue | undefined): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}

/** Removes all `*` at the end. */
export function trimStars(url: string): string {
  let end = url.length;
  while (end > 0 && url[end - 1] === '*') end -= 1;
  return url.slice(0, end);
}

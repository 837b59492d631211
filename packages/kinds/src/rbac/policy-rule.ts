import {
  isObject,
  type JsonObject,
  type JsonValue,
  member,
  runInOnePiece,
  stringsOf,
} from '@wheelhouse/machinery';

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

/**
 * Returns the rules of a role object, without items that are not objects. They may share lists with
 * the object.
 */
export function rulesOf(role: JsonObject): readonly PolicyRule[] {
  return runInOnePiece(rulesSteps(role));
}

/** Does the work of `rulesOf` in steps (TRUST-2). */
export function* rulesSteps(role: JsonObject): Generator<void, readonly PolicyRule[]> {
  const rules: PolicyRule[] = [];
  const items = member(role, 'rules');
  if (!Array.isArray(items)) return rules;
  for (const item of items) {
    if (!isObject(item)) continue;
    rules.push(ruleOf(item));
    yield;
  }
  return rules;
}

function ruleOf(value: JsonObject): PolicyRule {
  return {
    verbs: textsIn(value.verbs),
    apiGroups: textsIn(value.apiGroups),
    resources: textsIn(value.resources),
    resourceNames: textsIn(value.resourceNames),
    nonResourceURLs: textsIn(value.nonResourceURLs),
  };
}

const none: readonly string[] = [];

/** Returns what `stringsOf` does, without a copy if possible: a role may have 8,000 rules. */
function textsIn(value: JsonValue | undefined): readonly string[] {
  if (!Array.isArray(value) || value.length === 0) return none;
  return value.every((item) => typeof item === 'string') ? value : stringsOf(value);
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

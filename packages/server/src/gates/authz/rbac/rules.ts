import { type PolicyRule, trimStars } from '@wheelhouse/kinds';
import type { Attributes } from '../contract.ts';

/** A rule's lists as sets; an undefined set matches everything. */
export interface CompiledRule {
  readonly verbs: ReadonlySet<string> | undefined;
  readonly groups: ReadonlySet<string> | undefined;
  /** Includes subresource wildcards (a star, a slash, and the name) as written. */
  readonly resources: ReadonlySet<string> | undefined;
  readonly names: ReadonlySet<string> | undefined;
  readonly urls: ReadonlySet<string> | undefined;
  readonly urlPrefixes: readonly string[];
}

function setOrAll(values: readonly string[]): ReadonlySet<string> | undefined {
  return values.includes('*') ? undefined : new Set(values);
}

/** Prepares a rule for `ruleAllows`. */
export function compileRule(rule: PolicyRule): CompiledRule {
  return {
    verbs: setOrAll(rule.verbs),
    groups: setOrAll(rule.apiGroups),
    resources: setOrAll(rule.resources),
    names: rule.resourceNames.length === 0 ? undefined : new Set(rule.resourceNames),
    urls: setOrAll(rule.nonResourceURLs),
    urlPrefixes: rule.nonResourceURLs.filter((url) => url.endsWith('*')).map(trimStars),
  };
}

/** Whether one rule allows a request (AUTHZ-4). */
export function ruleAllows(rule: CompiledRule, attributes: Attributes): boolean {
  if (rule.verbs !== undefined && !rule.verbs.has(attributes.verb)) return false;
  if (!attributes.isResourceRequest) return urlMatches(rule, attributes.path);
  if (rule.groups !== undefined && !rule.groups.has(attributes.group)) return false;
  if (rule.names !== undefined && !rule.names.has(attributes.name)) return false;
  const { resources } = rule;
  if (resources === undefined) return true;
  const { resource, subresource } = attributes;
  if (subresource === '') return resources.has(resource);
  return resources.has(`${resource}/${subresource}`) || resources.has(`*/${subresource}`);
}

function urlMatches(rule: CompiledRule, path: string): boolean {
  if (rule.urls === undefined || rule.urls.has(path)) return true;
  return rule.urlPrefixes.some((prefix) => path.startsWith(prefix));
}

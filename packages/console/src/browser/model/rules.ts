import type { JsonObject } from '@wheelhouse/machinery/browser';
import { textsOf } from './failure.ts';

/** One rule of a role, or of a review: all of its verbs on all of its resources. */
export interface ResourceRule {
  readonly verbs: readonly string[];
  readonly groups: readonly string[];
  /** `pods`, `pods/log`, an asterisk, or `*` and a subresource. */
  readonly resources: readonly string[];
  /** Empty: any. */
  readonly names: readonly string[];
}

/** What a rule may grant. */
export interface Granted {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource: string;
}

/** A rule as roles and reviews write it. */
export function ruleOf(rule: JsonObject): ResourceRule {
  return {
    verbs: textsOf(rule, 'verbs'),
    groups: textsOf(rule, 'apiGroups'),
    resources: textsOf(rule, 'resources'),
    names: textsOf(rule, 'resourceNames'),
  };
}

/** Whether a rule grants something, for some names at least. */
export function grants(rule: ResourceRule, wanted: Granted): boolean {
  const { verb, group, resource, subresource } = wanted;
  const full = subresource === '' ? resource : `${resource}/${subresource}`;
  const has = (members: readonly string[], ...any: string[]): boolean =>
    members.some((member) => member === '*' || any.includes(member));
  const every = subresource === '' ? [] : [`*/${subresource}`];
  return has(rule.verbs, verb) && has(rule.groups, group) && has(rule.resources, full, ...every);
}

import { compactRules, type PolicyRule, piecesOf } from '@wheelhouse/kinds';
import { withGroup } from '../objects.ts';

/** Column headings for `ruleRows`. */
export const ruleHeads: readonly string[] = [
  'Resources',
  'Non-Resource URLs',
  'Resource Names',
  'Verbs',
];

/** Returns the permissions of rules, one row per resource or path, in kubectl's order. */
export function ruleRows(rules: readonly PolicyRule[]): string[][] {
  return compactRules(rules.flatMap(piecesOf))
    .map((rule) => ({ ...rule, verbs: [...new Set(rule.verbs)] }))
    .map((rule) => ({ rule, key: sortKey(rule) }))
    .sort((left, right) => (left.key < right.key ? -1 : Number(left.key > right.key)))
    .map(({ rule }) => rowOf(rule));
}

const listText = (values: readonly string[]): string => `[${values.join(' ')}]`;

/** The sort key of a rule, in kubectl's order: verbs, groups, resources, names, paths. */
function sortKey(rule: PolicyRule): string {
  const { verbs, apiGroups, resources, resourceNames, nonResourceURLs } = rule;
  return [verbs, apiGroups, resources, resourceNames, nonResourceURLs].map(listText).join(',');
}

function rowOf(rule: PolicyRule): string[] {
  const resources = rule.resources.flatMap((resource) =>
    rule.apiGroups.map((group) => qualifyResource(resource, group)),
  );
  return [
    resources.join(','),
    listText(rule.nonResourceURLs),
    listText(rule.resourceNames),
    listText(rule.verbs),
  ];
}

/** Adds the group to a resource: `deployments/scale` of `apps` is `deployments.apps/scale`. */
function qualifyResource(resource: string, group: string): string {
  const [name = '', ...subresource] = resource.split('/');
  return [withGroup(name, group), ...subresource].join('/');
}

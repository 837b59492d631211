import { type PolicyRule, piecesOf } from '@wheelhouse/kinds';
import { withGroup } from '../objects.ts';

/** Column headings for `ruleRows`. */
export const ruleHeads: readonly string[] = [
  'Resources',
  'Non-Resource URLs',
  'Resource Names',
  'Verbs',
];

/** The permissions of rules, one row per resource or path, in kubectl's order. */
export function ruleRows(rules: readonly PolicyRule[]): string[][] {
  return compacted(rules.flatMap(piecesOf))
    .map((rule) => ({ rule, key: sortKey(rule) }))
    .sort((one, other) => (one.key < other.key ? -1 : Number(one.key > other.key)))
    .map(({ rule }) => rowOf(rule));
}

/** Merges pieces that differ only in their verbs; like kubectl, pieces with paths stay separate. */
function compacted(pieces: readonly PolicyRule[]): PolicyRule[] {
  const others: PolicyRule[] = [];
  const joined = new Map<string, PolicyRule>();
  for (const piece of pieces) {
    if (piece.nonResourceURLs.length > 0) {
      others.push(piece);
      continue;
    }
    const key = JSON.stringify([piece.apiGroups, piece.resources, piece.resourceNames]);
    const verbs = [...(joined.get(key)?.verbs ?? []), ...piece.verbs];
    joined.set(key, { ...piece, verbs: [...new Set(verbs)] });
  }
  return [...others, ...joined.values()];
}

const shown = (values: readonly string[]): string => `[${values.join(' ')}]`;

/** The sort key of a rule, in kubectl's order: verbs, groups, resources, names, paths. */
function sortKey(rule: PolicyRule): string {
  const { verbs, apiGroups, resources, resourceNames, nonResourceURLs } = rule;
  return [verbs, apiGroups, resources, resourceNames, nonResourceURLs].map(shown).join(',');
}

function rowOf(rule: PolicyRule): string[] {
  const resources = rule.resources.flatMap((resource) =>
    rule.apiGroups.map((group) => combined(resource, group)),
  );
  return [
    resources.join(','),
    shown(rule.nonResourceURLs),
    shown(rule.resourceNames),
    shown(rule.verbs),
  ];
}

/** `deployments/scale` of `apps` -> `deployments.apps/scale`. */
function combined(resource: string, group: string): string {
  const [name = '', ...subresource] = resource.split('/');
  return [withGroup(name, group), ...subresource].join('/');
}

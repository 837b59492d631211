import type { ApiObject, JsonObject } from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import { aggregatedRules } from './cluster-role-aggregation.ts';

function role(
  name: string,
  more: JsonObject & { labels?: Record<string, string> } = {},
): ApiObject {
  const { labels, ...rest } = more;
  const metadata = { name, ...(labels === undefined ? {} : { labels }) };
  return { apiVersion: 'rbac/v1', kind: 'ClusterRole', metadata, ...rest };
}

const rule = (resource: string) => ({ verbs: ['get'], apiGroups: [''], resources: [resource] });
const gathering = (...clusterRoleSelectors: JsonObject[]) =>
  role('whole', { aggregationRule: { clusterRoleSelectors }, labels: { part: 'x' } });

test('rules are aggregated by selector, without duplicates or the role’s own rules', () => {
  const all = [
    role('a', { labels: { part: 'x' }, rules: [rule('one'), rule('two')] }),
    role('b', { labels: { part: 'y' }, rules: [rule('two'), rule('three')] }),
    role('c', { rules: [rule('four')] }),
  ];
  const whole = gathering({ matchLabels: { part: 'y' } }, { matchLabels: { part: 'x' } });
  const expected = ['two', 'three', 'one'].map(rule);
  expect(aggregatedRules(whole, [...all, { ...whole, rules: [rule('own')] }])).toEqual(expected);
});

test('an empty selector selects all roles, and a role without an aggregationRule is unchanged', () => {
  const all = [role('a', { rules: [rule('one')] }), role('b')];
  expect(aggregatedRules(gathering({}), all)).toEqual([rule('one')]);
  expect(aggregatedRules(role('plain', { rules: [rule('one')] }), all)).toBeUndefined();
  expect(aggregatedRules(gathering(), all)).toEqual([]);
});

import type { ApiObject, JsonObject } from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import { gatheredRules } from './cluster-role-aggregation.ts';

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

test('rules are collected by selector, without duplicates and never from the role itself', () => {
  const all = [
    role('a', { labels: { part: 'x' }, rules: [rule('one'), rule('two')] }),
    role('b', { labels: { part: 'y' }, rules: [rule('two'), rule('three')] }),
    role('c', { rules: [rule('four')] }),
  ];
  const whole = gathering({ matchLabels: { part: 'y' } }, { matchLabels: { part: 'x' } });
  const expected = ['two', 'three', 'one'].map(rule);
  expect(gatheredRules(whole, [...all, { ...whole, rules: [rule('own')] }])).toEqual(expected);
});

test('an empty selector selects all, and a role that aggregates none is unchanged', () => {
  const all = [role('a', { rules: [rule('one')] }), role('b')];
  expect(gatheredRules(gathering({}), all)).toEqual([rule('one')]);
  expect(gatheredRules(role('plain', { rules: [rule('one')] }), all)).toBeUndefined();
  expect(gatheredRules(gathering(), all)).toEqual([]);
});

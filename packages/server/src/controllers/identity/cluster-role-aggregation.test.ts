import { type ApiObject, type JsonObject, runInOnePiece } from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import {
  aggregatedLengthMax,
  aggregatedRules,
  SelectableRole,
} from './cluster-role-aggregation.ts';

function role(
  name: string,
  more: JsonObject & { labels?: Record<string, string> } = {},
): ApiObject {
  const { labels, ...rest } = more;
  const metadata = { name, ...(labels === undefined ? {} : { labels }) };
  return { apiVersion: 'rbac/v1', kind: 'ClusterRole', metadata, ...rest };
}

const selectable = (all: readonly ApiObject[]) => all.map((each) => new SelectableRole(each));
const rulesOf = (whole: ApiObject, all: readonly ApiObject[]) =>
  runInOnePiece(aggregatedRules(whole, selectable(all)));
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
  expect(rulesOf(whole, [...all, { ...whole, rules: [rule('own')] }])).toEqual(expected);
});

test('an empty selector selects all roles, and a role without an aggregationRule is unchanged', () => {
  const all = [role('a', { rules: [rule('one')] }), role('b')];
  expect(rulesOf(gathering({}), all)).toEqual([rule('one')]);
  expect(rulesOf(role('plain', { rules: [rule('one')] }), all)).toBeUndefined();
  expect(rulesOf(gathering(), all)).toEqual([]);
});

test('TRUST-2: many selectors and rules are aggregated in short steps', () => {
  const many = Array.from({ length: 2000 }, (_, at) => rule(`r${at}`));
  const all = [role('a', { labels: { part: 'x' }, rules: many }), role('b', { rules: many })];
  const selectors = Array.from({ length: 500 }, (_, at) => ({ matchLabels: { [`l${at}`]: 'v' } }));
  const work = aggregatedRules(gathering(...selectors, {}), selectable(all));
  let steps = 0;
  let last = work.next();
  for (; last.done !== true; last = work.next()) steps += 1;
  expect(last.value).toEqual(many);
  expect(steps).toBeGreaterThanOrEqual(2 * 500 + 2 * 2000);
});

test('TRUST-2: a role that many selectors match is aggregated once', () => {
  const many = Array.from({ length: 1000 }, (_, at) => rule(`r${at}`));
  const all = selectable([role('a', { labels: { part: 'x' }, rules: many })]);
  const selectors = Array.from({ length: 100 }, () => ({ matchLabels: { part: 'x' } }));
  const work = aggregatedRules(gathering(...selectors), all);
  let steps = 0;
  let last = work.next();
  for (; last.done !== true; last = work.next()) steps += 1;
  expect(last.value).toEqual(many);
  expect(steps).toBeLessThan(5 * 1000);
});

test('TRUST-2: rules that make an object too large are not aggregated', () => {
  const long = 'x'.repeat(aggregatedLengthMax / 2);
  const parts = ['a', 'b', 'c'].map((name) => role(name, { rules: [rule(`${name}${long}`)] }));
  expect(rulesOf(gathering({}), parts.slice(0, 1))).toHaveLength(1);
  expect(rulesOf(gathering({}), parts)).toBe('too large');
});

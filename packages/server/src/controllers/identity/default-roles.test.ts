import { dialectOf, runInOnePiece } from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import { defaultGates } from '../../flags/feature-gates.ts';
import { defaultRbac } from '../../gates/authz/rbac/default-roles.ts';
import { aggregatedRules, SelectableRole } from './cluster-role-aggregation.ts';
import { withAggregatedRules } from './default-roles.ts';

test('AUTHZ-6: aggregated default roles start with the rules that they aggregate', () => {
  const { clusterRoles } = defaultRbac(dialectOf('kubernetes'), defaultGates);
  const roles = withAggregatedRules(clusterRoles);
  const aggregated = roles.filter((role) => role.aggregationRule !== undefined);
  expect(aggregated.map(({ metadata }) => metadata.name)).toEqual(['admin', 'edit', 'view']);
  const sources = roles.map((role) => new SelectableRole(role));
  for (const role of aggregated) {
    expect(role.rules).not.toEqual([]);
    expect(role.rules).toEqual(runInOnePiece(aggregatedRules(role, sources)));
  }
  const others = (list: typeof roles) =>
    new Set(list.filter(({ aggregationRule }) => aggregationRule === undefined));
  expect(others(roles)).toEqual(others(clusterRoles));
});

import { escalationMessage, policyRule, ruleEscalation, rulesOf } from '@wheelhouse/kinds';
import { type ApiObject, dialectOf } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { defaultRbac, reconcile } from './default-roles.ts';

const dialect = dialectOf('kubernetes');
const defaults = defaultRbac(dialect);
const role = (name: string): ApiObject =>
  defaults.clusterRoles.find((clusterRole) => clusterRole.metadata.name === name)!;

describe('AUTHZ-7: default roles', () => {
  test('every default object has its label and annotation, and every binding has its role', () => {
    const all = Object.values(defaults).flat() as ApiObject[];
    for (const { metadata } of all) {
      expect(metadata.labels?.['kubernetes.io/bootstrapping']).toBe('rbac-defaults');
      expect(metadata.annotations?.['rbac.authorization.kubernetes.io/autoupdate']).toBe('true');
    }
    for (const binding of defaults.clusterRoleBindings) {
      expect(role((binding.roleRef as { name: string }).name)).toBeDefined();
    }
    const own = defaultRbac(dialectOf('svc'));
    expect(JSON.stringify(own)).not.toMatch(/k8s|kubernetes\.io/);
  });

  test('view reads no Secrets, roles, or bindings; edit no roles; admin no endpoints or quota', () => {
    const of = (name: string) => rulesOf(role(`system:aggregate-to-${name}`));
    const may = (name: string, verb: string, group: string, resource: string) => {
      const requested = policyRule({ verbs: [verb], apiGroups: [group], resources: [resource] });
      return ruleEscalation(of(name), [requested]).covered;
    };
    expect(may('view', 'get', '', 'configmaps')).toBe(true);
    expect(may('view', 'get', '', 'secrets')).toBe(false);
    for (const name of ['view', 'edit']) {
      expect(may(name, 'get', dialect.group('rbac.authorization'), 'roles')).toBe(false);
    }
    for (const name of ['view', 'edit', 'admin']) {
      expect(may(name, 'update', '', 'endpoints')).toBe(false);
      expect(may(name, 'update', 'discovery.k8s.io', 'endpointslices')).toBe(false);
      expect(may(name, 'update', '', 'resourcequotas')).toBe(false);
      expect(may(name, 'update', '', 'namespaces')).toBe(false);
    }
  });

  test('reconciling adds missing rules, keeps additions, and honors autoupdate', () => {
    const desired = role('system:basic-user');
    expect(reconcile({ existing: undefined, desired, dialect }).action).toBe('create');
    expect(reconcile({ existing: structuredClone(desired), desired, dialect })).toEqual({
      action: 'none',
    });
    const extra = { verbs: ['get'], apiGroups: [''], resources: ['pods'] };
    const changed = { ...structuredClone(desired), rules: [extra] };
    const result = reconcile({ existing: changed, desired, dialect });
    expect(result).toMatchObject({ action: 'update' });
    const rules = rulesOf((result as { object: ApiObject }).object);
    expect(ruleEscalation(rules, rulesOf(desired)).covered).toBe(true);
    expect(rules).toContainEqual(policyRule(extra));
    changed.metadata.annotations!['rbac.authorization.kubernetes.io/autoupdate'] = 'false';
    expect(reconcile({ existing: changed, desired, dialect }).action).toBe('none');
  });

  test('a role that should have its own rules loses its aggregation rule', () => {
    const desired = role('system:basic-user');
    const aggregationRule = { clusterRoleSelectors: [{ matchLabels: { a: 'b' } }] };
    const existing = { ...structuredClone(desired), rules: [], aggregationRule };
    const { rules } = desired;
    const object: unknown = expect.objectContaining({ rules });
    const result = reconcile({ existing, desired, dialect });
    expect(result).toEqual({ action: 'update', object });
    expect(result).not.toHaveProperty('object.aggregationRule');
    const aggregated = role('admin');
    const more = { ...aggregated, aggregationRule: { clusterRoleSelectors: [{}] } };
    const { clusterRoleSelectors } = aggregated.aggregationRule as { clusterRoleSelectors: [] };
    expect(reconcile({ existing: more, desired: aggregated, dialect })).toMatchObject({
      object: { aggregationRule: { clusterRoleSelectors: [{}, ...clusterRoleSelectors] } },
    });
  });

  test('a default binding of another role is recreated, and missing subjects are restored', () => {
    const desired = defaults.clusterRoleBindings[0]!;
    const altered = { ...desired, roleRef: { ...(desired.roleRef as object), name: 'other' } };
    expect(reconcile({ existing: altered, desired, dialect }).action).toBe('recreate');
    const { subjects: _, ...bare } = desired;
    expect(reconcile({ existing: bare as ApiObject, desired, dialect })).toMatchObject({
      action: 'update',
      object: { subjects: desired.subjects },
    });
  });
});

describe('AUTHZ-5: escalation', () => {
  const granted = [
    policyRule({ verbs: ['get', 'list'], apiGroups: [''], resources: ['pods', '*/scale'] }),
    policyRule({ verbs: ['get'], nonResourceURLs: ['/a/*'] }),
  ];
  test.each([
    [policyRule({ verbs: ['get'], apiGroups: [''], resources: ['pods'] }), true],
    [policyRule({ verbs: ['*'], apiGroups: [''], resources: ['pods'] }), false],
    [policyRule({ verbs: ['get'], apiGroups: [''], resources: ['things/scale'] }), true],
    [policyRule({ verbs: ['get'], apiGroups: ['*'], resources: ['pods'] }), false],
    [
      policyRule({ verbs: ['get'], apiGroups: [''], resources: ['pods'], resourceNames: ['x'] }),
      true,
    ],
    [policyRule({ verbs: ['get'], nonResourceURLs: ['/a/b', '/a/*'] }), true],
    [policyRule({ verbs: ['get'], nonResourceURLs: ['/*'] }), false],
  ])('%j covered: %s', (wanted, covered) => {
    expect(ruleEscalation(granted, [wanted]).covered).toBe(covered);
  });

  test("kube-apiserver's wording", () => {
    const requested = policyRule({
      verbs: ['get', 'watch', 'delete'],
      apiGroups: [''],
      resources: ['pods'],
    });
    const coverage = ruleEscalation(granted, [requested]);
    const user = { name: 'u', uid: '', groups: ['a', 'b'], extra: {} };
    expect(escalationMessage({ user, coverage, resolutionErrors: [] })).toBe(
      'user "u" (groups=["a" "b"]) is attempting to grant RBAC permissions not currently held:\n' +
        '{APIGroups:[""], Resources:["pods"], Verbs:["watch" "delete"]}',
    );
  });
});

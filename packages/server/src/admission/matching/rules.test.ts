import type { ApiObject } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { admissionCall, admissionTools, dialect, type WriteFixture } from '../testing.ts';
import {
  factsOf,
  isExempt,
  matchesRule,
  type OperationRule,
  rulesOf,
  selectorOf,
  selectsNamespace,
  selectsObject,
  showKind,
} from './rules.ts';

const everything: OperationRule = {
  operations: ['*'],
  apiGroups: ['*'],
  apiVersions: ['*'],
  resources: ['*'],
  scope: '*',
  resourceNames: [],
};

const write = { resource: 'deployments.apps', name: 'web' };
const ofDeployments = { ...everything, apiGroups: ['apps'], apiVersions: ['v1'] };

describe('ADM-2: a rule', () => {
  test.each<
    [string, Partial<OperationRule>, Partial<Parameters<typeof admissionCall>[0]>, boolean]
  >([
    ['names everything', {}, {}, true],
    ['names another operation', { operations: ['DELETE'] }, {}, false],
    ['names no operation', { operations: [] }, {}, false],
    ['names the operation among others', { operations: ['UPDATE', 'CREATE'] }, {}, true],
    ['names another group', { apiGroups: ['batch'] }, {}, false],
    ['names the core group', { apiGroups: [''] }, {}, false],
    ['names another version', { apiVersions: ['v1beta1'] }, {}, false],
    ['names the resource', { resources: ['deployments'] }, {}, true],
    ['names the start of the resource', { resources: ['deploy'] }, {}, false],
    [
      'names the resource but not the part',
      { resources: ['deployments'] },
      { subresource: 'status' },
      false,
    ],
    [
      'names all parts of the resource',
      { resources: ['deployments/*'] },
      { subresource: 'scale' },
      true,
    ],
    ['includes the resource in all its parts', { resources: ['deployments/*'] }, {}, true],
    ['names the part of all resources', { resources: ['*/scale'] }, { subresource: 'scale' }, true],
    ['names another part', { resources: ['*/scale'] }, { subresource: 'status' }, false],
    ['names all resources without parts', { resources: ['*'] }, { subresource: 'status' }, false],
    ['names the object', { resourceNames: ['api', 'web'] }, {}, true],
    ['names another object', { resourceNames: ['api'] }, {}, false],
    ['is for namespaced objects', { scope: 'Namespaced' }, {}, true],
    ['is for cluster-scoped objects', { scope: 'Cluster' }, {}, false],
    ['has a scope of the future', { scope: 'Galaxy' }, {}, false],
  ])('%s', (_, change, request, expected) => {
    const facts = factsOf(admissionCall({ ...write, ...request }));
    expect(matchesRule({ ...ofDeployments, ...change }, facts)).toBe(expected);
  });

  test('treats a Namespace as cluster-scoped although its request has a namespace', () => {
    const facts = factsOf(admissionCall({ resource: 'namespaces', name: 'team' }));
    expect(facts.namespace).toBe('team');
    expect(matchesRule({ ...everything, scope: 'Cluster' }, facts)).toBe(true);
    expect(matchesRule({ ...everything, scope: 'Namespaced' }, facts)).toBe(false);
  });

  test('matches an equivalent resource in place of the requested one', () => {
    const facts = factsOf(admissionCall(write));
    const older = { group: 'extensions', version: 'v1beta1', resource: 'deployments' };
    const rule = { ...everything, apiGroups: ['extensions'] };
    expect(matchesRule(rule, facts)).toBe(false);
    expect(matchesRule(rule, facts, older)).toBe(true);
  });
});

test('ADM-2: rules are read from stored configurations even if members are missing', () => {
  expect(rulesOf(undefined)).toEqual([]);
  expect(rulesOf('none')).toEqual([]);
  expect(rulesOf([{ operations: ['CREATE', 7], scope: 'Cluster' }, null])).toEqual([
    {
      operations: ['CREATE'],
      apiGroups: [],
      apiVersions: [],
      resources: [],
      scope: 'Cluster',
      resourceNames: [],
    },
  ]);
  expect(rulesOf([{}])[0]?.scope).toBe('*');
});

const labeled = (team: string | undefined, name = 'one'): ApiObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'default', ...(team === undefined ? {} : { labels: { team } }) },
});
const namespace = (name: string, team: string): ApiObject => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name, labels: { team } },
});
const ofRed = selectorOf({ matchLabels: { team: 'red' } });

describe('ADM-2: the object selector', () => {
  test.each<[string, ApiObject | undefined, ApiObject | undefined, boolean]>([
    ['the new object', labeled('red'), undefined, true],
    ['the old object of an update', labeled('blue'), labeled('red'), true],
    ['the old object of a deletion', undefined, labeled('red'), true],
    ['neither', labeled('blue'), labeled(undefined), false],
    ['nothing, since there is no object', undefined, undefined, false],
  ])('selects %s', (_, object, old, expected) => {
    const call = admissionCall({
      resource: 'configmaps',
      ...(object === undefined ? {} : { object }),
      ...(old === undefined ? {} : { old }),
    });
    expect(selectsObject(ofRed, call)).toBe(expected);
    expect(selectsObject(selectorOf(undefined), call)).toBe(true);
  });

  test('selects the options of a stream only if it is empty', () => {
    const object = { apiVersion: 'v1', kind: 'PodExecOptions', metadata: {} };
    const call = { ...admissionCall({ resource: 'pods', object }), operation: 'CONNECT' as const };
    const withoutTeam = { matchExpressions: [{ key: 'team', operator: 'DoesNotExist' }] };
    expect(selectsObject(selectorOf(withoutTeam), call)).toBe(false);
    expect(selectsObject(selectorOf({}), call)).toBe(true);
  });
});

describe('ADM-2: the namespace selector', () => {
  const { objects } = admissionTools({ namespaces: [namespace('default', 'red')] });
  const selects = (write: WriteFixture, selector = ofRed) => {
    const call = admissionCall(write);
    return selectsNamespace(selector, { call, facts: factsOf(call), objects });
  };

  test('matches the namespace of the request', async () => {
    expect(await selects({ resource: 'configmaps', object: labeled(undefined) })).toBe(true);
    const ofBlue = selectorOf({ matchLabels: { team: 'blue' } });
    expect(await selects({ resource: 'configmaps', object: labeled('blue') }, ofBlue)).toBe(false);
  });

  test('matches cluster-scoped objects', async () => {
    expect(await selects({ resource: 'nodes', name: 'n' })).toBe(true);
  });

  test('matches the new labels of a Namespace unless it is deleted', async () => {
    const change = {
      resource: 'namespaces',
      name: 'default',
      object: namespace('default', 'blue'),
    };
    expect(await selects(change)).toBe(false);
    expect(await selects({ ...change, operation: 'DELETE' })).toBe(true);
    expect(await selects({ ...change, operation: 'UPDATE', subresource: 'finalize' })).toBe(true);
  });

  test('is 404 for a missing namespace, unless it selects everything', async () => {
    const write = { resource: 'configmaps', namespace: 'gone', name: 'one' };
    await expect(selects(write)).rejects.toMatchObject({ code: 404 });
    expect(await selects(write, selectorOf({}))).toBe(true);
  });
});

describe('ADM-2: facts about a write', () => {
  test('name the kind of a subresource', () => {
    const scale = admissionCall({
      resource: 'deployments.apps',
      subresource: 'scale',
      name: 'web',
    });
    expect(factsOf(scale)).toMatchObject({
      resource: { group: 'apps', version: 'v1', resource: 'deployments' },
      kind: { group: 'autoscaling', version: 'v1', kind: 'Scale' },
      subresource: 'scale',
      name: 'web',
      namespace: 'default',
    });
    const status = admissionCall({ resource: 'deployments.apps', subresource: 'status' });
    expect(factsOf(status).kind).toEqual({ group: 'apps', version: 'v1', kind: 'Deployment' });
  });

  test('place a Namespace in itself, and a node nowhere', () => {
    expect(factsOf(admissionCall({ resource: 'namespaces', name: 'team' })).namespace).toBe('team');
    expect(factsOf(admissionCall({ resource: 'nodes', name: 'n' })).namespace).toBe('');
  });
});

test.each([
  ['validatingwebhookconfigurations.admissionregistration', true, false],
  ['mutatingwebhookconfigurations.admissionregistration', true, false],
  ['validatingadmissionpolicies.admissionregistration', true, true],
  ['validatingadmissionpolicybindings.admissionregistration', true, true],
  ['configmaps', false, false],
])(
  'ADM-2: a write of %s is exempt from webhooks: %s, and policies: %s',
  (resource, ...expected) => {
    const call = admissionCall({ resource, name: 'one' });
    const isExemptFrom = (from: 'webhooks' | 'policies') => isExempt(call, { from, dialect });
    expect([isExemptFrom('webhooks'), isExemptFrom('policies')]).toEqual(expected);
  },
);

test('a kind has its group and version', () => {
  expect(showKind({ group: 'apps', version: 'v1', kind: 'Deployment' })).toBe(
    'apps/v1, Kind=Deployment',
  );
});

import { describe, expect, test } from 'vitest';
import { admissionCall } from '../testing.ts';
import { factsOf } from './facts.ts';
import { matchesRule, type OperationRule, rulesOf } from './rules.ts';

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

  test('treats a Namespace as a cluster-scoped object although its request has a namespace', () => {
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

test('ADM-2: rules are read from stored configurations, whatever they lack', () => {
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

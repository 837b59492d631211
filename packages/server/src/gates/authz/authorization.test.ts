import { StatusError } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import type { Attributes } from '../../registry/permit.ts';
import { Permit } from '../../registry/permit.ts';
import {
  alwaysAllow,
  alwaysDeny,
  createAuthorization,
  createPrivilegedGroupAuthorizer,
  ForbiddenError,
} from './authorization.ts';

const base: Attributes = {
  user: { name: 'x', uid: '', groups: [], extra: {} },
  verb: 'list',
  isResourceRequest: true,
  group: '',
  version: 'v1',
  resource: 'pods',
  subresource: '',
  namespace: 'y',
  name: '',
  path: '',
};

describe('AUTHZ-1: wording of a 403', () => {
  test.each<[Partial<Attributes>, string, string]>([
    [
      {},
      '',
      'pods is forbidden: User "x" cannot list resource "pods" in API group "" in the namespace "y"',
    ],
    [
      { namespace: '', group: 'apps', resource: 'deployments' },
      '',
      'deployments.apps is forbidden: User "x" cannot list resource "deployments" in API group "apps" at the cluster scope',
    ],
    [
      { verb: 'get', name: 'a', subresource: 'log' },
      'RBAC: no',
      'pods "a" is forbidden: User "x" cannot get resource "pods/log" in API group "" in the namespace "y": RBAC: no',
    ],
    [
      { isResourceRequest: false, resource: '', verb: 'get', path: '/y' },
      '',
      'forbidden: User "x" cannot get path "/y"',
    ],
    [
      { isResourceRequest: false, resource: '', verb: 'get', path: '/<b>&' },
      '',
      'forbidden: User "x" cannot get path "/&lt;b&gt;&amp;"',
    ],
  ])('%j', (change, reason, message) => {
    const error = new ForbiddenError({ ...base, ...change }, { decision: 'deny', reason });
    expect(error.message).toBe(message);
    expect(error.code).toBe(403);
  });
});

describe('authorization', () => {
  test('AUTHZ-2: authorizers run in order, and a request without a decision is denied', async () => {
    const fails = { name: 'fails', authorize: () => Promise.reject(new Error('down')) };
    const chain = createAuthorization({ chain: { list: [alwaysDeny, fails] } });
    expect(await chain.decide(base)).toEqual({
      decision: 'no-opinion',
      reason: 'Everything is forbidden.',
    });
    await expect(chain.authorize(base)).rejects.toThrow(StatusError);
    const open = createAuthorization({ chain: { list: [alwaysDeny, alwaysAllow] } });
    expect(open.authorize(base)).toBeInstanceOf(Permit);
  });

  test('AUTHZ-10: system:masters may do everything', () => {
    const chain = createAuthorization({
      chain: { list: [createPrivilegedGroupAuthorizer(), alwaysDeny] },
    });
    const user = { ...base.user, groups: ['system:masters'] };
    expect(chain.authorize({ ...base, user })).toBeInstanceOf(Permit);
    expect(() => chain.authorize(base)).toThrow('forbidden');
  });

  test('a Permit cannot be forged', () => {
    expect(() => new Permit(Symbol('permit'), base, '')).toThrow(TypeError);
  });
});

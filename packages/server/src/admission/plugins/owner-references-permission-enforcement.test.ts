import type { ApiObject, OwnerReference } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import type { Attributes, AuthorizationResult } from '../../registry/permit.ts';
import { admissionCall, admissionTools, refusalOf, type WriteFixture } from '../testing.ts';
import { ownerReferencesPermissionEnforcement } from './owner-references-permission-enforcement.ts';

const owner = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web', uid: '1' };
const blocking = { ...owner, blockOwnerDeletion: true };
const pod = (...ownerReferences: OwnerReference[]): ApiObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web-1', namespace: 'default', ownerReferences },
});

/**
 * The refusal of a write of a Pod by a user with the `allowed` permissions, and the checked
 * accesses. `everything` is the permission to finalize objects of all kinds.
 */
async function admit(write: Partial<WriteFixture>, ...allowed: string[]) {
  const checks: string[] = [];
  const authorize = (attributes: Attributes): AuthorizationResult => {
    const { verb, resource, subresource, namespace, name } = attributes;
    const path = [resource, subresource].filter((part) => part !== '').join('/');
    checks.push(`${verb} ${path} ${namespace}/${name}`);
    const needed = resource === '*' ? 'everything' : verb;
    const decision = allowed.includes(needed) ? 'allow' : 'no-opinion';
    return { decision, reason: 'no rule' };
  };
  const plugin = ownerReferencesPermissionEnforcement(admissionTools({}, { authorize }));
  const why = await refusalOf(plugin.validate, admissionCall({ resource: 'pods', ...write }));
  return { why, checks };
}
const update = (object: ApiObject, old: ApiObject) =>
  ({ operation: 'UPDATE', object, old }) as const;

describe('ADM-1: a writer of owner references', () => {
  test('needs no right for owners of a new object that it does not block', async () => {
    expect(await admit({ object: pod(owner) })).toEqual({ why: undefined, checks: [] });
  });

  test('needs no right where owners do not change', async () => {
    expect(await admit(update(pod(blocking), pod(blocking)))).toMatchObject({ checks: [] });
  });

  test('must be able to delete the object that it changes', async () => {
    const change = update(pod(owner), pod());
    expect(await admit(change, 'delete')).toEqual({
      why: undefined,
      checks: ['delete pods default/web-1'],
    });
    expect((await admit(change)).why).toBe(
      "cannot set an ownerRef on a resource you can't delete: no rule, <nil>",
    );
  });

  test('must be able to change the finalizers of an owner that it blocks', async () => {
    expect(await admit({ object: pod(blocking) }, 'update')).toEqual({
      why: undefined,
      checks: ['update */finalizers /*', 'update replicasets/finalizers default/web'],
    });
    expect((await admit({ object: pod(blocking) })).why).toMatch(
      /^cannot set blockOwnerDeletion if/,
    );
  });

  test('needs no right for an owner that was blocked before', async () => {
    const other = { ...blocking, uid: '2', name: 'api' };
    const { checks } = await admit(update(pod(blocking, other), pod(blocking)), 'delete', 'update');
    expect(checks).toEqual([
      'delete pods default/web-1',
      'update */finalizers /*',
      'update replicasets/finalizers default/api',
    ]);
  });

  test('needs the right on a cluster-scoped owner without a namespace', async () => {
    const node = {
      apiVersion: 'v1',
      kind: 'Node',
      name: 'one',
      uid: '3',
      blockOwnerDeletion: true,
    };
    const { checks } = await admit({ object: pod(node) }, 'update');
    expect(checks).toEqual(['update */finalizers /*', 'update nodes/finalizers /one']);
  });

  test('cannot block an owner of an unknown kind', async () => {
    const tab = { ...blocking, apiVersion: 'example.com/v1', kind: 'Tab' };
    expect((await admit({ object: pod(tab) }, 'update')).why).toMatch(
      /because cannot find RESTMapping for APIVersion example.com\/v1 Kind Tab: no matches/,
    );
  });

  test('may block any owner with permission to finalize everything', async () => {
    const tab = { ...blocking, apiVersion: 'example.com/v1', kind: 'Tab' };
    expect(await admit({ object: pod(tab) }, 'everything')).toEqual({
      why: undefined,
      checks: ['update */finalizers /*'],
    });
  });

  test('needs no right as the server, or for the status of a Pod', async () => {
    const change = update(pod(blocking), pod());
    expect(await admit({ ...change, subresource: 'status' })).toMatchObject({ checks: [] });
    expect(await admit({ ...change, context: { origin: 'server' } })).toMatchObject({ checks: [] });
  });
});

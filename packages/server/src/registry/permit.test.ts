import type { RequestSubject } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import {
  consequentPermit,
  grantPermit,
  internalPermit,
  Permit,
  requireRequest,
  requireTarget,
  requireWrite,
} from './permit.ts';

const access: RequestSubject = {
  verb: 'get',
  isResourceRequest: true,
  group: 'apps',
  version: 'v1',
  resource: 'deployments',
  subresource: '',
  namespace: 'here',
  name: 'web',
  path: '/apis/apps/v1/namespaces/here/deployments/web',
};
const def = { group: 'apps', resource: 'deployments', scope: 'Namespaced' } as const;
const target = { def, version: { version: 'v1' }, namespace: 'here', name: 'web', subresource: '' };

/** Every target that differs from the permitted one in exactly one attribute. */
const others = {
  group: { ...target, def: { ...def, group: 'extensions' } },
  resource: { ...target, def: { ...def, resource: 'secrets' } },
  version: { ...target, version: { version: 'v1beta1' } },
  namespace: { ...target, namespace: 'there' },
  'all namespaces': { ...target, namespace: '' },
  name: { ...target, name: 'other' },
  collection: { ...target, name: '' },
  subresource: { ...target, subresource: 'status' },
};

describe('a permit', () => {
  const permitFor = (change: Partial<RequestSubject>) => {
    const permit = grantPermit({ ...access, ...change }, 'because');
    return requireTarget(permit, permit.access.verb, {
      ...target,
      namespace: permit.access.namespace,
      name: permit.access.name,
    });
  };

  test('opens its own target', () => {
    const permit = grantPermit(access, 'because');
    expect(requireTarget(permit, 'get', target)).toBe(permit);
    for (const verb of ['update', 'patch']) {
      requireWrite(permitFor({ verb }), { operation: 'update', target });
    }
    requireWrite(permitFor({ verb: 'create' }), { operation: 'create', target });
    requireWrite(permitFor({ verb: 'delete' }), { operation: 'delete', target });
  });

  test.each(Object.entries(others))('opens no other %s', (_, otherTarget) => {
    expect(() => requireTarget(grantPermit(access, ''), 'get', otherTarget)).toThrow(
      'a permit to get deployments.apps "here/web" was used to get ',
    );
    expect(() =>
      requireWrite(permitFor({ verb: 'patch' }), { operation: 'update', target: otherTarget }),
    ).toThrow('was used');
  });

  test('opens its target for its own verb only', () => {
    expect(() => requireTarget(grantPermit(access, ''), 'watch', target)).toThrow('was used');
    expect(() =>
      requireWrite(permitFor({ verb: 'update' }), { operation: 'create', target }),
    ).toThrow('a permit to update deployments.apps "here/web" was used to create deployments.apps');
    expect(() =>
      requireWrite(permitFor({ verb: 'delete' }), {
        operation: 'delete',
        target: target,
        of: 'collection',
      }),
    ).toThrow('was used');
  });

  test('for a path opens no object, and one for an object no other request', () => {
    const path = { ...access, isResourceRequest: false };
    expect(() => requireTarget(grantPermit(path, ''), 'get', target)).toThrow('was used');
    expect(() => requireRequest(grantPermit(path, ''), access)).toThrow('was used');
    expect(() => requireRequest(grantPermit(access, ''), { ...access, path: '/' })).toThrow(
      'was used',
    );
    requireRequest(grantPermit(path, ''), path);
  });

  test('to delete a collection opens the objects in it', () => {
    const verb = 'deletecollection';
    requireWrite(permitFor({ verb, name: '' }), {
      operation: 'delete',
      target: target,
      of: 'collection',
    });
    requireWrite(permitFor({ verb, name: '' }), {
      operation: 'delete',
      target: others.name,
      of: 'collection',
    });
    requireWrite(permitFor({ verb, name: '', namespace: '' }), {
      operation: 'delete',
      target: others.namespace,
      of: 'collection',
    });
    const named = permitFor({ verb });
    expect(() =>
      requireWrite(named, { operation: 'delete', target: others.name, of: 'collection' }),
    ).toThrow('was used');
    for (const otherTarget of [
      others.namespace,
      others.resource,
      others.group,
      others.subresource,
    ]) {
      expect(() =>
        requireWrite(permitFor({ verb, name: '' }), {
          operation: 'delete',
          target: otherTarget,
          of: 'collection',
        }),
      ).toThrow('was used');
    }
  });

  test('for a cluster-scoped object has a namespace only in its own path', () => {
    const namespaces = { ...target, def: { ...def, scope: 'Cluster' as const }, namespace: '' };
    requireTarget(grantPermit({ ...access, namespace: 'web' }, ''), 'get', namespaces);
  });

  test('derived from another opens what it was made for and keeps the reason', () => {
    const pod = { ...target, def: { ...def, group: '', resource: 'pods' } };
    const permit = consequentPermit(permitFor({ verb: 'create' }), 'delete', pod);
    requireWrite(permit, { operation: 'delete', target: pod });
    expect(permit.reason).toBe('because');
    expect(() => requireWrite(permit, { operation: 'update', target: pod })).toThrow('was used');
    expect(() => requireWrite(permit, { operation: 'delete', target })).toThrow('was used');
  });

  test('of the server itself opens every write', () => {
    const permit = internalPermit('test');
    for (const otherTarget of Object.values(others))
      requireWrite(permit, { operation: 'create', target: otherTarget });
    requireWrite(permit, { operation: 'delete', target: target, of: 'collection' });
  });

  test('cannot be forged', () => {
    expect(() => new Permit(Symbol('permit'), access, '')).toThrow(TypeError);
  });
});

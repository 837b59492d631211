import type { ApiObject, JsonObject } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import {
  admissionCall,
  admissionTools,
  dialect,
  refusalOf,
  type StoredObjects,
  type WriteFixture,
} from '../testing.ts';
import { forbiddenNodeLabels, nodeRestriction } from './node-restriction.ts';

const node = { name: 'system:node:one', groups: ['system:nodes'] };
const mirror = dialect.label('config.mirror');

const admit = (write: WriteFixture, stored: StoredObjects = {}) =>
  refusalOf(
    nodeRestriction(admissionTools(stored)).mutate,
    admissionCall({ user: node, ...write }),
  );

const pod = (spec: JsonObject, metadata: Partial<ApiObject['metadata']> = {}): ApiObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web', namespace: 'default', ...metadata },
  spec,
});
const owner = { apiVersion: 'v1', kind: 'Node', name: 'one', uid: 'uid-one', controller: true };
const nodes = [
  { apiVersion: 'v1', kind: 'Node', metadata: { name: 'one', uid: 'uid-one' } },
] satisfies ApiObject[];

describe('AUTHZ-9: a node', () => {
  test('without a node name may do nothing, and other users are not concerned', async () => {
    const write = { resource: 'leases.coordination', name: 'any' };
    expect(
      await admit({ ...write, user: { name: 'system:node:', groups: ['system:nodes'] } }),
    ).toBe('could not determine node from user "system:node:"');
    expect(await admit({ ...write, user: { name: 'ada', groups: [] } })).toBeUndefined();
  });

  test('writes only its own lease, CSINode, and ResourceSlices', async () => {
    const inLeases = { namespace: dialect.systemNamespace('node-lease') };
    const lease = { resource: 'leases.coordination', ...inLeases };
    expect(await admit({ ...lease, name: 'one' })).toBeUndefined();
    expect(await admit({ ...lease, name: 'two' })).toMatch(/^can only access node lease with/);
    expect(await admit({ ...lease, namespace: 'default', name: 'one' })).toMatch(
      /^can only access leases in the/,
    );
    expect(await admit({ resource: 'csinodes.storage', name: 'one' })).toBeUndefined();
    expect(await admit({ resource: 'csinodes.storage', name: 'two' })).toMatch(/^can only access/);
  });

  describe('that creates a mirror Pod', () => {
    const show = (spec: JsonObject, metadata: Partial<ApiObject['metadata']> = {}) => {
      const shown = { annotations: { [mirror]: 'hash' }, ownerReferences: [owner], ...metadata };
      const object = pod({ nodeName: 'one', ...spec }, shown);
      return admit({ resource: 'pods', object }, { nodes });
    };

    test('may create one that needs nothing', async () => {
      expect(await show({})).toBeUndefined();
    });

    test.each<[string, JsonObject, Partial<ApiObject['metadata']>, RegExp]>([
      ['without the annotation', {}, { annotations: {} }, /^pod does not have/],
      ['of another node', { nodeName: 'two' }, {}, /with spec.nodeName set to itself$/],
      ['without an owner', {}, { ownerReferences: [] }, /an owner reference set to itself$/],
      ['with two owners', {}, { ownerReferences: [owner, owner] }, /a single owner reference/],
      [
        'of another owner',
        {},
        { ownerReferences: [{ ...owner, name: 'two' }] },
        /an owner reference set to itself$/,
      ],
      [
        'of an owner that does not control it',
        {},
        { ownerReferences: [{ ...owner, controller: false }] },
        /a controller owner reference set to itself$/,
      ],
      [
        'that blocks its owner',
        {},
        { ownerReferences: [{ ...owner, blockOwnerDeletion: true }] },
        /must not set blockOwnerDeletion/,
      ],
      [
        'of an earlier node of its name',
        {},
        { ownerReferences: [{ ...owner, uid: 'old' }] },
        /^node one UID mismatch: expected old got uid-one$/,
      ],
      ['with an account', { serviceAccountName: 'a' }, {}, /reference a service account$/],
      ['with a Secret', { volumes: [{ name: 'v', secret: { secretName: 's' } }] }, {}, /secrets$/],
      [
        'with a ConfigMap',
        { volumes: [{ name: 'v', configMap: { name: 'c' } }] },
        {},
        /configmaps$/,
      ],
      [
        'with a token',
        { volumes: [{ name: 'v', projected: { sources: [{ serviceAccountToken: {} }] } }] },
        {},
        /serviceaccounts \(via projected volumes\)$/,
      ],
      ['with a claim', { resourceClaims: [{ name: 'c' }] }, {}, /resourceclaims$/],
      [
        'with a volume claim',
        { volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'c' } }] },
        {},
        /persistentvolumeclaims$/,
      ],
    ])('may show none %s', async (_, spec, metadata, expected) => {
      expect(await show(spec, metadata)).toMatch(expected);
    });
  });

  test('changes only the status of its own Pods, without their labels', async () => {
    const own = pod({ nodeName: 'one' });
    const update = { resource: 'pods', operation: 'UPDATE', subresource: 'status' } as const;
    expect(await admit({ ...update, object: own, old: own })).toBeUndefined();
    const other = pod({ nodeName: 'two' });
    expect(await admit({ ...update, object: own, old: other })).toMatch(/set to itself$/);
    const labeled = pod({ nodeName: 'one' }, { labels: { a: 'b' } });
    expect(await admit({ ...update, object: labeled, old: own })).toMatch(/cannot update labels/);
    expect(await admit({ ...update, subresource: 'ephemeralcontainers', object: own })).toMatch(
      /^unexpected pod subresource "ephemeralcontainers"/,
    );
  });

  test('grows a claim without changing its other fields', async () => {
    const claim = (status: JsonObject, spec: JsonObject = {}): ApiObject => ({
      ...pod(spec),
      kind: 'PersistentVolumeClaim',
      status,
    });
    const write = {
      resource: 'persistentvolumeclaims',
      operation: 'UPDATE',
      subresource: 'status',
      old: claim({ phase: 'Bound', capacity: { storage: '1Gi' } }),
    } as const;
    const grown = claim({ phase: 'Bound', capacity: { storage: '2Gi' }, conditions: [] });
    expect(await admit({ ...write, object: grown })).toBeUndefined();
    const lost = claim({ phase: 'Lost' }, { volumeName: 'v' });
    expect(await admit({ ...write, object: lost })).toMatch(/: spec.volumeName, status.phase$/);
    expect(await admit({ ...write, subresource: '', object: grown })).toMatch(
      /^may only update PVC/,
    );
  });

  test('changes only itself, but neither its taints nor its owners', async () => {
    const own = (spec: JsonObject, metadata: Partial<ApiObject['metadata']> = {}): ApiObject => ({
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'one', ...metadata },
      spec,
    });
    const taints = [{ key: 'a', effect: 'NoSchedule' }];
    const update = { resource: 'nodes', operation: 'UPDATE', old: own({ taints }) } as const;
    expect(await admit({ ...update, object: own({ taints }) })).toBeUndefined();
    expect(await admit({ ...update, object: own({}) })).toMatch(/modify taints$/);
    expect(await admit({ ...update, object: own({ taints }), name: 'two' })).toMatch(/node "two"$/);
    const owned = own({ taints }, { ownerReferences: [owner] });
    expect(await admit({ ...update, object: owned })).toMatch(/modify ownerReferences$/);
    const role = dialect.label('role');
    const labeled = own({ taints }, { labels: { [role]: 'master' } });
    expect(await admit({ ...update, object: labeled })).toBe(
      `is not allowed to modify labels: ${role}`,
    );
    expect(await admit({ resource: 'nodes', object: labeled })).toMatch(/set the following labels/);
  });

  test('requests tokens of Pods that run on it', async () => {
    const bound = (ref: JsonObject) =>
      admit(
        {
          resource: 'serviceaccounts',
          subresource: 'token',
          name: 'default',
          object: { ...pod({ boundObjectRef: ref }), kind: 'TokenRequest' },
        },
        { pods: [pod({ nodeName: 'one' }, { uid: '1' }), pod({}, { name: 'far', uid: '2' })] },
      );
    const ref = { apiVersion: 'v1', kind: 'Pod', name: 'web', uid: '1' };
    expect(await bound(ref)).toBeUndefined();
    expect(await bound({ ...ref, kind: 'Secret' })).toMatch(/not bound to a pod$/);
    expect(await bound({ ...ref, uid: '' })).toMatch(/without a uid$/);
    expect(await bound({ ...ref, uid: '9' })).toMatch(/does not match the UID in record/);
    expect(await bound({ ...ref, name: 'far', uid: '2' })).toMatch(/on a different node$/);
    expect(await bound({ ...ref, name: 'gone' })).toMatch(/not found$/);
  });
});

const { label } = dialect;
const changed = forbiddenNodeLabels(dialect);
const labels = (key: string) => ({ [key]: 'x' });

test.each([
  ['a label without a domain', 'team', false],
  ['a label of somebody else', 'example.com/team', false],
  ['the host name', label('hostname'), false],
  ['the zone', label('zone', 'topology'), false],
  ['any label of the kubelet', label('anything', 'kubelet'), false],
  ['any label of a part of the kubelet', `sub.${label('anything', 'kubelet')}`, false],
  ['a label set aside', label('team', 'node-restriction'), true],
  ['a label of a part of what is set aside', `sub.${label('team', 'node-restriction')}`, true],
  ['another label of the project', label('role'), true],
  ['a label of a domain that only ends like the project’s', `not${label('role')}`, false],
])('AUTHZ-9: a node may not set %s (%s): %s', (_, key, isForbidden) => {
  const expected = isForbidden ? [key] : [];
  expect(changed(labels(key), {})).toEqual(expected);
  expect(changed({}, labels(key))).toEqual(expected);
  expect(changed(labels(key), { [key]: 'other' })).toEqual(expected);
  expect(changed(labels(key), labels(key))).toEqual([]);
});

test('AUTHZ-9: the differing names are sorted', () => {
  const [first, second] = [label('a'), label('b')];
  expect(changed({ [second]: 'x', team: 'x' }, { [first]: 'x' })).toEqual([first, second]);
});

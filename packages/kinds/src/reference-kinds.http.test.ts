import { describe, expect, test } from 'vitest';
import { causes } from '../../../test/support/harness.ts';
import { withServer } from '../../../test/support/with-server.ts';

const server = await withServer();

const rbac = '/apis/rbac.authorization.svc.io/v1';
const bindings = `${rbac}/namespaces/default/rolebindings`;
const binding = (name: string, more: object = {}) => ({
  apiVersion: 'rbac.authorization.svc.io/v1',
  kind: 'RoleBinding',
  metadata: { name },
  roleRef: { apiGroup: 'rbac.authorization.svc.io', kind: 'Role', name: 'reader' },
  ...more,
});

describe('RoleBinding', () => {
  test('RBAC-1: groups of roleRef and subjects are defaulted', async () => {
    const subjects = [
      { kind: 'User', name: 'jane' },
      { kind: 'ServiceAccount', name: 'bot', namespace: 'default' },
    ];
    const made = await server.post(bindings, {
      ...binding('defaults', { subjects }),
      roleRef: { kind: 'Role', name: 'reader' },
    });
    expect(made.status).toBe(201);
    expect(made.body.roleRef.apiGroup).toBe('rbac.authorization.svc.io');
    expect(made.body.subjects[0].apiGroup).toBe('rbac.authorization.svc.io');
    expect(made.body.subjects[1]).toMatchObject({ name: 'bot' });
    expect(made.body.subjects[1]).not.toHaveProperty('apiGroup');
  });

  test('RBAC-1: roleRef is immutable', async () => {
    await server.post(bindings, binding('fixed'));
    const roleRef = { apiGroup: 'rbac.authorization.svc.io', kind: 'ClusterRole', name: 'reader' };
    const put = await server.put(`${bindings}/fixed`, binding('fixed', { roleRef }));
    expect(put.status).toBe(422);
    expect(causes(put.body)).toEqual([
      'roleRef: Invalid value: rbac.RoleRef{APIGroup:"rbac.authorization.svc.io", Kind:"ClusterRole", Name:"reader"}: cannot change roleRef',
    ]);
  });

  test('RBAC-1: errors in subjects and names are reported field by field', async () => {
    const answer = await server.post(
      bindings,
      binding('wrong', {
        roleRef: { apiGroup: 'other', kind: 'Thing', name: '' },
        subjects: [
          { kind: 'Robot', name: 'r' },
          { kind: 'User', name: '', apiGroup: 'x' },
          { kind: 'ServiceAccount', name: 'A', apiGroup: 'y' },
        ],
      }),
    );
    expect(answer.status).toBe(422);
    const fields = answer.body.details.causes.map((cause: { field: string }) => cause.field);
    expect(fields).toEqual([
      'roleRef.apiGroup',
      'roleRef.kind',
      'roleRef.name',
      'subjects[0].kind',
      'subjects[1].name',
      'subjects[1].apiGroup',
      'subjects[2].name',
      'subjects[2].apiGroup',
    ]);
  });

  test('RBAC-3: only a ClusterRole may have nonResourceURLs and aggregationRule', async () => {
    const rules = [{ nonResourceURLs: ['/healthz'], verbs: ['get'] }];
    const metadata = { name: 'paths' };
    const apiVersion = 'rbac.authorization.svc.io/v1';
    const inRole = await server.post(`${rbac}/namespaces/default/roles`, {
      apiVersion,
      kind: 'Role',
      metadata,
      rules,
    });
    expect(inRole.status).toBe(422);
    expect(causes(inRole.body)).toEqual([
      'rules[0].nonResourceURLs: Invalid value: []string{"/healthz"}: namespaced rules cannot apply to non-resource URLs',
    ]);
    const inClusterRole = await server.post(`${rbac}/clusterroles`, {
      apiVersion,
      kind: 'ClusterRole',
      metadata,
      rules,
    });
    expect(inClusterRole.status).toBe(201);
  });
});

describe('CSIDriver', () => {
  const path = '/apis/storage.svc.io/v1/csidrivers';
  const driver = (name: string, spec: object = {}) => ({
    apiVersion: 'storage.svc.io/v1',
    kind: 'CSIDriver',
    metadata: { name },
    spec,
  });

  test('CSI-1: defaults', async () => {
    const made = await server.post(path, driver('defaults.example.com'));
    expect(made.status).toBe(201);
    expect(made.body.spec).toEqual({
      attachRequired: true,
      podInfoOnMount: false,
      volumeLifecycleModes: ['Persistent'],
      storageCapacity: false,
      fsGroupPolicy: 'ReadWriteOnceWithFSType',
      requiresRepublish: false,
      seLinuxMount: false,
    });
  });

  test('CSI-1: names, token requests, and modes are validated', async () => {
    const long = await server.post(path, driver('a'.repeat(64)));
    expect(long.status).toBe(422);
    const wrong = await server.post(
      path,
      driver('wrong.example.com', {
        fsGroupPolicy: 'Never',
        tokenRequests: [
          { audience: 'a' },
          { audience: 'a' },
          { audience: 'b', expirationSeconds: 1 },
        ],
        volumeLifecycleModes: ['Persistent', 'Other'],
      }),
    );
    expect(wrong.status).toBe(422);
    expect(causes(wrong.body)).toEqual([
      'spec.fsGroupPolicy: Unsupported value: "Never": supported values: "File", "None", "ReadWriteOnceWithFSType"',
      'spec.tokenRequests[1].audience: Duplicate value: "a"',
      'spec.tokenRequests[2].expirationSeconds: Invalid value: 1: may not specify a duration less than 10 minutes',
      'spec.volumeLifecycleModes: Unsupported value: "Other": supported values: "Persistent", "Ephemeral"',
    ]);
  });

  test('CSI-1: attachRequired and volumeLifecycleModes are immutable, others mutable', async () => {
    const made = await server.post(path, driver('fixed.example.com'));
    const at = `${path}/fixed.example.com`;
    const change = (spec: object) => server.patch(at, { spec }, 'merge');
    expect((await change({ attachRequired: false })).status).toBe(422);
    expect((await change({ volumeLifecycleModes: ['Ephemeral'] })).status).toBe(422);
    const changed = await change({ storageCapacity: true, fsGroupPolicy: 'File' });
    expect(changed.status).toBe(200);
    expect(changed.body.metadata.generation).toBe(1);
    expect(made.body.metadata.generation).toBeUndefined();
  });

  test('CSI-2: delete returns the object', async () => {
    await server.post(path, driver('gone.example.com'));
    const answer = await server.remove(`${path}/gone.example.com`);
    expect(answer.status).toBe(200);
    expect(answer.body.kind).toBe('CSIDriver');
  });
});

describe('Event', () => {
  const path = '/apis/events.svc.io/v1/namespaces/default/events';
  const event = (name: string, more: object = {}) => ({
    apiVersion: 'events.svc.io/v1',
    kind: 'Event',
    metadata: { name },
    eventTime: '2030-01-01T00:00:00.123456Z',
    action: 'Starting',
    reason: 'Started',
    type: 'Normal',
    note: 'hello',
    regarding: { kind: 'Pod', namespace: 'default', name: 'p' },
    reportingController: 'example.com/controller',
    reportingInstance: 'controller-1',
    ...more,
  });

  test('EVENT-1: the required fields and limits of new Events', async () => {
    const empty = await server.post(path, {
      apiVersion: 'events.svc.io/v1',
      kind: 'Event',
      metadata: { name: 'empty' },
      eventTime: '2030-01-01T00:00:00.123456Z',
    });
    expect(empty.status).toBe(422);
    const long = event('long', { note: 'n'.repeat(1025), action: 'a'.repeat(129) });
    expect(causes((await server.post(path, long)).body)).toEqual([
      'action: Invalid value: "": can have at most 128 characters',
      'message: Invalid value: "": can have at most 1024 characters',
    ]);
    const odd = event('odd', { type: 'Loud', deprecatedCount: 3, deprecatedSource: { host: 'h' } });
    expect(causes((await server.post(path, odd)).body)).toEqual([
      'type: Invalid value: "": has invalid value: Loud',
      'count: Invalid value: "": needs to be unset',
      'source: Invalid value: "": needs to be unset',
    ]);
    const late = await server.post(path, event('late', { eventTime: null }));
    expect(causes(late.body)).toEqual(['eventTime: Required value']);
  });

  test('EVENT-1: both groups serve one object, with microseconds', async () => {
    expect((await server.post(path, event('both'))).status).toBe(201);
    const old = await server.get('/api/v1/namespaces/default/events/both');
    expect(old.body).toMatchObject({
      apiVersion: 'v1',
      involvedObject: { kind: 'Pod', name: 'p' },
      message: 'hello',
      eventTime: '2030-01-01T00:00:00.123456Z',
      reportingComponent: 'example.com/controller',
    });
    const current = await server.get(`${path}/both`);
    expect(current.body).toMatchObject({
      apiVersion: 'events.svc.io/v1',
      regarding: { kind: 'Pod', name: 'p' },
      note: 'hello',
      reportingController: 'example.com/controller',
    });
    expect(current.body.metadata.resourceVersion).toBe(old.body.metadata.resourceVersion);
  });
});

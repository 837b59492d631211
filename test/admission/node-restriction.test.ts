import type { ApiObject, JsonObject } from '@wheelhouse/machinery';
import { readFeatureGates } from '@wheelhouse/server/testing';
import { beforeAll, describe, expect, test } from 'vitest';
import { as, mustCreate } from '../authentication/token-users.ts';

import { freshNamespace, type PatchType, pod } from '../support/harness.ts';
import { withUsers } from '../support/with-server.ts';

const nodes = ['system:nodes'];
const n1 = as('system:node:n1');
const mirror = { 'svc.io/config.mirror': 'hash' };

let ns: string;
let uid: string;

const server = await withUsers(
  [
    { name: 'system:node:n1', groups: nodes },
    { name: 'system:node:', groups: [...nodes, 'system:masters'] },
    { name: 'admin', groups: ['system:masters'] },
  ],
  {
    authorizationModes: ['Node', 'RBAC'],
    admission: { enabled: ['NodeRestriction'], disabled: ['ServiceAccount'] },
    featureGates: readFeatureGates(['ServiceAccountNodeAudienceRestriction=true']).gates,
  },
);
beforeAll(async () => {
  ns = await freshNamespace(server);
  for (const name of ['n1', 'n2']) {
    const node = { apiVersion: 'v1', kind: 'Node', metadata: { name } };
    const made = await server.post('/api/v1/nodes', node);
    if (name === 'n1') uid = made.body.metadata.uid;
  }
  await mustCreate(
    server,
    core('pods'),
    pod('own', { nodeName: 'n1', serviceAccountName: 'robot', volumes: tokenVolumes }),
  );
  await mustCreate(server, core('pods'), pod('other', { nodeName: 'n2' }));
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'robot' } };
  await mustCreate(server, core('serviceaccounts'), account);
});

const core = (path: string) => `/api/v1/namespaces/${ns}/${path}`;

/** Tokens for the server itself and for one additional audience. */
const tokenVolumes = ['', 'vault'].map((audience, index) => ({
  name: `token${index}`,
  projected: { sources: [{ serviceAccountToken: { path: 'token', audience } }] },
}));

const owner = (more: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Node',
  name: 'n1',
  uid,
  controller: true,
  ...more,
});

const mirrorPod = (name: string, spec: object = {}, metadata: object = {}) =>
  pod(
    name,
    { nodeName: 'n1', ...spec },
    { annotations: mirror, ownerReferences: [owner()], ...metadata },
  );

async function refused(answer: Promise<{ status: number; body: JsonObject }>, message: string) {
  const { status, body } = await answer;
  expect({ status, message: body?.message }).toEqual({ status: 403, message });
  expect(body.reason).toBe('Forbidden');
}

describe('AUTHZ-9: pods of a node', () => {
  const create = (object: object) => server.post(core('pods'), object, n1);
  const forbidden = (why: string) => `pods "m" is forbidden: ${why}`;

  test('AUTHZ-9: a node creates mirror pods of its own and deletes pods that run on it', async () => {
    expect((await create(mirrorPod('mirrored'))).status).toBe(201);
    expect(
      (await server.remove(core('pods/mirrored?gracePeriodSeconds=0'), undefined, n1)).status,
    ).toBe(200);
    await refused(
      server.remove(core('pods/other'), undefined, n1),
      'pods "other" is forbidden: node "n1" can only delete pods with spec.nodeName set to itself',
    );
  });

  const wrong: [string, () => ApiObject, string][] = [
    [
      'no mirror',
      () => mirrorPod('m', {}, { annotations: {} }),
      'pod does not have "svc.io/config.mirror" annotation, node "n1" can only create mirror pods',
    ],
    [
      'another node',
      () => mirrorPod('m', { nodeName: 'n2' }),
      'node "n1" can only create pods with spec.nodeName set to itself',
    ],
    [
      'no owner',
      () => mirrorPod('m', {}, { ownerReferences: [] }),
      'node "n1" can only create pods with an owner reference set to itself',
    ],
    [
      'another owner',
      () => mirrorPod('m', {}, { ownerReferences: [owner({ name: 'n2' })] }),
      'node "n1" can only create pods with an owner reference set to itself',
    ],
    [
      'two owners',
      () =>
        mirrorPod('m', {}, { ownerReferences: [owner(), owner({ uid: 'x', controller: false })] }),
      'node "n1" can only create pods with a single owner reference set to itself',
    ],
    [
      'an owner that is no controller',
      () => mirrorPod('m', {}, { ownerReferences: [owner({ controller: false })] }),
      'node "n1" can only create pods with a controller owner reference set to itself',
    ],
    [
      'an owner that blocks',
      () => mirrorPod('m', {}, { ownerReferences: [owner({ blockOwnerDeletion: true })] }),
      'node "n1" must not set blockOwnerDeletion on an owner reference',
    ],
    [
      'an account',
      () => mirrorPod('m', { serviceAccountName: 'robot' }),
      'node "n1" can not create pods that reference a service account',
    ],
    [
      'a Secret',
      () => mirrorPod('m', { imagePullSecrets: [{ name: 's' }] }),
      'node "n1" can not create pods that reference secrets',
    ],
    [
      'a ConfigMap',
      () => mirrorPod('m', { volumes: [{ name: 'v', configMap: { name: 'c' } }] }),
      'node "n1" can not create pods that reference configmaps',
    ],
    [
      'a claim',
      () => mirrorPod('m', { volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'c' } }] }),
      'node "n1" can not create pods that reference persistentvolumeclaims',
    ],
    [
      'a trust bundle',
      () => {
        const sources = [{ clusterTrustBundle: { name: 'b', path: 'p' } }];
        return mirrorPod('m', { volumes: [{ name: 'v', projected: { sources } }] });
      },
      'node "n1" can not create pods that reference clustertrustbundles',
    ],
  ];
  test.each(wrong)('AUTHZ-9: a node creates no mirror pod with %s', async (_, object, why) => {
    await refused(create(object()), forbidden(why));
  });

  test('AUTHZ-9: the owner must be the current Node object', async () => {
    await refused(
      create(mirrorPod('m', {}, { ownerReferences: [owner({ uid: 'old' })] })),
      forbidden(`node n1 UID mismatch: expected old got ${uid}`),
    );
  });

  test('AUTHZ-9: a dry run is refused in the same way', async () => {
    const answer = server.post(`${core('pods')}?dryRun=All`, pod('m', {}), n1);
    await refused(
      answer,
      forbidden(
        'pod does not have "svc.io/config.mirror" annotation, node "n1" can only create mirror pods',
      ),
    );
  });

  test('AUTHZ-9: a node reports only the status of its own pods', async () => {
    const report = (name: string, change: object) =>
      server.patch(core(`pods/${name}/status`), change, 'merge', n1);
    expect((await report('own', { status: { phase: 'Running' } })).status).toBe(200);
    await refused(
      report('other', { status: { phase: 'Running' } }),
      'pods "other" is forbidden: node "n1" can only update pod status for pods with spec.nodeName set to itself',
    );
    await refused(
      report('own', { metadata: { labels: { a: 'b' } } }),
      'pods "own" is forbidden: node "n1" cannot update labels through pod status',
    );
    const statuses = [{ name: 'g', resourceClaimName: 'gpu' }];
    await refused(
      report('own', { status: { resourceClaimStatuses: statuses } }),
      'pods "own" is forbidden: node "n1" cannot update resource claim statues',
    );
  });

  test('AUTHZ-9: a node evicts only its own pods', async () => {
    const evict = (name: string) =>
      server.post(
        `${core(`pods/${name}/eviction`)}?dryRun=All`,
        { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name } },
        n1,
      );
    expect((await evict('own')).status).toBe(201);
    await refused(
      evict('other'),
      'pods "other" is forbidden: node n1 can only evict pods with spec.nodeName set to itself',
    );
    expect(await evict('absent')).toMatchObject({
      status: 404,
      body: { message: 'pod "absent" not found', details: { kind: 'pod', name: 'absent' } },
    });
  });

  test('AUTHZ-9: a node learns nothing about other pods from an Eviction of another name', async () => {
    const evict = (name: string) =>
      server.post(
        `${core(`pods/${name}/eviction`)}?dryRun=All`,
        { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'another' } },
        n1,
      );
    await refused(
      evict('other'),
      'pods "other" is forbidden: node n1 can only evict pods with spec.nodeName set to itself',
    );
    expect(await evict('own')).toMatchObject({
      status: 400,
      body: { message: 'name in URL does not match name in Eviction object' },
    });
  });
});

describe('AUTHZ-9: the Node object', () => {
  const change = (name: string, body: object, type: PatchType = 'merge') =>
    server.patch(`/api/v1/nodes/${name}`, body, type, n1);
  const forbidden = (why: string) => `nodes "n1" is forbidden: ${why}`;

  test('AUTHZ-9: a node changes only itself', async () => {
    expect((await change('n1', { metadata: { annotations: { a: 'b' } } })).status).toBe(200);
    const status = { status: { capacity: { cpu: '2' } } };
    expect((await server.patch('/api/v1/nodes/n1/status', status, 'merge', n1)).status).toBe(200);
    const not = 'nodes "n2" is forbidden: node "n1" is not allowed to modify node "n2"';
    await refused(change('n2', { metadata: { annotations: { a: 'b' } } }), not);
    await refused(server.patch('/api/v1/nodes/n2/status', status, 'merge', n1), not);
    const made = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n3' } };
    await refused(
      server.post('/api/v1/nodes', made, n1),
      'nodes "n3" is forbidden: node "n1" is not allowed to modify node "n3"',
    );
  });

  test('AUTHZ-9: a node cannot change its taints, owners, or configSource', async () => {
    await refused(
      change('n1', { spec: { taints: [{ key: 'a', effect: 'NoSchedule' }] } }),
      forbidden('node "n1" is not allowed to modify taints'),
    );
    await refused(
      change('n1', { metadata: { ownerReferences: [{ ...owner(), uid: 'x' }] } }),
      forbidden('node "n1" is not allowed to modify ownerReferences'),
    );
    const configMap = { namespace: 'a', name: 'b', uid: 'c', kubeletConfigKey: 'd' };
    await refused(
      change('n1', { spec: { configSource: { configMap } } }),
      forbidden('node "n1" is not allowed to update configSource to a new non-nil configSource'),
    );
  });

  const allowed = [
    'example.com/mine',
    'plain',
    'svc.io/hostname',
    'svc.io/arch',
    'svc.io/os',
    'topology.svc.io/zone',
    'node.svc.io/instance-type',
    'node.svc.io/anything',
    'some.kubelet.svc.io/thing',
  ];
  const denied = [
    'svc.io/role',
    'node-role.svc.io/master',
    'node-restriction.svc.io/a',
    'deep.node-restriction.svc.io/a',
    'other.svc.io/a',
  ];
  test('AUTHZ-9: a node sets descriptive labels but none that attract pods', async () => {
    for (const label of allowed) {
      expect((await change('n1', { metadata: { labels: { [label]: 'x' } } })).status).toBe(200);
    }
    for (const label of denied) {
      await refused(
        change('n1', { metadata: { labels: { [label]: 'x' } } }),
        forbidden(`is not allowed to modify labels: ${label}`),
      );
    }
    const set = { metadata: { labels: { 'svc.io/role': 'x' } } };
    await server.patch('/api/v1/nodes/n1', set, 'merge');
    await refused(
      change('n1', { metadata: { labels: { 'svc.io/role': null } } }),
      forbidden('is not allowed to modify labels: svc.io/role'),
    );
  });

  test('AUTHZ-9: the same labels are refused at registration', async () => {
    const self = await withUsers([{ name: 'system:node:new', groups: nodes }], {
      authorizationModes: ['Node'],
      admission: { enabled: ['NodeRestriction'] },
    });
    const labels = { 'b.svc.io/x': '1', 'a.svc.io/x': '1', 'svc.io/os': 'linux' };
    const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'new', labels } };
    const user = as('system:node:new');
    await refused(
      self.post('/api/v1/nodes', node, user),
      'nodes "new" is forbidden: node "new" is not allowed to set the following labels: a.svc.io/x, b.svc.io/x',
    );
    node.metadata.labels = { 'svc.io/os': 'linux' } as typeof labels;
    expect((await self.post('/api/v1/nodes', node, user)).status).toBe(201);
  });
});

describe('AUTHZ-9: other objects of a node', () => {
  test('AUTHZ-9: a node writes its own lease', async () => {
    const leases = '/apis/coordination.svc.io/v1/namespaces/svc-node-lease/leases';
    const lease = (name: string) => ({
      apiVersion: 'coordination.svc.io/v1',
      kind: 'Lease',
      metadata: { name },
    });
    expect((await server.post(leases, lease('n1'), n1)).status).toBe(201);
    const only = 'can only access node lease with the same name as the requesting node';
    await refused(
      server.post(leases, lease('n2'), n1),
      `leases.coordination.svc.io "n2" is forbidden: ${only}`,
    );
  });

  test('AUTHZ-9: a node writes its own CSINode', async () => {
    const path = '/apis/storage.svc.io/v1/csinodes';
    const csiNode = (name: string) => ({
      apiVersion: 'storage.svc.io/v1',
      kind: 'CSINode',
      metadata: { name },
      spec: { drivers: [] },
    });
    expect((await server.post(path, csiNode('n1'), n1)).status).toBe(201);
    await refused(
      server.post(path, csiNode('n2'), n1),
      'csinodes.storage.svc.io "n2" is forbidden: can only access CSINode with the same name as the requesting node',
    );
  });

  test('AUTHZ-9: a node changes the status of claims only to resize volumes', async () => {
    const claim = {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: 'data' },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    };
    await mustCreate(server, core('persistentvolumeclaims'), claim);
    const volumes = [{ name: 'v', persistentVolumeClaim: { claimName: 'data' } }];
    await mustCreate(server, core('pods'), pod('mounts', { nodeName: 'n1', volumes }));
    const path = core('persistentvolumeclaims/data/status');
    const grown = { status: { capacity: { storage: '2Gi' } } };
    expect((await server.patch(path, grown, 'merge', n1)).status).toBe(200);
    await refused(
      server.patch(path, { status: { phase: 'Lost' } }, 'merge', n1),
      'persistentvolumeclaims "data" is forbidden: node "n1" is not allowed to update fields other than status.quantity and status.conditions: status.phase',
    );
  });

  test('AUTHZ-9: a node gets tokens bound to a pod that runs on it', async () => {
    const ask = (reference?: object, audiences: string[] = []) =>
      server.post(
        core('serviceaccounts/robot/token'),
        {
          apiVersion: 'authentication.svc.io/v1',
          kind: 'TokenRequest',
          spec: {
            audiences,
            ...(reference === undefined ? {} : { boundObjectRef: reference }),
          },
        },
        n1,
      );
    const uidOf = async (name: string) =>
      (await server.get(core(`pods/${name}`))).body.metadata.uid as string;
    const bound = { apiVersion: 'v1', kind: 'Pod' };
    const own = { ...bound, name: 'own', uid: await uidOf('own') };
    expect((await ask(own)).status).toBe(201);
    expect((await ask(own, ['vault'])).status).toBe(201);
    const forbidden = (why: string) => `serviceaccounts "robot" is forbidden: ${why}`;
    await refused(ask(), forbidden('node requested token not bound to a pod'));
    await refused(
      ask({ apiVersion: 'v1', kind: 'Secret', name: 's' }),
      forbidden('node requested token not bound to a pod'),
    );
    await refused(
      ask({ ...bound, name: 'own' }),
      forbidden('node requested token with a pod binding without a uid'),
    );
    await refused(
      ask({ ...own, uid: 'old' }),
      forbidden(
        'the UID in the bound object reference (old) does not match the UID in record. The object might have been deleted and then recreated',
      ),
    );
    await refused(
      ask({ ...bound, name: 'other', uid: await uidOf('other') }),
      forbidden('node requested token bound to a pod scheduled on a different node'),
    );
    await refused(ask(own, ['other']), forbidden('audience "other" not found in pod spec volume'));
    await refused(
      ask(own, ['vault', 'other']),
      forbidden('node may only request 0 or 1 audiences'),
    );
  });
});

test('AUTHZ-9: a node requests certificates by readable requests only', async () => {
  const path = '/apis/certificates.svc.io/v1/certificatesigningrequests';
  const spec = {
    signerName: 'svc.io/kube-apiserver-client-kubelet',
    request: Buffer.from('no request').toString('base64'),
    usages: ['client auth'],
  };
  const request = { apiVersion: 'certificates.svc.io/v1', kind: 'CertificateSigningRequest' };
  await refused(
    server.post(path, { ...request, metadata: { name: 'n1' }, spec }, n1),
    'certificatesigningrequests.certificates.svc.io "n1" is forbidden: unable to parse csr: PEM block type must be CERTIFICATE REQUEST',
  );
});

test('AUTHZ-9: audiences of these tokens are unrestricted by default', () => {
  const { gates } = readFeatureGates([]);
  expect(gates.enabled('ServiceAccountNodeAudienceRestriction')).toBe(false);
});

test('AUTHZ-9: other users are unrestricted; a node without a name may do nothing', async () => {
  const labels = { metadata: { labels: { 'node-restriction.svc.io/a': 'x' } } };
  const patched = await server.patch('/api/v1/nodes/n2', labels, 'merge', as('admin'));
  expect(patched.status).toBe(200);
  await refused(
    server.patch('/api/v1/nodes/n2', labels, 'merge', as('system:node:')),
    'nodes "n2" is forbidden: could not determine node from user "system:node:"',
  );
  const configMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'nameless' } };
  await refused(
    server.post(core('configmaps'), configMap, as('system:node:')),
    'configmaps "nameless" is forbidden: could not determine node from user "system:node:"',
  );
});

import { readFeatureGates } from '@wheelhouse/server/testing';
import { beforeAll, describe, expect, test } from 'vitest';
import { as, mustCreate, startWithUsers } from '../authentication/token-users.ts';

import { eventually, freshNamespace } from '../support/harness.ts';
import { withUsers } from '../support/with-server.ts';

const nodes = ['system:nodes'];
const n1 = 'system:node:n1';
const n2 = 'system:node:n2';

let ns: string;

const volumes = [
  { name: 'a', secret: { secretName: 'mounted' } },
  { name: 'b', configMap: { name: 'mounted' } },
  { name: 'c', persistentVolumeClaim: { claimName: 'data' } },
];

function pod(name: string, nodeName: string) {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      nodeName,
      serviceAccountName: 'robot',
      containers: [{ name: 'main', image: 'x' }],
      volumes,
    },
  };
}

const named = (kind: string, name: string, more: object = {}) => ({
  apiVersion: 'v1',
  kind,
  metadata: { name },
  ...more,
});

const server = await withUsers(
  [
    { name: n1, groups: nodes },
    { name: n2, groups: nodes },
    { name: 'system:node:', groups: nodes },
    { name: 'system:node:outside' },
    { name: 'kubelet', groups: nodes },
  ],
  { authorizationModes: ['Node', 'RBAC'] },
);
beforeAll(async () => {
  ns = await freshNamespace(server);
  const core = `/api/v1/namespaces/${ns}`;
  const quantity = { resources: { requests: { storage: '1Gi' } } };
  const claim = { spec: { accessModes: ['ReadWriteOnce'], volumeName: 'v1', ...quantity } };
  const volume = {
    spec: {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      claimRef: { namespace: ns, name: 'data' },
      csi: {
        driver: 'example.com',
        volumeHandle: 'h',
        nodeStageSecretRef: { namespace: ns, name: 'staged' },
        controllerPublishSecretRef: { namespace: ns, name: 'controllers' },
      },
    },
  };
  await Promise.all([
    ...['mounted', 'staged', 'controllers', 'alone'].map((name) =>
      mustCreate(server, `${core}/secrets`, named('Secret', name)),
    ),
    ...['mounted', 'alone'].map((name) =>
      mustCreate(server, `${core}/configmaps`, named('ConfigMap', name)),
    ),
    ...['robot', 'idle'].map((name) =>
      mustCreate(server, `${core}/serviceaccounts`, named('ServiceAccount', name)),
    ),
    mustCreate(
      server,
      `${core}/persistentvolumeclaims`,
      named('PersistentVolumeClaim', 'data', claim),
    ),
    mustCreate(server, '/api/v1/persistentvolumes', named('PersistentVolume', 'v1', volume)),
    mustCreate(server, '/apis/storage.svc.io/v1/volumeattachments', {
      apiVersion: 'storage.svc.io/v1',
      kind: 'VolumeAttachment',
      metadata: { name: 'attached' },
      spec: { attacher: 'example.com', nodeName: 'n1', source: { persistentVolumeName: 'v1' } },
    }),
    mustCreate(server, `${core}/pods`, pod('on-one', 'n1')),
    mustCreate(server, '/api/v1/nodes', named('Node', 'n1')),
    mustCreate(server, '/api/v1/nodes', named('Node', 'n2')),
  ]);
});

async function refusal(user: string, path: string, method = 'GET'): Promise<string> {
  const answer = await server.request(method, path.replace('NS', ns), as(user));
  expect(answer.status).toBe(403);
  expect(answer.body.reason).toBe('Forbidden');
  return String(answer.body.message);
}

async function status(user: string, path: string): Promise<number> {
  return (await server.get(path.replace('NS', ns), as(user))).status;
}

describe('AUTHZ-9: a node reads what its pods need', () => {
  const single = [
    '/api/v1/namespaces/NS/secrets/mounted',
    '/api/v1/namespaces/NS/secrets/staged',
    '/api/v1/namespaces/NS/configmaps/mounted',
    '/api/v1/namespaces/NS/persistentvolumeclaims/data',
    '/api/v1/persistentvolumes/v1',
    '/apis/storage.svc.io/v1/volumeattachments/attached',
    '/api/v1/namespaces/NS/pods/on-one',
  ];
  test.each(single)('AUTHZ-9: %s', async (path) => {
    expect(await status(n1, path)).toBe(200);
    expect(await refusal(n2, path)).toMatch(
      /: no relationship found between node 'n2' and this object$/,
    );
  });

  test.each(['secrets/alone', 'secrets/controllers', 'configmaps/alone', 'secrets/absent'])(
    'AUTHZ-9: not %s',
    async (path) => {
      expect(await refusal(n1, `/api/v1/namespaces/NS/${path}`)).toBe(
        `${path.split('/')[0]} "${path.split('/')[1]}" is forbidden: User "system:node:n1" cannot ` +
          `get resource "${path.split('/')[0]}" in API group "" in the namespace "${ns}": ` +
          "no relationship found between node 'n1' and this object",
      );
    },
  );

  test('AUTHZ-9: a list or watch of a single name counts as a read, others are refused', async () => {
    const secrets = '/api/v1/namespaces/NS/secrets';
    const byName = (name: string) => `${secrets}?fieldSelector=metadata.name%3D${name}`;
    expect(await status(n1, byName('mounted'))).toBe(200);
    const watch = await server.watch(
      `${byName('mounted')}&watch=1&timeoutSeconds=1`.replace('NS', ns),
      as(n1),
    );
    expect(watch.status).toBe(200);
    watch.close();
    expect(await refusal(n1, byName('alone'))).toContain('no relationship found');
    expect(await refusal(n1, secrets)).toMatch(/: No Object name found$/);
    expect(await refusal(n1, '/api/v1/secrets')).toMatch(
      /: can only read namespaced object of this type$/,
    );
    expect(await refusal(n1, `${secrets}/mounted`, 'DELETE')).toMatch(
      /: can only read resources of this type$/,
    );
  });

  test('AUTHZ-9: objects that are readable one by one cannot be listed', async () => {
    const why = /: can only get individual resources of this type$/;
    expect(await refusal(n1, '/api/v1/persistentvolumes')).toMatch(why);
    expect(await refusal(n1, '/api/v1/namespaces/NS/persistentvolumeclaims')).toMatch(why);
    expect(await refusal(n1, '/apis/storage.svc.io/v1/volumeattachments')).toMatch(why);
    const claim = '/api/v1/namespaces/NS/persistentvolumeclaims/data/status';
    expect(await refusal(n1, claim)).toMatch(/: can only get\/update\/patch this type$/);
  });

  // A pod of 4,000 containers is decoded in steps.
  test.each([1, 4_000])(
    'AUTHZ-9: access starts with the binding of a pod of %i containers and ends with it',
    async (containers) => {
      const core = `/api/v1/namespaces/${ns}`;
      const secret = `late-${containers}`;
      const name = `waits-${containers}`;
      await mustCreate(server, `${core}/secrets`, named('Secret', secret));
      const late = `${core}/secrets/${secret}`;
      expect(await status(n2, late)).toBe(403);
      const spec = {
        serviceAccountName: 'robot',
        containers: Array.from({ length: containers }, (_, at) => ({
          name: `c-${at}`,
          image: 'x',
        })),
        volumes: [{ name: 'a', secret: { secretName: secret } }],
      };
      await mustCreate(server, `${core}/pods`, named('Pod', name, { spec }));
      expect(await status(n2, late)).toBe(403);
      const binding = { apiVersion: 'v1', kind: 'Binding', metadata: { name } };
      const bound = await server.post(`${core}/pods/${name}/binding`, {
        ...binding,
        target: { kind: 'Node', name: 'n2' },
      });
      expect(bound.status).toBe(201);
      await eventually(async () => (await status(n2, late)) === 200, 'n2 reads the secret');
      expect(await status(n1, late)).toBe(403);
      await server.remove(`${core}/pods/${name}?gracePeriodSeconds=0`);
      await eventually(async () => (await status(n2, late)) === 403, 'n2 loses the secret');
    },
  );
});

describe('AUTHZ-9: pods, nodes, and objects named after the node', () => {
  test('AUTHZ-9: a node lists pods by its own name', async () => {
    const pods = '/api/v1/pods';
    const own = `${pods}?fieldSelector=spec.nodeName%3Dn1`;
    const list = await server.get(own, as(n1));
    expect(list.status).toBe(200);
    expect(
      list.body.items.map((item: { metadata: { name: string } }) => item.metadata.name),
    ).toEqual(['on-one']);
    const why = /: can only list\/watch pods with spec.nodeName field selector$/;
    expect(await refusal(n1, pods)).toMatch(why);
    expect(await refusal(n2, own)).toMatch(why);
    expect(await refusal(n1, `${pods}?fieldSelector=spec.nodeName!%3Dn1`)).toMatch(why);
    expect(await refusal(n1, '/api/v1/namespaces/NS/pods/on-one/log')).not.toContain(
      'relationship',
    );
  });

  test('AUTHZ-9: a node reads only its own Node object', async () => {
    expect(await status(n1, '/api/v1/nodes/n1')).toBe(200);
    expect(await status(n1, '/api/v1/nodes?fieldSelector=metadata.name%3Dn1')).toBe(200);
    expect(await refusal(n1, '/api/v1/nodes')).toMatch(
      /: node 'n1' cannot read all nodes, only its own Node object$/,
    );
    expect(await refusal(n1, '/api/v1/nodes/n2')).toMatch(
      /: node 'n1' cannot read 'n2', only its own Node object$/,
    );
    expect(await refusal(n1, '/api/v1/nodes/n1', 'DELETE')).not.toContain(': node');
  });

  test('AUTHZ-9: a node gets tokens for the accounts of its pods', async () => {
    const token = (account: string) => `/api/v1/namespaces/NS/serviceaccounts/${account}/token`;
    expect(await refusal(n2, token('robot'), 'POST')).toContain('no relationship found');
    expect(await refusal(n1, token('idle'), 'POST')).toContain('no relationship found');
    expect(await refusal(n1, '/api/v1/namespaces/NS/serviceaccounts/robot')).toMatch(
      /: can only create tokens for individual service accounts$/,
    );
    expect(await refusal(n1, '/api/v1/namespaces/NS/serviceaccounts', 'POST')).toMatch(
      /: can only create tokens for individual service accounts$/,
    );
  });

  test('AUTHZ-9: a node uses its own lease and CSINode', async () => {
    const leases = '/apis/coordination.svc.io/v1/namespaces/svc-node-lease/leases';
    expect(await status(n1, `${leases}/n1`)).toBe(404);
    expect(await refusal(n1, `${leases}/n2`)).toMatch(
      /: can only access node lease with the same name as the requesting node$/,
    );
    expect(await refusal(n1, leases)).toMatch(
      /: can only get, create, update, patch, or delete a node lease$/,
    );
    expect(await refusal(n1, '/apis/coordination.svc.io/v1/namespaces/NS/leases/n1')).toMatch(
      /: can only access leases in the "svc-node-lease" system namespace$/,
    );
    const csiNodes = '/apis/storage.svc.io/v1/csinodes';
    expect(await status(n1, `${csiNodes}/n1`)).toBe(404);
    expect(await refusal(n1, `${csiNodes}/n2`)).toMatch(
      /: can only access CSINode with the same name as the requesting node$/,
    );
    expect(await refusal(n1, csiNodes)).toMatch(
      /: can only get, create, update, patch, or delete a CSINode$/,
    );
  });

  test('AUTHZ-9: everything else follows the rules that all nodes share', async () => {
    expect(await status(n1, '/api/v1/services')).toBe(200);
    expect(await status(n1, '/apis/node.svc.io/v1/runtimeclasses')).toBe(200);
    expect(await status(n1, '/apis/storage.svc.io/v1/csidrivers')).toBe(200);
    expect(await refusal(n1, '/api/v1/namespaces')).toMatch(/at the cluster scope$/);
  });
});

describe('AUTHZ-9: identifying nodes', () => {
  const path = '/api/v1/services';
  test('AUTHZ-9: a node needs both the name and the group', async () => {
    expect(await status(n1, path)).toBe(200);
    expect(await refusal('system:node:outside', path)).toMatch(/at the cluster scope$/);
    expect(await refusal('kubelet', path)).toMatch(/at the cluster scope$/);
  });

  test('AUTHZ-9: a node user without a node name is refused with a reason', async () => {
    expect(await refusal('system:node:', path)).toMatch(/: unknown node for user "system:node:"$/);
  });

  test('AUTHZ-9: the rules of a node cannot be enumerated', async () => {
    const review = { apiVersion: 'authorization.svc.io/v1', kind: 'SelfSubjectRulesReview' };
    const answer = await server.post(
      '/apis/authorization.svc.io/v1/selfsubjectrulesreviews',
      { ...review, spec: { namespace: ns } },
      as(n1),
    );
    expect(answer.body.status).toMatchObject({
      incomplete: true,
      evaluationError: 'node authorizer does not support user rule resolution',
    });
  });
});

test('AUTHZ-2: the Node mode runs among the others in the given order', async () => {
  const users = [{ name: n1, groups: nodes }, { name: 'other' }];
  const lenient = await startWithUsers(users, { authorizationModes: ['Node', 'AlwaysAllow'] });
  try {
    expect((await lenient.get('/api/v1/secrets', as(n1))).status).toBe(200);
    expect((await lenient.get('/api/v1/secrets', as('other'))).status).toBe(200);
  } finally {
    await lenient.stop();
  }
  const alone = await withUsers(users, { authorizationModes: ['Node'] });
  expect((await alone.get('/api/v1/services', as(n1))).status).toBe(200);
  expect((await alone.get('/api/v1/secrets', as(n1))).status).toBe(403);
  expect((await alone.get('/api/v1/services', as('other'))).status).toBe(403);
});

test('AUTHZ-9: with AuthorizeNodeWithSelectors off nodes read all nodes and pods', async () => {
  const featureGates = readFeatureGates(['AuthorizeNodeWithSelectors=false']).gates;
  const authorizationModes = ['Node'] as const;
  const users = [{ name: n1, groups: nodes }];
  const open = await withUsers(users, { authorizationModes, featureGates });
  expect((await open.get('/api/v1/pods', as(n1))).status).toBe(200);
  expect((await open.get('/api/v1/nodes', as(n1))).status).toBe(200);
  expect((await open.get('/api/v1/secrets', as(n1))).status).toBe(403);
});

test('AUTHZ-9: with ClusterTrustBundle on nodes read all trust bundles', async () => {
  const path = '/apis/certificates.svc.io/v1alpha1/clustertrustbundles';
  const answerWith = async (gate: string) => {
    const trusting = await withUsers([{ name: n1, groups: nodes }], {
      authorizationModes: ['Node'],
      featureGates: readFeatureGates([gate]).gates,
      runtimeConfig: new Map([['certificates.svc.io/v1alpha1', true]]),
    });
    return (await trusting.get(path, as(n1))).status;
  };
  expect(await answerWith('ClusterTrustBundle=true')).toBe(200);
  expect(await answerWith('ClusterTrustBundle=false')).toBe(403);
});

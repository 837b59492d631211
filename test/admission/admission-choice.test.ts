import type { Pod } from '@wheelhouse/kinds/types/core/v1';
import type { ApiObject } from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import { as, bindingOf, mustCreate, rbacPath, roleOf } from '../authentication/token-users.ts';
import { establish } from '../custom-kinds/custom-kinds.ts';
import {
  type ConfigChange,
  configMap,
  eventually,
  freshNamespace,
  type ResponseOf,
  startTestServer,
  type TestServer,
} from '../support/harness.ts';
import { withServer, withUsers } from '../support/with-server.ts';

async function within(
  admission: NonNullable<ConfigChange['admission']>,
  work: (server: TestServer, core: string) => Promise<void>,
): Promise<void> {
  const server = await startTestServer({ admission });
  try {
    await work(server, `/api/v1/namespaces/${await freshNamespace(server)}`);
  } finally {
    await server.stop();
  }
}

function pod(name: string, spec: object = {}): ApiObject {
  const containers = [{ name: 'main', image: 'x:1' }];
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec: { containers, ...spec } };
}

const disabled = ['ServiceAccount'];

test('ADM-1: a disabled plugin does nothing', async () => {
  const off = [...disabled, 'Priority', 'DefaultTolerationSeconds', 'NamespaceLifecycle'];
  await within({ disabled: off }, async (server, core) => {
    const { body } = await server.post(`${core}/pods`, pod('p'));
    expect(body.spec.priority).toBeUndefined();
    expect(body.spec.tolerations).toBeUndefined();
    const stray = await server.post('/api/v1/namespaces/nowhere/configmaps', configMap('c'));
    expect(stray.status).toBe(201);
  });
});

test('ADM-1: --admission-control runs only the plugins it names', async () => {
  await within({ only: true, enabled: ['DefaultTolerationSeconds'] }, async (server, core) => {
    const { body } = await server.post(`${core}/pods`, pod('p'));
    expect(body.spec.priority).toBeUndefined();
    expect(body.spec.tolerations).toHaveLength(2);
  });
});

test('ADM-1: the flags set the default toleration seconds', async () => {
  const seconds = { notReadyTolerationSeconds: 7, unreachableTolerationSeconds: 8 };
  await within({ disabled, ...seconds }, async (server, core) => {
    const { body } = await server.post<ResponseOf<Pod>>(`${core}/pods`, pod('p'));
    expect(body.spec.tolerations.map((toleration) => toleration.tolerationSeconds)).toEqual([7, 8]);
  });
});

test('ADM-1: AlwaysAdmit refuses nothing', async () => {
  await within({ disabled, enabled: ['AlwaysAdmit'] }, async (permissive, core) => {
    expect((await permissive.post(`${core}/configmaps`, configMap('c'))).status).toBe(201);
  });
});

test('ADM-1: AlwaysPullImages forces every image to be pulled', async () => {
  await within({ disabled, enabled: ['AlwaysPullImages'] }, async (server, core) => {
    const initContainers = [{ name: 'i', image: 'y:1', imagePullPolicy: 'Never' }];
    const { body } = await server.post<ResponseOf<Pod>>(
      `${core}/pods`,
      pod('p', { initContainers }),
    );
    expect(body.spec.containers[0].imagePullPolicy).toBe('Always');
    expect(body.spec.initContainers[0].imagePullPolicy).toBe('Always');
  });
});

test('ADM-1: NamespaceAutoProvision creates the namespace, except in a dry run', async () => {
  await within({ disabled, enabled: ['NamespaceAutoProvision'] }, async (server) => {
    const path = '/api/v1/namespaces/made/configmaps';
    expect((await server.post(`${path}?dryRun=All`, configMap('c'))).status).toBe(404);
    expect((await server.post(path, configMap('c'))).status).toBe(201);
    const made = await server.get('/api/v1/namespaces/made');
    expect(made.status).toBe(200);
    expect(made.body.metadata.managedFields).toMatchObject([
      {
        manager: 'wheelhouse',
        operation: 'Update',
        fieldsV1: { 'f:metadata': { 'f:labels': { '.': {}, 'f:svc.io/metadata.name': {} } } },
      },
    ]);
  });
});

test('API-8: a custom kind that is named like a review needs an existing namespace', async () => {
  const server = await withServer();
  const plural = 'localsubjectaccessreviews';
  await establish(server, { group: 'example.com', plural, kind: 'LocalSubjectAccessReview' });
  const answer = await server.post(`/apis/example.com/v1/namespaces/nowhere/${plural}`, {
    apiVersion: 'example.com/v1',
    kind: 'LocalSubjectAccessReview',
    metadata: { name: 'a' },
  });
  expect([answer.status, answer.body.message]).toEqual([404, 'namespaces "nowhere" not found']);
});

test('ADM-1: NamespaceExists refuses missing namespaces when NamespaceLifecycle is off', async () => {
  const off = [...disabled, 'NamespaceLifecycle'];
  await within({ disabled: off, enabled: ['NamespaceExists'] }, async (server) => {
    const answer = await server.post('/api/v1/namespaces/nowhere/configmaps', configMap('c'));
    expect(answer.status).toBe(404);
    expect(answer.body.message).toBe('namespaces "nowhere" not found');
  });
});

test('ADM-1: LimitPodHardAntiAffinityTopology allows anti-affinity only per hostname', async () => {
  await within(
    { disabled, enabled: ['LimitPodHardAntiAffinityTopology'] },
    async (server, core) => {
      const away = (topologyKey: string) => ({
        affinity: {
          podAntiAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: [
              { topologyKey, labelSelector: { matchLabels: { a: 'b' } } },
            ],
          },
        },
      });
      const answer = await server.post(`${core}/pods`, pod('p', away('topology.svc.io/zone')));
      expect(answer.status).toBe(403);
      expect(answer.body.message).toBe(
        'pods "p" is forbidden: affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey topology.svc.io/zone but only key svc.io/hostname is allowed',
      );
      expect((await server.post(`${core}/pods`, pod('p', away('svc.io/hostname')))).status).toBe(
        201,
      );
    },
  );
});

test('ADM-1: ExtendedResourceToleration adds tolerations for extended resources', async () => {
  await within({ disabled, enabled: ['ExtendedResourceToleration'] }, async (server, core) => {
    const amounts = { 'example.com/gpu': '1', cpu: '1' };
    const resources = { requests: amounts, limits: amounts };
    const containers = [{ name: 'main', image: 'x', resources }];
    const { body } = await server.post<ResponseOf<Pod>>(`${core}/pods`, pod('p', { containers }));
    expect(body.spec.tolerations).toContainEqual({
      key: 'example.com/gpu',
      operator: 'Exists',
      effect: 'NoSchedule',
    });
    const keys = body.spec.tolerations.map((toleration) => toleration.key);
    expect(keys).not.toContain('cpu');
  });
});

test('ADM-1: PodNodeSelector merges the namespace’s node selector into pods', async () => {
  await within({ disabled, enabled: ['PodNodeSelector'] }, async (server) => {
    const annotations = { 'scheduler.alpha.svc.io/node-selector': 'zone=a,disk=fast' };
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'n', annotations } };
    await mustCreate(server, '/api/v1/namespaces', namespace);
    const path = '/api/v1/namespaces/n/pods';
    const { body } = await server.post(path, pod('p', { nodeSelector: { own: 'x' } }));
    expect(body.spec.nodeSelector).toEqual({ zone: 'a', disk: 'fast', own: 'x' });
    const answer = await server.post(path, pod('q', { nodeSelector: { zone: 'b' } }));
    expect(answer.status).toBe(403);
    expect(answer.body.message).toBe(
      'pods "q" is forbidden: pod node label selector conflicts with its namespace node label selector',
    );
  });
});

test('ADM-1: PodTolerationRestriction merges and restricts tolerations by namespace', async () => {
  await within({ only: true, enabled: ['PodTolerationRestriction'] }, async (server) => {
    const own = { key: 'own', operator: 'Exists', effect: 'NoSchedule' };
    const annotations = {
      'scheduler.alpha.svc.io/defaultTolerations': JSON.stringify([own]),
      'scheduler.alpha.svc.io/tolerationsWhitelist': JSON.stringify([
        own,
        { key: 'node.svc.io/memory-pressure', operator: 'Exists' },
      ]),
    };
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 't', annotations } };
    await mustCreate(server, '/api/v1/namespaces', namespace);
    const path = '/api/v1/namespaces/t/pods';
    expect((await server.post(path, pod('p'))).body.spec.tolerations).toEqual([own]);
    const resources = { requests: { cpu: '1' } };
    const asking = { containers: [{ name: 'main', image: 'x', resources }] };
    const { tolerations } = (await server.post<ResponseOf<Pod>>(path, pod('asks', asking))).body
      .spec;
    expect(tolerations.map((toleration) => toleration.key)).toEqual([
      'own',
      'node.svc.io/memory-pressure',
    ]);
    const strange = [{ key: 'other', operator: 'Exists' }];
    const answer = await server.post(path, pod('q', { tolerations: strange }));
    expect(answer.status).toBe(500);
    expect(answer.body.message).toBe(
      'pod tolerations (possibly merged with namespace default tolerations) conflict with its namespace whitelist',
    );
  });
});

test('ADM-1: OwnerReferencesPermissionEnforcement does not block the garbage collector', async () => {
  const server = await withServer({
    controllers: ['garbage-collector-controller'],
    admission: { disabled, enabled: ['OwnerReferencesPermissionEnforcement'] },
  });
  const path = `/api/v1/namespaces/${await freshNamespace(server)}/configmaps`;
  const { uid } = (await server.post(path, configMap('owner'))).body.metadata;
  const ownerReferences = [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid }];
  const owned = { ...configMap('owned'), metadata: { name: 'owned', ownerReferences } };
  await mustCreate(server, path, owned);
  await server.remove(`${path}/owner?propagationPolicy=Orphan`);
  await eventually(async () => {
    const { body } = await server.get(`${path}/owned`);
    return body.metadata.ownerReferences === undefined;
  }, 'the orphan has no owner');
});

test('ADM-1: DenyServiceExternalIPs refuses new external addresses', async () => {
  await within({ disabled, enabled: ['DenyServiceExternalIPs'] }, async (server, core) => {
    const service = (externalIPs: string[]) => ({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 's' },
      spec: { ports: [{ port: 80 }], ...(externalIPs.length === 0 ? {} : { externalIPs }) },
    });
    const answer = await server.post(`${core}/services`, service(['10.1.2.3']));
    expect(answer.status).toBe(403);
    expect(answer.body.message).toBe(
      'services "s" is forbidden: Use of external IPs is denied by admission control',
    );
    expect((await server.post(`${core}/services`, service([]))).status).toBe(201);
  });
});

test('ADM-1: OwnerReferencesPermissionEnforcement requires rights to delete and block', async () => {
  const server = await withUsers([{ name: 'writer' }, { name: 'owner' }], {
    admission: { disabled, enabled: ['OwnerReferencesPermissionEnforcement'] },
  });
  const ns = await freshNamespace(server);
  const write = {
    apiGroups: [''],
    resources: ['configmaps'],
    verbs: ['create', 'update', 'patch'],
  };
  const owning = [
    { apiGroups: [''], resources: ['configmaps'], verbs: ['delete'] },
    { apiGroups: ['apps'], resources: ['deployments/finalizers'], verbs: ['update'] },
  ];
  for (const [name, rules, subjects] of [
    ['writes', [write], ['writer', 'owner']],
    ['owns', owning, ['owner']],
  ] as const) {
    await mustCreate(server, `${rbacPath}/clusterroles`, roleOf('ClusterRole', name, { rules }));
    const binding = bindingOf('ClusterRoleBinding', name, { role: name, subjects });
    await mustCreate(server, `${rbacPath}/clusterrolebindings`, binding);
  }
  const path = `/api/v1/namespaces/${ns}/configmaps`;
  await mustCreate(server, path, configMap('c'));
  const ownerReference = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'd', uid: 'u' };
  const own = (user: string, more: object = {}) =>
    server.patch(
      `${path}/c`,
      { metadata: { ownerReferences: [{ ...ownerReference, ...more }] } },
      'merge',
      as(user),
    );
  const refused = await own('writer');
  expect(refused.status).toBe(403);
  expect(refused.body.message).toBe(
    'configmaps "c" is forbidden: cannot set an ownerRef on a resource you can\'t delete: , <nil>',
  );
  expect((await own('owner', { blockOwnerDeletion: true })).status).toBe(200);
  const blocking = [{ ...ownerReference, blockOwnerDeletion: true }];
  const created = (kind: string) => ({
    ...configMap('n'),
    metadata: { name: 'n', ownerReferences: blocking.map((reference) => ({ ...reference, kind })) },
  });
  const held = await server.post(path, created('Deployment'), as('writer'));
  expect(held.status).toBe(403);
  expect(held.body.message).toBe(
    'configmaps "n" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource you can\'t set finalizers on: , <nil>',
  );
  const unknown = await server.post(path, created('Nothing'), as('owner'));
  expect(unknown.body.message).toBe(
    'configmaps "n" is forbidden: cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion apps/v1 Kind Nothing: no matches for kind "Nothing" in version "apps/v1"',
  );
});

import {
  AppsV1Api,
  CoreV1Api,
  CustomObjectsApi,
  KubeConfig,
  makeInformer,
  type ObjectCache,
  PatchStrategy,
  setHeaderOptions,
  type V1ConfigMap,
  Watch,
} from '@kubernetes/client-node';
import { beforeAll, describe, expect, test } from 'vitest';
import { adminToken, eventually, freshNamespace } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

let config: KubeConfig;

const server = await withServer({ dialect: 'kubernetes' });

beforeAll(async () => {
  config = new KubeConfig();
  config.loadFromClusterAndUser(
    {
      name: 'wheelhouse',
      server: server.url,
      skipTLSVerify: false,
      caData: Buffer.from(server.server.caPem ?? '').toString('base64'),
    },
    { name: 'admin', token: adminToken },
  );
});

describe('the JavaScript client library', () => {
  test('CLIENT-2: creates, reads, pages, patches, replaces, and deletes', async () => {
    const namespace = await freshNamespace(server);
    const core = config.makeApiClient(CoreV1Api);
    const body = { metadata: { name: 'a' }, data: { x: '1' } };
    const made = await core.createNamespacedConfigMap({ namespace, body });
    expect(made.metadata?.uid).toMatch(/^[0-9a-f-]{36}$/);
    expect(made.metadata?.creationTimestamp).toBeInstanceOf(Date);
    for (const name of ['b', 'c']) {
      await core.createNamespacedConfigMap({ namespace, body: { metadata: { name } } });
    }
    const first = await core.listNamespacedConfigMap({ namespace, limit: 2 });
    expect(first.items.map((item) => item.metadata?.name)).toEqual(['a', 'b']);
    const rest = await core.listNamespacedConfigMap({
      namespace,
      limit: 2,
      _continue: first.metadata?._continue ?? '',
    });
    expect(rest.items.map((item) => item.metadata?.name)).toEqual(['c']);
    const patched = await core.patchNamespacedConfigMap(
      { namespace, name: 'a', body: { data: { y: '2' } } },
      setHeaderOptions('Content-Type', PatchStrategy.StrategicMergePatch),
    );
    expect(patched.data).toEqual({ x: '1', y: '2' });
    const replaced = await core.replaceNamespacedConfigMap({
      namespace,
      name: 'a',
      body: { ...patched, data: { z: '3' } },
    });
    expect(replaced.data).toEqual({ z: '3' });
    const stale = core.replaceNamespacedConfigMap({ namespace, name: 'a', body: patched });
    await expect(stale).rejects.toMatchObject({ code: 409 });
    await core.deleteNamespacedConfigMap({ namespace, name: 'a' });
    const gone = core.readNamespacedConfigMap({ namespace, name: 'a' });
    await expect(gone).rejects.toMatchObject({ code: 404 });
  });

  test('CLIENT-2: uses server-side apply and scale', async () => {
    const namespace = await freshNamespace(server);
    const apps = config.makeApiClient(AppsV1Api);
    const labels = { app: 'web' };
    const template = {
      metadata: { labels },
      spec: { containers: [{ name: 'web', image: 'web:1' }] },
    };
    const body = {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'web' },
      spec: { replicas: 2, selector: { matchLabels: labels }, template },
    };
    const applied = await apps.patchNamespacedDeployment(
      { namespace, name: 'web', body, fieldManager: 'test' },
      setHeaderOptions('Content-Type', PatchStrategy.ServerSideApply),
    );
    expect(applied.spec?.strategy?.type).toBe('RollingUpdate');
    expect(applied.metadata?.managedFields?.[0]).toMatchObject({
      manager: 'test',
      operation: 'Apply',
    });
    const scale = await apps.readNamespacedDeploymentScale({ namespace, name: 'web' });
    expect(scale.spec?.replicas).toBe(2);
  });

  test('CLIENT-2: follows changes with its watch and informer', async () => {
    const namespace = await freshNamespace(server);
    const core = config.makeApiClient(CoreV1Api);
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    const seen: string[] = [];
    const request = await new Watch(config).watch(
      path,
      {},
      (phase, object) => seen.push(`${phase} ${object.metadata.name}`),
      () => {},
    );
    const list = () => core.listNamespacedConfigMap({ namespace });
    const informer = makeInformer(config, path, list) as ReturnType<
      typeof makeInformer<V1ConfigMap>
    > &
      ObjectCache<V1ConfigMap>;
    await informer.start();
    try {
      await core.createNamespacedConfigMap({ namespace, body: { metadata: { name: 'a' } } });
      await core.deleteNamespacedConfigMap({ namespace, name: 'a' });
      await core.createNamespacedConfigMap({ namespace, body: { metadata: { name: 'b' } } });
      await eventually(async () => seen.length >= 3, 'three events');
      expect(seen).toEqual(['ADDED a', 'DELETED a', 'ADDED b']);
      await eventually(async () => informer.get('b', namespace), 'b in the informer');
      expect(informer.list(namespace).map((item) => item.metadata?.name)).toEqual(['b']);
    } finally {
      await informer.stop();
      request.abort();
    }
  });

  test('CLIENT-2: uses custom objects', async () => {
    const group = 'client.example.com';
    const crd = {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: `things.${group}` },
      spec: {
        group,
        scope: 'Cluster',
        names: { plural: 'things', kind: 'Thing' },
        versions: [
          {
            name: 'v1',
            served: true,
            storage: true,
            schema: {
              openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
            },
          },
        ],
      },
    };
    await server.post('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', crd);
    const api = config.makeApiClient(CustomObjectsApi);
    const at = { group, version: 'v1', plural: 'things' };
    await eventually(async () => (await server.get(`/apis/${group}/v1/things`)).status === 200);
    const body = { apiVersion: `${group}/v1`, kind: 'Thing', metadata: { name: 't' }, deep: [1] };
    await api.createClusterCustomObject({ ...at, body });
    const read = await api.getClusterCustomObject({ ...at, name: 't' });
    expect(read).toMatchObject({ deep: [1] });
  });
});

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Deployment } from '@wheelhouse/kinds/types/apps/v1';
import { type JsonObject, silentLogger, systemClock } from '@wheelhouse/machinery';
import { openEmbeddedStore } from '@wheelhouse/store';
import { hasEtcd, startTestEtcd, type TestEtcd } from '@wheelhouse/store/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  type Answer,
  type ConfigChange,
  eventually,
  type ResponseOf,
  selecting,
  startTestServer,
  type TestServer,
} from '../support/harness.ts';
import { onEtcd } from './etcd-config.ts';

const created = '2019-01-01T00:00:00Z';
const identity = (name: string, more: JsonObject = {}): JsonObject => ({
  name,
  namespace: 'default',
  uid: `11111111-0000-4000-8000-${Buffer.from(name).toString('hex').padEnd(12, '0').slice(0, 12)}`,
  creationTimestamp: created,
  ...more,
});

const names = { plural: 'cups', singular: 'cup', kind: 'Cup', listKind: 'CupList' };
const size = (more: JsonObject = {}) => ({
  type: 'object',
  properties: { size: { type: 'integer', ...more } },
});

/** The form in which release 1.32 stores it: fields of a single version are at the top level. */
const definition: JsonObject = {
  kind: 'CustomResourceDefinition',
  apiVersion: 'apiextensions.k8s.io/v1beta1',
  metadata: { name: 'cups.example.com', uid: 'c', generation: 1, creationTimestamp: created },
  spec: {
    group: 'example.com',
    version: 'v1',
    names,
    scope: 'Namespaced',
    validation: {
      openAPIV3Schema: {
        type: 'object',
        properties: { spec: size({ default: 3, maximum: 9 }), status: size() },
      },
    },
    subresources: {
      status: {},
      scale: { specReplicasPath: '.spec.size', statusReplicasPath: '.status.size' },
    },
    versions: [{ name: 'v1', served: true, storage: true }],
    additionalPrinterColumns: [{ name: 'Size', type: 'integer', JSONPath: '.spec.size' }],
    conversion: { strategy: 'None' },
    preserveUnknownFields: false,
  },
  status: {
    conditions: [
      { type: 'NamesAccepted', status: 'True', lastTransitionTime: created },
      { type: 'Established', status: 'True', lastTransitionTime: created },
    ],
    acceptedNames: names,
    storedVersions: ['v1'],
  },
};

const values: Readonly<Record<string, JsonObject>> = {
  'apiextensions.k8s.io/customresourcedefinitions/cups.example.com': definition,
  'events/default/new': {
    kind: 'Event',
    apiVersion: 'events.k8s.io/v1',
    metadata: identity('new'),
    eventTime: '2024-01-02T03:04:05.678901Z',
    reportingController: 'example.com/c',
    reportingInstance: 'i',
    action: 'A',
    reason: 'R',
    regarding: { kind: 'Pod', namespace: 'default', name: 'p' },
    note: 'hello',
    type: 'Normal',
  },
  'services/specs/default/old': {
    kind: 'Service',
    apiVersion: 'v1',
    metadata: identity('old'),
    spec: { ports: [{ port: 80 }], clusterIP: '10.0.0.7' },
  },
  'services/specs/default/bare': {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: identity('bare'),
    spec: { ports: [{ port: 80 }], clusterIP: 'None' },
  },
  'persistentvolumeclaims/default/copy': {
    kind: 'PersistentVolumeClaim',
    apiVersion: 'v1',
    metadata: identity('copy'),
    spec: { dataSource: { kind: 'PersistentVolumeClaim', name: 'source' } },
  },
  'deployments/default/web': {
    kind: 'Deployment',
    apiVersion: 'extensions/v1beta1',
    metadata: identity('web'),
    spec: {
      template: {
        metadata: { labels: { app: 'web' } },
        spec: { containers: [{ name: 'c', image: 'i' }] },
      },
      selector: { matchLabels: { app: 'web' } },
    },
  },
  'deployments/default/newer': {
    kind: 'Deployment',
    apiVersion: 'apps/v1',
    metadata: identity('newer'),
    spec: {
      template: {
        metadata: { labels: { app: 'newer' } },
        spec: {
          initContainers: [
            {
              name: 'sidecar',
              image: 'i',
              restartPolicy: 'Always',
              resizePolicy: [{ resourceName: 'cpu', restartPolicy: 'NotRequired' }],
            },
          ],
          containers: [{ name: 'c', image: 'i' }],
        },
      },
      selector: { matchLabels: { app: 'newer' } },
    },
  },
  'configmaps/default/unknown': {
    kind: 'ConfigMap',
    apiVersion: 'v7',
    metadata: identity('unknown'),
  },
  'secrets/default/mistyped': {
    kind: 'Secret',
    apiVersion: 'v1',
    metadata: identity('mistyped'),
    data: 'none',
  },
  'example.com/cups/default/odd': {
    apiVersion: 'example.com/v1',
    kind: 'Cup',
    metadata: {
      name: 'odd',
      namespace: 'default',
      uid: 7,
      labels: 'nope',
      finalizers: { a: 1 },
      annotations: { a: 'b' },
    },
    spec: {},
  },
  'example.com/cups/default/worse': {
    apiVersion: 'example.com/v1',
    kind: 'Cup',
    metadata: 'none',
    spec: { size: 4 },
  },
};

/** A store that contains the values before a server starts on it. */
interface Prepared {
  readonly config: ConfigChange;
  dispose(): void | Promise<void>;
}

async function prepareEtcd(): Promise<Prepared> {
  const etcd: TestEtcd = await startTestEtcd();
  const config = onEtcd(etcd);
  const prefix = config.store?.type === 'etcd' ? config.store.prefix : '';
  const base64 = (text: string) => Buffer.from(text).toString('base64');
  for (const [key, value] of Object.entries(values)) {
    const text = `${JSON.stringify(value)}\n`;
    await etcd.request('kv/put', { key: base64(`${prefix}/${key}`), value: base64(text) });
  }
  return { config: { ...config, storedBuiltins: 'json' }, dispose: () => etcd.dispose() };
}

async function prepareEmbedded(): Promise<Prepared> {
  const directory = mkdtempSync(join(tmpdir(), 'wheelhouse-versions-'));
  const own = { directory, clock: systemClock, logger: silentLogger };
  const store = await openEmbeddedStore(own);
  for (const [key, value] of Object.entries(values)) {
    const bytes = Buffer.from(JSON.stringify(value));
    await store.put({ key: `/registry/${key}`, value: bytes, expect: 0 });
  }
  await store.close();
  const config: ConfigChange = { store: { type: 'embedded', directory } };
  return { config, dispose: () => rmSync(directory, { recursive: true, force: true }) };
}

const core = '/api/v1/namespaces/default';
const cups = '/apis/example.com/v1/namespaces/default/cups';

describe.each([
  { name: 'etcd', prepare: prepareEtcd, skip: !hasEtcd },
  { name: 'the embedded store', prepare: prepareEmbedded, skip: false },
])('objects of other writers on $name', ({ prepare, skip }) => {
  describe.skipIf(skip)('are converted and defaulted', () => {
    let prepared: Prepared;
    let server: TestServer;
    beforeAll(async () => {
      prepared = await prepare();
      server = await startTestServer({ dialect: 'kubernetes', ...prepared.config });
    }, 60_000);
    afterAll(async () => {
      await server.stop();
      await prepared.dispose();
    });

    test('STORE-2: a definition stored as v1beta1 keeps everything', async () => {
      const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/cups.example.com';
      const { body } = await server.get(path);
      expect(body.apiVersion).toBe('apiextensions.k8s.io/v1');
      expect(body.spec).not.toHaveProperty('validation');
      expect(body.spec.versions).toMatchObject([
        {
          name: 'v1',
          schema: { openAPIV3Schema: { properties: { spec: size({ default: 3, maximum: 9 }) } } },
          subresources: { status: {}, scale: { specReplicasPath: '.spec.size' } },
          additionalPrinterColumns: [{ name: 'Size', type: 'integer', jsonPath: '.spec.size' }],
        },
      ]);
      const cup = (name: string, spec: JsonObject) =>
        server.post(cups, { apiVersion: 'example.com/v1', kind: 'Cup', metadata: { name }, spec });
      const made = await eventually(async () => {
        const answer = await cup('made', {});
        return answer.status === 404 ? undefined : answer;
      }, 'the kind to be served');
      expect(made.body.spec).toEqual({ size: 3 });
      expect((await cup('big', { size: 10 })).status).toBe(422);
      expect((await server.get(`${cups}/made/scale`)).body.spec).toEqual({ replicas: 3 });
      const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io';
      const table = await server.get(`${cups}/made`, { accept });
      expect(table.body.rows[0].cells).toEqual(['made', 3]);
    });

    test('STORE-2: an Event stored as events/v1 is served in both groups', async () => {
      const { body } = await server.get(`${core}/events/new`);
      expect(body).toMatchObject({
        apiVersion: 'v1',
        involvedObject: { kind: 'Pod', name: 'p' },
        message: 'hello',
        reportingComponent: 'example.com/c',
        source: {},
        firstTimestamp: null,
      });
      const found = await server.get(`${core}/events?fieldSelector=involvedObject.name=p`);
      expect(found.body.items).toHaveLength(1);
      const own = await server.get('/apis/events.k8s.io/v1/namespaces/default/events/new');
      expect(own.body).toMatchObject({ regarding: { name: 'p' }, note: 'hello' });
    });

    test('STORE-2: resize policies of sidecars, which later releases store, are dropped', async () => {
      const path = '/apis/apps/v1/namespaces/default/deployments/newer';
      const policies = ({ body }: Answer<ResponseOf<Deployment>>) =>
        body.spec.template.spec?.initContainers?.map(({ resizePolicy }) => resizePolicy?.length);
      expect(policies(await server.get<ResponseOf<Deployment>>(path))).toEqual([1]);
      const labels = { metadata: { labels: { a: 'b' } } };
      const patched = await server.patch<ResponseOf<Deployment>>(path, labels, 'merge');
      expect([patched.status, policies(patched)]).toEqual([200, [undefined]]);
    });

    test('STORE-2: a Service without clusterIPs gets them and accepts updates', async () => {
      const spec = {
        ports: [{ protocol: 'TCP', port: 80, targetPort: 80 }],
        clusterIP: '10.0.0.7',
        clusterIPs: ['10.0.0.7'],
        type: 'ClusterIP',
        sessionAffinity: 'None',
        ipFamilies: ['IPv4'],
        ipFamilyPolicy: 'SingleStack',
        internalTrafficPolicy: 'Cluster',
      };
      expect((await server.get(`${core}/services/old`)).body.spec).toEqual(spec);
      const labels = { metadata: { labels: { a: 'b' } } };
      const patched = await server.patch(`${core}/services/old`, labels, 'merge');
      expect(patched.status, patched.text).toBe(200);
      expect(patched.body.spec).toEqual(spec);
      expect((await server.put(`${core}/services/old`, patched.body)).status).toBe(200);
      expect((await server.get(`${core}/services/bare`)).body.spec).toMatchObject({
        clusterIPs: ['None'],
        ipFamilies: ['IPv4', 'IPv6'],
        ipFamilyPolicy: 'RequireDualStack',
      });
    });

    test('STORE-2: objects of removed versions get the defaults of their version', async () => {
      const { body } = await server.get<ResponseOf<Deployment>>(
        '/apis/apps/v1/namespaces/default/deployments/web',
      );
      expect(body.apiVersion).toBe('apps/v1');
      expect(body.spec).toMatchObject({
        replicas: 1,
        progressDeadlineSeconds: 2147483647,
        strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 1 } },
      });
      expect(body.spec.template.spec.containers[0].imagePullPolicy).toBe('Always');
      const claim = await server.get(`${core}/persistentvolumeclaims/copy`);
      expect(claim.body.spec.dataSourceRef).toEqual({
        apiGroup: null,
        kind: 'PersistentVolumeClaim',
        name: 'source',
      });
    });

    test('STORE-2: an unchanged write stores the current form, once', async () => {
      const path = '/apis/apps/v1/namespaces/default/deployments';
      const spec = selecting({ app: 'a' });
      const made = await server.post(path, { metadata: { name: 'made' }, spec });
      const again = async (name: string) => {
        const { body } = await server.patch(`${path}/${name}`, {}, 'merge');
        return body.metadata.resourceVersion;
      };
      expect(await again('made')).toBe(made.body.metadata.resourceVersion);
      const before = await server.get(`${path}/web`);
      const first = await again('web');
      expect(first).not.toBe(before.body.metadata.resourceVersion);
      expect(await again('web')).toBe(first);
    });

    test('STORE-3: an unconvertible object is reported by key, kind, and version', async () => {
      const { store } = server.config;
      const prefix = store?.type === 'etcd' ? store.prefix : '/registry';
      const messageOf = (type: string, name: string, why: string) =>
        expect.stringMatching(
          new RegExp(`(?=.*${prefix}/${type}/default/${name})(?=.*${why})`, 's'),
        );
      const unknown = await server.get(`${core}/configmaps/unknown`);
      expect(unknown.status).toBe(500);
      const why = 'no kind "ConfigMap" is registered for version "v7"';
      expect(unknown.body.message).toEqual(messageOf('configmaps', 'unknown', why));
      const listed = await server.get(`${core}/configmaps`);
      expect(listed.status).toBe(500);
      expect(listed.body.details.causes[0].message).toEqual(
        messageOf('configmaps', 'unknown', why),
      );
      const mistyped = await server.get(`${core}/secrets/mistyped`);
      expect(mistyped.status).toBe(500);
      expect(mistyped.body.message).toEqual(messageOf('secrets', 'mistyped', 'data'));
    });

    test('CRD-4: a custom object with mistyped metadata can be read and deleted', async () => {
      const odd = await eventually(async () => {
        const answer = await server.get(`${cups}/odd`);
        return answer.status === 404 ? undefined : answer;
      }, 'the kind to be served');
      const { resourceVersion: _, ...metadata } = odd.body.metadata;
      expect(odd.body.spec).toEqual({ size: 3 });
      expect(metadata).toEqual({
        name: 'odd',
        namespace: 'default',
        creationTimestamp: null,
        generation: 1,
        annotations: { a: 'b' },
      });
      const worse = await server.get(`${cups}/worse`);
      expect(worse.body).toMatchObject({ metadata: { name: 'worse' }, spec: { size: 4 } });
      for (const name of ['odd', 'worse']) {
        expect((await server.remove(`${cups}/${name}`)).status).toBe(200);
        expect((await server.get(`${cups}/${name}`)).status).toBe(404);
      }
    });
  });
});

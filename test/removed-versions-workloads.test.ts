import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freshNamespace, type Loose, startTestServer, type TestServer } from './harness.ts';

const pods = { containers: [{ name: 'main', image: 'example.com/main:1.0' }] };
const template = { metadata: { labels: { app: 'a' } }, spec: pods };

describe('release 1.15', () => {
  let server: TestServer;
  let namespace: string;
  beforeAll(async () => {
    server = await startTestServer({ emulatedMinor: 15 });
    namespace = await freshNamespace(server);
  });
  afterAll(() => server.stop());

  const at = (groupVersion: string, resource: string, name = '') =>
    `/apis/${groupVersion}/namespaces/${namespace}/${resource}${name === '' ? '' : `/${name}`}`;

  test('VER-2: a Deployment of extensions takes its selector from its template', async () => {
    const body = {
      apiVersion: 'extensions/v1beta1',
      kind: 'Deployment',
      metadata: { name: 'old' },
      spec: { template, rollbackTo: { revision: 3 } },
    };
    const made = await server.post(at('extensions/v1beta1', 'deployments'), body);
    expect(made.status, made.text).toBe(201);
    expect(made.warnings).toEqual([
      'extensions/v1beta1 Deployment is deprecated in v1.8+, unavailable in v1.16+; use apps/v1 Deployment',
    ]);
    expect(made.body).toMatchObject({
      apiVersion: 'extensions/v1beta1',
      metadata: { labels: { app: 'a' } },
      spec: {
        selector: { matchLabels: { app: 'a' } },
        progressDeadlineSeconds: 2147483647,
        revisionHistoryLimit: 2147483647,
        strategy: { rollingUpdate: { maxSurge: 1, maxUnavailable: 1 } },
        rollbackTo: { revision: 3 },
      },
    });
    const current = (await server.get(at('apps/v1', 'deployments', 'old'))).body;
    expect(current).toMatchObject({
      apiVersion: 'apps/v1',
      metadata: { annotations: { 'deprecated.deployment.rollback.to': '3' } },
      spec: { selector: { matchLabels: { app: 'a' } } },
    });
    expect(current.spec.rollbackTo).toBeUndefined();
    const managers = current.metadata.managedFields.map((one: Loose) => one.apiVersion);
    expect(managers).toEqual(['extensions/v1beta1']);
  });
});

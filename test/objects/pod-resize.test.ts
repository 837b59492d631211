import type { Pod, ResourceQuota } from '@wheelhouse/kinds/types/core/v1';
import type { JsonObject } from '@wheelhouse/machinery';
import { readFeatureGates } from '@wheelhouse/server/testing';
import { describe, expect, test } from 'vitest';
import { eventually, freshNamespace, type ResponseOf } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

const featureGates = readFeatureGates(['InPlacePodVerticalScaling=true']).gates;

const controllers = ['namespace-controller', 'resourcequota-controller'];
const server = await withServer({ dialect: 'kubernetes', featureGates, controllers });
const namespace = await freshNamespace(server);

const pods = (name = '') => `/api/v1/namespaces/${namespace}/pods${name === '' ? '' : `/${name}`}`;

async function podOf(name: string, resources: JsonObject, spec: JsonObject = {}): Promise<void> {
  const made = await server.post(pods(), {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: { containers: [{ name: 'c', image: 'i', resources }], ...spec },
  });
  expect(made.status, made.text).toBe(201);
}

const resized = (name: string, resources: JsonObject, more: JsonObject = {}) =>
  server.patch<ResponseOf<Pod>>(
    `${pods(name)}/resize`,
    { spec: { containers: [{ name: 'c', resources, ...more }] } },
    'strategic',
  );

describe('VER-5: pods/resize', () => {
  test('VER-5: changes container resources and nothing else', async () => {
    await podOf('a', { requests: { cpu: '100m' } });
    const { body: before } = await server.get<ResponseOf<Pod>>(pods('a'));
    expect(before.spec.containers[0].resizePolicy).toEqual([
      { resourceName: 'cpu', restartPolicy: 'NotRequired' },
    ]);
    const answer = await resized('a', { requests: { cpu: '200m' } }, { image: 'other' });
    expect(answer.status, answer.text).toBe(200);
    expect(answer.body.status.resize).toBe('Proposed');
    expect(answer.body.spec.containers[0]).toMatchObject({
      image: 'i',
      resources: { requests: { cpu: '200m' } },
    });
    const policy = { resourceName: 'cpu', restartPolicy: 'NotRequired' };
    const ephemeralContainers = [{ name: 'e', image: 'i', resizePolicy: [policy] }];
    const added = await server.patch(
      `${pods('a')}/ephemeralcontainers`,
      { spec: { ephemeralContainers } },
      'merge',
    );
    expect(added.body.message).toContain(
      'spec.ephemeralContainers[0].resizePolicy: Forbidden: cannot be set for an Ephemeral Container',
    );
    const plain = await server.patch(
      pods('a'),
      { spec: { containers: [{ name: 'c', resources: { requests: { cpu: '300m' } } }] } },
      'strategic',
    );
    expect(plain.status).toBe(422);
    expect((await server.get(`${pods('a')}/resize`)).body.metadata.name).toBe('a');
  });

  test.each<[JsonObject, string]>([
    [{ requests: { memory: '1Gi', cpu: '1' }, limits: { cpu: '1', memory: '1Gi' } }, 'QOS Class'],
    [{ requests: { cpu: null } }, 'resource requests cannot be removed'],
    [{ requests: { 'ephemeral-storage': '1Gi' } }, 'only cpu and memory resources are mutable'],
  ])('VER-5: refuses %j', async (resources, why) => {
    const name = `b${Math.abs(JSON.stringify(resources).length)}`;
    await podOf(name, { requests: { cpu: '100m', memory: '1Mi' } });
    const answer = await resized(name, resources);
    expect([answer.status, answer.body.message]).toEqual([422, expect.stringContaining(why)]);
  });

  test('VER-5: another spelling of the same resources proposes nothing', async () => {
    await podOf('same', { requests: { cpu: '100m', memory: '1Gi' } });
    const answer = await resized('same', { requests: { memory: '1073741824' } });
    expect(answer.status, answer.text).toBe(200);
    expect(answer.body.spec.containers[0].resources.requests.memory).toBe('1073741824');
    expect(answer.body.status).not.toHaveProperty('resize');
  });

  test('VER-5: refuses invalid policies', async () => {
    const made = await server.post(pods(), {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'p' },
      spec: {
        restartPolicy: 'Never',
        containers: [
          {
            name: 'c',
            image: 'i',
            resizePolicy: [{ resourceName: 'disk', restartPolicy: 'RestartContainer' }],
          },
        ],
      },
    });
    expect(made.body.message).toContain(
      'spec.containers[0].resizePolicy: Unsupported value: disk: supported values: "cpu", "memory"',
    );
    expect(made.body.message).toContain("must be 'NotRequired' when `restartPolicy` is 'Never'");
  });

  test('VER-5: counts towards quotas and limits', async () => {
    await podOf('q', { requests: { cpu: '100m' } });
    const hard = { 'requests.cpu': '1' };
    await server.post(`/api/v1/namespaces/${namespace}/resourcequotas`, {
      apiVersion: 'v1',
      kind: 'ResourceQuota',
      metadata: { name: 'q' },
      spec: { hard },
    });
    await eventually(async () => {
      const path = `/api/v1/namespaces/${namespace}/resourcequotas/q`;
      const { body } = await server.get<ResponseOf<ResourceQuota>>(path);
      return body.status?.used?.['requests.cpu'] !== undefined;
    }, 'the quota');
    const refused = await resized('q', { requests: { cpu: '900m' } });
    expect([refused.status, refused.body.message]).toEqual([
      403,
      expect.stringContaining('exceeded quota: q'),
    ]);
  });

  test('VER-5: is not served while the gate is off', async () => {
    const plain = await withServer();
    const own = await freshNamespace(plain);
    expect((await plain.get(`/api/v1/namespaces/${own}/pods/a/resize`)).status).toBe(404);
    const { resources } = (await plain.get('/api/v1')).body;
    const names = resources.map((resource: { name: string }) => resource.name);
    expect(names).not.toContain('pods/resize');
  });
});

test('VER-5: resources that a LimitRange sets have resize policies', async () => {
  const limited = await freshNamespace(server);
  const path = `/api/v1/namespaces/${limited}`;
  const range = await server.post(`${path}/limitranges`, {
    apiVersion: 'v1',
    kind: 'LimitRange',
    metadata: { name: 'r' },
    spec: { limits: [{ type: 'Container', defaultRequest: { memory: '1Mi' } }] },
  });
  expect(range.status, range.text).toBe(201);
  const container = { name: 'c', image: 'i', resources: { requests: { cpu: '1' } } };
  const made = await server.post<ResponseOf<Pod>>(`${path}/pods`, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'a' },
    spec: { containers: [container] },
  });
  const policies = ['cpu', 'memory'].map((resourceName) => ({
    resourceName,
    restartPolicy: 'NotRequired',
  }));
  expect(made.body.spec.containers[0].resizePolicy).toEqual(policies);
});

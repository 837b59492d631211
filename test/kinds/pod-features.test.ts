import { readFileSync } from 'node:fs';
import type { JsonObject } from '@wheelhouse/machinery';
import { readFeatureGates } from '@wheelhouse/server/testing';
import { describe, expect, test } from 'vitest';
import { type Answer, freshNamespace } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

/** The reference's answer to a create of a Pod. */
interface ReferenceAnswer {
  readonly spec: JsonObject;
  readonly annotations?: JsonObject;
  readonly status: number;
  /** The errors; only the field if the reference shows addresses in memory. */
  readonly causes?: readonly string[];
  readonly becomes?: JsonObject;
  readonly qosClass?: string;
}

const answers: readonly ReferenceAnswer[] = JSON.parse(
  readFileSync(new URL('pod-features.json', import.meta.url), 'utf8'),
);

const gates = `ClusterTrustBundle ClusterTrustBundleProjection DynamicResourceAllocation ImageVolume
  InPlacePodVerticalScaling PodLevelResources ProcMountType SELinuxChangePolicy SupplementalGroupsPolicy UserNamespacesSupport`;

const server = await withServer({
  dialect: 'kubernetes',
  runtimeConfig: new Map([['api/all', true]]),
  featureGates: readFeatureGates(gates.split(/\s+/).map((name) => `${name}=true`)).gates,
});

const podsOf = (namespace: string) => `/api/v1/namespaces/${namespace}/pods`;

const pod = (spec: JsonObject, metadata: JsonObject = { name: 'p' }) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata,
  spec,
});

function causesOf(answer: Answer): string[] {
  const causes: { field: string; message: string }[] = answer.body.details.causes;
  return causes.map(({ field, message }) => `${field}: ${message}`).sort();
}

test.each(answers.map((answer, index) => [index, answer] as const))(
  'VER-5: with gates on, pod %i is validated as by the reference',
  async (_, { spec, annotations, status, causes, becomes, qosClass }) => {
    const body = pod(spec, { name: 'p', ...(annotations && { annotations }) });
    const answer = await server.post(`${podsOf('default')}?dryRun=All`, body);
    expect([answer.status, answer.text]).toEqual([status, expect.any(String)]);
    if (causes !== undefined) {
      const found = causesOf(answer);
      expect(found).toHaveLength(causes.length);
      for (const [index, cause] of causes.entries()) expect(found[index]).toMatch(startOf(cause));
    }
    if (becomes !== undefined) expect(answer.body.spec).toMatchObject(becomes);
    if (qosClass !== undefined) expect(answer.body.status.qosClass).toBe(qosClass);
  },
);

/** The whole cause, or its field if nothing else is recorded. */
function startOf(cause: string): RegExp {
  const text = cause.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  return new RegExp(cause.includes(': ') ? `^${text}$` : `^${text}: Invalid value: `);
}

describe('resources of a whole pod', () => {
  const container = { name: 'c', image: 'i', resources: { requests: { cpu: '1' } } };
  const resources = { requests: { cpu: '2' }, limits: { cpu: '2', memory: '1Gi' } };

  test('VER-5: a quota counts them and requires nothing of containers', async () => {
    const namespace = await freshNamespace(server);
    const quota = {
      apiVersion: 'v1',
      kind: 'ResourceQuota',
      metadata: { name: 'q' },
      spec: { hard: { 'requests.cpu': '3', 'limits.memory': '2Gi' } },
    };
    const path = `/api/v1/namespaces/${namespace}/resourcequotas`;
    await server.post(path, quota);
    const status = {
      status: { hard: quota.spec.hard, used: { 'requests.cpu': '0', 'limits.memory': '0' } },
    };
    expect((await server.patch(`${path}/q/status`, status, 'merge')).status).toBe(200);
    const spec = { containers: [container], resources };
    const first = await server.post(podsOf(namespace), pod(spec));
    expect([first.status, first.text]).toEqual([201, expect.any(String)]);
    const { body } = await server.get(`${path}/q`);
    expect(body.status.used).toEqual({ 'requests.cpu': '2', 'limits.memory': '1Gi' });
    const second = await server.post(podsOf(namespace), pod(spec, { name: 'second' }));
    expect([second.status, second.body.message]).toEqual([
      403,
      expect.stringContaining('exceeded quota: q, requested: requests.cpu=2, used: requests.cpu=2'),
    ]);
    const plain = await server.post(
      podsOf(namespace),
      pod({ containers: [container] }, { name: 'plain' }),
    );
    expect(plain.body.message).toContain('must specify limits.memory for: c');
  });

  test('VER-5: a pod with them cannot be resized', async () => {
    const namespace = await freshNamespace(server);
    await server.post(podsOf(namespace), pod({ containers: [container], resources }));
    const change = { spec: { containers: [{ name: 'c', resources: { requests: { cpu: '2' } } }] } };
    const answer = await server.patch(`${podsOf(namespace)}/p/resize`, change, 'strategic');
    expect([answer.status, answer.body.message]).toEqual([
      422,
      expect.stringContaining('pods with pod-level resources cannot be resized'),
    ]);
  });
});

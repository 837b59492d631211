import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ServerConfig } from '../src/server/config.ts';
import { hasEtcd, startTestEtcd, type TestEtcd } from '../src/storage/etcd/testing.ts';
import {
  type ConfigChange,
  configMap,
  eventually,
  startTestServer,
  type TestServer,
} from './harness.ts';

let prefixes = 0;

/** A server's configuration on an etcd, with keys of its own unless it shares another's. */
function onEtcd(
  etcd: Pick<TestEtcd, 'url'>,
  more: Partial<Extract<ServerConfig['store'], { readonly type: 'etcd' }>> = {},
): ConfigChange {
  prefixes += 1;
  return {
    store: {
      type: 'etcd',
      servers: [etcd.url],
      prefix: `/test-${prefixes}`,
      healthcheckTimeoutMs: 2000,
      readycheckTimeoutMs: 2000,
      countMetricMs: 1,
      sizeMetricMs: 1,
      leaseReuseMs: 60_000,
      ...more,
    },
  };
}

const quickElection = {
  leaseDurationMs: 1500,
  renewDeadlineMs: 1000,
  retryPeriodMs: 200,
  name: 'test-controllers',
};

const quotaWords = expect.stringContaining('exceeded quota: q, requested: count/configmaps=1');

const maps = '/api/v1/namespaces/default/configmaps';

describe.skipIf(!hasEtcd)('on etcd', () => {
  let etcd: TestEtcd;
  beforeAll(async () => {
    etcd = await startTestEtcd();
  });
  afterAll(() => etcd.dispose());

  test('STORE-2: two servers on one etcd see each other at once, in one order', async () => {
    const shared = onEtcd(etcd);
    const [one, other] = await Promise.all([startTestServer(shared), startTestServer(shared)]);
    const watch = await other.watch(`${maps}?watch=true`);
    for (let i = 0; i < 20; i++) {
      const [writer, reader] = i % 2 === 0 ? [one, other] : [other, one];
      const created = await writer.post(maps, configMap(`m${i}`));
      expect(created.status, created.text).toBe(201);
      const read = await reader.get(`${maps}/m${i}`);
      expect(read.body).toEqual(created.body);
      const list = await reader.get(maps);
      expect(list.body.items).toHaveLength(i + 1);
      expect(Number(list.body.metadata.resourceVersion)).toBeGreaterThanOrEqual(
        Number(created.body.metadata.resourceVersion),
      );
    }
    await watch.until((events) => events.length >= 20);
    const names = watch.events.map(({ object }) => object.metadata.name);
    expect(names).toEqual(Array.from({ length: 20 }, (_, i) => `m${i}`));
    watch.close();
    await Promise.all([one.stop(), other.stop()]);
  });

  test('STORE-2: two servers never give one address or port twice, and refuse named ones', async () => {
    const shared = {
      ...onEtcd(etcd),
      serviceRanges: { clusterIps: ['10.9.0.0/27'], nodePorts: '30000-30029' },
    };
    const [one, other] = await Promise.all([startTestServer(shared), startTestServer(shared)]);
    const create = (server: TestServer, name: string, spec: object = {}) =>
      server.post('/api/v1/namespaces/default/services', {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name },
        spec: { type: 'NodePort', ports: [{ port: 80 }], ...spec },
      });
    const answers = await Promise.all(
      Array.from({ length: 28 }, (_, i) => create(i % 2 === 0 ? one : other, `s${i}`)),
    );
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 201));
    const addresses = answers.map(({ body }) => body.spec.clusterIP);
    const ports = answers.map(({ body }) => body.spec.ports[0].nodePort);
    expect(new Set(addresses).size).toBe(28);
    expect(new Set(ports).size).toBe(28);
    // Of two that ask for the same number at the same time one gets it.
    const free = Array.from({ length: 30 }, (_, i) => `10.9.0.${i + 1}`);
    const clusterIP = free.find((ip) => !addresses.includes(ip));
    const race = await Promise.all([
      create(one, 'named-1', { clusterIP }),
      create(other, 'named-2', { clusterIP }),
    ]);
    expect(race.map(({ status }) => status).sort()).toEqual([201, 422]);
    const refused = race.find(({ status }) => status === 422);
    expect(refused?.body.message).toContain('provided IP is already allocated');
    await Promise.all([one.stop(), other.stop()]);
  });

  test('STORE-2: a quota holds across servers, whatever the controller counts meanwhile', async () => {
    const shared = {
      ...onEtcd(etcd),
      controllers: ['resourcequota-controller'],
      leaderElection: quickElection,
    };
    const [one, other] = await Promise.all([startTestServer(shared), startTestServer(shared)]);
    const quotas = '/api/v1/namespaces/default/resourcequotas';
    const quota = (pods: number) => ({
      apiVersion: 'v1',
      kind: 'ResourceQuota',
      metadata: { name: 'q' },
      spec: { hard: { 'count/configmaps': `${pods}` } },
    });
    await one.post(quotas, quota(10));
    await eventually(async () => (await other.get(`${quotas}/q`)).body.status?.used !== undefined);
    const answers = await Promise.all(
      Array.from({ length: 30 }, async (_, i) => {
        const server = i % 2 === 0 ? one : other;
        const answer = await server.post(maps, configMap(`c${i}`));
        // Each deletion makes the controller count, while charges are on their way.
        if (answer.status === 201 && i % 3 === 0) await server.remove(`${maps}/c${i}`);
        return answer;
      }),
    );
    expect(answers.some(({ status }) => status === 201)).toBe(true);
    const list = await one.get(maps);
    expect(list.body.items.length).toBeLessThanOrEqual(10);
    for (const { status, body } of answers) {
      if (status !== 201) expect([status, body.message]).toEqual([403, quotaWords]);
    }
    await Promise.all([one.stop(), other.stop()]);
  });
});

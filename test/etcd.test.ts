import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ServerConfig } from '../src/server/config.ts';
import { hasEtcd, startTestEtcd, type TestEtcd } from '../src/storage/etcd/testing.ts';
import { type ConfigChange, configMap, eventually, startTestServer } from './harness.ts';

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
});

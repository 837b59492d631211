import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasEtcd, startTestEtcd, type TestEtcd } from '../src/storage/etcd/testing.ts';
import { onEtcd } from './etcd-config.ts';
import { type ConfigChange, startTestServer } from './harness.ts';
import { referenceValues } from './reference-values.ts';

const core = '/api/v1/namespaces/default';

describe.skipIf(!hasEtcd)('values in etcd', () => {
  let etcd: TestEtcd;
  beforeAll(async () => {
    etcd = await startTestEtcd();
  });
  afterAll(() => etcd.dispose());

  const encoded = (text: string) => Buffer.from(text).toString('base64');

  /** Writes a value as another server would. */
  const put = (shared: ConfigChange, key: string, value: Buffer) =>
    etcd.ask('kv/put', { key: keyOf(shared, key), value: value.toString('base64') });

  async function stored(shared: ConfigChange, key: string): Promise<Buffer> {
    const { kvs } = await etcd.ask('kv/range', { key: keyOf(shared, key) });
    const [found] = kvs as { value: string }[];
    return Buffer.from(found?.value ?? '', 'base64');
  }

  function keyOf({ store }: ConfigChange, key: string): string {
    if (store?.type !== 'etcd') throw new Error('not on etcd');
    return encoded(`${store.prefix}/${key}`);
  }

  const shared = (more: ConfigChange = {}): ConfigChange => ({
    dialect: 'kubernetes',
    ...onEtcd(etcd),
    ...more,
  });

  /** The JSON of an object without what the store gives it. */
  const shown = (text: string) => text.trim().replace(/"resourceVersion":"\d+",/, '');

  test('STORE-2: what a kube-apiserver stored is served, and kept byte for byte', async () => {
    const config = shared();
    for (const { key, stored: hex } of referenceValues) {
      await put(config, key, Buffer.from(hex, 'hex'));
    }
    const server = await startTestServer(config);
    for (const { key, path, stored: hex, served } of referenceValues) {
      const read = await server.get(path);
      expect(JSON.parse(shown(read.text)), key).toEqual(JSON.parse(served));
      await server.patch(path, { metadata: { labels: { x: '1' } } }, 'merge');
      const undo = { metadata: { labels: { x: null }, managedFields: [{}] } };
      const undone = await server.patch(path, undo, 'merge');
      expect(undone.status, undone.text).toBe(200);
      expect((await stored(config, key)).toString('hex'), key).toBe(hex);
      expect((await server.remove(path)).status, key).toBe(200);
    }
    await server.stop();
  });

  test('STORE-2: what another server writes is seen by watches, in any encoding', async () => {
    const config = shared();
    const server = await startTestServer(config);
    const watch = await server.watch(`${core}/configmaps?watch=true`);
    const [first] = referenceValues;
    await put(config, 'configmaps/default/c', Buffer.from(first?.stored ?? '', 'hex'));
    const json = '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"d",';
    await put(config, 'configmaps/default/d', Buffer.from(`${json}"namespace":"default"}}\n`));
    await watch.until((events) => events.length >= 2);
    expect(watch.events[0]?.object.data).toEqual({ k: 'v' });
    expect(watch.events[1]?.object.metadata).toMatchObject({ name: 'd', creationTimestamp: null });
    await put(config, 'configmaps/default/c', Buffer.from('6b38730009', 'hex'));
    const broken = await server.get(`${core}/configmaps/c`);
    expect([broken.status, broken.body.message]).toEqual([
      500,
      expect.stringContaining('AdditionalErrorMsg: object not decodable revision='),
    ]);
    watch.close();
    await server.stop();
  });
});

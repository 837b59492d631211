import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasEtcd, startTestEtcd, type TestEtcd } from '../src/storage/etcd/testing.ts';
import { onEtcd } from './etcd-config.ts';
import { configMap, startTestServer, type TestServer } from './harness.ts';

const maps = '/api/v1/namespaces/default/configmaps';
const rounds = 25;

/** A server begins a change with what its cache has, which the other's writes may be ahead of. */
describe.skipIf(!hasEtcd)('changes right after another server’s', () => {
  let etcd: TestEtcd;
  let one: TestServer;
  let other: TestServer;
  beforeAll(async () => {
    etcd = await startTestEtcd();
    const shared = onEtcd(etcd);
    [one, other] = await Promise.all([startTestServer(shared), startTestServer(shared)]);
  });
  afterAll(async () => {
    await Promise.all([one.stop(), other.stop()]);
    await etcd.dispose();
  });

  const turns = function* () {
    for (let i = 0; i < rounds; i++)
      yield i % 2 === 0 ? ([i, one, other] as const) : ([i, other, one] as const);
  };

  test('STORE-2: an update on the version just written is no conflict, an older one is', async () => {
    let { body } = await one.post(maps, configMap('updated'));
    for (const [i, writer] of turns()) {
      const stale = body;
      const answer = await writer.put(`${maps}/updated`, { ...body, data: { n: `${i}` } });
      expect(answer.status, answer.text).toBe(200);
      body = answer.body;
      expect((await writer.put(`${maps}/updated`, stale)).status).toBe(409);
    }
  });

  test('STORE-2: what changes nothing is judged by what is there now', async () => {
    const base = (await one.post(maps, configMap('flipped', { data: { v: 'a' } }))).body;
    for (const [, writer, reader] of turns()) {
      const set = (server: TestServer, v: string) =>
        server.patch(`${maps}/flipped`, { data: { v } }, 'merge');
      const away = await set(writer, 'b');
      // Nothing to do for who still has `a`; but `b` is there.
      const back = await set(reader, 'a');
      expect(back.body.data.v).toBe('a');
      expect(back.body.metadata.resourceVersion).not.toBe(away.body.metadata.resourceVersion);
      const same = await set(writer, 'a');
      expect(same.body.metadata.resourceVersion).toBe(back.body.metadata.resourceVersion);
    }
    expect((await other.get(`${maps}/flipped`)).body.metadata.uid).toBe(base.metadata.uid);
  });

  test('STORE-2: what is refused is refused for what is there now', async () => {
    await one.post(maps, configMap('locked'));
    for (const [, writer, reader] of turns()) {
      const locked = await writer.patch(`${maps}/locked`, { immutable: true }, 'merge');
      expect(locked.status).toBe(200);
      const change = { data: { a: `${locked.body.metadata.resourceVersion}` } };
      expect((await reader.patch(`${maps}/locked`, change, 'merge')).status).toBe(422);
      await writer.remove(`${maps}/locked`);
      expect((await reader.post(maps, configMap('locked'))).status).toBe(201);
      // For who still knows the first one it cannot be changed.
      expect((await writer.patch(`${maps}/locked`, change, 'merge')).status).toBe(200);
    }
  });

  test('STORE-2: what was just made or removed elsewhere can be removed, or is gone', async () => {
    for (const [i, writer, reader] of turns()) {
      const name = `passing-${i}`;
      const made = await writer.post(maps, configMap(name));
      expect(made.status).toBe(201);
      const preconditions = { uid: 'another' };
      const refused = await reader.remove(`${maps}/${name}`, { preconditions });
      expect(refused.status).toBe(409);
      const { uid, resourceVersion } = made.body.metadata;
      const removed = await reader.remove(`${maps}/${name}`, {
        preconditions: { uid, resourceVersion },
      });
      expect(removed.status, removed.text).toBe(200);
      expect((await writer.remove(`${maps}/${name}`)).status).toBe(404);
      expect((await writer.put(`${maps}/${name}`, configMap(name))).status).toBe(404);
    }
  });

  test('STORE-2: a dry run answers for what is there now, and writers lose nothing', async () => {
    await one.post(maps, configMap('counted', { data: { dry: '0' } }));
    for (const [i, writer, reader] of turns()) {
      await writer.patch(`${maps}/counted`, { data: { dry: `${i}` } }, 'merge');
      const tried = await reader.patch(`${maps}/counted?dryRun=All`, { data: { x: '1' } }, 'merge');
      expect(tried.body.data).toEqual({ dry: `${i}`, x: '1' });
    }
    const writers = Array.from({ length: 40 }, (_, i) => {
      const server = i % 2 === 0 ? one : other;
      return server.patch(`${maps}/counted`, { data: { [`w${i}`]: '1' } }, 'merge');
    });
    const answers = await Promise.all(writers);
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    const { data } = (await other.get(`${maps}/counted`)).body;
    expect(Object.keys(data)).toHaveLength(41);
  });
});

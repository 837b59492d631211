import { setTimeout as pause } from 'node:timers/promises';
import { silentLogger } from '@wheelhouse/machinery';
import {
  hasEtcd,
  startTestCluster,
  startTestEtcd,
  type TestCluster,
} from '@wheelhouse/store/testing';
import { describe, expect, test } from 'vitest';
import { atEnd, untilEnd } from '../support/cleanup.ts';
import { configMap, eventually, type TestServer } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';
import { onEtcd, reachedBy } from './etcd-config.ts';
import { startLaggingLine } from './etcd-lag.ts';

const maps = '/api/v1/namespaces/default/configmaps';
const timeoutMs = 90_000;

async function threeMembers(): Promise<{ cluster: TestCluster; server: TestServer }> {
  const cluster = await untilEnd(startTestCluster());
  const leader = await cluster.leader();
  const servers = [leader, ...cluster.members.filter((member) => member !== leader)];
  const limits = { requestTimeoutMs: 4000 };
  const urls = servers.map(({ url }) => url);
  const server = await withServer({ ...onEtcd(leader, { servers: urls }), limits });
  return { cluster, server };
}

/** Creates objects one after another; returns the acknowledged ones and those that may exist. */
function writer(server: TestServer, name: string) {
  const made: string[] = [];
  const unsure: string[] = [];
  const statuses = new Set<number>();
  let isOver = false;
  const run = async () => {
    for (let i = 0; !isOver; i++) {
      const mapName = `${name}-${i}`;
      const { status, body } = await server.post(maps, configMap(mapName));
      statuses.add(status);
      if (status === 201) made.push(mapName);
      else {
        unsure.push(mapName);
        expect([500, 503, 504], JSON.stringify(body)).toContain(status);
        expect(body.kind).toBe('Status');
        // Without a leader, writes fail at once, thousands of times a second.
        await pause(10);
      }
    }
  };
  const running = run();
  return {
    made,
    unsure,
    statuses,
    stop: async () => {
      isOver = true;
      await running;
    },
  };
}

describe.skipIf(!hasEtcd)('an etcd of three members', () => {
  test(
    'STORE-2: killing the leader loses no acknowledged write and repeats no event',
    async () => {
      const { cluster, server } = await threeMembers();
      const watch = await server.watch(`${maps}?watch=true`);
      const writers = ['a', 'b', 'c'].map((name) => writer(server, name));
      const progress = async (more: number) => {
        const before = writers.map(({ made }) => made.length);
        const isFurther = () =>
          writers.every(({ made }, i) => made.length >= (before[i] as number) + more);
        await eventually(async () => isFurther(), 'writes that go on');
      };
      await progress(10);
      for (let round = 0; round < 2; round++) {
        const leader = await cluster.leader();
        await leader.kill();
        const next = await cluster.leader();
        expect(next).not.toBe(leader);
        await progress(10);
        await leader.start();
      }
      for (const client of writers) await client.stop();
      const made = writers.flatMap((client) => client.made);
      const unsure = writers.flatMap((client) => client.unsure);
      const { items } = (await server.get(maps)).body;
      const names: string[] = items.map(
        (item: { metadata: { name: string } }) => item.metadata.name,
      );
      const present = new Set(names);
      expect(made.filter((name) => !present.has(name))).toEqual([]);
      const possible = new Set([...made, ...unsure]);
      expect(names.filter((name) => !possible.has(name))).toEqual([]);
      await watch.until((events) => events.length >= names.length, 'an event for each object');
      const metadata = watch.events.map(({ object }) => object.metadata);
      expect(metadata.map(({ name }) => name).sort()).toEqual([...names].sort());
      const versions = metadata.map(({ resourceVersion }) => Number(resourceVersion));
      expect(versions).toEqual([...versions].sort((left, right) => left - right));
      watch.close();
    },
    timeoutMs,
  );

  test(
    'STORE-2: without a majority, writes fail; with a majority, all operations resume',
    async () => {
      const { cluster, server } = await threeMembers();
      await server.post(maps, configMap('before'));
      const [first, second] = cluster.members;
      await Promise.all([first?.kill(), second?.kill()]);
      const answers = await Promise.all([
        server.post(maps, configMap('lost')),
        server.get(`${maps}/before`),
      ]);
      for (const { status, body } of answers) {
        expect([500, 503, 504], JSON.stringify(body)).toContain(status);
        expect(body.kind).toBe('Status');
        if (status === 500) expect(body.message).toMatch(/^etcdserver: /);
      }
      expect((await server.get(`${maps}/before?resourceVersion=0`)).status).toBe(200);
      await eventually(async () => (await server.get('/readyz')).status === 500);
      await Promise.all([first?.start(), second?.start()]);
      await eventually(async () => (await server.get(`${maps}/before`)).status === 200);
      expect((await server.post(maps, configMap('after'))).status).toBe(201);
      await eventually(async () => (await server.get('/readyz')).status === 200);
    },
    timeoutMs,
  );

  test(
    'STORE-2: a frozen leader is replaced, and requests continue',
    async () => {
      const { cluster, server } = await threeMembers();
      await server.post(maps, configMap('before'));
      const leader = await cluster.leader();
      await leader.pause();
      atEnd(() => leader.resume());
      const reads = Array.from({ length: 4 }, () => server.get(`${maps}/before`));
      const writes = Array.from({ length: 4 }, (_, i) => server.post(maps, configMap(`m${i}`)));
      for (const { status, body } of await Promise.all([...reads, ...writes])) {
        expect([200, 201, 500, 503, 504], JSON.stringify(body)).toContain(status);
        if (status === 500) expect(body.message).toMatch(/^etcdserver: /);
      }
      await eventually(async () => (await server.get(`${maps}/before`)).status === 200);
      await eventually(async () => (await server.post(maps, configMap('after'))).status === 201);
      leader.resume();
      await eventually(async () => (await server.get('/readyz')).status === 200);
      const { items } = (await server.get(maps)).body;
      expect(items.length).toBeGreaterThanOrEqual(2);
    },
    timeoutMs,
  );
});

describe.skipIf(!hasEtcd)('an etcd at its limits', () => {
  test(
    'STORE-2, HEALTH-2: a server waits for the store while it starts',
    async () => {
      const etcd = await untilEnd(startTestEtcd());
      const { header } = await etcd.request('maintenance/status', {});
      const { member_id: memberID } = header as { member_id: string };
      const alarm = { memberID, alarm: 'NOSPACE' };
      await etcd.request('maintenance/alarm', { action: 'ACTIVATE', ...alarm });
      const waiting: unknown[] = [];
      const warn = (msg: string, more?: object) => {
        if (msg === 'waiting for the store before starting') waiting.push(more);
      };
      const starting = withServer({ ...onEtcd(etcd), logger: { ...silentLogger, warn } });
      await eventually(async () => waiting.length > 0, 'the start to wait');
      expect(waiting[0]).toEqual({ error: 'etcdserver: mvcc: database space exceeded' });
      await etcd.request('maintenance/alarm', { action: 'DEACTIVATE', ...alarm });
      const server = await starting;
      expect((await server.get('/readyz')).status).toBe(200);
      expect((await server.get('/api/v1/namespaces/default')).status).toBe(200);
      const roles = '/apis/rbac.authorization.svc.io/v1/clusterroles';
      expect((await server.get(`${roles}/cluster-admin`)).status).toBe(200);
    },
    timeoutMs,
  );

  test(
    'STORE-2, TRUST-8: without space, writes report it, reads continue, and deletions free space',
    async () => {
      const etcd = await untilEnd(startTestEtcd({ flags: ['--quota-backend-bytes=6000000'] }));
      const server = await withServer(onEtcd(etcd));
      await server.post(maps, configMap('small'));
      const data = { filling: 'x'.repeat(900_000) };
      const full = await eventually(async () => {
        const name = `big-${Math.random().toString(36).slice(2)}`;
        const answer = await server.post(maps, configMap(name, { data }));
        return answer.status === 201 ? undefined : answer;
      }, 'the quota');
      expect(full.status).toBe(503);
      expect(full.body).toMatchObject({
        kind: 'Status',
        status: 'Failure',
        message: 'etcdserver: mvcc: database space exceeded',
        reason: 'ServiceUnavailable',
        code: 503,
      });
      const change = await server.patch(`${maps}/small`, { data: { b: '2' } }, 'merge');
      expect([change.status, change.body.message]).toEqual([503, full.body.message]);
      expect((await server.get(`${maps}/small`)).status).toBe(200);
      const { items } = (await server.get(maps)).body;
      for (const { metadata } of items) {
        if (metadata.name === 'small') continue;
        expect((await server.remove(`${maps}/${metadata.name}`)).status).toBe(200);
      }
      // The administrator's remedy, by etcd's own tools.
      const { revision } = (await etcd.request('kv/range', { key: 'AA==' })).header as never;
      await etcd.request('kv/compaction', { revision, physical: true });
      await etcd.request('maintenance/defragment', {});
      const { alarms } = await etcd.request('maintenance/alarm', { action: 'GET' });
      for (const alarm of alarms as object[]) {
        await etcd.request('maintenance/alarm', { action: 'DEACTIVATE', ...alarm });
      }
      const again = await server.patch(`${maps}/small`, { data: { b: '2' } }, 'merge');
      expect(again.status, again.text).toBe(200);
    },
    timeoutMs,
  );

  test(
    'STORE-2: watchers miss no change when another client compacts etcd',
    async () => {
      const etcd = await untilEnd(startTestEtcd());
      const line = await startLaggingLine(etcd);
      atEnd(() => line.close());
      const shared = onEtcd(etcd);
      const server = await withServer(reachedBy(shared, line.url));
      const direct = await withServer(shared);
      for (const name of ['kept', 'changed', 'removed']) await direct.post(maps, configMap(name));
      const { resourceVersion } = (await server.get(maps)).body.metadata;
      const watch = await server.watch(`${maps}?watch=true&resourceVersion=${resourceVersion}`);
      line.disconnect();
      await direct.patch(`${maps}/changed`, { data: { a: '2' } }, 'merge');
      await direct.remove(`${maps}/removed`);
      await direct.post(maps, configMap('added'));
      const { revision } = (await etcd.request('kv/range', { key: 'AA==' })).header as never;
      await etcd.request('kv/compaction', { revision, physical: true });
      line.repair();
      const list = await eventually(async () => {
        const answer = await server.get(maps);
        return answer.status === 200 ? answer.body : undefined;
      });
      const theirs = (await direct.get(maps)).body;
      expect(list.items).toEqual(theirs.items);
      // Either the stream continues and reports everything, or it ends and must be reopened.
      let isOver = false;
      void watch.ended.then(() => {
        isOver = true;
      });
      const seen = () => watch.events.map(({ type, object }) => `${type} ${object.metadata?.name}`);
      const news = ['MODIFIED changed', 'DELETED removed', 'ADDED added'];
      await eventually(
        async () => isOver || news.every((change) => seen().includes(change)),
        'the news',
      );
      if (!isOver) expect(seen().sort()).toEqual([...news].sort());
      const stale = await server.watch(`${maps}?watch=true&resourceVersion=${resourceVersion}`);
      await eventually(async () => stale.events.length > 0, 'an answer to a watch from before');
      expect(stale.events.map(({ type }) => type)).toContain('ERROR');
      const next = `${maps}?watch=true&resourceVersion=${list.metadata.resourceVersion}`;
      const fresh = await server.watch(next);
      await direct.post(maps, configMap('later'));
      await fresh.until((events) => events.length > 0);
      expect(fresh.events[0]?.object.metadata.name).toBe('later');
      for (const stream of [watch, stale, fresh]) stream.close();
    },
    timeoutMs,
  );
});

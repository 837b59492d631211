import { pause, systemClock } from '@wheelhouse/machinery';
import { FakeClock } from '@wheelhouse/machinery/testing';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { EtcdClient } from './client.ts';
import { EtcdClaims, startEtcdCompactor } from './coordination.ts';
import { timedOut } from './errors.ts';
import { type EtcdStore, openEtcdStore } from './etcd-store.ts';
import { methods } from './protocol.ts';
import { hasEtcd, startTestEtcd, type TestEtcd } from './testing.ts';

describe.skipIf(!hasEtcd)('state shared by servers on one etcd', () => {
  let etcd: TestEtcd;
  const opened: EtcdStore[] = [];
  beforeAll(async () => {
    etcd = await startTestEtcd();
  });
  afterEach(async () => {
    for (const store of opened.splice(0)) await store.close();
  });
  afterAll(() => etcd.dispose());

  async function open(): Promise<EtcdStore> {
    const store = await openEtcdStore({
      connection: { servers: [etcd.url] },
      clock: systemClock,
      callTimeoutMs: 10_000,
      startTimeoutMs: 10_000,
    });
    opened.push(store);
    return store;
  }

  test('STORE-2: one of several servers compacts in each interval', async () => {
    const clock = new FakeClock();
    const compactors = await Promise.all(
      [1, 2].map(async () => {
        const store = await open();
        const { client } = store;
        return startEtcdCompactor({ client, store, clock, intervalMs: 1000 });
      }),
    );
    const [store] = opened as [EtcdStore, EtcdStore];
    const turns: number[] = [];
    const oldest: number[] = [];
    const revisions: number[] = [];
    for (let round = 0; round < 6; round++) {
      if (round === 4) compactors[0]?.stop();
      await store.put({ key: `/round/${round}`, value: Buffer.from('v'), expect: 0 });
      revisions.push(await store.currentRevision());
      clock.advance(1000);
      await Promise.all(compactors.map((compactor) => compactor.idle()));
      const request = { key: 'compact_rev_key' };
      const { kvs } = await store.client.call(methods.range, request, { repeatable: true });
      turns.push(kvs[0]?.version ?? 0);
      oldest.push(await store.compactRevision());
    }
    for (const compactor of compactors) compactor.stop();
    // One compaction per interval although two servers try; at most one is missed when a server
    // stops.
    expect(turns.slice(0, 4)).toEqual([1, 2, 3, 4]);
    expect(turns[5]).toBeGreaterThanOrEqual(5);
    // History is kept for at least one interval and at most three.
    oldest.forEach((revision, round) => {
      expect(revision).toBeLessThan(revisions[round] as number);
      if (round >= 3) expect(revision).toBeGreaterThanOrEqual(revisions[round - 3] as number);
    });
  });

  test('one of several processes holds a name at a time', async () => {
    const prefix = '/claims/';
    const claimsOf = async () => {
      const { client } = await open();
      return new EtcdClaims({ client, clock: systemClock, prefix });
    };
    const [first, second] = await Promise.all([claimsOf(), claimsOf()]);
    const claim = await first.take(['a', 'b']);
    expect(claim).toBeDefined();
    expect(await second.take(['b', 'c'])).toBeUndefined();
    expect(await second.take(['c'])).toBeDefined();
    await claim?.release();
    expect(await second.take(['b'])).toBeDefined();
    // The release of an expired claim does not end its successor's.
    await claim?.release();
    expect(await first.take(['b'])).toBeUndefined();
    await second.close();
    expect(await first.take(['b', 'c'])).toBeDefined();
    await first.close();
  });

  test('a process whose session has expired starts another', async () => {
    const store = await open();
    const { client } = store;
    const claims = new EtcdClaims({ client, clock: systemClock, prefix: '/lost/' });
    expect(await claims.take(['a'])).toBeDefined();
    const { leases } = await client.call(methods.leases, {}, { repeatable: true });
    for (const lease of leases) {
      await client.call(methods.leaseRevoke, { id: lease.id }, { repeatable: true });
    }
    expect(await claims.take(['a'])).toBeDefined();
    await claims.close();
  });

  test('names whose claim failed halfway become free, and held claims outlast that', async () => {
    const client = new LossyClient(etcd);
    const claims = new EtcdClaims({ client, clock: systemClock, prefix: '/lossy/' });
    const other = new EtcdClaims({
      client: (await open()).client,
      clock: systemClock,
      prefix: '/lossy/',
    });
    const isFree = async (name: string) => {
      const claim = await other.take([name]);
      await claim?.release();
      return claim !== undefined;
    };
    const held = await claims.take(['held']);
    client.failing = 'answers';
    await expect(claims.take(['taken'])).rejects.toMatchObject({ code: 'timed-out' });
    client.failing = 'nothing';
    const later = await claims.take(['later']);
    expect([await isFree('held'), await isFree('later')]).toEqual([false, false]);
    await held?.release();
    await until(async () => isFree('taken'));
    expect([await isFree('held'), await isFree('later')]).toEqual([true, false]);

    client.failing = 'requests';
    await later?.release();
    expect(await isFree('later')).toBe(false);
    client.failing = 'nothing';
    await until(async () => isFree('later'));
    expect(await claims.take(['later'])).toBeDefined();
    await claims.close();
    expect(await isFree('later')).toBe(true);
    await other.close();
    client.close();
  });
});

/** A client whose requests or answers can be lost. */
class LossyClient extends EtcdClient {
  failing: 'nothing' | 'requests' | 'answers' = 'nothing';

  constructor({ url }: TestEtcd) {
    super({ connection: { servers: [url] }, clock: systemClock, callTimeoutMs: 10_000 });
  }

  override async call<Request, Response>(
    ...request: Parameters<typeof EtcdClient.prototype.call<Request, Response>>
  ): Promise<Response> {
    if (this.failing === 'requests') throw timedOut();
    const response = await super.call(...request);
    if (this.failing === 'answers') throw timedOut();
    return response;
  }
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await pause(systemClock, { ms: 20 });
}

import { type JsonObject, silentLogger, systemClock } from '@wheelhouse/machinery';
import { readFeatureGates } from '@wheelhouse/server/testing';
import { describe, expect, test } from 'vitest';
import { freshNamespace } from '../support/harness.ts';
import { quickClock } from '../support/quick-clock.ts';
import { withServer } from '../support/with-server.ts';

const strategy = 'OldestEmulationVersion';
const clock = quickClock(50);
const gate = { featureGates: readFeatureGates(['CoordinatedLeaderElection=true']).gates };
const served = { runtimeConfig: new Map([['coordination.k8s.io/v1alpha2', true]]) };
const collectionPeriodMs = 30 * 60_000;
/** Collects expired candidates more often than by default. */
const hurried = {
  ...clock,
  every: (periodMs: number, task: () => void) =>
    periodMs === collectionPeriodMs ? systemClock.every(20, task) : clock.every(periodMs, task),
};

const server = await withServer({ dialect: 'kubernetes', clock: hurried, ...gate, ...served });

const now = () => new Date(clock.now()).toISOString().replace('Z', '000Z');

/** Creates a namespace for candidates and Leases. */
async function election() {
  const namespace = await freshNamespace(server);
  const candidates = `/apis/coordination.k8s.io/v1alpha2/namespaces/${namespace}/leasecandidates`;
  const leases = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
  const specOf = async (path: string): Promise<JsonObject> => (await server.get(path)).body.spec;
  return {
    candidates,
    leases,
    async nominate(name: string, version: string, more: JsonObject = {}) {
      const answer = await server.post(candidates, {
        apiVersion: 'coordination.k8s.io/v1alpha2',
        kind: 'LeaseCandidate',
        metadata: { name },
        spec: {
          leaseName: 'role',
          binaryVersion: version,
          emulationVersion: version,
          strategy,
          renewTime: now(),
          ...more,
        },
      });
      expect(answer.status).toBe(201);
    },
    renew: (name: string) =>
      server.patch(`${candidates}/${name}`, { spec: { renewTime: now() } }, 'merge'),
    renewLease: () => server.patch(`${leases}/role`, { spec: { renewTime: now() } }, 'merge'),
    lease: (spec: JsonObject) => expect.poll(() => specOf(`${leases}/role`)).toMatchObject(spec),
    candidate: (name: string, spec: JsonObject) =>
      expect.poll(() => specOf(`${candidates}/${name}`)).toMatchObject(spec),
    specOf,
  };
}

describe('coordinated leader election', () => {
  test('PLANE-1: a single candidate gets the Lease', async () => {
    const { nominate, lease, leases, specOf } = await election();
    await nominate('one', '1.32.0');
    await lease({ holderIdentity: 'one', leaseDurationSeconds: 5, strategy });
    expect(Object.keys(await specOf(`${leases}/role`)).sort()).toEqual([
      'holderIdentity',
      'leaseDurationSeconds',
      'renewTime',
      'strategy',
    ]);
  });

  test('PLANE-1: the candidate with the oldest emulated release is preferred', async () => {
    const { nominate, lease, renewLease } = await election();
    await nominate('new', '1.32.0');
    await lease({ holderIdentity: 'new' });
    await renewLease();
    await nominate('old', '1.32.0', { emulationVersion: '1.31.0' });
    await lease({ holderIdentity: 'new', preferredHolder: 'old' });
    await nominate('older', '1.32.0', { emulationVersion: '1.31.0', binaryVersion: '1.31.0' });
    await lease({ holderIdentity: 'new', preferredHolder: 'older' });
  });

  test('PLANE-1: a released Lease passes to the best candidate that answers a ping', async () => {
    const { nominate, lease, leases, renew, candidate, candidates, specOf } = await election();
    await nominate('dead', '1.30.0');
    await nominate('alive', '1.31.0');
    await lease({ holderIdentity: 'dead' });
    clock.skip(6000);
    await candidate('dead', { pingTime: expect.any(String) });
    await candidate('alive', { pingTime: expect.any(String) });
    await renew('alive');
    clock.skip(5100);
    // The candidate answers every ping; another one is sent when the first answer is outdated.
    await expect
      .poll(async () => {
        await renew('alive');
        return specOf(`${leases}/role`);
      })
      .toMatchObject({ holderIdentity: 'alive', leaseDurationSeconds: 5 });
    const { pingTime } = await specOf(`${candidates}/dead`);
    clock.skip(6000);
    // An unanswered ping is not repeated.
    await candidate('alive', { pingTime: expect.not.stringContaining(String(pingTime)) });
    expect(await specOf(`${candidates}/dead`)).toMatchObject({ pingTime });
  });

  test('PLANE-1: a holder without candidates keeps its Lease until it releases it', async () => {
    const { nominate, lease, leases } = await election();
    await server.post(leases, {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: 'role' },
      spec: { holderIdentity: 'legacy', leaseDurationSeconds: 3600, renewTime: now() },
    });
    await nominate('one', '1.32.0');
    await lease({ holderIdentity: 'legacy', preferredHolder: 'one', strategy });
    await server.patch(`${leases}/role`, { spec: { holderIdentity: '' } }, 'merge');
    await lease({ holderIdentity: 'one', leaseDurationSeconds: 5 });
    expect((await server.get(`${leases}/role`)).body.spec).not.toHaveProperty('preferredHolder');
  });

  test('PLANE-1: with another strategy another controller elects', async () => {
    const { nominate, lease, leases } = await election();
    await nominate('one', '1.32.0', { strategy: 'example.com/loudest' });
    await lease({ strategy: 'example.com/loudest', leaseDurationSeconds: 5 });
    expect((await server.get(`${leases}/role`)).body.spec).not.toHaveProperty('holderIdentity');
  });

  test('PLANE-1: candidates of one release that disagree on the strategy elect no leader', async () => {
    const { nominate, renew, lease } = await election();
    const stale = new Date(clock.now() - 60_000).toISOString().replace('Z', '000Z');
    const ping = { renewTime: stale, pingTime: now() };
    await nominate('one', '1.32.0', ping);
    await nominate('two', '1.32.0', { ...ping, strategy: 'example.com/loudest' });
    await renew('two');
    await renew('one');
    await nominate('three', '1.33.0');
    await lease({ holderIdentity: 'one' });
  });

  test('PLANE-1: a candidate for an invalid Lease does not delay others', async () => {
    const { nominate, lease } = await election();
    await nominate('misled', '1.31.0', { leaseName: 'Not A Name' });
    await nominate('one', '1.32.0');
    await lease({ holderIdentity: 'one' });
  });

  test('PLANE-1: a candidate that is silent for half an hour is removed', async () => {
    const { nominate, candidates } = await election();
    await nominate('lively', '1.32.0');
    const hourAgo = new Date(clock.now() - 3_600_000).toISOString().replace('Z', '000Z');
    await nominate('gone', '1.31.0', { renewTime: hourAgo });
    await expect.poll(async () => (await server.get(`${candidates}/gone`)).status).toBe(404);
    expect((await server.get(`${candidates}/lively`)).status).toBe(200);
  });

  test('PLANE-1: one server elects and records it', async () => {
    const lease = '/apis/coordination.k8s.io/v1/namespaces/kube-system/leases';
    const { body } = await server.get(`${lease}/leader-election-controller`);
    expect(body.spec).toMatchObject({ leaseDurationSeconds: 15, leaseTransitions: 0 });
    const hook = 'poststarthook/start-kube-apiserver-coordinated-leader-election-controller';
    expect((await server.get(`/readyz/${hook}`)).status).toBe(200);
  });

  test('PLANE-1: without LeaseCandidates there is no election, and the server works', async () => {
    const lines: string[] = [];
    const warn = (message: string) => void lines.push(message);
    const logger = { ...silentLogger, warn };
    const withoutCandidates = await withServer({ dialect: 'kubernetes', logger, clock, ...gate });
    await expect
      .poll(() => lines)
      .toContain('CoordinatedLeaderElection is on, and LeaseCandidates are not served');
    expect((await withoutCandidates.get('/readyz')).status).toBe(200);
  });
});

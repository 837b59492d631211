import { type ApiObject, isObject, silentLogger } from '@wheelhouse/machinery';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openTestApi, type TestApi } from '../compose/testing.ts';
import { decodeEntry, objectKey } from '../registry/object-codec.ts';
import type { Registry } from '../registry/registry.ts';
import { startLeaderElection } from './leader-election.ts';

let server: TestApi;
beforeEach(async () => {
  server = await openTestApi({ admission: { disabled: ['NamespaceLifecycle'] } });
});
afterEach(() => server.close());

const periods = { leaseDurationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 2000 };

function start(startWork: () => { close(): Promise<void> }, change: Partial<Registry> = {}) {
  const { api, clock } = server;
  return startLeaderElection({
    ...periods,
    leases: server.def('leases', 'coordination.svc.io'),
    registry: { ...api.registry, ...change },
    clock,
    logger: silentLogger,
    namespace: 'default',
    name: 'work',
    identity: 'this-server',
    startWork,
    random: () => 0,
  });
}

async function holder(): Promise<unknown> {
  const leases = server.api.registry.caches.of(server.def('leases', 'coordination.svc.io'));
  const entry = await leases.get(objectKey('default', 'work'), undefined);
  const lease: ApiObject | undefined = entry && decodeEntry(entry);
  const spec = lease?.['spec'];
  return isObject(spec) ? (spec['holderIdentity'] ?? '') : undefined;
}

describe('a leader election', () => {
  test('releases a Lease that it acquires while it is closed', async () => {
    let started = 0;
    const election = start(() => {
      started += 1;
      return { close: async () => {} };
    });
    await election.close();
    expect(await holder()).toBe('');
    expect(started).toBe(0);
  });

  test('starts no term before the previous one has ended', async () => {
    const { caches } = server.api.registry;
    let heldRead: Promise<void> | undefined;
    const delayed: Registry['caches'] = {
      ...caches,
      of(def) {
        const cache = caches.of(def);
        const get: typeof cache.get = async (...args) => {
          await heldRead;
          return cache.get(...args);
        };
        return { ...cache, subscribe: (listener) => cache.subscribe(listener), get };
      },
    };
    const terms: string[] = [];
    let finishClosing = () => {};
    const election = start(
      () => {
        terms.push('started');
        return {
          close: () =>
            new Promise<void>((resolve) => {
              terms.push('closing');
              finishClosing = () => {
                terms.push('closed');
                resolve();
              };
            }),
        };
      },
      { caches: delayed },
    );
    await expect.poll(() => terms).toEqual(['started']);
    await expect.poll(holder).toBe('this-server');

    let endRead = () => {};
    heldRead = new Promise((resolve) => {
      endRead = resolve;
    });
    // The renewal begins, and takes longer than the deadline.
    server.clock.advance(periods.retryPeriodMs);
    server.clock.advance(periods.renewDeadlineMs - periods.retryPeriodMs);
    expect(terms).toEqual(['started', 'closing']);
    endRead();
    const revision = async () => (await server.store.range({ prefix: '/' })).revision;
    const before = await revision();
    await expect.poll(revision).toBeGreaterThanOrEqual(before);
    for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(terms).toEqual(['started', 'closing']);
    finishClosing();
    await expect.poll(() => terms).toEqual(['started', 'closing', 'closed', 'started']);
    const closed = election.close();
    await expect.poll(() => terms.at(-1)).toBe('closing');
    finishClosing();
    await closed;
    expect(await holder()).toBe('');
  });
});

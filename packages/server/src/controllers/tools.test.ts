import { type ApiObject, conflict, formatMicroTime, silentLogger } from '@wheelhouse/machinery';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openTestApi, type TestApi } from '../compose/testing.ts';
import type { CachePool } from '../registry/caches.ts';
import { objectKey } from '../registry/object-codec.ts';
import { startCoordinatedElection } from './coordination/coordinated-election.ts';
import { IdentityLease } from './identity/identity-lease.ts';
import { startServiceAccounts } from './identity/service-accounts.ts';
import { createObjectWriter, type ObjectWriter } from './tools.ts';

let server: TestApi;
let writer: ObjectWriter;
beforeEach(async () => {
  server = await openTestApi({ admission: { disabled: ['NamespaceLifecycle'] } });
  writer = createObjectWriter({ registry: server.api.registry, controller: 'test' });
});
afterEach(() => server.close());

const exists = async (def: ReturnType<TestApi['def']>, namespace: string, name: string) => {
  const cache = server.api.registry.caches.of(def);
  return (await cache.get(objectKey(namespace, name), undefined)) !== undefined;
};

/** Caches whose first lists fail. */
function failing(lists: number): { readonly caches: CachePool; readonly left: () => number } {
  const { caches } = server.api.registry;
  let left = lists;
  const of: CachePool['of'] = (def) => {
    const cache = caches.of(def);
    const list: typeof cache.list = (options) => {
      if (left === 0) return cache.list(options);
      left -= 1;
      return Promise.reject(new Error('the store is unavailable'));
    };
    return new Proxy(cache, {
      get: (target, member) => {
        if (member === 'list') return list;
        const found: unknown = Reflect.get(target, member);
        return typeof found === 'function' ? found.bind(target) : found;
      },
    });
  };
  return { caches: { ...caches, of }, left: () => left };
}

const keeper = (caches: CachePool) =>
  startServiceAccounts({
    caches,
    writer,
    clock: server.clock,
    logger: silentLogger,
    namespaces: server.def('namespaces'),
    serviceAccounts: server.def('serviceaccounts'),
  });

test('a controller whose first list fails lists again', async () => {
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'team' } };
  await server.create(namespace, { resource: 'namespaces' });
  const { caches, left } = failing(2);
  const controller = keeper(caches);
  for (const expected of [1, 0]) {
    await expect.poll(left).toBe(expected);
    await new Promise((resolve) => setImmediate(resolve));
    server.clock.advance(1000);
  }
  const account = () => exists(server.def('serviceaccounts'), 'team', 'default');
  await expect.poll(account).toBe(true);
  await controller.close();
});

test('elections list their candidates and Leases again after a failure', async () => {
  const { clock } = server;
  // The collection of expired candidates lists once; it waits for its next period.
  const { caches, left } = failing(3 + 2);
  const leases = server.def('leases', 'coordination.svc.io');
  const tools = { caches, writer, clock, logger: silentLogger };
  const elections = startCoordinatedElection({ ...tools, leases, candidates: leases });
  await expect.poll(left).toBe(2);
  await new Promise((resolve) => setImmediate(resolve));
  clock.advance(1000);
  await expect.poll(left).toBe(0);
  await elections.close();
});

test('a controller can be closed while it waits to list again', async () => {
  const { caches, left } = failing(1);
  const controller = keeper(caches);
  await expect.poll(left).toBe(0);
  await controller.close();
});

test('a conflict about one expired Lease does not keep the others', async () => {
  const { dialect, clock, api } = server;
  const leases = server.def('leases', 'coordination.svc.io');
  const namespace = dialect.systemNamespace('system');
  const lease = (name: string): ApiObject => ({
    apiVersion: 'coordination.svc.io/v1',
    kind: 'Lease',
    metadata: {
      name,
      namespace,
      labels: { [dialect.label('identity', 'apiserver')]: dialect.serverProgram },
    },
    spec: { leaseDurationSeconds: 3600, renewTime: formatMicroTime(clock.now() - 7_200_000) },
  });
  for (const name of ['a', 'b', 'c']) {
    await server.create(lease(name), { resource: 'leases', group: 'coordination.svc.io' });
  }
  const contended: ObjectWriter = {
    ...writer,
    remove: (at, options) =>
      at.name === 'b'
        ? writer.remove(at, options)
        : Promise.reject(conflict(leases, at.name, 'it has changed')),
  };
  const identity = new IdentityLease({
    caches: api.registry.caches,
    writer: contended,
    clock,
    logger: silentLogger,
    leases,
    dialect,
    hostname: 'here',
  });
  identity.start();
  await expect.poll(() => exists(leases, namespace, 'b')).toBe(false);
  expect(await exists(leases, namespace, 'a')).toBe(true);
  await identity.close();
});

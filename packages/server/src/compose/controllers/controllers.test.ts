import type { ApiObject } from '@wheelhouse/machinery';
import { afterEach, expect, test } from 'vitest';
import { decodeEntry } from '../../registry/object-codec.ts';
import type { ServerConfig } from '../config.ts';
import { openTestApi, type TestApi } from '../testing.ts';
import { controllersAfter } from './controllers.ts';

const pauseMs = 50;
const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

/**
 * The controllers of a server on a memory store that is ready, and the announcements of its
 * presence.
 */
async function scene(change: Partial<ServerConfig> = {}) {
  const server = await openTestApi({
    controllers: ['serviceaccount-controller', 'default-service-controller'],
    controllersPauseMs: pauseMs,
    ...change,
  });
  const { api, config, dialect } = server;
  const announced: string[] = [];
  const presence = {
    announce(address: string) {
      announced.push(`here: ${address}`);
      return { close: async () => void announced.push('gone') };
    },
    addresses: async () => ['192.0.2.1', '192.0.2.2'],
    follow: () => ({ close: () => {} }),
  };
  const controllers = controllersAfter(Promise.resolve(), {
    config,
    dialect,
    api,
    tokens: api.tokens.issuer,
    quotaLedger: api.quotaLedger,
    caPem: undefined,
    port: 6443,
    lease: undefined,
    presence,
  });
  closers.push(async () => {
    await controllers.close();
    await server.close();
  });
  return { ...server, controllers, announced };
}

const namespace = (name: string): ApiObject => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name },
});

/** Whether the controllers run: whether a namespace has the account that they create. */
async function hasAccount({ api, def }: TestApi, name: string): Promise<boolean> {
  const accounts = api.registry.caches.of(def('serviceaccounts'));
  return (await accounts.get(`${name}/default`, undefined)) !== undefined;
}

const turns = async (count = 20) => {
  for (let i = 0; i < count; i += 1) await new Promise((resolve) => setImmediate(resolve));
};

test('STORE-2: after a pause they run, announce their server, and list its peers', async () => {
  const server = await scene();
  const { clock, controllers, announced } = server;
  await server.create(namespace('default'), { resource: 'namespaces' });
  await server.create(namespace('a'), { resource: 'namespaces' });
  await turns();
  clock.advance(pauseMs - 1);
  await turns();
  expect(announced).toEqual([]);
  expect(await hasAccount(server, 'a')).toBe(false);
  clock.advance(1);
  await expect.poll(() => hasAccount(server, 'a')).toBe(true);
  expect(announced).toEqual(['here: 192.0.2.1']);
  const endpoints = server.api.registry.caches.of(server.def('endpoints'));
  const addresses = async () => {
    const endpoint = await endpoints.get(`default/${server.dialect.productName}`, undefined);
    return endpoint === undefined ? '' : JSON.stringify(decodeEntry(endpoint)['subsets']);
  };
  await expect.poll(addresses).toMatch(/"192\.0\.2\.1".*"192\.0\.2\.2".*6443/);
  await controllers.close();
  expect(announced).toEqual(['here: 192.0.2.1', 'gone']);
});

test('STORE-2: without a Service nothing is announced', async () => {
  const server = await scene({ controllers: ['serviceaccount-controller'] });
  const { clock, announced } = server;
  await server.create(namespace('a'), { resource: 'namespaces' });
  await turns();
  clock.advance(pauseMs);
  await expect.poll(() => hasAccount(server, 'a')).toBe(true);
  expect(announced).toEqual([]);
});

test('STORE-2: closing early starts nothing', async () => {
  const server = await scene();
  const { clock, controllers, announced } = server;
  await server.create(namespace('a'), { resource: 'namespaces' });
  await turns();
  await controllers.close();
  clock.advance(10 * pauseMs);
  await turns();
  expect(announced).toEqual([]);
  expect(await hasAccount(server, 'a')).toBe(false);
});

test('STORE-2: among several servers they run in the leader, and each is announced', async () => {
  const leaseDurationMs = 15_000;
  const leaderElection = {
    leaseDurationMs,
    renewDeadlineMs: 10_000,
    retryPeriodMs: 2000,
    name: 'lead',
  };
  const server = await scene({ leaderElection });
  const { api, def, dialect, clock, controllers, announced } = server;
  const system = dialect.systemNamespace('system');
  for (const name of [system, 'a'])
    await server.create(namespace(name), { resource: 'namespaces' });
  const group = dialect.group('coordination');
  const time = new Date(clock.now()).toISOString().replace('Z', '000Z');
  const lease: ApiObject = {
    apiVersion: `${group}/v1`,
    kind: 'Lease',
    metadata: { name: 'lead', namespace: system },
    spec: {
      holderIdentity: 'another',
      leaseDurationSeconds: leaseDurationMs / 1000,
      renewTime: time,
    },
  };
  await server.create(lease, { resource: 'leases', group });
  await turns();
  clock.advance(pauseMs);
  await expect.poll(() => announced).toEqual(['here: 192.0.2.1']);
  clock.advance(2000);
  await turns();
  expect(await hasAccount(server, 'a')).toBe(false);
  // The other server is no longer announced.
  await expect
    .poll(async () => {
      clock.advance(2000);
      return hasAccount(server, 'a');
    })
    .toBe(true);
  await controllers.close();
  const held = await api.registry.caches.of(def('leases', group)).get(`${system}/lead`, undefined);
  expect((decodeEntry(held!)['spec'] as { holderIdentity?: string }).holderIdentity ?? '').toBe('');
  expect(announced.at(-1)).toBe('gone');
});

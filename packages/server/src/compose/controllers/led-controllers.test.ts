import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { builtinKinds } from '@wheelhouse/kinds';
import { type ApiObject, dialectOf, silentLogger } from '@wheelhouse/machinery';
import { FakeClock } from '@wheelhouse/machinery/testing';
import { createMemoryStore } from '@wheelhouse/store/testing';
import { afterEach, expect, test } from 'vitest';
import { decodeEntry } from '../../registry/object-codec.ts';
import { serverContext } from '../../registry/server-context.ts';
import { write } from '../../registry/write.ts';
import { openApi } from '../api.ts';
import { readAuthorization } from '../authorization/configured-authorizers.ts';
import type { ServerConfig } from '../config.ts';
import { createHealth } from '../health/health.ts';
import { createMetrics } from '../observability/metrics.ts';
import { OpenParts } from '../parts.ts';
import { controllersAfter } from './led-controllers.ts';

const dialect = dialectOf('svc');
const pauseMs = 50;
const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

/** For the key of account tokens. */
function newDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'wheelhouse-led-'));
  closers.push(async () => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** The controllers of a server on a memory store, which is ready, and who it tells of itself. */
async function scene(change: Partial<ServerConfig> = {}) {
  const clock = new FakeClock();
  const config: ServerConfig = {
    dialect: 'svc',
    listen: { host: '192.0.2.1', port: 0, tls: { certDir: newDirectory() } },
    store: { type: 'memory' },
    compactionIntervalMs: 0,
    eventTtlMs: 0,
    authorizationModes: ['AlwaysAllow'],
    controllers: ['serviceaccount-controller', 'default-service-controller'],
    controllersPauseMs: pauseMs,
    livezGracePeriodMs: 0,
    shutdownDelayMs: 0,
    compressResponses: false,
    authentication: { anonymous: true },
    limits: {
      bodyBytesMax: 1000,
      requestTimeoutMs: 1000,
      minRequestTimeoutMs: 1000,
      readsInFlightMax: 1,
      writesInFlightMax: 1,
    },
    clock,
    logger: silentLogger,
    ...change,
  };
  const kinds = builtinKinds(dialect);
  const store = createMemoryStore();
  const metrics = createMetrics({ config });
  const health = createHealth({ clock, logger: silentLogger, livezGracePeriodMs: 0 });
  const parts = new OpenParts();
  const authorizers = await readAuthorization(config, dialect);
  const built = { config, dialect, store, health, kinds, metrics, authorizers };
  const api = await openApi(built, parts);
  const told: string[] = [];
  const presence = {
    announce(address: string) {
      told.push(`here: ${address}`);
      return { close: async () => void told.push('gone') };
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
    await parts.close();
    await store.close();
  });
  return { clock, api, controllers, told };
}

type Api = Awaited<ReturnType<typeof scene>>['api'];

function defOf(api: Api, resource: string, group = '') {
  const def = api.catalogue.snapshot().builtin(group, resource);
  if (def === undefined) throw new Error(resource);
  return def;
}

async function make(api: Api, object: ApiObject, place: { resource: string; group?: string }) {
  const def = defOf(api, place.resource, place.group);
  const namespace = object.metadata.namespace ?? '';
  const target = { def, version: def.versions[0]!, namespace, name: '', subresource: '' };
  const context = serverContext;
  await write(api.registry, { operation: 'create', target, object, context });
}

const namespace = (name: string): ApiObject => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name },
});

/** What shows that the controllers run: the account they give to a namespace. */
async function hasAccount(api: Api, name: string): Promise<boolean> {
  const accounts = api.registry.caches.of(defOf(api, 'serviceaccounts'));
  return (await accounts.get(`${name}/default`, undefined)) !== undefined;
}

const turns = async (count = 20) => {
  for (let i = 0; i < count; i += 1) await new Promise((resolve) => setImmediate(resolve));
};

test('STORE-2: after a pause they run, tell of their server, and list it and its peers', async () => {
  const { clock, api, controllers, told } = await scene();
  await make(api, namespace('default'), { resource: 'namespaces' });
  await make(api, namespace('a'), { resource: 'namespaces' });
  await turns();
  clock.advance(pauseMs - 1);
  await turns();
  expect(told).toEqual([]);
  expect(await hasAccount(api, 'a')).toBe(false);
  clock.advance(1);
  await expect.poll(() => hasAccount(api, 'a')).toBe(true);
  expect(told).toEqual(['here: 192.0.2.1']);
  const endpoints = api.registry.caches.of(defOf(api, 'endpoints'));
  const addresses = async () => {
    const found = await endpoints.get(`default/${dialect.productName}`, undefined);
    return found === undefined ? '' : JSON.stringify(decodeEntry(found)['subsets']);
  };
  await expect.poll(addresses).toMatch(/"192\.0\.2\.1".*"192\.0\.2\.2".*6443/);
  await controllers.close();
  expect(told).toEqual(['here: 192.0.2.1', 'gone']);
});

test('STORE-2: whose Service is nobody’s concern is not told of', async () => {
  const { clock, api, told } = await scene({ controllers: ['serviceaccount-controller'] });
  await make(api, namespace('a'), { resource: 'namespaces' });
  await turns();
  clock.advance(pauseMs);
  await expect.poll(() => hasAccount(api, 'a')).toBe(true);
  expect(told).toEqual([]);
});

test('STORE-2: what is closed before its time starts nothing', async () => {
  const { clock, api, controllers, told } = await scene();
  await make(api, namespace('a'), { resource: 'namespaces' });
  await turns();
  await controllers.close();
  clock.advance(10 * pauseMs);
  await turns();
  expect(told).toEqual([]);
  expect(await hasAccount(api, 'a')).toBe(false);
});

test('STORE-2: among several they run in the server that leads, and each is told of', async () => {
  const leaseDurationMs = 15_000;
  const leaderElection = {
    leaseDurationMs,
    renewDeadlineMs: 10_000,
    retryPeriodMs: 2000,
    name: 'lead',
  };
  const { clock, api, controllers, told } = await scene({ leaderElection });
  const system = dialect.systemNamespace('system');
  for (const name of [system, 'a']) await make(api, namespace(name), { resource: 'namespaces' });
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
  await make(api, lease, { resource: 'leases', group });
  await turns();
  clock.advance(pauseMs);
  await expect.poll(() => told).toEqual(['here: 192.0.2.1']);
  clock.advance(2000);
  await turns();
  expect(await hasAccount(api, 'a')).toBe(false);
  // The other one is not heard of any more.
  await expect
    .poll(
      async () => {
        clock.advance(2000);
        return hasAccount(api, 'a');
      },
      { timeout: 10_000 },
    )
    .toBe(true);
  await controllers.close();
  const held = await api.registry.caches
    .of(defOf(api, 'leases', group))
    .get(`${system}/lead`, undefined);
  expect((decodeEntry(held!)['spec'] as { holderIdentity?: string }).holderIdentity ?? '').toBe('');
  expect(told.at(-1)).toBe('gone');
});

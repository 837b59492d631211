import { silentLogger } from '@wheelhouse/machinery';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openTestApi, type TestApi } from '../compose/testing.ts';
import { startEventExpiry } from './event-expiry.ts';
import { createObjectWriter, listEntries } from './tools.ts';

const ttlMs = 60_000;
/** Events that expire within this time of each other are removed together. */
const sweepMs = 1000;

let server: TestApi;
let expiry: { close(): Promise<void> } | undefined;

beforeEach(async () => {
  server = await openTestApi({ admission: { disabled: ['NamespaceLifecycle'] } });
});
afterEach(async () => {
  await expiry?.close();
  expiry = undefined;
  await server.close();
});

function start(): void {
  const { api, clock } = server;
  const { registry } = api;
  const events = server.def('events');
  expiry = startEventExpiry({ events, registry, clock, logger: silentLogger, ttlMs });
}

const create = (name: string, finalizers: string[] = []) =>
  server.create(
    {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name, namespace: 'default', finalizers },
      involvedObject: { namespace: 'default' },
      reportingComponent: '',
      reportingInstance: '',
    },
    { resource: 'events' },
  );
const names = async () => {
  const at = { def: server.def('events'), namespace: '' };
  const entries = await listEntries(server.api.registry.caches, at, { unreadable: 'omitted' });
  return entries.map(({ index }) => index.name).sort();
};
/** Runs all pending work. */
const settle = async () => {
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
};

describe('EVENT-3: an Event', () => {
  test('expires after its TTL, not before', async () => {
    start();
    await create('a');
    server.clock.advance(10_000);
    await create('b');
    await settle();
    server.clock.advance(ttlMs - 10_000);
    await settle();
    expect(await names()).toEqual(['a', 'b']);
    server.clock.advance(sweepMs);
    await expect.poll(names).toEqual(['b']);
    server.clock.advance(10_000);
    await expect.poll(names).toEqual([]);
  });

  test('restarts its TTL when it is written', async () => {
    start();
    await create('a');
    await create('b');
    await settle();
    server.clock.advance(30_000);
    const writer = createObjectWriter({ registry: server.api.registry, controller: 'test' });
    const at = { def: server.def('events'), namespace: 'default', name: 'a' };
    await writer.change(at, (object) => ({ ...object, count: 2 }));
    await settle();
    server.clock.advance(30_000 + sweepMs);
    await expect.poll(names).toEqual(['a']);
    server.clock.advance(30_000 + sweepMs);
    await expect.poll(names).toEqual([]);
  });

  test('expires despite finalizers', async () => {
    start();
    await create('held', ['example.com/hold']);
    await settle();
    server.clock.advance(ttlMs + sweepMs);
    await expect.poll(names).toEqual([]);
  });

  test('from before the start expires by its write time', async () => {
    await create('old');
    server.clock.advance(50_000);
    start();
    await create('new');
    await settle();
    server.clock.advance(10_000 + sweepMs);
    await expect.poll(names).toEqual(['new']);
  });

  test('from before the start expires although another one cannot be read', async () => {
    await create('old');
    const damaged = { key: '/registry/events/default/damaged', value: Buffer.from('{') };
    await server.api.registry.store.put({ ...damaged, expect: 0 });
    start();
    await settle();
    server.clock.advance(ttlMs + sweepMs);
    await expect.poll(names).toEqual([]);
  });

  test('is kept once the expiry is closed', async () => {
    start();
    await create('a');
    await settle();
    await expiry?.close();
    server.clock.advance(2 * ttlMs);
    await settle();
    expect(await names()).toEqual(['a']);
  });
});

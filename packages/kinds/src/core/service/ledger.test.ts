import { FakeClock } from '@wheelhouse/machinery/testing';
import type { Entry, EntryChange, ListRequest, ResourceCache } from '@wheelhouse/server/testing';
import { expect, test } from 'vitest';
import { ServiceLedger } from './ledger.ts';
import type { ServiceSpec } from './spec.ts';

const entry = (name: string, spec: ServiceSpec, revision: number): Entry => ({
  key: `default/${name}`,
  revision,
  createRevision: revision,
  json: Buffer.from(JSON.stringify({ spec })),
  index: { name, namespace: 'default', uid: '', labels: {}, fields: {}, ownerUids: [] },
  memo: undefined,
});

/** A cache whose entries and notifications the test controls. */
function fakeCache(entries: readonly Entry[]) {
  const listeners: ((change: EntryChange) => void)[] = [];
  const cache = {
    get: () => undefined,
    list: () => ({ revision: 10, entries: () => entries }),
    subscribe: (listener: (change: EntryChange) => void) => {
      listeners.push(listener);
      return { close: () => {} };
    },
  } as unknown as ResourceCache;
  const emit = (change: EntryChange) => {
    for (const listener of listeners) listener(change);
  };
  return { cache, emit };
}

async function ledgerOf(entries: readonly Entry[] = []) {
  const clock = new FakeClock();
  const { cache, emit } = fakeCache(entries);
  const ledger = new ServiceLedger({ cache: () => cache, clock });
  await ledger.caughtUp();
  return { ledger, clock, emit };
}

const key = 'ip:10.0.0.1';

test('stored numbers are held, whichever member contains them', async () => {
  const { ledger } = await ledgerOf([
    entry('a', { clusterIP: '10.0.0.1', clusterIPs: ['10.0.0.1', 'fd00:0::1'] }, 1),
    entry('b', { clusterIP: '10.0.0.2', ports: [{ nodePort: 30000 }] }, 2),
    entry('c', { clusterIPs: ['None'] }, 3),
    entry('d', { type: 'ExternalName', clusterIP: '10.0.0.3' }, 4),
    entry(
      'e',
      { type: 'LoadBalancer', externalTrafficPolicy: 'Local', healthCheckNodePort: 30001 },
      5,
    ),
  ]);
  for (const number of [key, 'ip:fd00::1', 'ip:10.0.0.2', 'port:30000', 'port:30001']) {
    expect(ledger.isHeld(number), number).toBe(true);
  }
  expect(ledger.isHeld('ip:10.0.0.3')).toBe(false);
  expect(ledger.isHeld('ip:None')).toBe(false);
});

test('a rejected write releases its numbers immediately', async () => {
  const { ledger } = await ledgerOf();
  ledger.take(key);
  expect(ledger.isHeld(key)).toBe(true);
  ledger.settle([key], { type: 'refused' });
  expect(ledger.isHeld(key)).toBe(false);
});

test('a write holds its numbers until the cache contains it, and its object holds them', async () => {
  const { ledger, emit } = await ledgerOf();
  ledger.take(key);
  ledger.settle([key], { type: 'written', revision: 12 });
  emit({ previous: undefined, current: entry('other', {}, 11), revision: 11 });
  expect(ledger.isHeld(key), 'before its own change').toBe(true);
  const current = entry('a', { clusterIP: '10.0.0.1' }, 12);
  emit({ previous: undefined, current, revision: 12 });
  expect(ledger.isHeld(key), 'after its own change').toBe(true);
  emit({ previous: current, current: undefined, revision: 13 });
  expect(ledger.isHeld(key), 'after its removal').toBe(false);
});

test('a write that the cache contains releases its numbers when it is settled', async () => {
  const { ledger, emit } = await ledgerOf();
  ledger.take(key);
  const current = entry('a', { clusterIP: '10.0.0.1' }, 12);
  emit({ previous: undefined, current, revision: 12 });
  emit({ previous: current, current: undefined, revision: 13 });
  expect(ledger.isHeld(key)).toBe(true);
  ledger.settle([key], { type: 'written', revision: 12 });
  expect(ledger.isHeld(key)).toBe(false);
});

test('the numbers of a write with an unknown outcome stay reserved for a minute', async () => {
  const { ledger, clock } = await ledgerOf();
  ledger.take(key);
  ledger.settle([key], { type: 'unknown' });
  clock.advance(59_000);
  await ledger.caughtUp();
  expect(ledger.isHeld(key)).toBe(true);
  clock.advance(1_000);
  await ledger.caughtUp();
  expect(ledger.isHeld(key)).toBe(false);
});

test('a change that arrives while the list is loading is newer than the list', async () => {
  const old = entry('a', { clusterIP: '10.0.0.1' }, 1);
  const { cache, emit } = fakeCache([old]);
  let deliver = () => {};
  const slow = {
    ...cache,
    list: () =>
      new Promise((resolve) => {
        deliver = () => resolve({ revision: 1, entries: () => [old] });
      }),
  } as unknown as ResourceCache;
  const ledger = new ServiceLedger({ cache: () => slow, clock: new FakeClock() });
  const ready = ledger.caughtUp();
  emit({ previous: old, current: undefined, revision: 2 });
  deliver();
  await ready;
  expect(ledger.isHeld(key)).toBe(false);
});

test('a failed list is requested again', async () => {
  const { cache, emit } = fakeCache([entry('a', { clusterIP: '10.0.0.1' }, 1)]);
  let isDown = true;
  const flaky = {
    ...cache,
    list: (request: ListRequest) => {
      if (isDown) throw new Error('down');
      return cache.list(request);
    },
  } as unknown as ResourceCache;
  const ledger = new ServiceLedger({ cache: () => flaky, clock: new FakeClock() });
  await expect(ledger.caughtUp()).rejects.toThrow('down');
  isDown = false;
  await ledger.caughtUp();
  expect(ledger.isHeld(key)).toBe(true);
  const previous = entry('a', { clusterIP: '10.0.0.1' }, 1);
  emit({ previous, current: undefined, revision: 12 });
  expect(ledger.isHeld(key)).toBe(false);
});

test('TRUST-2: a large Service is read in slices, and later changes wait for it', async () => {
  const { ledger, emit } = await ledgerOf();
  const ports = Array.from({ length: 10_000 }, (_, at) => ({
    port: at + 1,
    nodePort: 30_000 + at,
  }));
  const large = entry('large', { clusterIP: '10.0.0.1', ports }, 11);
  const small = entry('small', { clusterIP: '10.0.0.2' }, 12);
  ledger.take(key);
  ledger.settle([key], { type: 'written', revision: 11 });
  emit({ previous: undefined, current: large, revision: 11 });
  emit({ previous: undefined, current: small, revision: 12 });
  expect(ledger.isHeld(key)).toBe(true);
  expect(ledger.isHeld('port:30000')).toBe(false);
  expect(ledger.isHeld('ip:10.0.0.2')).toBe(false);
  await ledger.caughtUp();
  for (const number of [key, 'port:30000', 'port:39999', 'ip:10.0.0.2']) {
    expect(ledger.isHeld(number), number).toBe(true);
  }
  expect(ledger.isContested(key)).toBe(false);
  emit({ previous: large, current: undefined, revision: 13 });
  await ledger.caughtUp();
  expect(ledger.isHeld(key)).toBe(false);
  expect(ledger.isHeld('port:39999')).toBe(false);
});

import { expect, test } from 'vitest';
import type { Store } from './contract.ts';
import { chooseTransformers, encryptedStore } from './encryption/encrypted-store.ts';
import { identity } from './encryption/providers.ts';
import { convertedStore, mappedStore, type ValueMapping } from './mapped-store.ts';
import { createMemoryStore, type MemoryStore } from './memory/memory-store.ts';
import { meteredStore, routedStore } from './wrapped-stores.ts';

/** A store that other processes write to. */
const shared = (): Store =>
  new Proxy<MemoryStore>(createMemoryStore(), {
    get: (store, name) => (name === 'sharing' ? 'shared' : Reflect.get(store, name)),
  });

const unchanged: ValueMapping = {
  read: (value) => value,
  *readSteps(value) {
    yield;
    return value;
  },
  clock: { monotonic: () => 0 },
};

const wrappers: readonly [string, (store: Store) => Store][] = [
  ['metered', (store) => meteredStore(store, { clock: { monotonic: () => 0 }, observe: () => {} })],
  ['mapped', (store) => mappedStore(store, unchanged)],
  ['converted', (store) => convertedStore(store, (records) => records.map(({ value }) => value))],
  ['routed', (store) => routedStore(store, [])],
  ['routed to a shared', (store) => routedStore(createMemoryStore(), [{ prefix: '/a/', store }])],
  [
    'encrypted',
    (store) =>
      encryptedStore(store, {
        resourceOf: () => '',
        choose: chooseTransformers([], {
          observerOf: () => ({ now: () => 0, observe: () => {} }),
          kms: () => ({ prefix: '', transformer: identity }),
          clock: { monotonic: () => 0 },
        }),
      }),
  ],
];

test.each(wrappers)('STORE-2: a %s store is shared if its inner store is', (_, wrap) => {
  expect(wrap(createMemoryStore()).sharing).toBe('own');
  expect(wrap(shared()).sharing).toBe('shared');
});

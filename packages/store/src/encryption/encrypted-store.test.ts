import { randomBytes } from 'node:crypto';
import { type MaybePromise, nextTurn, systemClock } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { type Store, StoreError, type StoreEvent, unchangedOperations } from '../contract.ts';
import { createMemoryStore } from '../memory/memory-store.ts';
import { storeSuite } from '../suite.ts';
import { chooseTransformers, encryptedStore } from './encrypted-store.ts';
import type { NamedKey, Provider } from './providers.ts';
import type { Transformer } from './transformer.ts';

const key = (name: string, bytes = 32): NamedKey => ({ name, secret: randomBytes(bytes) });
const noKms = () => {
  throw new Error('no KMS here');
};
const quiet = {
  observerOf: () => ({ now: () => 0, observe: () => {} }),
  kms: noKms,
  clock: systemClock,
};
const resourceOf = (at: string) => at.split('/')[2] ?? '';
const choosing = (...providers: Provider[]) =>
  chooseTransformers([{ resources: ['*.*'], providers }], quiet);

storeSuite({
  name: 'encrypted memory',
  open: async () => {
    const choose = choosing({ type: 'aesgcm', keys: [key('one')] });
    const store = encryptedStore(createMemoryStore(), { resourceOf, choose });
    return { store, dispose: () => store.close() };
  },
});

test('TRUST-2: secretbox seals and opens a large value over several turns', async () => {
  let nowMs = 0;
  // Every look at the clock finds that the slice of this turn is over.
  const clock = { monotonic: () => (nowMs += 10) };
  const providers: Provider[] = [{ type: 'secretbox', keys: [key('one')] }];
  const choose = chooseTransformers([{ resources: ['*.*'], providers }], { ...quiet, clock });
  const store = encryptedStore(createMemoryStore(), { resourceOf, choose });
  const value = randomBytes(2 ** 20);
  const turnsOf = async <T>(work: () => MaybePromise<T>) => {
    let turns = 0;
    let isDone = false;
    const result = Promise.resolve(work()).finally(() => {
      isDone = true;
    });
    while (!isDone) {
      turns += 1;
      await nextTurn();
    }
    return { turns, result: await result };
  };
  const put = await turnsOf(() => store.put({ key: '/registry/a/b', value, expect: 0 }));
  expect(put.result.ok).toBe(true);
  const got = await turnsOf(() => store.get('/registry/a/b'));
  expect(got.result?.value.equals(value)).toBe(true);
  for (const { turns } of [put, got]) expect(turns).toBeGreaterThanOrEqual(16);
});

test('TRUST-2: a range is decrypted in steps', async () => {
  const inner = createMemoryStore();
  let opened = 0;
  let mostOpened = 0;
  const transformer = {
    seal: (value: Buffer) => value,
    open: (stored: Buffer) => {
      opened += 1;
      mostOpened = Math.max(mostOpened, opened);
      return { value: stored, isStale: false };
    },
  };
  const store = encryptedStore(inner, { resourceOf, choose: () => transformer });
  const fill = async (prefix: string, options: { count: number; size: number }) => {
    const value = Buffer.alloc(options.size, 'w');
    for (let n = 0; n < options.count; n++) await inner.put({ key: prefix + n, value, expect: 0 });
  };
  await fill('/registry/small/', { count: 1000, size: 10 });
  await fill('/registry/large/', { count: 12, size: 300_000 });
  const most = async (prefix: string) => {
    mostOpened = 0;
    let isDone = false;
    const range = store.range({ prefix }).then((result) => {
      isDone = true;
      return result;
    });
    while (!isDone) {
      opened = 0;
      await new Promise((resolve) => setImmediate(resolve));
    }
    return { count: (await range).records.length, mostOpened };
  };
  // A turn as this test counts them touches two steps.
  expect(await most('/registry/large/')).toEqual({ count: 12, mostOpened: expect.any(Number) });
  expect(mostOpened).toBeLessThanOrEqual(8);
  expect((await most('/registry/small/')).count).toBe(1000);
  expect(mostOpened).toBeLessThanOrEqual(400);
});

const at = '/registry/secrets/default/a';
const value = Buffer.from('{"kind":"Secret","data":"hidden-word"}');

describe.each(['aescbc', 'aesgcm', 'secretbox'] as const)('%s', (type) => {
  const first = key('one');
  const second = key('two');

  test('STORE-3: stored values name their key and contain no plaintext', async () => {
    const inner = createMemoryStore();
    const choose = choosing({ type, keys: [first] });
    const store = encryptedStore(inner, { resourceOf, choose });
    await store.put({ key: at, value, expect: 0 });
    const stored = (await inner.get(at))?.value;
    expect(stored?.subarray(0, `k8s:enc:${type}:v1:one:`.length).toString()).toBe(
      `k8s:enc:${type}:v1:one:`,
    );
    expect(stored?.includes('hidden-word')).toBe(false);
    expect((await store.get(at))?.value).toEqual(value);
    expect((await store.range({ prefix: '/registry/' })).records[0]?.value).toEqual(value);
  });

  test('STORE-3: all keys decrypt, the first encrypts, and values of others are stale', async () => {
    const inner = createMemoryStore();
    const old = encryptedStore(inner, { resourceOf, choose: choosing({ type, keys: [first] }) });
    await old.put({ key: at, value, expect: 0 });
    const choose = choosing({ type, keys: [second, first] });
    const store = encryptedStore(inner, { resourceOf, choose });
    expect((await store.get(at))?.value).toEqual(value);
    expect(await old.isStale(at)).toBe(false);
    expect(await store.isStale(at)).toBe(true);
    const { modRevision } = (await store.get(at)) ?? { modRevision: 0 };
    await store.put({ key: at, value, expect: modRevision });
    expect(await store.isStale(at)).toBe(false);
    expect((await old.get(at))?.unreadable).toBe(
      `no matching key was found for the provided ${type === 'secretbox' ? 'Secretbox' : 'AES'} transformer`,
    );
  });

  test('STORE-3: changed and truncated values are reported as unreadable', async () => {
    const inner = createMemoryStore();
    const choose = choosing({ type, keys: [first] });
    const store = encryptedStore(inner, { resourceOf, choose });
    await store.put({ key: at, value, expect: 0 });
    const record = await inner.get(at);
    const bytes = Buffer.from(record?.value ?? '');
    bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 255;
    await inner.put({ key: at, value: bytes, expect: record?.modRevision ?? 0 });
    // AES-CBC has no tag: the changed block decrypts to garbage, whose padding may be valid.
    if (type !== 'aescbc') {
      expect((await store.get(at))?.unreadable).toBe(
        type === 'aesgcm'
          ? 'cipher: message authentication failed'
          : 'output array was not large enough for encryption',
      );
    }
    const short = Buffer.from(`k8s:enc:${type}:v1:one:x`);
    const next = await inner.get(at);
    await inner.put({ key: at, value: short, expect: next?.modRevision ?? 0 });
    expect((await store.get(at))?.unreadable).toBe(
      'the stored data was shorter than the required size',
    );
  });
});

test('STORE-3: an AES-GCM value can be decrypted only under its own key of the store', async () => {
  const inner = createMemoryStore();
  const choose = choosing({ type: 'aesgcm', keys: [key('one')] });
  const store = encryptedStore(inner, { resourceOf, choose });
  await store.put({ key: at, value, expect: 0 });
  const stolen = (await inner.get(at))?.value ?? Buffer.alloc(0);
  const otherKey = '/registry/secrets/default/b';
  await inner.put({ key: otherKey, value: stolen, expect: 0 });
  expect((await store.get(otherKey))?.unreadable).toBe('cipher: message authentication failed');
});

test('STORE-3: identity stores values unchanged and rejects encrypted ones', async () => {
  const inner = createMemoryStore();
  const secretboxProvider = { type: 'secretbox', keys: [key('one')] } as const;
  const open = (...providers: Provider[]) =>
    encryptedStore(inner, { resourceOf, choose: choosing(...providers) });
  await open({ type: 'identity' }).put({ key: at, value, expect: 0 });
  expect((await inner.get(at))?.value).toEqual(value);
  const mixed = open(secretboxProvider, { type: 'identity' });
  expect((await mixed.get(at))?.value).toEqual(value);
  expect(await mixed.isStale(at)).toBe(true);
  const { modRevision } = (await inner.get(at)) ?? { modRevision: 0 };
  await mixed.put({ key: at, value, expect: modRevision });
  expect((await open({ type: 'identity' }).get(at))?.unreadable).toBe('no matching prefix found');
  const none = encryptedStore(inner, { resourceOf, choose: chooseTransformers([], quiet) });
  expect((await none.get(at))?.unreadable).toBe(
    'identity transformer tried to read encrypted data',
  );
});

test('STORE-3: a rule for a resource precedes one for its group or for all', async () => {
  const provider = (name: string): Provider => ({ type: 'aescbc', keys: [key(name)] });
  const choose = chooseTransformers(
    [
      { resources: ['secrets', 'deployments.apps'], providers: [provider('own')] },
      { resources: ['*.apps'], providers: [provider('group')] },
      { resources: ['*.'], providers: [provider('core')] },
      { resources: ['*.*'], providers: [provider('all')] },
    ],
    quiet,
  );
  const nameOf = (resource: string) =>
    choose(resource).seal(value, '').toString('latin1').split(':')[4];
  expect(
    ['secrets', 'deployments.apps', 'daemonsets.apps', 'pods', 'foos.example.com'].map(nameOf),
  ).toEqual(['own', 'own', 'group', 'core', 'all']);
});

test('STORE-3: a change of keys ends only the watches with unreadable values', async () => {
  const inner = createMemoryStore();
  const [lost, found] = [key('lost'), key('found')];
  const writer = encryptedStore(inner, {
    resourceOf,
    choose: choosing({ type: 'aesgcm', keys: [lost] }),
  });
  const store = encryptedStore(inner, {
    resourceOf,
    choose: choosing({ type: 'aesgcm', keys: [found] }),
  });
  const watch = async (prefix: string) => {
    const seen: StoreEvent[] = [];
    const ends: string[] = [];
    await store.watch({
      prefix,
      after: 0,
      onEvents: (events) => seen.push(...events),
      onEnd: (reason) => ends.push(reason.code),
    });
    return { seen, ends };
  };
  const secrets = await watch('/registry/secrets/');
  const pods = await watch('/registry/pods/');
  await writer.put({ key: at, value, expect: 0 });
  await store.put({ key: '/registry/pods/default/p', value, expect: 0, hint: 'mine' });
  await new Promise(setImmediate);
  expect(secrets.seen[0]).toMatchObject({ unreadable: expect.stringContaining('no matching key') });
  expect(pods.seen[0]).toMatchObject({ value, hint: 'mine' });
  store.change(choosing({ type: 'aesgcm', keys: [found, lost] }));
  expect(secrets.ends).toEqual(['compacted']);
  expect(pods.ends).toEqual([]);
  expect((await store.get(at))?.value).toEqual(value);
});

test('STORE-3: of many watches, a change of keys ends those with unreadable values', async () => {
  const inner = createMemoryStore();
  const [lost, found] = [key('lost'), key('found')];
  const open = (...keys: NamedKey[]) =>
    encryptedStore(inner, { resourceOf, choose: choosing({ type: 'aesgcm', keys }) });
  const writer = open(lost);
  const store = open(found);
  const kinds = Array.from({ length: 300 }, (_, i) => `kind${1000 + i}`);
  for (const kind of kinds.filter((_, i) => i % 2 === 0)) {
    for (let i = 0; i < 20; i++) {
      await writer.put({ key: `/registry/${kind}/default/${i}`, value, expect: 0 });
    }
  }
  await store.range({ prefix: '/registry/' });
  const ended: string[] = [];
  const watched = [...kinds.map((kind) => `/registry/${kind}/`), '/registry/kind10', '/registry/l'];
  const after = await store.currentRevision();
  for (const prefix of watched) {
    await store.watch({ prefix, after, onEvents: () => {}, onEnd: () => ended.push(prefix) });
  }
  store.change(choosing({ type: 'aesgcm', keys: [found, lost] }));
  const unreadable = kinds.filter((_, i) => i % 2 === 0).map((kind) => `/registry/${kind}/`);
  expect(ended).toEqual([...unreadable, '/registry/kind10']);
});

test('STORE-3: a change of keys ends no watch whose unreadable values are gone', async () => {
  const inner = createMemoryStore();
  const store = encryptedStore(inner, { resourceOf, choose: choosing({ type: 'identity' }) });
  let ends = 0;
  const onEnd = () => {
    ends += 1;
  };
  await store.watch({ prefix: '/registry/', after: 0, onEvents: () => {}, onEnd });
  // Another server on the same store writes and deletes.
  await inner.put({ key: at, value: Buffer.from('k8s:enc:lost'), expect: 0 });
  expect((await store.get(at))?.unreadable).toBeDefined();
  await inner.delete({ key: at, expect: 1 });
  store.change(choosing({ type: 'identity' }));
  expect(ends).toBe(0);
});

test('STORE-3: a change of keys ends each open watch once, and no other', async () => {
  const inner = createMemoryStore();
  const choose = choosing({ type: 'identity' });
  const store = encryptedStore(inner, { resourceOf, choose });
  await inner.put({ key: at, value: Buffer.from('k8s:enc:lost'), expect: 0 });
  const ended: string[] = [];
  const open = (name: string) =>
    store.watch({
      prefix: '/registry/secrets/',
      after: 0,
      onEvents: () => {},
      onEnd: ({ code }) => ended.push(`${name} ${code}`),
    });
  const first = await open('first');
  await store.get(at);
  store.change(choose);
  await open('second');
  first.close();
  await store.get(at);
  store.change(choose);
  expect(ended).toEqual(['first compacted', 'second compacted']);
  const opening = open('third');
  await store.get(at);
  store.change(choose);
  await opening;
  expect(ended.at(-1)).toBe('third compacted');
});

test('STORE-3: a change of keys does not end a watch again that the store has ended', async () => {
  const memory = createMemoryStore();
  let endInner: (reason: StoreError) => void = () => {};
  const inner: Store = {
    ...unchangedOperations(memory),
    get: memory.get.bind(memory),
    range: memory.range.bind(memory),
    put: memory.put.bind(memory),
    delete: memory.delete.bind(memory),
    watch(request) {
      endInner = request.onEnd;
      return memory.watch(request);
    },
  };
  const choose = choosing({ type: 'identity' });
  const store = encryptedStore(inner, { resourceOf, choose });
  await inner.put({ key: at, value: Buffer.from('k8s:enc:lost'), expect: 0 });
  const ended: string[] = [];
  const onEnd = ({ code }: StoreError) => ended.push(code);
  await store.watch({ prefix: '/registry/', after: 0, onEvents: () => {}, onEnd });
  await store.get(at);
  endInner(new StoreError({ code: 'unavailable', message: 'the connection was lost' }));
  store.change(choose);
  expect(ended).toEqual(['unavailable']);
});

test('STORE-3: a read that fails because the keys have changed is repeated', async () => {
  const inner = createMemoryStore();
  await inner.put({ key: at, value, expect: 0 });
  let fail: (error: unknown) => void = () => {};
  const slow: Transformer = {
    open: () =>
      new Promise((_, reject) => {
        fail = reject;
      }),
    seal: (plain) => plain,
  };
  const store = encryptedStore(inner, { resourceOf, choose: () => slow });
  const reading = store.get(at);
  store.change(choosing({ type: 'identity' }));
  fail(new Error('the provider is closed'));
  expect(await reading).toMatchObject({ value });
  expect(await reading).not.toHaveProperty('unreadable');
});

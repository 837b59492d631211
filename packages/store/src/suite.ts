import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  type Store,
  type StoredRecord,
  StoreError,
  type StoreEvent,
  type StoreWatch,
} from './contract.ts';

/** A store under test and its disposal. */
interface SuiteStore {
  readonly store: Store;
  /** Called after each test, whether or not the test has closed the store. */
  dispose(): Promise<void>;
}

const bytes = (text: string): Buffer => Buffer.from(text);
const fieldsOf = (record: StoredRecord | undefined) =>
  record && [record.key, record.value.toString(), record.createRevision, record.modRevision];

function lineOf(event: StoreEvent): string {
  return event.type === 'put'
    ? `${event.revision} put ${event.key}=${event.value} created ${event.createRevision}`
    : `${event.revision} delete ${event.key}`;
}

/** The events that a watch has delivered. */
interface Collected {
  readonly watch: StoreWatch;
  readonly batches: (readonly StoreEvent[])[];
  readonly events: () => StoreEvent[];
  readonly ended: () => StoreError | undefined;
}

/** Watches `prefix` after a revision and collects the events. */
export async function collect(
  store: Store,
  options: { readonly prefix: string; readonly after: number },
): Promise<Collected> {
  const batches: (readonly StoreEvent[])[] = [];
  let reason: StoreError | undefined;
  const watch = await store.watch({
    ...options,
    onEvents: (events) => batches.push(events),
    onEnd: (error) => {
      reason = error;
    },
  });
  return { watch, batches, events: () => batches.flat(), ended: () => reason };
}

/** Defines the tests that every implementation and every wrapper of the contract must pass. */
export function storeSuite(suite: {
  readonly name: string;
  readonly open: () => Promise<SuiteStore>;
  /** Set if the store rejects `snapshot`. */
  readonly snapshots?: 'none';
}): void {
  let store: Store;
  let opened: SuiteStore;
  beforeEach(async () => {
    opened = await suite.open();
    store = opened.store;
  });
  afterEach(() => opened.dispose());
  const context = { store: () => store };
  describe(`${suite.name}: writes`, () => writeTests(context));
  describe(`${suite.name}: reads`, () => readTests(context));
  describe(`${suite.name}: history`, () => historyTests(context));
  describe(`${suite.name}: watches`, () => watchTests(context));
  describe(`${suite.name}: lifecycle`, () => lifecycleTests(context));
  if (suite.snapshots === undefined) {
    describe(`${suite.name}: snapshots`, () => snapshotTests(context));
  } else {
    test(`${suite.name}: snapshots are rejected`, () =>
      expect(store.snapshot()).rejects.toMatchObject({ code: 'unavailable' }));
  }
}

interface Context {
  readonly store: () => Store;
}

async function put(store: Store, key: string, value: string, expected = 0): Promise<number> {
  const result = await store.put({ key, value: bytes(value), expect: expected });
  if (!result.ok) throw new Error(`put ${key} expecting ${expected} failed`);
  return result.revision;
}

async function remove(store: Store, key: string, expected: number): Promise<number> {
  const result = await store.delete({ key, expect: expected });
  if (!result.ok) throw new Error(`delete ${key} expecting ${expected} failed`);
  return result.revision;
}

function writeTests({ store }: Context): void {
  test('starts at revision 0 and grows by one with each write', async () => {
    expect(await store().currentRevision()).toBe(0);
    expect(await put(store(), '/a', '1')).toBe(1);
    expect(await put(store(), '/a', '2', 1)).toBe(2);
    expect(await remove(store(), '/a', 2)).toBe(3);
    expect(await store().currentRevision()).toBe(3);
  });

  test('a failed expectation returns the conflicting record and uses no revision', async () => {
    await put(store(), '/a', '1');
    const create = await store().put({ key: '/a', value: bytes('x'), expect: 0 });
    expect(create.ok).toBe(false);
    if (!create.ok) expect(fieldsOf(create.current)).toEqual(['/a', '1', 1, 1]);
    const stale = await store().delete({ key: '/a', expect: 9 });
    if (!stale.ok) expect(fieldsOf(stale.current)).toEqual(['/a', '1', 1, 1]);
    expect(stale.ok).toBe(false);
    const absent = await store().put({ key: '/b', value: bytes('x'), expect: 5 });
    expect(absent).toEqual({ ok: false, current: undefined });
    expect(await store().delete({ key: '/b', expect: 0 })).toEqual({
      ok: false,
      current: undefined,
    });
    expect(await store().currentRevision()).toBe(1);
  });

  test('a recreated key has a new createRevision', async () => {
    await put(store(), '/a', '1');
    await remove(store(), '/a', 1);
    await put(store(), '/a', '2');
    await put(store(), '/a', '3', 3);
    expect(fieldsOf(await store().get('/a'))).toEqual(['/a', '3', 3, 4]);
  });

  test('of concurrent writers of one key exactly one wins each revision', async () => {
    let current = await put(store(), '/a', '0');
    for (let round = 0; round < 10; round++) {
      const expected = current;
      const writers = Array.from({ length: 16 }, (_, i) =>
        store().put({ key: '/a', value: bytes(`${round}/${i}`), expect: expected }),
      );
      const results = await Promise.all(writers);
      const winners = results.filter((result) => result.ok);
      expect(winners).toHaveLength(1);
      current = (winners[0] as { revision: number }).revision;
      for (const result of results) {
        if (!result.ok) expect(result.current?.modRevision).toBe(current);
      }
    }
    expect(await store().currentRevision()).toBe(11);
  });

  test('a write is readable as soon as it resolves', async () => {
    const writers = Array.from({ length: 20 }, async (_, i) => {
      const revision = await put(store(), `/k${i}`, String(i));
      expect((await store().get(`/k${i}`))?.modRevision).toBe(revision);
      expect(await store().currentRevision()).toBeGreaterThanOrEqual(revision);
    });
    await Promise.all(writers);
  });

  test('empty and large values keep their bytes', async () => {
    const large = Buffer.alloc(1_500_000, 'wheel');
    await store().put({ key: '/large', value: large, expect: 0 });
    await store().put({ key: '/empty', value: Buffer.alloc(0), expect: 0 });
    expect((await store().get('/large'))?.value.equals(large)).toBe(true);
    expect((await store().get('/empty'))?.value.length).toBe(0);
  });
}

function readTests({ store }: Context): void {
  const keys = async (prefix: string, more: { after?: string; limit?: number } = {}) => {
    const result = await store().range({ prefix, ...more });
    return [result.records.map((record) => record.key), result.more];
  };

  test('pages through a prefix in byte order', async () => {
    for (const key of ['/a/c', '/a/a', '/b', '/a/b', '/a', '/ab']) await put(store(), key, 'v');
    expect(await keys('/a/')).toEqual([['/a/a', '/a/b', '/a/c'], false]);
    expect(await keys('/a')).toEqual([['/a', '/a/a', '/a/b', '/a/c', '/ab'], false]);
    expect(await keys('/a/', { limit: 2 })).toEqual([['/a/a', '/a/b'], true]);
    expect(await keys('/a/', { limit: 2, after: '/a/b' })).toEqual([['/a/c'], false]);
    expect(await keys('/a/', { limit: 3 })).toEqual([['/a/a', '/a/b', '/a/c'], false]);
    expect(await keys('/a/', { after: '/a/aa' })).toEqual([['/a/b', '/a/c'], false]);
    expect(await keys('/a/', { after: '/z' })).toEqual([[], false]);
    expect(await keys('/b', { after: '/a' })).toEqual([['/b'], false]);
    expect((await keys(''))[0]).toHaveLength(6);
    expect(await keys('/none')).toEqual([[], false]);
  });

  test('orders by UTF-8 bytes, not by UTF-16 units', async () => {
    const inOrder = ['/k/a', '/k/ä', '/k/€', '/k/\ufffd', '/k/\u{1f600}', '/k/\u{1f600}x'];
    for (const key of [...inOrder].reverse()) await put(store(), key, 'v');
    expect(await keys('/k/')).toEqual([inOrder, false]);
    expect(await keys('/k/', { after: '/k/\ufffd' })).toEqual([inOrder.slice(4), false]);
    expect(await keys('/k/\u{1f600}')).toEqual([inOrder.slice(4), false]);
  });

  test('a range of thousands is complete and at one revision', async () => {
    const writes = Array.from({ length: 2500 }, (_, i) => put(store(), `/n/${i + 10_000}`, 'v'));
    await Promise.all(writes);
    const reading = store().range({ prefix: '/n/' });
    const late = put(store(), '/n/99999', 'late');
    const result = await reading;
    await late;
    // The range may or may not include the late write, but must be consistent.
    expect([2500, 2501]).toContain(result.revision);
    expect(result.records).toHaveLength(result.revision);
  });

  test('returned records do not change later', async () => {
    await put(store(), '/a', 'first');
    const record = await store().get('/a');
    const all = await store().range({ prefix: '/' });
    for (let i = 1; i < 30; i++) {
      await put(store(), '/a', `later ${i}`, i);
      await store().get('/a');
    }
    expect(record?.value.toString()).toBe('first');
    expect(all.records[0]?.value.toString()).toBe('first');
  });
}

function historyTests({ store }: Context): void {
  async function changes(): Promise<void> {
    await put(store(), '/a', '1');
    await put(store(), '/b', '2');
    await put(store(), '/a', '3', 1);
    await remove(store(), '/b', 2);
    await put(store(), '/b', '5');
    await remove(store(), '/a', 3);
  }
  const at = async (revision: number) =>
    (await store().range({ prefix: '/', revision })).records.map((record) =>
      record.value.toString(),
    );

  test('reads every retained revision', async () => {
    await changes();
    const states = [];
    for (let revision = 0; revision <= 6; revision++) states.push((await at(revision)).join());
    expect(states).toEqual(['', '1', '1,2', '3,2', '3', '3,5', '5']);
    expect(fieldsOf(await store().get('/b', 3))).toEqual(['/b', '2', 2, 2]);
    expect(await store().get('/b', 4)).toBeUndefined();
    expect(fieldsOf(await store().get('/b', 5))).toEqual(['/b', '5', 5, 5]);
  });

  test('rejects future revisions', async () => {
    await put(store(), '/a', '1');
    const future = { code: 'future-revision', revision: 1 };
    await expect(store().range({ prefix: '/', revision: 2 })).rejects.toMatchObject(future);
    await expect((async () => store().get('/a', 2))()).rejects.toMatchObject(future);
    await expect(store().compact(2)).rejects.toMatchObject(future);
  });

  test('compaction discards history and nothing else', async () => {
    await changes();
    await store().compact(4);
    expect(await store().compactRevision()).toBe(4);
    expect(await at(4)).toEqual(['3']);
    expect(await at(5)).toEqual(['3', '5']);
    expect(await at(6)).toEqual(['5']);
    const gone = { code: 'compacted', revision: 4 };
    await expect(store().range({ prefix: '/', revision: 3 })).rejects.toMatchObject(gone);
    await expect((async () => store().get('/a', 1))()).rejects.toMatchObject(gone);
    await expect(collect(store(), { prefix: '/', after: 3 })).rejects.toMatchObject(gone);
    await store().compact(2);
    expect(await store().compactRevision()).toBe(4);
    await store().compact(6);
    expect(await at(6)).toEqual(['5']);
    expect(await store().get('/a')).toBeUndefined();
    expect(await put(store(), '/a', 'again')).toBe(7);
    expect(fieldsOf(await store().get('/a'))).toEqual(['/a', 'again', 7, 7]);
    expect(await store().get('/a', 6)).toBeUndefined();
  });
}

function watchTests({ store }: Context): void {
  test('delivers history, then new events, once and in order', async () => {
    await put(store(), '/a', '1');
    await put(store(), '/a', '2', 1);
    const seen = await collect(store(), { prefix: '/', after: 1 });
    await remove(store(), '/a', 2);
    await seen.watch.reached(3);
    expect(seen.events().map(lineOf)).toEqual(['2 put /a=2 created 1', '3 delete /a']);
    expect(seen.watch.progress).toBe(3);
    seen.watch.close();
  });

  test('catches up over thousands of events during writes', async () => {
    const writes = Array.from({ length: 2300 }, (_, i) => put(store(), `/k${i}`, 'v'));
    await Promise.all(writes);
    const seen = await collect(store(), { prefix: '/', after: 0 });
    for (let i = 0; i < 20; i++) await put(store(), `/late${i}`, 'v');
    await seen.watch.reached(2320);
    const revisions = seen.events().map((event) => event.revision);
    expect(revisions).toEqual(Array.from({ length: 2320 }, (_, i) => i + 1));
  });

  test('events are delivered with the hint before the write resolves', async () => {
    const seen = await collect(store(), { prefix: '/', after: 0 });
    const hint = { index: 1 };
    await store().put({ key: '/a', value: bytes('1'), expect: 0, hint });
    expect(seen.events()).toHaveLength(1);
    expect(seen.events()[0]).toMatchObject({ type: 'put', hint });
    expect(seen.watch.reached(1)).toBeUndefined();
  });

  test('a prefix sees only its own keys, and progress skips the others', async () => {
    const seen = await collect(store(), { prefix: '/a/', after: 0 });
    await put(store(), '/a', 'v');
    await put(store(), '/ab/x', 'v');
    await put(store(), '/a/x', 'v');
    await put(store(), '/b/x', 'v');
    await seen.watch.reached(4);
    expect(seen.events().map((event) => event.key)).toEqual(['/a/x']);
    expect(seen.watch.progress).toBe(4);
  });

  test('reached waits for its revision', async () => {
    const seen = await collect(store(), { prefix: '/', after: 0 });
    let reached = false;
    const waiting = Promise.resolve(seen.watch.reached(2)).then(() => {
      reached = true;
    });
    await put(store(), '/a', '1');
    expect(reached).toBe(false);
    await put(store(), '/a', '2', 1);
    await waiting;
    expect(seen.events()).toHaveLength(2);
  });

  test('all watches see concurrent writes in the same order', async () => {
    const first = await collect(store(), { prefix: '/', after: 0 });
    const second = await collect(store(), { prefix: '/', after: 0 });
    await Promise.all(Array.from({ length: 100 }, (_, i) => put(store(), `/k${i}`, 'v')));
    expect(first.events().map(lineOf)).toEqual(second.events().map(lineOf));
    expect(first.events().map((event) => event.revision)).toEqual(
      Array.from({ length: 100 }, (_, i) => i + 1),
    );
  });

  test('close inside a callback stops delivery immediately', async () => {
    let calls = 0;
    const watch = await store().watch({
      prefix: '/',
      after: 0,
      onEvents: () => {
        calls += 1;
        watch.close();
      },
      onEnd: () => {},
    });
    await put(store(), '/a', '1');
    await put(store(), '/a', '2', 1);
    expect(calls).toBe(1);
  });

  test('a callback that throws does not affect others', async () => {
    await store().watch({
      prefix: '/',
      after: 0,
      onEvents: () => {
        throw new Error('broken watcher');
      },
      onEnd: () => {},
    });
    const seen = await collect(store(), { prefix: '/', after: 0 });
    await put(store(), '/a', '1');
    expect(seen.events()).toHaveLength(1);
  });

  test.each(['live', 'past'])(
    'a callback that throws ends its watch of %s events',
    async (when) => {
      const first = await put(store(), '/a', '1');
      const later = async () => put(store(), '/a', '3', await put(store(), '/a', '2', first));
      const past = when === 'past' ? await later() : undefined;
      let calls = 0;
      const ended: StoreError[] = [];
      const watch = await store().watch({
        prefix: '/',
        after: first,
        onEvents: () => {
          calls += 1;
          throw new Error('broken watcher');
        },
        onEnd: (reason) => ended.push(reason),
      });
      const last = past ?? (await later());
      await expect(async () => watch.reached(last)).rejects.toBeInstanceOf(StoreError);
      const message = 'the receiver of the watch failed: broken watcher';
      expect(ended).toMatchObject([{ code: 'unavailable', message }]);
      expect([calls, watch.progress]).toEqual([1, first]);
      const again = await collect(store(), { prefix: '/', after: watch.progress });
      await again.watch.reached(last);
      expect(again.events()).toHaveLength(2);
    },
  );

  test('a watch survives compaction of earlier history', async () => {
    const seen = await collect(store(), { prefix: '/', after: 0 });
    await put(store(), '/a', '1');
    await put(store(), '/a', '2', 1);
    await store().compact(2);
    await put(store(), '/a', '3', 2);
    expect(seen.events()).toHaveLength(3);
    expect(seen.ended()).toBeUndefined();
  });

  test('a watch from the compacted revision itself is served', async () => {
    await put(store(), '/a', '1');
    await put(store(), '/b', '2');
    await remove(store(), '/b', 2);
    await store().compact(2);
    const seen = await collect(store(), { prefix: '/', after: 2 });
    await seen.watch.reached(3);
    expect(seen.events().map(lineOf)).toEqual(['3 delete /b']);
  });
}

function lifecycleTests({ store }: Context): void {
  test('a closed store ends its watches and rejects everything', async () => {
    await put(store(), '/a', '1');
    await store().ping();
    expect(await store().sizeBytes()).toBeGreaterThan(0);
    const seen = await collect(store(), { prefix: '/', after: 1 });
    await store().close();
    await store().close();
    expect(seen.ended()).toMatchObject({ code: 'closed' });
    const closed = { code: 'closed' };
    await expect(store().ping()).rejects.toMatchObject(closed);
    await expect(put(store(), '/b', '1')).rejects.toMatchObject(closed);
    await expect(store().range({ prefix: '/' })).rejects.toMatchObject(closed);
    await expect((async () => store().get('/a'))()).rejects.toMatchObject(closed);
  });
}

function snapshotTests({ store }: Context): void {
  test('contains one state with stored values, regardless of later writes', async () => {
    const inOrder = ['/a', '/k/a', '/k/\ufffd', '/k/\u{1f600}', '/z'];
    for (const key of [...inOrder].reverse()) await put(store(), key, `of ${key}`);
    await put(store(), '/a', 'newer', 5);
    await remove(store(), '/z', 1);
    const snapshot = await store().snapshot();
    await put(store(), '/k/a', 'newest', 4);
    await put(store(), '/k/b', 'new');
    await remove(store(), '/a', 6);
    await store().compact(await store().currentRevision());
    const found: StoredRecord[] = [];
    for await (const records of snapshot.records) found.push(...records);
    snapshot.close();
    snapshot.close();
    expect(snapshot.revision).toBe(7);
    const places = found.map(({ key, createRevision, modRevision }) => [
      key,
      createRevision,
      modRevision,
    ]);
    const [, ka, kf, ke] = inOrder;
    const kept = [ka, kf, ke].map((key, i) => [key, 4 - i, 4 - i]);
    expect(places).toEqual([['/a', 5, 6], ...kept]);
  });

  test('of an empty store is empty, and ends with the store', async () => {
    const snapshot = await store().snapshot();
    expect(snapshot.revision).toBe(0);
    for await (const records of snapshot.records) expect(records).toEqual([]);
    for (let i = 0; i < 5; i++) {
      await store().put({ key: `/${i}`, value: Buffer.alloc(2 ** 20), expect: 0 });
    }
    const pieces = (await store().snapshot()).records[Symbol.asyncIterator]();
    expect((await pieces.next()).done).toBe(false);
    await store().close();
    await expect(pieces.next()).rejects.toMatchObject({ code: 'closed' });
    await expect(store().snapshot()).rejects.toMatchObject({ code: 'closed' });
  });
}

import { StatusError, wholeBytes } from '@wheelhouse/machinery';
import { FakeClock } from '@wheelhouse/machinery/testing';
import { decodeContinue, encodeContinue, type Store } from '@wheelhouse/store';
import { createMemoryStore } from '@wheelhouse/store/testing';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { ListRequest, ListResult, ResourceCache } from './contract.ts';
import type { Entry } from './entry.ts';
import { EntryRun, runsOf, runsOfAll } from './reads.ts';
import type { ResourceCacheOptions } from './resource-cache.ts';
import { openCache, putWidget, removeWidget, settle, tokenVersion } from './testing.ts';

interface Setup {
  readonly store: Store;
  readonly clock: FakeClock;
  readonly cache: ResourceCache;
}

/** Writes a/0 … a/9 (revisions 1 to 10) and b/0 … b/4 (11 to 15) behind an open cache. */
async function setup(options: Partial<ResourceCacheOptions> = {}): Promise<Setup> {
  const store = createMemoryStore();
  const clock = new FakeClock();
  const cache = openCache(store, clock, options);
  await cache.ready();
  for (let i = 0; i < 10; i++) await putWidget(store, { namespace: 'a', name: `${i}`, team: t(i) });
  for (let i = 0; i < 5; i++) await putWidget(store, { namespace: 'b', name: `${i}`, team: t(i) });
  return { store, clock, cache };
}

const t = (i: number) => (i % 2 === 0 ? 'even' : 'odd');

function request(options: Partial<ListRequest> = {}): ListRequest {
  return {
    namespace: '',
    resourceVersion: undefined,
    resourceVersionMatch: undefined,
    limit: undefined,
    continueToken: undefined,
    filter: undefined,
    ...options,
  };
}

function names(list: ListResult): string[] {
  return [...list.entries()].map((entry) => entry.key);
}

function body(list: ListResult): { metadata: { name: string; resourceVersion: string } }[] {
  return JSON.parse(`[${wholeBytes(list.jsonPieces(0)).toString()}]`);
}

async function rejectionOf(work: () => unknown): Promise<StatusError> {
  try {
    await work();
  } catch (error) {
    if (error instanceof StatusError) return error;
    throw error;
  }
  throw new Error('the request was not rejected');
}

test('a list returns all objects, or those of a namespace, at the newest revision', async () => {
  const { cache } = await setup();
  const all = await cache.list(request());
  expect(all.revision).toBe(15);
  expect(all.count).toBe(15);
  expect(all.continueToken).toBeUndefined();
  expect(body(all).map(({ metadata }) => metadata.resourceVersion)).toEqual(
    Array.from({ length: 15 }, (_, i) => String(i + 1)),
  );
  expect(names(await cache.list(request({ namespace: 'b' })))).toHaveLength(5);
  expect(names(await cache.list(request({ namespace: 'a', name: '3' })))).toEqual(['a/3']);
  expect(names(await cache.list(request({ namespace: 'none' })))).toEqual([]);
  expect([...(await cache.list(request({ namespace: 'none' }))).jsonPieces(0)]).toEqual([]);
});

test('reads that need no waiting are synchronous', async () => {
  const { cache } = await setup();
  expect(cache.get('a/1', undefined)).not.toBeInstanceOf(Promise);
  expect(cache.get('a/1', '0')).not.toBeInstanceOf(Promise);
  expect(cache.get('a/1', '15')).not.toBeInstanceOf(Promise);
  expect(cache.list(request())).not.toBeInstanceOf(Promise);
});

test('all pages belong to the snapshot of the first one, despite concurrent writes', async () => {
  const { cache, store } = await setup();
  const found: string[] = [];
  const remaining: (number | undefined)[] = [];
  let continueToken: string | undefined;
  for (let chunk = 0; chunk < 10; chunk++) {
    const list = await cache.list(request({ limit: 4, continueToken }));
    expect(list.revision).toBe(15);
    expect(body(list).map(({ metadata }) => metadata.name)).toHaveLength(list.count);
    found.push(...names(list));
    remaining.push(list.remainingItemCount);
    continueToken = list.continueToken;
    await putWidget(store, { namespace: 'a', name: `new-${chunk}` });
    await removeWidget(store, `b/${chunk}`);
    if (continueToken === undefined) break;
  }
  expect(found).toHaveLength(15);
  expect(new Set(found).size).toBe(15);
  expect(remaining).toEqual([11, 7, 3, undefined]);
});

test('the limit counts matches, and there is a token while entries remain', async () => {
  const { cache } = await setup();
  const filter = (index: { labels: Readonly<Record<string, string>> }) =>
    index.labels.team === 'odd';
  const first = await cache.list(request({ namespace: 'a', limit: 2, filter }));
  expect(names(first)).toEqual(['a/1', 'a/3']);
  expect(first.remainingItemCount).toBeUndefined();
  const second = await cache.list(
    request({ namespace: 'a', limit: 3, filter, continueToken: first.continueToken }),
  );
  expect(names(second)).toEqual(['a/5', 'a/7', 'a/9']);
  expect(second.continueToken).toBeUndefined();
  expect(body(second)).toHaveLength(3);
});

const table: readonly [Partial<ListRequest>, string][] = [
  [{}, 'at 15'],
  [{ resourceVersion: '0' }, 'at 15'],
  [{ resourceVersion: '12' }, 'at 15'],
  [{ limit: 5 }, 'at 15'],
  [{ limit: 5, resourceVersion: '0' }, 'at 15'],
  [{ limit: 5, resourceVersion: '12' }, 'at 12'],
  [{ resourceVersion: '12', resourceVersionMatch: 'Exact' }, 'at 12'],
  [{ limit: 5, resourceVersion: '12', resourceVersionMatch: 'Exact' }, 'at 12'],
  [{ resourceVersion: '0', resourceVersionMatch: 'NotOlderThan' }, 'at 15'],
  [{ resourceVersion: '12', resourceVersionMatch: 'NotOlderThan' }, 'at 15'],
  [{ limit: 5, resourceVersion: '0', resourceVersionMatch: 'NotOlderThan' }, 'at 15'],
  [{ limit: 5, resourceVersion: '12', resourceVersionMatch: 'NotOlderThan' }, 'at 15'],
  [{ limit: 5, continueToken: token(13, 'a/3') }, 'at 13'],
  [{ limit: 5, continueToken: token(13, 'a/3'), resourceVersion: '0' }, 'at 13'],
  [{ limit: 5, continueToken: token(-1, 'a/3') }, 'at 15'],
  [
    { limit: 5, continueToken: token(13, 'a/3'), resourceVersion: '12' },
    '400 specifying resource version is not allowed when using continue',
  ],
  [
    { resourceVersion: 'abc' },
    '400 invalid resource version: resourceVersion: Invalid value: "abc": ' +
      'strconv.ParseUint: parsing "abc": invalid syntax',
  ],
  [
    { continueToken: 'a.b' },
    '400 invalid continue token: continue key is not valid: illegal base64 data at input byte 1',
  ],
];

function token(revision: number, start: string): string {
  return encodeContinue({ revision, start }, tokenVersion);
}

test('LIST-5: each combination of list parameters', async () => {
  const { cache } = await setup();
  for (const [options, expected] of table) {
    let seen: string;
    try {
      seen = `at ${(await cache.list(request(options))).revision}`;
    } catch (error) {
      const { code, message } = error as StatusError;
      seen = `${code} ${message}`;
    }
    expect([options, seen]).toEqual([options, expected]);
  }
});

test('an exact list returns the old state, from the window or the store', async () => {
  const { cache, store } = await setup();
  await removeWidget(store, 'a/0');
  const exact = { resourceVersionMatch: 'Exact' as const, namespace: 'a' };
  expect(names(await cache.list(request({ ...exact, resourceVersion: '3' })))).toHaveLength(3);
  const later = openCache(store, new FakeClock());
  await later.ready();
  const old = await later.list(request({ ...exact, resourceVersion: '3' }));
  expect(names(old)).toEqual(['a/0', 'a/1', 'a/2']);
  expect(old.revision).toBe(3);
  await store.compact(10);
  const gone = await rejectionOf(() => later.list(request({ ...exact, resourceVersion: '4' })));
  expect([gone.code, gone.reason, gone.message]).toEqual([
    410,
    'Expired',
    'The resourceVersion for the provided list is too old.',
  ]);
});

test('the error for an expired token offers one that continues at the newest state', async () => {
  const { cache, store, clock } = await setup({ historyMs: 1000 });
  const first = await cache.list(request({ limit: 4 }));
  await putWidget(store, { namespace: 'a', name: '4', value: 2 });
  clock.advance(5000);
  await putWidget(store, { namespace: 'a', name: '4', value: 3 });
  await store.compact(16);
  const { continueToken } = first;
  const error = await rejectionOf(() => cache.list(request({ limit: 4, continueToken })));
  expect([error.code, error.reason]).toEqual([410, 'Expired']);
  expect(error.message).toMatch(/use the continue token in this response/);
  const offered = error.status.metadata.continue ?? '';
  const point = { revision: -1, start: 'a/3\0' };
  expect(decodeContinue(offered, tokenVersion)).toEqual({ ok: true, point });
  const rest = await cache.list(request({ continueToken: offered }));
  expect(rest.revision).toBe(17);
  expect(names(rest)).toHaveLength(11);
});

test('a read waits for a future version, and times out', async () => {
  const { cache, store, clock } = await setup();
  const soon = cache.get('a/new', '16');
  const never = rejectionOf(() => cache.list(request({ resourceVersion: '99' })));
  const beyond = rejectionOf(() => cache.get('a/1', '18446744073709551615'));
  await putWidget(store, { namespace: 'a', name: 'new' });
  expect((await soon)?.revision).toBe(16);
  await settle();
  clock.advance(3000);
  for (const [error, requested] of [
    [await never, '99'],
    [await beyond, '18446744073709551615'],
  ] as const) {
    expect(error.code).toBe(504);
    expect(error.message).toBe(`Timeout: Too large resource version: ${requested}, current: 16`);
    expect(error.status.details?.retryAfterSeconds).toBe(1);
  }
});

test('writes of other resources advance the version of a list', async () => {
  const { cache, store } = await setup();
  const otherRecord = { key: '/registry/others/x', value: Buffer.from('{}'), expect: 0 };
  await store.put(otherRecord);
  expect((await cache.list(request())).revision).toBe(16);
});

test('a list does not contain writes that follow it', async () => {
  const { cache, store } = await setup();
  const before = await cache.list(request());
  await putWidget(store, { namespace: 'a', name: '4', value: 9 });
  expect(body(await cache.list(request()))[4]?.metadata.resourceVersion).toBe('16');
  expect(body(before)[4]?.metadata.resourceVersion).toBe('5');
});

const entriesOf = (texts: readonly string[]) =>
  texts.map((text) => ({ json: Buffer.from(text) }) as Entry);

const some = fc.record({
  texts: fc.array(fc.string({ maxLength: 9 }), { minLength: 1, maxLength: 6 }),
  skipped: fc.nat(3),
  endsWithComma: fc.boolean(),
});
/** Longer than most items, so that a type overlaps several previous items. */
const someType = fc.constantFrom('', ',', '"kind":1,', `"kind":"${'x'.repeat(20)}",`);

test('a run contains its entries with commas and without types, however it is divided', () => {
  fc.assert(
    fc.property(
      some,
      someType,
      fc.array(fc.integer({ min: 1, max: 40 })),
      (sample, type, portions) => {
        const { texts, endsWithComma } = sample;
        const from = Math.min(sample.skipped, texts.length - 1);
        const to = texts.length;
        const entries = entriesOf(texts.map((text) => `{${type}${text}}`));
        const run = new EntryRun({ entries, from, to, endsWithComma, typeBytes: type.length });
        const items = texts.slice(from).map((text) => `{${text}}`);
        const expected = items.join(',') + (endsWithComma ? ',' : '');
        expect(run.length).toBe(Buffer.byteLength(expected));
        // The bytes around the run must not change.
        const around = 50;
        const copied = Buffer.alloc(run.length + 2 * around);
        let at = 0;
        for (const portion of [...portions, run.length]) {
          const bytes = Math.min(portion, run.length - at);
          if (bytes === 0) break;
          run.copyNext(copied, around + at, bytes);
          at += bytes;
        }
        const nothing = '\0'.repeat(around);
        expect(copied.toString()).toBe(`${nothing}${expected}${nothing}`);
      },
    ),
  );
});

test('a copy beyond the end throws', () => {
  const [run] = runsOfAll(entriesOf(['{}']), 0);
  expect(() => run?.copyNext(Buffer.alloc(9), 0, 3)).toThrow('nothing is left');
});

test('an object that does not begin with its type throws', () => {
  const entries = entriesOf(['{"kind":"A","x":1}', '{"kind":"A","x":1}', '{"x":"A","y":1}']);
  const [run] = runsOfAll(entries, '"kind":"A",'.length);
  const target = Buffer.alloc(run?.length ?? 0);
  expect(() => run?.copyNext(target, 0, target.length)).toThrow('does not begin with its type');
  const [laterRun] = runsOfAll(entries.slice(2), '"kind":"A",'.length);
  expect(() => laterRun?.copyNext(target, 0, 2)).toThrow('does not begin with its type');
});

test('many entries become short runs, and one large entry becomes its own run', () => {
  const texts = Array.from({ length: 100 }, (_, n) => `"${'x'.repeat(n === 50 ? 99_999 : 999)}"`);
  const entries = entriesOf(texts);
  const runs = () => [...runsOfAll(entries, 0)];
  expect(wholeBytes(runs()).toString()).toBe(texts.join(','));
  const lengths = runs().map(({ length }) => length);
  expect(lengths.filter((length) => length > 20_000)).toHaveLength(1);
  expect(lengths.length).toBeGreaterThan(5);
  const none = { entries, from: 3, to: 3, endsWithComma: false, typeBytes: 0 };
  expect([...runsOf(none)]).toEqual([]);
});

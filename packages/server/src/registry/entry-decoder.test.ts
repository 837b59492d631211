import { type ApiObject, observeFaults } from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import { makeEntry } from '../watchcache/entry.ts';
import { EntryDecoder } from './entry-decoder.ts';
import { encodeStored } from './object-codec.ts';

/** An entry of a ConfigMap with so many keys; 1,000 are about 20 KiB. */
function entryOf(name: string, keys: number, revision = 1) {
  const object: ApiObject = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace: 'default' },
    data: Object.fromEntries(Array.from({ length: keys }, (_, at) => [`key-${at}`, 'a value'])),
  };
  return makeEntry({
    key: `default/${name}`,
    stored: encodeStored(object),
    revision,
    createRevision: 1,
    index: {
      name,
      namespace: 'default',
      uid: name,
      labels: {},
      fields: {},
      ownerUids: [],
      deleting: false,
    },
  });
}

/** Every look at the clock finds that the slice of this turn is over. */
function impatient() {
  let nowMs = 0;
  return { monotonic: () => (nowMs += 10) };
}

test('a small object and a removal are passed on at once', () => {
  const decoder = new EntryDecoder(impatient());
  const names: (string | undefined)[] = [];
  const use = (object: ApiObject | undefined) => names.push(object?.metadata.name);
  decoder.pass('a', entryOf('a', 1), use);
  decoder.pass('a', undefined, use);
  expect(names).toEqual(['a', undefined]);
});

test('TRUST-2: a large object is decoded and read over several turns of the event loop', async () => {
  const decoder = new EntryDecoder(impatient());
  let turns = 0;
  let waiting: NodeJS.Immediate | undefined;
  const next = () => {
    turns += 1;
    waiting = setImmediate(next);
  };
  next();
  function* countKeys({ data }: ApiObject): Generator<void, number> {
    let count = 0;
    for (const _ of Object.keys(data ?? {})) {
      count += 1;
      if (count % 1_000 === 0) yield;
    }
    return count;
  }
  const counts: (number | undefined)[] = [];
  decoder.passRead('a', entryOf('a', 10_000), {
    read: countKeys,
    use: (count) => counts.push(count),
  });
  expect(counts).toEqual([]);
  await decoder.settled();
  clearImmediate(waiting);
  expect(counts).toEqual([10_000]);
  expect(turns).toBeGreaterThan(10);
});

test('a newer state overtakes a large object that is not decoded yet', async () => {
  const decoder = new EntryDecoder(impatient());
  const seen: [string, number | undefined][] = [];
  const noting = (id: string) => (object: ApiObject | undefined) =>
    seen.push([id, object && Object.keys(object['data'] ?? {}).length]);
  decoder.pass('a', entryOf('a', 1_000), noting('a'));
  decoder.pass('a', entryOf('a', 2_000, 2), noting('a'));
  decoder.pass('b', entryOf('b', 1_000), noting('b'));
  decoder.pass('b', entryOf('b', 3, 2), noting('b'));
  decoder.pass('c', entryOf('c', 1_000), noting('c'));
  decoder.pass('c', undefined, noting('c'));
  await decoder.settled();
  expect(seen).toEqual([
    ['b', 3],
    ['c', undefined],
    ['a', 2_000],
  ]);
});

test('TRUST-1: a follower that throws is reported, and gets later objects', async () => {
  const decoder = new EntryDecoder(impatient());
  const faults: unknown[] = [];
  const stop = observeFaults(({ error }) => faults.push(error));
  const failure = new Error('no use');
  decoder.pass('a', entryOf('a', 1000), () => {
    throw failure;
  });
  await expect(decoder.settled()).rejects.toBe(failure);
  const names: (string | undefined)[] = [];
  decoder.pass('a', entryOf('a', 1000, 2), (object) => names.push(object?.metadata.name));
  await decoder.settled();
  stop();
  expect([faults, names]).toEqual([[failure], ['a']]);
});

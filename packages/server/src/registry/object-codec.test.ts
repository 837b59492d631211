import type { ApiObject } from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import { makeEntry } from '../watchcache/entry.ts';
import { createDecodedObjects, decodedEntries, encodeStored, indexOf } from './object-codec.ts';

const storage = { prefix: '/registry/things/', apiVersion: 'v1', kind: 'Thing' };

function written(name: string, revision: number, filler = '') {
  const metadata = { name, resourceVersion: String(revision) };
  const object: ApiObject = { apiVersion: 'v1', kind: 'Thing', metadata, filler };
  const index = indexOf(storage, object);
  const stored = encodeStored(object);
  const entry = makeEntry({ key: name, stored, revision, createRevision: 1, index });
  return { entry, object };
}

test('a kept object is returned for its own entry, and decoded for any other', () => {
  const decoded = createDecodedObjects({ form: 'plain' });
  const first = written('a', 1);
  const next = written('a', 2);
  decoded.keep('/registry/things/a', first);
  expect(decoded.of('/registry/things/a', first.entry)).toBe(first.object);
  const read = decoded.of('/registry/things/a', next.entry);
  expect(read).not.toBe(first.object);
  expect(read).toEqual(next.object);
});

test('the oldest are evicted when there are too many bytes, and large ones are not kept', () => {
  const decoded = createDecodedObjects({ form: 'plain' });
  const all = Array.from({ length: 60 }, (_, at) => written(`a${at}`, at + 1, 'x'.repeat(50_000)));
  for (const item of all) decoded.keep(`/${item.entry.key}`, item);
  const isKept = ({ entry, object }: (typeof all)[number]) =>
    decoded.of(`/${entry.key}`, entry) === object;
  expect(isKept(all[0]!)).toBe(false);
  expect(isKept(all[59]!)).toBe(true);
  expect(all.filter(isKept).length).toBeLessThanOrEqual(41);
  const large = written('large', 100, 'x'.repeat(70_000));
  decoded.keep('/large', large);
  expect(isKept(large)).toBe(false);
});

test('a frozen object is immutable at any depth', () => {
  const decoded = createDecodedObjects({ form: 'frozen' });
  const frozen = written('a', 1);
  decoded.keep('/a', frozen);
  expect(() => {
    frozen.object.metadata.name = 'b';
  }).toThrow(TypeError);
});

test('TRUST-2: many entries are decoded over several turns of the event loop', async () => {
  let nowMs = 0;
  // Every look at the clock finds that the slice of this turn is over.
  const clock = { monotonic: () => (nowMs += 10) };
  const all = Array.from({ length: 20 }, (_, at) => written(`a${at}`, at + 1));
  let turns = 0;
  let waiting: NodeJS.Immediate | undefined;
  const next = () => {
    turns += 1;
    waiting = setImmediate(next);
  };
  next();
  const names: (string | undefined)[] = [];
  try {
    for await (const { metadata } of decodedEntries(
      all.map(({ entry }) => entry),
      clock,
    )) {
      names.push(metadata.name);
    }
  } finally {
    clearImmediate(waiting);
  }
  expect(names).toEqual(all.map(({ object }) => object.metadata.name));
  expect(turns).toBeGreaterThanOrEqual(all.length);
});

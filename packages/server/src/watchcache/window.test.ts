import { emptyOrderedMap, orderedMapOf } from '@wheelhouse/machinery';
import { collectGarbage } from '@wheelhouse/machinery/testing';
import { expect, test } from 'vitest';
import type { Entry } from './entry.ts';
import { ChangeWindow } from './window.ts';

function entryOf(revision: number): Entry {
  const json = Buffer.from(`{"metadata":{"resourceVersion":"${revision}"}}`);
  const index = { name: 'a', namespace: '', uid: '', labels: {}, fields: {}, ownerUids: [] };
  return { key: 'a', revision, createRevision: 1, json, index, memo: undefined };
}

test('TRUST-4: a window does not retain entries of dropped changes', async () => {
  const limits = { historyMs: 60_000, changesMax: 10, bytesMax: 1_000_000 };
  const window = new ChangeWindow({ limits, revision: 1, snapshot: emptyOrderedMap() });
  const entries: WeakRef<Entry>[] = [];
  const write = (revision: number, previous: Entry | undefined): Entry => {
    const current = entryOf(revision);
    entries.push(new WeakRef(current));
    window.append({ key: 'a', at: revision, previous, current, revision });
    return current;
  };
  let newest: Entry | undefined;
  for (let revision = 2; revision < 102; revision++) newest = write(revision, newest);
  newest = undefined;
  await new Promise(setImmediate);
  collectGarbage();
  const alive = entries.flatMap((entry, i) => (entry.deref() === undefined ? [] : [i]));
  // The entries of the ten kept changes, and the state before them.
  expect(alive).toEqual([89, 90, 91, 92, 93, 94, 95, 96, 97, 98, 99]);
  expect(window.positionAfter(90)).toBeUndefined();
  expect(window.at(window.start).current?.revision).toBe(92);
  expect(() => window.at(window.start - 1)).toThrow('position is not kept');
});

test('TRUST-2, TRUST-4: an idle window drops old changes in bounded steps', () => {
  const limits = { historyMs: 1000, changesMax: 100_000, bytesMax: 1_000_000_000 };
  const window = new ChangeWindow({ limits, revision: 1, snapshot: emptyOrderedMap() });
  for (let revision = 2; revision <= 5001; revision++) {
    const at = revision <= 4001 ? 0 : 500;
    window.append({ key: 'a', at, previous: undefined, current: entryOf(revision), revision });
  }
  expect(window.trim(1000)).toBe(false);
  expect(window.start).toBe(0);
  let steps = 1;
  while (window.trim(1200)) {
    steps += 1;
    expect(window.end - window.start).toBeGreaterThanOrEqual(1000);
  }
  expect(steps).toBe(4);
  expect([window.end - window.start, window.floor]).toEqual([1000, 4001]);
  const release = window.hold();
  expect(window.trim(9000)).toBe(false);
  release();
  expect(window.trim(9000)).toBe(false);
  expect([window.end - window.start, window.floor]).toEqual([0, 5001]);
  expect(window.current.size).toBe(1);
  expect(window.positionAfter(5001)).toBe(window.end);
});

test('WATCH-3: older history does not repeat the kept changes of a partly dropped revision', () => {
  const limits = { historyMs: 60_000, changesMax: 2, bytesMax: 1_000_000 };
  const keys = ['a', 'b', 'c'];
  const entries = keys.map((key, i) => ({ ...entryOf(i + 2), key }));
  const full = orderedMapOf(entries.map((entry) => [entry.key, entry]));
  const window = new ChangeWindow({ limits, revision: 4, snapshot: full });
  const deletions = entries.map((previous) => {
    const { key } = previous;
    return { key, at: 0, previous, current: undefined, revision: 5, checkpoint: undefined };
  });
  for (const change of deletions) window.append(change);
  expect([window.start, window.end, window.floor]).toEqual([1, 3, 5]);
  expect(window.positionAfter(4)).toBeUndefined();
  expect(window.snapshotAt(5)?.size).toBe(0);
  window.prepend({ revision: 4, snapshot: full, changes: deletions });
  const start = window.positionAfter(4) ?? -1;
  const seen = keys.map((_, i) => window.at(start + i).key);
  expect([seen, window.end - start]).toEqual([keys, 3]);
  expect([window.snapshotAt(4)?.size, window.snapshotAt(5)?.size]).toEqual([3, 0]);
});

test('TRUST-4: the limit of a window counts the bytes of prepended changes', () => {
  const size = entryOf(100).json.length;
  const limits = { historyMs: 60_000, changesMax: 100, bytesMax: size * 12 };
  const window = new ChangeWindow({ limits, revision: 110, snapshot: emptyOrderedMap() });
  const changes = Array.from({ length: 10 }, (_, at) => {
    const revision = 101 + at;
    const current = entryOf(revision);
    return { key: 'a', at: 0, previous: undefined, current, revision, checkpoint: undefined };
  });
  window.prepend({ revision: 100, snapshot: emptyOrderedMap(), changes });
  expect(window.bytes).toBe(size * 10);
  for (let revision = 111; revision < 116; revision++) {
    window.append({ key: 'a', at: 0, previous: undefined, current: entryOf(revision), revision });
  }
  expect([window.bytes, window.floor]).toEqual([size * 12, 103]);
  expect(window.positionAfter(102)).toBeUndefined();
  expect(window.at(window.positionAfter(103) ?? -1).revision).toBe(104);
});

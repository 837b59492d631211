import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '@wheelhouse/machinery';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { restoredRevision } from '../backup/backup-file.ts';
import type { Revision, StoredRecord } from '../contract.ts';
import { collect } from '../suite.ts';
import { openEmbeddedStore } from './embedded-store.ts';
import { createRestoredStore, type RecordSink } from './restored-store.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'wheelhouse-restored-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const record = (key: string, modRevision: Revision): StoredRecord => ({
  key,
  value: Buffer.from(`of ${key}`),
  createRevision: 1,
  modRevision,
});

function restore(fill: (sink: RecordSink) => Promise<Revision>): Promise<void> {
  const directory = join(folder, 'store');
  const staging = join(folder, 'store.restoring');
  return createRestoredStore({ directory, staging, clock: systemClock, fill });
}

const open = () => openEmbeddedStore({ directory: join(folder, 'store'), clock: systemClock });

test.each([1000, 3e12, 2 ** 47])(
  'a restored store continues after revision %d',
  async (revision) => {
    await restore(async (sink) => {
      await sink.add([record('/a', 7), record('/b', 3)]);
      await sink.add([record('/c', 999)]);
      return revision;
    });
    const store = await open();
    expect([await store.currentRevision(), await store.compactRevision()]).toEqual([
      revision,
      revision,
    ]);
    expect(await store.get('/b')).toEqual(record('/b', 3));
    const { records } = await store.range({ prefix: '/' });
    expect(records.map(({ key, modRevision }) => [key, modRevision])).toEqual([
      ['/a', 7],
      ['/b', 3],
      ['/c', 999],
    ]);
    await expect(store.range({ prefix: '/', revision: revision - 1 })).rejects.toMatchObject({
      code: 'compacted',
    });
    const seen = await collect(store, { prefix: '/', after: revision });
    const value = Buffer.from('new');
    const stale = await store.put({ key: '/a', value, expect: 8 });
    expect(stale).toEqual({ ok: false, current: record('/a', 7) });
    const put = await store.put({ key: '/a', value, expect: 7 });
    expect(put).toEqual({ ok: true, revision: revision + 1 });
    expect(await store.delete({ key: '/b', expect: 3 })).toMatchObject({ ok: true });
    await store.compact(revision + 2);
    expect((await store.range({ prefix: '/' })).records.map(({ key }) => key)).toEqual([
      '/a',
      '/c',
    ]);
    await seen.watch.reached(revision + 2);
    expect(seen.events().map((event) => event.revision)).toEqual([revision + 1, revision + 2]);
    await store.close();
    const again = await open();
    expect(await again.currentRevision()).toBe(revision + 2);
    await again.close();
  },
);

describe('nothing is created', () => {
  test('when filling it fails', async () => {
    const failure = new Error('interrupted');
    await expect(
      restore(async (sink) => {
        await sink.add([record('/a', 7)]);
        throw failure;
      }),
    ).rejects.toBe(failure);
    expect(readdirSync(folder)).toEqual([]);
  });

  test('when two records have one revision, or a key is too long', async () => {
    const fill = (records: StoredRecord[]) => async (sink: RecordSink) => {
      await sink.add(records);
      return 1000;
    };
    const damaged = { code: 'damaged' };
    await expect(restore(fill([record('/a', 7), record('/b', 7)]))).rejects.toMatchObject(damaged);
    await expect(restore(fill([record('/k'.repeat(1000), 7)]))).rejects.toMatchObject(damaged);
    expect(readdirSync(folder)).toEqual([]);
  });

  test('when another restore is running, or a store has appeared meanwhile', async () => {
    await restore(async () => {
      await expect(restore(async () => 1)).rejects.toMatchObject({ code: 'locked' });
      return 1000;
    });
    expect(readdirSync(folder)).toEqual(['store']);
    rmSync(join(folder, 'store'), { recursive: true });
    const late = restore(async () => {
      await mkdir(join(folder, 'store'));
      return 1000;
    });
    await expect(late).rejects.toThrow('was created during the restore');
    expect(existsSync(join(folder, 'store.restoring'))).toBe(false);
  });
});

test('a restored revision is later than any that may have been issued', () => {
  const of = (ageMs: number) =>
    restoredRevision({ revision: 50, createdMs: 1000, nowMs: 1000 + ageMs });
  expect(of(0)).toBe(50 + 1e9);
  // The clock may have been set back.
  expect(of(-5000)).toBe(50 + 1e9);
  expect(of(2000) - of(1000)).toBe(100_000);
  const old = { createdMs: 0, nowMs: 90 * 365 * 86_400_000 };
  expect(() => restoredRevision({ revision: 50, ...old })).toThrow('no revision is left');
});

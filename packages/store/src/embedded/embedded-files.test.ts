import { execFileSync } from 'node:child_process';
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '@wheelhouse/machinery';
import { open as openLmdb } from 'lmdb';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Store } from '../contract.ts';
import { openEmbeddedStore } from './embedded-store.ts';

let directory: string;
const opened: Store[] = [];
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'wheelhouse-files-'));
});
afterEach(async () => {
  for (const store of opened.splice(0)) await store.close();
  await rm(directory, { recursive: true, force: true });
});

async function open(options: { directory?: string } = {}): Promise<Store> {
  const store = await openEmbeddedStore({ directory, clock: systemClock, ...options });
  opened.push(store);
  return store;
}

async function fill(store: Store, options: { count: number; size: number }): Promise<void> {
  const value = Buffer.alloc(options.size, 'wheelhouse');
  await Promise.all(
    Array.from({ length: options.count }, (_, i) =>
      store.put({ key: `/registry/k${i}`, value, expect: 0 }),
    ),
  );
}

test('all data survives a reopen, and only the owner may read the files', async () => {
  const store = await open();
  await fill(store, { count: 10, size: 5000 });
  await store.compact(4);
  await store.close();
  const again = await open();
  expect(await again.currentRevision()).toBe(10);
  expect(await again.compactRevision()).toBe(4);
  expect((await again.range({ prefix: '/' })).records).toHaveLength(10);
  expect(statSync(directory).mode & 0o777).toBe(0o700);
  expect(statSync(join(directory, 'log', 'log.1')).mode & 0o777).toBe(0o600);
});

test('TRUST-2: ranges and history are read in steps of about a mebibyte', async () => {
  const store = await open();
  await fill(store, { count: 12, size: 300_000 });
  const pages: number[] = [];
  let after: string | undefined;
  for (;;) {
    const from = after === undefined ? {} : { after };
    const { records, more } = await store.range({ prefix: '/registry/', limit: 1000, ...from });
    pages.push(records.length);
    after = records.at(-1)?.key;
    if (!more) break;
  }
  expect(pages).toEqual([4, 4, 4]);
  expect((await store.range({ prefix: '/registry/' })).records).toHaveLength(12);
  const batches: number[] = [];
  const watch = await store.watch({
    prefix: '/registry/',
    after: 0,
    onEvents: (events) => batches.push(events.length),
    onEnd: () => {},
  });
  await watch.reached(12);
  expect(batches).toEqual([4, 4, 4]);
  const others = await store.watch({
    prefix: '/registry/k7',
    after: 0,
    onEvents: (events) => batches.push(...events.map(({ revision }) => revision)),
    onEnd: () => {},
  });
  await others.reached(12);
  expect(batches.slice(3), 'other keys are not read').toEqual([8]);
});

test('the error for a key above the limit names the limit', async () => {
  const store = await open();
  const key = `/${'k'.repeat(1978)}`;
  await expect(store.put({ key, value: Buffer.from('v'), expect: 0 })).rejects.toThrow('1978');
  const longest = key.slice(0, 1978);
  expect((await store.put({ key: longest, value: Buffer.from('v'), expect: 0 })).ok).toBe(true);
  expect((await store.get(longest))?.key).toBe(longest);
});

test('a snapshot does not change while the store is written and compacted', async () => {
  const store = await open();
  await fill(store, { count: 1200, size: 3000 });
  await store.delete({ key: '/registry/k7', expect: 8 });
  const snapshot = await store.snapshot();
  const found: string[] = [];
  for await (const records of snapshot.records) {
    const bytes = records.reduce((sum, { value }) => sum + value.length, 0);
    expect(bytes).toBeLessThan(2 ** 20 + 10_000);
    found.push(...records.map(({ key, modRevision }) => `${key} ${modRevision}`));
    if (found.length > 600) continue;
    const newest = await store.currentRevision();
    const [first] = (await store.range({ prefix: '/', limit: 1, after: '/registry/k8' })).records;
    const { key, modRevision } = first as { key: string; modRevision: number };
    await store.delete({ key, expect: modRevision });
    await store.put({ key: '/registry/z', value: Buffer.from('v'), expect: 0 });
    await store.compact(newest);
    await store.delete({ key: '/registry/z', expect: newest + 2 });
  }
  expect(snapshot.revision).toBe(1201);
  const all = Array.from({ length: 1200 }, (_, i) => `/registry/k${i} ${i + 1}`);
  expect(found).toEqual(all.filter((_, i) => i !== 7).sort());
  snapshot.close();
  snapshot.close();
});

test('disk use stays bounded under steady writes with compaction', async () => {
  const store = await open();
  const revisions = new Map<number, number>();
  const value = Buffer.alloc(2000, 'v');
  const rounds = 120;
  for (let round = 0; round < rounds; round++) {
    await Promise.all(
      Array.from({ length: 100 }, async (_, i) => {
        const expect = revisions.get(i) ?? 0;
        const result = await store.put({ key: `/k${i}`, value, expect });
        if (result.ok) revisions.set(i, result.revision);
      }),
    );
    await store.compact(await store.currentRevision());
  }
  // Cleaning runs concurrently with writes and may lag behind them on a busy machine.
  const writtenBytes = rounds * 100 * value.length;
  expect(await store.sizeBytes()).toBeLessThan(writtenBytes / 3);
});

describe('lock', () => {
  test('the error for a store that is already open names the holder', async () => {
    await open();
    await expect(open()).rejects.toMatchObject({
      code: 'locked',
      message: expect.stringContaining(`process ${process.pid}`),
    });
  });

  test('leftover lock files of older servers are ignored', async () => {
    const self = {
      pid: process.pid,
      host: hostname(),
      since: 'then',
      process: '',
      released: false,
    };
    writeFileSync(join(directory, 'lock.7'), JSON.stringify(self));
    writeFileSync(join(directory, 'lock.8'), JSON.stringify({ ...self, host: 'elsewhere' }));
    await open();
    const names = readdirSync(directory).filter((name) => name.startsWith('lock'));
    expect(names).not.toContain('lock.7');
    expect(names).not.toContain('lock.8');
    const holder = JSON.parse(readFileSync(join(directory, 'lock'), 'utf8'));
    expect([holder.pid, holder.host]).toEqual([process.pid, hostname()]);
  });

  test('the lock of a running older server is respected, regardless of its content', async () => {
    const holder = { pid: 1, host: 'elsewhere', since: 'then', process: '', released: false };
    const older = openLmdb({ path: directory, noSubdir: false });
    writeFileSync(join(directory, 'lock.1'), JSON.stringify(holder));
    await expect(open()).rejects.toMatchObject({
      code: 'locked',
      message: `data directory ${directory} is in use by process 1 on host elsewhere since then`,
    });
    await older.close();
  });

  test('the content of the lock file is only informational', async () => {
    writeFileSync(join(directory, 'lock'), '{"pid":1,"host":"elsewhere","since":"then"}');
    await open();
    writeFileSync(join(directory, 'lock'), 'x');
    await expect(open()).rejects.toThrow('is in use by another process');
  });
});

describe('damage', () => {
  async function filledFile(): Promise<string> {
    const store = await open();
    await fill(store, { count: 300, size: 1000 });
    await store.put({ key: '/large', value: Buffer.alloc(50_000, 'v'), expect: 0 });
    await store.close();
    return join(directory, 'log', 'log.1');
  }

  test.each([0.1, 0.5, 0.9])('a file truncated to %f of its size is reported', async (part) => {
    const path = await filledFile();
    truncateSync(path, Math.floor(statSync(path).size * part));
    await expect(open()).rejects.toMatchObject({ code: 'damaged' });
  });

  test('overwritten bytes are reported unless they were unused', async () => {
    const path = await filledFile();
    const sound = readFileSync(path);
    for (let offset = 0; offset + 64 < sound.length; offset += 4096 * 7 + 600) {
      const copy = Buffer.from(sound);
      copy.fill(0xa5, offset, offset + 64);
      writeFileSync(path, copy);
      let outcome: unknown;
      try {
        const store = await open();
        const { records } = await store.range({ prefix: '/' });
        outcome = records.length;
        await store.close();
      } catch (error) {
        outcome = (error as { code?: string }).code;
      }
      expect([301, 'damaged'], `at ${offset}`).toContain(outcome);
      for (const store of opened.splice(0)) await store.close();
    }
  });
});

describe('no space left', () => {
  async function fillUp(store: Store): Promise<{ acknowledged: string[]; code: unknown }> {
    const acknowledged: string[] = [];
    const value = Buffer.alloc(60_000, 'v');
    for (let i = 0; i < 1000; i++) {
      const key = `/fill/${i}`;
      try {
        await store.put({ key, value, expect: 0 });
        acknowledged.push(key);
      } catch (error) {
        return { acknowledged, code: (error as { code?: string }).code };
      }
    }
    return { acknowledged, code: undefined };
  }

  async function checkFull(store: Store, filled: { acknowledged: string[]; code: unknown }) {
    expect(filled.code).toBe('no-space');
    const { records, revision } = await store.range({ prefix: '/' });
    expect(records.map((record) => record.key).sort()).toEqual([...filled.acknowledged].sort());
    expect(revision).toBe(filled.acknowledged.length);
    expect(await store.currentRevision()).toBe(revision);
  }

  test('a full disk fails the write, and free space makes it work again', async ({ skip }) => {
    const mount = join(directory, 'small');
    mkdirSync(mount);
    try {
      const args = ['-t', 'tmpfs', '-o', 'size=4m', 'tmpfs', mount];
      execFileSync('mount', args, { stdio: 'ignore' });
    } catch {
      skip('this environment does not permit mounting a tmpfs');
    }
    try {
      const store = await open({ directory: join(mount, 'data') });
      const ballast = join(mount, 'ballast');
      writeFileSync(ballast, Buffer.alloc(2 ** 20));
      const filled = await fillUp(store);
      await checkFull(store, filled);
      await rm(ballast);
      await store.ping();
      const value = Buffer.from('again');
      const result = await store.put({ key: '/again', value, expect: 0 });
      expect(result).toEqual({ ok: true, revision: filled.acknowledged.length + 1 });
      await store.close();
    } finally {
      for (const store of opened.splice(0)) await store.close();
      execFileSync('umount', ['-l', mount], { stdio: 'ignore' });
    }
  });
});

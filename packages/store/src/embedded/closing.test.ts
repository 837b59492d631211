import { execFileSync } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { mkdtemp, open as openFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Logger, nextTurn, observeFaults, silentLogger } from '@wheelhouse/machinery';
import { FakeClock } from '@wheelhouse/machinery/testing';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openEmbeddedStore } from './embedded-store.ts';

/**
 * Occupies the threads that read and write files, so that the disk does not respond, until the
 * returned function is called.
 */
function stallFiles(): () => void {
  const pipe = join(directory, 'pipe');
  execFileSync('mkfifo', [pipe]);
  const threads = Number(process.env['UV_THREADPOOL_SIZE'] ?? 4);
  // Opening a pipe takes until its other end is opened, too.
  const opening = Array.from({ length: threads }, () => openFile(pipe, 'r'));
  return () => {
    const end = openSync(pipe, 'w');
    void Promise.all(opening.map(async (file) => (await file).close())).then(() => closeSync(end));
  };
}

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'wheelhouse-closing-'));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const key = '/registry/a';
const value = Buffer.from('{}');

test('a store whose writer has failed reports durable writes, and closes', async () => {
  const logger: Logger = {
    ...silentLogger,
    error: () => {
      throw new Error('the log is full');
    },
  };
  const faults: string[] = [];
  const stop = observeFaults(({ error }) => faults.push(String(error)));
  const store = await openEmbeddedStore({ directory, clock: new FakeClock(), logger });
  let closing: Promise<void> | undefined;
  await store.watch({
    prefix: '/',
    after: 0,
    onEvents() {
      closing = store.close();
      throw new Error('a broken watch');
    },
    onEnd: () => {},
  });
  const first = store.put({ key, value, expect: 0 });
  await nextTurn();
  const second = store.put({ key, value, expect: 1 });
  expect(await first).toEqual({ ok: true, revision: 1 });
  await expect(second).rejects.toThrow('the log is full');
  await closing;
  expect(faults).toEqual(['Error: the log is full']);
  stop();
  const again = await openEmbeddedStore({ directory, clock: new FakeClock() });
  expect(await again.get(key)).toMatchObject({ modRevision: 1 });
  await again.close();
});

test('TRUST-4: writes that wait long for a disk that does not respond are refused', async () => {
  const clock = new FakeClock();
  const store = await openEmbeddedStore({ directory, clock });
  const resume = stallFiles();
  const puts = [];
  try {
    puts.push(store.put({ key, value, expect: 0 }));
    await nextTurn();
    const waiting = store.put({ key: `${key}/waiting`, value, expect: 0 });
    clock.advance(50_000);
    puts.push(store.put({ key: `${key}/late`, value, expect: 0 }));
    clock.advance(10_001);
    puts.push(store.delete({ key: `${key}/none`, expect: 7 }));
    const message = 'the disk of the store does not respond';
    await expect(waiting).rejects.toMatchObject({ code: 'unavailable', message });
  } finally {
    resume();
  }
  expect(await Promise.all(puts)).toEqual([
    { ok: true, revision: 1 },
    { ok: true, revision: 2 },
    { ok: false, current: undefined },
  ]);
  expect((await store.range({ prefix: key })).records.length).toBe(2);
  await store.close();
});

test('closing fails if the disk does not respond, and leaves the directory locked', async () => {
  const clock = new FakeClock();
  const store = await openEmbeddedStore({ directory, clock });
  const resume = stallFiles();
  const put = store.put({ key, value, expect: 0 });
  try {
    const closing = store.close();
    clock.advance(30_000);
    await expect(closing).rejects.toMatchObject({ code: 'disk-failed' });
    const locked = openEmbeddedStore({ directory, clock });
    await expect(locked).rejects.toMatchObject({ code: 'locked' });
  } finally {
    resume();
  }
  expect(await put).toEqual({ ok: true, revision: 1 });
  const reopened = async () => {
    const again = await openEmbeddedStore({ directory, clock }).catch(() => undefined);
    await again?.close();
    return again !== undefined;
  };
  await expect.poll(reopened).toBe(true);
});

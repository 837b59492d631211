import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Logger } from '@wheelhouse/machinery';
import { afterAll, afterEach, beforeEach, expect, test, vi } from 'vitest';

/** Resumes the writes of files while the disk does not respond. */
const stalled = vi.hoisted(() => ({ writes: undefined as (() => void)[] | undefined }));

vi.mock('node:fs', async (load) => {
  const fs = await load<typeof import('node:fs')>();
  const write = promisify(fs.write);
  const stallable = async (...args: Parameters<typeof write>) => {
    const { writes } = stalled;
    if (writes !== undefined) await new Promise<void>((resolve) => writes.push(resolve));
    return write(...args);
  };
  return { ...fs, write: Object.assign(() => {}, { [promisify.custom]: stallable }) };
});

// Earlier files of this process have loaded the store with the real files.
vi.resetModules();
const { nextTurn, observeFaults, silentLogger } = await import('@wheelhouse/machinery');
const { FakeClock } = await import('@wheelhouse/machinery/testing');
const { openEmbeddedStore } = await import('./embedded-store.ts');
afterAll(() => {
  vi.doUnmock('node:fs');
  vi.resetModules();
});

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

test('closing fails if the disk does not respond, and leaves the directory locked', async () => {
  const clock = new FakeClock();
  const store = await openEmbeddedStore({ directory, clock });
  const writes: (() => void)[] = [];
  stalled.writes = writes;
  const put = store.put({ key, value, expect: 0 });
  await expect.poll(() => writes.length).toBe(1);
  const closing = store.close();
  clock.advance(30_000);
  await expect(closing).rejects.toMatchObject({ code: 'disk-failed' });
  const locked = openEmbeddedStore({ directory, clock });
  await expect(locked).rejects.toMatchObject({ code: 'locked' });
  stalled.writes = undefined;
  for (const resume of writes) resume();
  expect(await put).toEqual({ ok: true, revision: 1 });
  const reopened = async () => {
    const again = await openEmbeddedStore({ directory, clock }).catch(() => undefined);
    await again?.close();
    return again !== undefined;
  };
  await expect.poll(reopened).toBe(true);
});

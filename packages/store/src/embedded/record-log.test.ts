import {
  closeSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  itemAt,
  randomOf,
  silentLogger,
  systemClock,
  systemErrorCode,
} from '@wheelhouse/machinery';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { CommitBatch } from './commit-batch.ts';
import { RecordLog } from './record-log.ts';
import { markOffsets } from './segment.ts';
import { LogBuilder } from './store-directory.ts';

const seed = Number(process.env['SEED'] ?? Date.now() % 1_000_000);

let folder: string;
const opened: RecordLog[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'wheelhouse-log-'));
});
afterEach(async () => {
  for (const log of opened.splice(0)) await log.close();
  rmSync(folder, { recursive: true, force: true });
});

function open(directory: string): RecordLog {
  const options = { directory, clock: systemClock, logger: silentLogger, segmentBytes: 64 * 1024 };
  const log = new RecordLog(options);
  opened.push(log);
  return log;
}

async function close(log: RecordLog): Promise<void> {
  opened.splice(opened.indexOf(log), 1);
  await log.close();
}

async function fresh(): Promise<string> {
  const directory = join(folder, 'log');
  await new LogBuilder(directory).finish({ revision: 0, compacted: 0 });
  return directory;
}

/** Puts a value, or deletes the key if there is none. */
async function write(log: RecordLog, key: string, value?: Buffer): Promise<void> {
  const batch = new CommitBatch(log.state);
  const head = log.index.chain(key)?.head;
  const keyBytes = Buffer.from(key);
  const previous = head?.revision ?? 0;
  if (value === undefined) batch.delete({ key, keyBytes, previous });
  else {
    const isThere = head !== undefined && !head.deleted;
    const createRevision = isThere ? head.createRevision : batch.nextRevision;
    batch.put({ key, keyBytes, value, createRevision, previous, hint: undefined });
  }
  await log.commit(batch.records, batch.state());
}

async function compact(log: RecordLog, revision: number): Promise<void> {
  const batch = new CommitBatch(log.state);
  batch.compacted = Math.max(batch.compacted, revision);
  await log.commit(batch.records, batch.state());
}

/** All readable content of a log: the state of each key at each readable revision. */
function readAll(log: RecordLog): string[] {
  const lines = [JSON.stringify(log.state)];
  for (const chain of log.index.chains({ prefix: '' })) {
    for (let place = chain.head; ; ) {
      const { revision, createRevision, deleted, isDead } = place;
      const value = deleted ? '-' : log.read(place).value.toString('latin1');
      // States before a deletion are irrelevant, except that they are absent.
      if (!isDead) lines.push([chain.key, revision, createRevision, value].join(' '));
      if (place.older === undefined) break;
      place = place.older;
    }
  }
  const writes = log.index.writesAfter(log.state.compacted, Number.POSITIVE_INFINITY);
  lines.push(writes.map(({ revision }) => revision).join(','));
  return lines;
}

/** Copies the current files, as a power loss would leave them. */
function copyOf(directory: string, name: string): string {
  const target = join(folder, name);
  mkdirSync(target);
  for (const file of readdirSync(directory)) {
    try {
      copyFileSync(join(directory, file), join(target, file));
    } catch (error) {
      // The log renames the draft of a spare segment in the background.
      if (!file.endsWith('.draft') || systemErrorCode(error) !== 'ENOENT') throw error;
    }
  }
  return target;
}

test(`recovery restores the same log after any cleaning (seed ${seed})`, async () => {
  const { below: random } = randomOf(seed);
  const directory = await fresh();
  let log = open(directory);
  let cleanings = 0;
  for (let step = 0; step < 1500; step++) {
    const key = `/k/${random(random(4) === 0 ? 200 : 12)}`;
    const head = log.index.chain(key)?.head;
    const isThere = head !== undefined && !head.deleted;
    if (isThere && random(3) === 0) await write(log, key);
    else await write(log, key, Buffer.alloc(random(2500), `${step}.`));
    const { revision, compacted } = log.state;
    if (random(40) === 0) await compact(log, compacted + random(revision - compacted + 1));
    if (random(25) === 0) {
      const before = Math.min(...sequences(directory));
      const cleaning = log.clean(random(2) === 0 ? 'urgent' : 'normal');
      // Writes continue during the cleaning.
      for (let i = random(4); i > 0; i--)
        await write(log, `/k/${random(12)}`, Buffer.from('meanwhile'));
      if (random(2) === 0) await compact(log, log.state.revision);
      await cleaning;
      if (Math.min(...sequences(directory)) > before) cleanings += 1;
    }
    if (random(100) === 0) {
      const copy = open(copyOf(directory, `crash-${step}`));
      expect(readAll(copy)).toEqual(readAll(log));
      await close(copy);
    }
    if (random(300) === 0) {
      const before = readAll(log);
      await close(log);
      log = open(directory);
      expect(readAll(log)).toEqual(before);
    }
  }
  expect(cleanings).toBeGreaterThan(5);
  const liveBytes = readAll(log).join('').length;
  expect(log.usedBytes).toBeLessThan(liveBytes * 3 + 4 * 2 ** 20);
  // Each of the writes is synced, which takes long on a disk that is busy.
}, 300_000);

const sequences = (directory: string): number[] =>
  readdirSync(directory).flatMap((name) =>
    name.startsWith('log.') ? [Number(name.slice(4))] : [],
  );

describe('the end of a log', () => {
  async function written(): Promise<{ directory: string; ends: number[] }> {
    const directory = await fresh();
    const log = open(directory);
    const ends: number[] = [];
    for (let i = 0; i < 5; i++) {
      await write(log, `/k/${i}`, Buffer.alloc(1000, 'v'));
      ends.push(4096 + log.usedBytes);
    }
    return { directory, ends };
  }

  test('a write that a crash cut off is ignored', async () => {
    const { directory, ends } = await written();
    const copy = copyOf(directory, 'crash');
    const path = join(copy, 'log.1');
    const bytes = readFileSync(path);
    bytes.fill(0, (ends[3] as number) + 500);
    writeFileSync(path, bytes);
    const log = open(copy);
    expect(log.state.revision).toBe(4);
    await write(log, '/k/4', Buffer.from('again'));
    await close(log);
    expect(open(copy).state.revision).toBe(5);
  });

  test('missing records before a mark are damage', async () => {
    const { directory, ends } = await written();
    await close(opened[0] as RecordLog);
    const path = join(directory, 'log.1');
    const bytes = readFileSync(path);
    bytes.fill(0, (ends[3] as number) + 500);
    writeFileSync(path, bytes);
    expect(() => open(directory)).toThrow(/damaged.*cannot be read after byte/);
  });

  test('a missing file in the middle of the log, or its oldest one, is damage', async () => {
    const directory = await fresh();
    const log = open(directory);
    for (let i = 0; i < 40; i++) await write(log, `/k/${i}`, Buffer.alloc(20_000, 'v'));
    await close(log);
    const names = sequences(directory);
    expect(names.length).toBeGreaterThan(3);
    for (const sequence of [names[0], names[1]]) {
      const copy = copyOf(directory, `without-${sequence}`);
      rmSync(join(copy, `log.${sequence}`));
      expect(() => open(copy)).toThrow(/damaged.*is missing/);
    }
  });
});

test('STORE-1: a reopened log syncs its names before it acknowledges a write', async () => {
  const directory = await fresh();
  const elsewhere = `${directory}.elsewhere`;
  const log = open(directory);
  // A process that was killed may have renamed a spare to a segment without syncing the name.
  renameSync(directory, elsewhere);
  await expect(write(log, 'one', Buffer.from('1'))).rejects.toMatchObject({ code: 'disk-failed' });
  renameSync(elsewhere, directory);
  await write(log, 'one', Buffer.from('1'));
  renameSync(directory, elsewhere);
  await write(log, 'two', Buffer.from('2'));
});

/** The newest file of a log and the contents of its marks. */
function newestMarks(directory: string): { readonly path: string; readonly marks: Buffer[] } {
  const path = join(directory, `log.${Math.max(...sequences(directory))}`);
  const bytes = readFileSync(path);
  return { path, marks: markOffsets.map((offset) => bytes.subarray(offset, offset + 16)) };
}

test.runIf(process.platform === 'linux')(
  'a log that cannot open a spare reports the disk and closes its files',
  async () => {
    const directory = await fresh();
    writeFileSync(join(directory, 'spare.1'), Buffer.alloc(64 * 1024));
    mkdirSync(join(directory, 'spare.2'));
    expect(() => open(directory)).toThrow('the disk of the store failed to read: EISDIR open');
    expect(openFilesBelow(directory)).toEqual([]);
    rmdirSync(join(directory, 'spare.2'));
    const log = open(directory);
    await write(log, 'a', Buffer.from('1'));
    expect(log.state.revision).toBe(1);
  },
);

test('cleaning reports a damaged segment, which it cannot free', async () => {
  const directory = await fresh();
  const log = open(directory);
  await write(log, '/kept', Buffer.alloc(1000, 'v'));
  for (let i = 0; i < 100; i++) await write(log, '/k', Buffer.alloc(20_000, 'v'));
  const descriptor = openSync(join(directory, 'log.1'), 'r+');
  writeSync(descriptor, Buffer.alloc(8, 0xa5), 0, 8, 4096 + 500);
  closeSync(descriptor);
  await compact(log, log.state.revision);
  await expect(log.clean('urgent')).rejects.toMatchObject({ code: 'damaged' });
  const after = log.state.revision;
  await write(log, '/kept', Buffer.from('again'));
  expect(log.state.revision).toBe(after + 1);
});

test('an urgent cleaning raises the urgency of the one in progress', async () => {
  const directory = await fresh();
  const log = open(directory);
  const value = Buffer.alloc(20_000, 'v');
  const hasSegment = (sequence: number) => sequences(directory).includes(sequence);
  // The first segment has nothing live, and the others too little waste for a normal cleaning.
  while (!hasSegment(2)) await write(log, '/k', value);
  for (let at = 0; !hasSegment(7); at++) await write(log, `/a${at % 8}`, value);
  await compact(log, log.state.revision);
  await Promise.all([log.clean('normal'), log.clean('urgent')]);
  const remaining = sequences(directory);
  expect(Math.min(...remaining)).toBeGreaterThan(2);
  await log.clean('urgent');
  expect(sequences(directory)).toEqual(remaining);
});

/** The open files of this process in a directory. */
function openFilesBelow(directory: string): string[] {
  return readdirSync('/proc/self/fd')
    .map((descriptor) => {
      try {
        return readlinkSync(join('/proc/self/fd', descriptor));
      } catch {
        // The descriptor with which the directory itself was read.
        return '';
      }
    })
    .filter((path) => path.startsWith(directory));
}

test('STORE-1: a mark that a crash cuts off does not replace the newest one', async () => {
  const directory = await fresh();
  const log = open(directory);
  let removals = 0;
  for (let first = 1; removals < 4; ) {
    await write(log, '/k', Buffer.alloc(20_000, `${removals}`));
    await compact(log, log.state.revision);
    await log.clean('urgent');
    if (Math.min(...sequences(directory)) === first) continue;
    first = Math.min(...sequences(directory));
    removals += 1;

    const crashed = copyOf(directory, `crash-${first}`);
    const before = newestMarks(crashed);
    const next = open(crashed);
    await write(next, '/last', Buffer.from('last'));
    const content = readAll(next);
    await close(next);
    const { path, marks } = newestMarks(crashed);
    expect(path).toBe(before.path);
    const torn = marks.findIndex((mark, i) => !mark.equals(itemAt(before.marks, i)));
    const bytes = readFileSync(path);
    bytes.fill(0, itemAt(markOffsets, torn), itemAt(markOffsets, torn) + 8);
    writeFileSync(path, bytes);
    const again = open(crashed);
    expect(readAll(again)).toEqual(content);
    await close(again);
  }
});

test('TRUST-2: compaction drops old writes in steps, which a reader interrupts', async () => {
  const log = open(await fresh());
  const keys = Array.from({ length: 3000 }, (_, at) => `/k${String(at).padStart(4, '0')}`);
  const batch = new CommitBatch(log.state);
  const value = Buffer.from('v');
  for (const key of keys) {
    const createRevision = batch.nextRevision;
    const keyBytes = Buffer.from(key);
    batch.put({ key, keyBytes, value, createRevision, previous: 0, hint: undefined });
  }
  for (const [at, key] of keys.entries()) {
    batch.delete({ key, keyBytes: Buffer.from(key), previous: at + 1 });
  }
  await log.commit(batch.records, batch.state());
  await write(log, '/last', value);
  const live = (): string[] =>
    [...log.index.chains({ prefix: '' })].flatMap(({ key, head }) => (head.deleted ? [] : [key]));
  await compact(log, 6001);
  expect(log.state.compacted).toBe(6001);
  // Each step visits 2,000 writes, of which the first 3,000 are no deletions.
  const sizes = [log.index.size];
  const release = log.retain();
  for (let turns = 0; turns < 5; turns++) {
    await new Promise((resolve) => setImmediate(resolve));
    sizes.push(log.index.size);
  }
  expect(new Set(sizes), 'a reader retains the rest').toEqual(new Set([3001]));
  expect(live()).toEqual(['/last']);
  await write(log, '/k0007', value);
  release();
  sizes.push(log.index.size);
  for (let size = log.index.size; size > 2; size = log.index.size) {
    await new Promise((resolve) => setImmediate(resolve));
    expect(live()).toEqual(['/k0007', '/last']);
    sizes.push(log.index.size);
  }
  expect([...new Set(sizes)]).toEqual([3001, 2002, 2]);
  expect(log.index.chain('/k0007')?.head.older?.isDead).toBe(true);
  const before = readAll(log);
  await log.clean('urgent');
  await write(log, '/k0008', value);
  await close(log);
  const again = open(copyOf(join(folder, 'log'), 'again'));
  expect(readAll(again).filter((line) => before.includes(line))).toEqual(
    before.filter((line) => line.startsWith('/')),
  );
  await close(again);
});

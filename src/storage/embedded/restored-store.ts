import { existsSync } from 'node:fs';
import { readdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import { makeDirectories } from '../../base/make-directories.ts';
import { type Revision, type StoredRecord, StoreError } from '../contract.ts';
import {
  type Change,
  keyBytesMax,
  prepareDirectory,
  RecordDatabase,
  syncDirectory,
} from './database.ts';
import { lockDirectory } from './directory-lock.ts';
import { encodeHead, encodeLogKey, encodeLogRecord, headSize, logRecordSize } from './record.ts';

const commitBytesMax = 8 * 2 ** 20;

/** Takes records, in any order, each key once. */
export interface RecordSink {
  add(records: readonly StoredRecord[]): Promise<void>;
}

/**
 * Makes the store of a directory that does not exist yet from the records that `fill` adds: all of
 * it, on the disk, or nothing (STORE-5). It is made in `staging`, beside its place, which at the end
 * becomes the store by one rename; what a killed process left there is removed first. `fill` gives
 * the revision the store shall have: what is older is compacted away, so that every version that a
 * client may have kept is Expired. Throws StoreError `locked` when another process is at it.
 */
export async function makeRestoredStore(options: {
  readonly directory: string;
  readonly staging: string;
  readonly clock: Clock;
  readonly fill: (sink: RecordSink) => Promise<Revision>;
}): Promise<void> {
  const { directory, staging, clock, fill } = options;
  prepareDirectory(staging);
  const lock = lockDirectory({ directory: staging, nowMs: clock.now() });
  try {
    await clear(staging);
    await fillDatabase(staging, fill);
    await putInPlace({ staging, directory });
    lock.release();
  } catch (error) {
    await rm(staging, { recursive: true, force: true });
    lock.release();
    throw error;
  }
}

/** Everything but the lock, which keeps others out. */
async function clear(staging: string): Promise<void> {
  for (const name of await readdir(staging)) {
    if (name !== 'lock') await rm(join(staging, name), { recursive: true, force: true });
  }
}

async function fillDatabase(
  staging: string,
  fill: (sink: RecordSink) => Promise<Revision>,
): Promise<void> {
  const database = new RecordDatabase({ directory: staging });
  try {
    const writer = new BulkWriter(database);
    const revision = await fill(writer);
    await writer.finish(revision);
  } finally {
    await database.close();
  }
}

async function putInPlace(places: { staging: string; directory: string }): Promise<void> {
  const { staging, directory } = places;
  const parent = dirname(directory);
  makeDirectories(parent, 0o700);
  if (existsSync(directory)) {
    const message = `${directory} has been made meanwhile`;
    throw new StoreError({ code: 'unavailable', message });
  }
  await rename(staging, directory);
  syncDirectory(parent);
}

/**
 * Until the end the state says revision 0, which no program takes for whole beside a log that goes
 * on behind it.
 */
class BulkWriter implements RecordSink {
  readonly #database: RecordDatabase;
  #changes: Change[] = [];
  #bytes = 0;
  #added = 0;

  constructor(database: RecordDatabase) {
    this.#database = database;
  }

  async add(records: readonly StoredRecord[]): Promise<void> {
    for (const record of records) {
      this.#append(record);
      if (this.#bytes >= commitBytesMax)
        await this.#commit({ revision: 0, compacted: 0, swept: 0 });
    }
  }

  async finish(revision: Revision): Promise<void> {
    await this.#commit({ revision, compacted: revision, swept: revision });
    const found = this.#database.countRecords();
    if (found !== this.#added) throw unusable('two records have one revision');
  }

  #append({ key, value, createRevision, modRevision }: StoredRecord): void {
    const keyBytes = Buffer.from(key);
    if (keyBytes.length > keyBytesMax) throw unusable(`a key has ${keyBytes.length} bytes`);
    const fields = { kind: 'put', keyBytes, value, createRevision, previous: 0 } as const;
    const target = Buffer.allocUnsafe(logRecordSize(keyBytes, value));
    const record = encodeLogRecord(target, { ...fields, revision: modRevision });
    const head = encodeHead(Buffer.allocUnsafe(headSize), {
      modRevision,
      createRevision,
      deleted: false,
    });
    this.#changes.push(
      { table: 'log', key: encodeLogKey(Buffer.allocUnsafe(8), modRevision), value: record },
      { table: 'heads', key: keyBytes, value: head },
    );
    this.#bytes += record.length;
    this.#added += 1;
  }

  async #commit(state: Parameters<RecordDatabase['commit']>[1]): Promise<void> {
    const changes = this.#changes;
    this.#changes = [];
    this.#bytes = 0;
    await this.#database.commit(changes, state);
  }
}

function unusable(what: string): StoreError {
  return new StoreError({ code: 'damaged', message: `no store can be made of it: ${what}` });
}

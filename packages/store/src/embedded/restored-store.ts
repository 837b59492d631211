import { existsSync } from 'node:fs';
import { readdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type Clock, makeDirectories, syncDirectory } from '@wheelhouse/machinery';
import { pieceBytes, type Revision, type StoredRecord, StoreError } from '../contract.ts';
import { lockDirectory } from './directory-lock.ts';
import { keyBytesMax } from './embedded-store.ts';
import type { NewRecord } from './frame.ts';
import { LogBuilder, logDirectory, prepareDirectory, writeMarker } from './store-directory.ts';

/** Receives records in any order, each key once. */
export interface RecordSink {
  add(records: readonly StoredRecord[]): Promise<void>;
}

/**
 * Creates a store in a new directory from the records that `fill` adds, atomically and durably
 * (STORE-5). The store is built in `staging`, where leftovers of a killed process are removed
 * first, and renamed at the end. `fill` returns the store's revision. Everything older is
 * compacted, so that every version that a client may have kept is Expired. Throws StoreError
 * `locked` if another process is restoring the directory, and `unavailable` if the directory
 * exists.
 */
export async function createRestoredStore(options: {
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
    await fillLog(staging, fill);
    await putInPlace({ staging, directory });
    lock.release();
  } catch (error) {
    await rm(staging, { recursive: true, force: true });
    lock.release();
    throw error;
  }
}

/** Removes everything but the lock, which keeps other processes out. */
async function clear(staging: string): Promise<void> {
  for (const name of await readdir(staging)) {
    if (name !== 'lock') await rm(join(staging, name), { recursive: true, force: true });
  }
}

async function fillLog(
  staging: string,
  fill: (sink: RecordSink) => Promise<Revision>,
): Promise<void> {
  const writer = new BulkWriter(new LogBuilder(logDirectory(staging)));
  const revision = await fill(writer);
  await writer.finish(revision);
  await writeMarker(staging);
}

async function putInPlace(places: { staging: string; directory: string }): Promise<void> {
  const { staging, directory } = places;
  const parent = dirname(directory);
  makeDirectories(parent, { mode: 0o700 });
  if (existsSync(directory)) {
    const message = `${directory} was created during the restore`;
    throw new StoreError({ code: 'unavailable', message });
  }
  await rename(staging, directory);
  await syncDirectory(parent);
}

/**
 * Writes records to a log that stays at revision 0 until the end. Its records are newer, so no
 * program accepts an incomplete log.
 */
class BulkWriter implements RecordSink {
  readonly #builder: LogBuilder;
  readonly #revisions = new Set<Revision>();
  #records: NewRecord[] = [];
  #bytes = 0;

  constructor(builder: LogBuilder) {
    this.#builder = builder;
  }

  async add(records: readonly StoredRecord[]): Promise<void> {
    for (const record of records) {
      this.#append(record);
      if (this.#bytes >= pieceBytes) await this.#write();
    }
  }

  async finish(revision: Revision): Promise<void> {
    await this.#write();
    await this.#builder.finish({ revision, compacted: revision });
  }

  #append({ key, value, createRevision, modRevision: revision }: StoredRecord): void {
    const keyBytes = Buffer.from(key);
    if (keyBytes.length > keyBytesMax) throw unusable(`a key has ${keyBytes.length} bytes`);
    if (this.#revisions.has(revision)) throw unusable('two records have one revision');
    this.#revisions.add(revision);
    const fields = { kind: 'put', key, keyBytes, value, createRevision, previous: 0 } as const;
    this.#records.push({ ...fields, revision });
    this.#bytes += value.length;
  }

  async #write(): Promise<void> {
    const records = this.#records;
    this.#records = [];
    this.#bytes = 0;
    if (records.length > 0) await this.#builder.add(records);
  }
}

function unusable(what: string): StoreError {
  return new StoreError({ code: 'damaged', message: `its records do not form a store: ${what}` });
}

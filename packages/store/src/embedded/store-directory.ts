import { chmodSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeDirectories } from '@wheelhouse/machinery';
import { StoreError } from '../contract.ts';
import { formatVersion, newerFormat } from './formats.ts';
import { LogBuilder, placeLog, syncDirectory } from './log-builder.ts';

/** Where LMDB had its data up to format 1. Now it says so to servers that look for it there. */
const markerName = 'data.mdb';
const markerText = `Wheelhouse store, format ${formatVersion}: the data is in log.\n`;
const markerPattern = /^Wheelhouse store, format (\d{1,9}):/;
const markerBytesMax = 4096;

export const logDirectory = (directory: string): string => join(directory, 'log');
const draftDirectory = (directory: string): string => join(directory, 'log.draft');

/** Creates the data directory, readable by its owner only. */
export function prepareDirectory(directory: string): void {
  makeDirectories(directory, 0o700);
  chmodSync(directory, 0o700);
}

/**
 * Makes sure that the directory has a log: a new one, or what an older server kept in LMDB. A log
 * that is there is left as it is and nothing is written, so that a full disk does not matter.
 *
 * @throws StoreError `unavailable` when it is of a newer format, `damaged` when LMDB's file is
 */
export async function ensureLog(directory: string): Promise<void> {
  const format = formatIn(directory);
  if (format !== undefined && format > formatVersion) throw newerFormat(directory, format);
  const log = logDirectory(directory);
  if (!existsSync(log)) {
    if (format !== undefined) {
      throw new StoreError({ code: 'damaged', message: `the data is damaged: ${log} is missing` });
    }
    const draft = draftDirectory(directory);
    if (existsSync(join(directory, markerName))) {
      const { copyLmdb } = await import('./lmdb-migration.ts');
      await copyLmdb(directory, new LogBuilder(draft));
    } else {
      await new LogBuilder(draft).finish({ revision: 0, compacted: 0 });
    }
    await placeLog(draft, log, directory);
  }
  if (format === undefined) await writeMarker(directory);
}

/** Makes older servers refuse the directory, in place of LMDB's data if there was any. */
export async function writeMarker(directory: string): Promise<void> {
  const path = join(directory, markerName);
  writeFileSync(`${path}.draft`, markerText, { mode: 0o600 });
  renameSync(`${path}.draft`, path);
  rmSync(join(directory, 'lock.mdb'), { force: true });
  await syncDirectory(directory);
}

/** The format that the marker names; undefined where there is none. */
function formatIn(directory: string): number | undefined {
  const path = join(directory, markerName);
  if (!existsSync(path)) return undefined;
  const start = readFileSync(path).subarray(0, markerBytesMax).toString('latin1');
  const match = markerPattern.exec(start);
  return match === null ? undefined : Number(match[1]);
}

import { existsSync } from 'node:fs';
import { type FileHandle, link, open, readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { errorText, systemErrorCode } from '@wheelhouse/machinery';
import { BackupError, type BackupSummary, readBackup } from './reader.ts';

const readBytes = 2 ** 20;

/** The bytes of a file, in pieces. Rejects with the host's error. */
export async function* fileBytes(path: string): AsyncGenerator<Buffer, void, undefined> {
  const file = await open(path, 'r');
  try {
    for (;;) {
      const { bytesRead, buffer } = await file.read({ buffer: Buffer.allocUnsafe(readBytes) });
      if (bytesRead === 0) return;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await file.close();
  }
}

/**
 * Writes a backup that comes in pieces to a file of its owner's alone (0600), which appears whole,
 * checked and on the disk, or not at all. A file that is there already is left alone unless `replace`
 * says otherwise. Rejects with an error of one line, or with what `pieces` failed with.
 */
export async function writeBackupFile(options: {
  readonly path: string;
  readonly pieces: AsyncIterable<Buffer>;
  readonly replace: 'never' | 'allowed';
}): Promise<BackupSummary> {
  const { path, replace, pieces } = options;
  const folder = dirname(path);
  await removeLeftovers(path);
  if (replace === 'never' && existsSync(path)) throw isThere(path);
  const draft = join(folder, `${basename(path)}.${process.pid}.partial`);
  const file = await writing(path, () => open(draft, 'wx', 0o600));
  try {
    const summary = await readBackup(written(file, { path, pieces }), () => undefined);
    await writing(path, () => file.sync());
    if (replace === 'never') await putInPlace(draft, path);
    else await writing(path, () => rename(draft, path));
    await syncDirectory(folder);
    return summary;
  } catch (error) {
    throw error instanceof BackupError ? new Error(`the backup ${error.message}`) : error;
  } finally {
    await file.close();
    await rm(draft, { force: true });
  }
}

/** The pieces, each once it has been written. */
async function* written(
  file: FileHandle,
  { path, pieces }: { readonly path: string; readonly pieces: AsyncIterable<Buffer> },
): AsyncGenerator<Buffer, void, undefined> {
  for await (const piece of pieces) {
    for (let at = 0; at < piece.length; ) {
      at += (await writing(path, () => file.write(piece, at))).bytesWritten;
    }
    yield piece;
  }
}

/** Says of a failure which file was to be written. */
async function writing<T>(path: string, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    throw new Error(`cannot write ${path}: ${errorText(error)}`, { cause: error });
  }
}

/** Gives the draft its name unless somebody has it by now: a link does not replace a file. */
async function putInPlace(draft: string, path: string): Promise<void> {
  try {
    await link(draft, path);
  } catch {
    if (existsSync(path)) throw isThere(path);
    // A file system without links has to do with the look that was just taken.
    await writing(path, () => rename(draft, path));
  }
}

/** What killed processes have left of backups to this path. */
async function removeLeftovers(path: string): Promise<void> {
  const folder = dirname(path);
  const start = `${basename(path)}.`;
  for (const name of await writing(path, () => readdir(folder))) {
    const pid = name.startsWith(start)
      ? /^(\d{1,10})\.partial$/.exec(name.slice(start.length))
      : null;
    if (pid !== null && !isAlive(Number(pid[1]))) await rm(join(folder, name), { force: true });
  }
}

function isAlive(pid: number): boolean {
  if (pid === process.pid) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return systemErrorCode(error) !== 'ESRCH';
  }
}

async function syncDirectory(folder: string): Promise<void> {
  if (process.platform === 'win32') return;
  const directory = await open(folder, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

function isThere(path: string): Error {
  return new Error(`${path} exists already: give --force to replace it`);
}

import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { makeDirectories } from '@wheelhouse/machinery';

/**
 * Writes a file that appears whole or not at all, with `mode` from its first moment: a private key
 * is never readable by others, and a crash leaves no half of one. A file that every start writes
 * anew may be `remade`: then nothing waits for the disk, and a power failure may empty it.
 */
export function writeFileAtomically(options: {
  path: string;
  text: string;
  mode: number;
  atStart?: 'kept' | 'remade';
}): void {
  const { path, text, mode, atStart = 'kept' } = options;
  makeDirectories(dirname(path), 0o700);
  const temporary = `${path}.${process.pid}.tmp`;
  rmSync(temporary, { force: true });
  const file = openSync(temporary, 'wx', mode);
  try {
    // Not `writeSync`: a disk that is nearly full may take only a part.
    writeFileSync(file, text);
    if (atStart === 'kept') fsyncSync(file);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  } finally {
    closeSync(file);
  }
  renameSync(temporary, path);
}

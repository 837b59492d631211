import { closeSync, fsync, fsyncSync, mkdirSync, open, openSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { promisify } from 'node:util';
import { systemErrorCode } from './faults.ts';

const fsyncAsync = promisify(fsync);
const openAsync = promisify(open);

/**
 * Creates a directory and its missing parents; existing ones are unchanged. Throws the system's
 * error if one cannot be created. Node's own `recursive` option never returns if mkdir fails with
 * ENOENT in an existing directory, as in /proc.
 * @param options.mode the permissions of new directories; 0777 by default
 * @param options.lifetime `lasting` ones, the default, survive a power loss
 */
export function makeDirectories(
  path: string,
  options: { readonly mode?: number; readonly lifetime?: 'lasting' | 'temporary' } = {},
): void {
  const { mode = 0o777, lifetime = 'lasting' } = options;
  const missing: string[] = [];
  for (let at = resolve(path); !exists(at); at = dirname(at)) missing.unshift(at);
  for (const directory of missing) {
    createDirectory(directory, mode);
    if (lifetime === 'lasting') syncDirectoryNow(dirname(directory));
  }
  if (missing.length === 0) checkDirectory(path);
}

/** Syncs a directory, so that its entries survive a power loss. Rejects with the system's error. */
export async function syncDirectory(path: string): Promise<void> {
  if (process.platform === 'win32') return;
  const descriptor = await openAsync(path, 'r');
  try {
    await fsyncAsync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Syncs a directory before it returns. Throws if the disk fails; a directory that cannot be synced
 * for another reason, such as its permissions, is left to the system.
 */
export function syncDirectoryNow(path: string): void {
  if (process.platform === 'win32') return;
  let descriptor: number | undefined;
  try {
    descriptor = openSync(path, 'r');
    fsyncSync(descriptor);
  } catch (error) {
    if (systemErrorCode(error) === 'EIO') throw error;
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

function exists(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined;
}

/** Creates a directory, which another process may have created concurrently. */
function createDirectory(path: string, mode: number): void {
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) throw error;
  }
}

/** Throws the system's error for an existing file, by trying to create a directory. */
function checkDirectory(path: string): void {
  if (!statSync(path).isDirectory()) mkdirSync(path);
}

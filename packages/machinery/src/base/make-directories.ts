import { mkdirSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

/**
 * Makes a directory and the ones above it that are missing, with the permissions of `mode`. One that
 * is there is left as it is. Throws the host's error when one cannot be made. Node's own `recursive`
 * never returns where a directory that exists answers ENOENT to what shall be made in it, as those
 * of /proc do.
 */
export function makeDirectories(path: string, mode = 0o777): void {
  const missing: string[] = [];
  for (let at = resolve(path); !exists(at); at = dirname(at)) missing.unshift(at);
  for (const one of missing) makeOne(one, mode);
  if (missing.length === 0) expectDirectory(path);
}

function exists(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined;
}

/** Others may make the same directory at the same time. */
function makeOne(path: string, mode: number): void {
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) throw error;
  }
}

/** Making what is there already says of a file that it is one. */
function expectDirectory(path: string): void {
  if (!statSync(path).isDirectory()) mkdirSync(path);
}

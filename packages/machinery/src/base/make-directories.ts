import { mkdirSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

/**
 * Creates a directory and its missing parents with the permissions `mode`; existing ones are
 * unchanged. Throws the system's error if one cannot be created. Node's own `recursive` option
 * never returns if an existing directory answers ENOENT to mkdir, as those in /proc do.
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

/** Another process may create the same directory concurrently. */
function makeOne(path: string, mode: number): void {
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) throw error;
  }
}

/** Throws the system's error for an existing file, by trying to create a directory. */
function expectDirectory(path: string): void {
  if (!statSync(path).isDirectory()) mkdirSync(path);
}

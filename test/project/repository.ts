import { spawnSync } from 'node:child_process';
import { readdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';

/** The root of the repository. */
export const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');

/** The files below a folder, from the root of the repository, without installed and built ones. */
export function filesUnder(folder: string, names = /\.tsx?$/): string[] {
  return readdirSync(join(root, folder)).flatMap((name) => {
    const path = join(folder, name);
    if (name === 'node_modules' || name === 'dist') return [];
    if (statSync(join(root, path)).isDirectory()) return filesUnder(path, names);
    return names.test(path) ? [path] : [];
  });
}

/** Expects the page that a script of `scripts/` generates to be current. */
export function expectCurrentPage(script: string): void {
  const path = join(root, 'scripts', script);
  const { status, stderr } = spawnSync(process.execPath, [path, '--check'], { encoding: 'utf8' });
  expect(stderr).toBe('');
  expect(status).toBe(0);
}

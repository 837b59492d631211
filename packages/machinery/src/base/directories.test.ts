import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeDirectories } from './directories.ts';

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'make-directories-'));
});
afterAll(() => rmSync(directory, { recursive: true }));

const modeOf = (path: string) => statSync(path).mode & 0o777;

test('creates missing directories and does not change existing ones', () => {
  mkdirSync(join(directory, 'there'), { mode: 0o750 });
  makeDirectories(join(directory, 'there', 'a', 'b'), { mode: 0o700 });
  makeDirectories(join(directory, 'there', 'a', 'b'), { mode: 0o755 });
  const modes = ['there', 'there/a', 'there/a/b'].map((name) => modeOf(join(directory, name)));
  expect(modes).toEqual([0o750, 0o700, 0o700]);
});

test('reports a file in the path', () => {
  const file = join(directory, 'file');
  writeFileSync(file, '');
  expect(() => makeDirectories(file)).toThrow(/^EEXIST/);
  expect(() => makeDirectories(join(file, 'below'))).toThrow(/^ENOTDIR/);
});

/** Runs Node's function in a separate process, because it might never return. */
test.runIf(process.platform === 'linux')('fails where no directory can be created', () => {
  const program = `
    const { mkdirSync } = require('node:fs');
    try { mkdirSync('/proc/none'); } catch (error) { process.stdout.write(error.code); }
  `;
  expect(spawnSync(process.execPath, ['-e', program]).stdout.toString()).toBe('ENOENT');
  expect(() => makeDirectories('/proc/none/data', { mode: 0o700 })).toThrow(
    /^ENOENT.*\/proc\/none'/,
  );
});

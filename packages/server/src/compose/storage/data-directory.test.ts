import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ensureDataDirectory } from './data-directory.ts';

let base: string;
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'wheelhouse-data-'));
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

const modeOf = (path: string): number => statSync(path).mode & 0o7777;

describe('the data directory', () => {
  test('is created for its owner only', () => {
    const path = join(base, 'new');
    expect(ensureDataDirectory(path)).toEqual({ tightened: false });
    expect(modeOf(path)).toBe(0o700);
  });

  test.each([0o755, 0o770, 0o701, 0o777])('is closed to others: %o', (mode) => {
    const path = join(base, 'open');
    mkdirSync(path);
    chmodSync(path, mode);
    expect(ensureDataDirectory(path)).toEqual({ tightened: true });
    expect(modeOf(path)).toBe(0o700);
    expect(ensureDataDirectory(path)).toEqual({ tightened: false });
  });

  test('is refused when it is shared', () => {
    const path = join(base, 'shared');
    mkdirSync(path);
    chmodSync(path, 0o1777);
    expect(() => ensureDataDirectory(path)).toThrow(/others can read the data directory/);
    expect(modeOf(path)).toBe(0o1777);
  });
});

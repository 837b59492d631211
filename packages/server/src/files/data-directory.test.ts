import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ensureAdminToken, ensureDataDirectory, writeAdminKubeconfig } from './data-directory.ts';

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

test('the kubeconfig has server, CA, and credential, for its owner only', () => {
  const path = join(base, 'sub', 'admin.kubeconfig');
  const server = 'https://127.0.0.1:6443';
  writeAdminKubeconfig({ path, server, caPem: 'CA', credential: { token: 't' }, context: 'c' });
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({
    clusters: [{ name: 'c', cluster: { server, 'certificate-authority-data': 'Q0E=' } }],
    users: [{ name: 'c', user: { token: 't' } }],
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'c' } }],
    'current-context': 'c',
  });
});

test('the token is kept across restarts, for its owner only', () => {
  const token = ensureAdminToken(base);
  expect(token.length).toBeGreaterThan(40);
  expect(ensureAdminToken(base)).toBe(token);
  expect(statSync(join(base, 'admin.token')).mode & 0o777).toBe(0o600);
});

import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ensureAdminToken } from '../storage/data-directory.ts';
import { writeAdminKubeconfig } from './admin-kubeconfig.ts';

let dataDir: string;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'wheelhouse-data-'));
});
afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

test('the kubeconfig has server, CA, and credential, for its owner only', () => {
  const path = join(dataDir, 'sub', 'admin.kubeconfig');
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
  const token = ensureAdminToken(dataDir);
  expect(token.length).toBeGreaterThan(40);
  expect(ensureAdminToken(dataDir)).toBe(token);
  expect(statSync(join(dataDir, 'admin.token')).mode & 0o777).toBe(0o600);
});

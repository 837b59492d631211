import { spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

test('PLANE-1, CLIENT-2: docs/CLIENTS.md is generated from the stored results', () => {
  const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
  const script = join(root, 'scripts', 'clients.mjs');
  const { status, stderr } = spawnSync(process.execPath, [script, '--check'], { encoding: 'utf8' });
  expect(stderr).toBe('');
  expect(status).toBe(0);
});

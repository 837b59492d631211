import { spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

test('docs/CONFORMANCE.md matches the test titles', () => {
  const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
  const script = join(root, 'scripts', 'conformance.mjs');
  const { status, stderr } = spawnSync(process.execPath, [script, '--check'], { encoding: 'utf8' });
  expect(stderr).toBe('');
  expect(status).toBe(0);
});

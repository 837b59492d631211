import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));

test('bench/RESULTS.md shows the newest file in each folder of results', async () => {
  const script = new URL('../../scripts/bench-table.mjs', import.meta.url).href;
  const { pageWithFigures } = (await import(script)) as { pageWithFigures(text: string): string };
  const page = readFileSync(join(root, 'bench', 'RESULTS.md'), 'utf8');
  expect(pageWithFigures(page)).toBe(page);
  expect(page).toMatch(/^\| get \| 16 \|/m);
  expect(page).toMatch(/^\| definition, until its kind is served \| 8 \|/m);
  expect(page).toMatch(/^\| exec to readyz 200, fresh data \| 1 \|/m);
});

// `npm run docs`: generates the tables of the reference pages, then builds the site from docs/ into
// docs/.vitepress/dist. Fails for a broken link. `--out DIR` builds elsewhere; `--serve` serves the
// site at http://localhost:4173 afterwards.
import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { bundleSources } from './bundle-sources.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const docs = join(root, 'docs');
const { values } = parseArgs({ options: { out: { type: 'string' }, serve: { type: 'boolean' } } });
const outDir = resolve(values.out ?? join(docs, '.vitepress', 'dist'));

const tables = join(root, 'node_modules', '.cache', `reference-${process.pid}.mjs`);
await bundleSources({ entry: 'scripts/docs/reference.mjs', outfile: tables });
const { status } = spawnSync(process.execPath, [tables], { cwd: root, stdio: 'inherit' });
for (const path of [tables, `${tables}.map`]) rmSync(path, { force: true });
if (status !== 0) process.exit(1);

const { build, serve } = await import('vitepress');
try {
  await build(docs, { outDir });
} catch (error) {
  console.error(`docs: ${error instanceof Error ? error.message : error}`);
  process.exit(1);
}
console.log(`docs: wrote ${outDir}`);
if (values.serve) await serve({ root: docs, port: 4173 });

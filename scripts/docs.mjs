// `npm run docs`: generates the tables of the reference pages, then builds the site from docs/ into
// docs/.vitepress/dist. Fails for a broken link. `--out DIR` builds elsewhere; `--serve` serves the
// site at http://localhost:4173 afterwards.
import { spawnSync } from 'node:child_process';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const docs = join(root, 'docs');
const { values } = parseArgs({ options: { out: { type: 'string' }, serve: { type: 'boolean' } } });
const outDir = resolve(values.out ?? join(docs, '.vitepress', 'dist'));

const tables = join(root, 'scripts', 'docs', 'reference.mjs');
const generate = ['--conditions=source', '--import', 'tsx', tables];
const { status } = spawnSync(process.execPath, generate, { cwd: root, stdio: 'inherit' });
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

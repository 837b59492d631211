// `npm run bench`: builds the server, bundles the load generator, and runs it. Arguments go to the
// generator (`npm run bench -- --help`).
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build as bundle } from 'esbuild';
import { build } from './build.mjs';
import { runBundle } from './bundle-sources.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const generator = join(root, 'node_modules', '.cache', 'bench.mjs');

await build();
await bundle({
  absWorkingDir: root,
  entryPoints: ['bench/main.ts'],
  outfile: generator,
  bundle: true,
  platform: 'node',
  target: 'node20',
  format: 'esm',
  conditions: ['source'],
  logLevel: 'warning',
});
runBundle(generator);

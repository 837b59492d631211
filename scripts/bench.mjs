// `npm run bench`: builds the server, bundles the load generator, and runs it. Arguments go to the
// generator (`npm run bench -- --help`).
import { spawn } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build as bundle } from 'esbuild';
import { build } from './build.mjs';

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
const child = spawn(process.execPath, [generator, ...process.argv.slice(2)], {
  cwd: root,
  stdio: 'inherit',
});
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal));
child.on('exit', (code) => {
  process.exitCode = code ?? 1;
});

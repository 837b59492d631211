// `npm run fuzz`: builds a server, starts it on a fresh embedded store, and sends it odd requests.
// Arguments go to the sender (`npm run fuzz -- --count=500000 --seed=7`).
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { build as bundle } from 'esbuild';
import { build } from './build.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const sender = join(root, 'node_modules', '.cache', 'fuzz.mjs');
const directory = mkdtempSync(join(tmpdir(), 'wheelhouse-fuzz-'));

await build();
await bundle({
  absWorkingDir: root,
  entryPoints: ['test/fuzz/main.ts'],
  outfile: sender,
  bundle: true,
  external: ['yaml'],
  platform: 'node',
  target: 'node20',
  format: 'esm',
  logLevel: 'warning',
});

const serve = ['serve', `--data-dir=${directory}`, '--bind-address=127.0.0.1', '--secure-port=0'];
const server = spawn(process.execPath, [join(root, 'bin', 'wheelhouse.js'), ...serve], {
  stdio: ['ignore', 'inherit', 'pipe'],
});
const stop = () => server.kill('SIGTERM');
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, stop);
createInterface({ input: server.stderr }).on('line', (line) => {
  const entry = parse(line);
  if (entry?.level !== 'info') console.error(line);
  if (entry?.msg === 'ready') send(entry.url);
});
server.on('exit', (code, signal) => {
  rmSync(directory, { recursive: true, force: true });
  if (code !== 0) {
    console.error(`the server ended with ${signal ?? code}`);
    process.exitCode = 1;
  }
});

function parse(line) {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

function send(url) {
  const token = readFileSync(join(directory, 'admin.token'), 'utf8').trim();
  const given = [`--url=${url}`, `--token=${token}`, `--pid=${server.pid}`];
  const child = spawn(process.execPath, [sender, ...given, ...process.argv.slice(2)], {
    stdio: 'inherit',
  });
  child.on('exit', (code) => {
    process.exitCode = code ?? 1;
    stop();
  });
}

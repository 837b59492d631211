// Makes a fresh clone ready: dependencies when they are missing or stale, with --build the bundles,
// with --test what the tests use besides.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const lock = join(root, 'package-lock.json');
const flags = new Set(process.argv.slice(2));

function run(command, args) {
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: 'inherit' });
  if (error !== undefined) console.error(`setup: ${command}: ${error.message}`);
  return status ?? 1;
}

function has(command) {
  return spawnSync('sh', ['-c', `command -v ${command}`]).status === 0;
}

/** Whether what npm says it has installed is what the lock file asks for. */
function installed() {
  const hidden = join(root, 'node_modules', '.package-lock.json');
  if (!existsSync(hidden)) return false;
  const wanted = JSON.parse(readFileSync(lock, 'utf8')).packages;
  const found = JSON.parse(readFileSync(hidden, 'utf8')).packages;
  return Object.entries(wanted).every(
    ([path, entry]) =>
      path === '' || entry.optional || entry.peer || found[path]?.version === entry.version,
  );
}

function install() {
  if (installed()) return;
  // No scripts: the programs we need come prebuilt, and the build is this script's own last step.
  const status = run('npm', ['ci', '--ignore-scripts', '--include=dev', '--no-audit', '--no-fund']);
  if (status !== 0) process.exit(status);
}

function installEtcd() {
  if (has('etcd')) return;
  const superuser = process.getuid?.() === 0;
  if (!superuser || !has('apt-get')) {
    console.log('setup: no etcd here, and no way to install it; tests against etcd are skipped');
    return;
  }
  const apt = ['install', '--yes', '--no-install-recommends', 'etcd-server'];
  const quiet = { stdio: ['ignore', 'ignore', 'pipe'], encoding: 'utf8' };
  let outcome = spawnSync('apt-get', apt, quiet);
  if (outcome.status !== 0) {
    spawnSync('apt-get', ['update'], quiet);
    outcome = spawnSync('apt-get', apt, quiet);
  }
  const result = outcome.status === 0 ? 'installed etcd' : 'could not install etcd; its tests skip';
  console.log(`setup: ${result}`);
}

install();
if (flags.has('--test')) installEtcd();
if (flags.has('--build')) {
  const { build } = await import('./build.mjs');
  await build();
}

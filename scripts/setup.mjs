// Prepares a fresh clone: installs dependencies if they are missing or outdated, builds the bundles
// with --build, and installs programs for tests with --test.
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

/** Whether the installed packages match the lock file. */
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
  // Runs no install scripts: the programs are prebuilt, and the build is the last step of this
  // script.
  const status = run('npm', ['ci', '--ignore-scripts', '--include=dev', '--no-audit', '--no-fund']);
  if (status !== 0) process.exit(status);
}

/**
 * Programs that some tests need besides Node, and Debian's packages of each, best first. The tests
 * are skipped where they are unavailable.
 */
const programs = [
  { name: 'etcd', commands: ['etcd'], packages: ['etcd-server'] },
  {
    name: 'Chromium',
    commands: ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome'],
    packages: ['chromium-headless-shell', 'chromium'],
  },
];

function installPrograms() {
  const missing = programs.filter(({ commands }) => !commands.some(has));
  if (missing.length === 0) return;
  const names = missing.map(({ name }) => name).join(' and ');
  const superuser = process.getuid?.() === 0;
  if (!superuser || !has('apt-get')) {
    console.log(`setup: no ${names} here, and no way to install it; tests with it are skipped`);
    return;
  }
  const quiet = { stdio: ['ignore', 'ignore', 'pipe'], encoding: 'utf8' };
  const attempt = (packages) =>
    spawnSync('apt-get', ['install', '--yes', '--no-install-recommends', ...packages], quiet)
      .status === 0;
  if (!attempt(missing.map(({ packages: [best] }) => best))) {
    spawnSync('apt-get', ['update'], quiet);
    // One at a time, because a distribution may lack some of them.
    for (const { packages } of missing) packages.some((name) => attempt([name]));
  }
  for (const { name, commands } of missing) {
    const result = commands.some(has)
      ? `installed ${name}`
      : `could not install ${name}; its tests skip`;
    console.log(`setup: ${result}`);
  }
}

install();
if (flags.has('--test')) installPrograms();
if (flags.has('--build')) {
  const { build } = await import('./build.mjs');
  await build();
}

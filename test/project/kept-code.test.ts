import { spawn } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test } from 'vitest';
import { untilEnd } from '../support/cleanup.ts';
import { buildPrograms, startProcess } from '../support/program.ts';

/** Machine code that the start of an installed package stores for later starts. */

const launchers = join(dirname(fileURLToPath(import.meta.url)), '..', '..', 'bin');
const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** A program whose server is ready at once and stops after the launcher has stored its code. */
const bundleOf = (text: string) =>
  `(function (exports) {
  const answer = () => ${JSON.stringify(text)};
  exports.main = async (args, { onReady } = {}) => {
    process.stdout.write(answer());
    onReady?.();
    if (onReady) await globalThis.codeIsStored;
    return 0;
  };
})`;

/**
 * Replaces the launcher's wait, so that it stores the code in the next turn. Setting the flags of
 * V8 is its last step.
 */
const withoutWait = `
  const v8 = require('node:v8');
  const { setFlagsFromString } = v8;
  const { setTimeout } = globalThis;
  globalThis.setTimeout = (run) => setTimeout(run, 0);
  globalThis.codeIsStored = new Promise((resolve) => {
    v8.setFlagsFromString = (flags) => {
      setFlagsFromString(flags);
      resolve();
    };
  });
  // The launcher does not keep the process alive for the wait.
  setInterval(() => {}, 60_000);
`;

function install(text = 'one') {
  const folder = mkdtempSync(join(tmpdir(), 'wheelhouse-kept-'));
  folders.push(folder);
  cpSync(launchers, join(folder, 'bin'), { recursive: true });
  mkdirSync(join(folder, 'dist'));
  const bundle = join(folder, 'dist', 'wheelhouse.cjs');
  writeFileSync(bundle, bundleOf(text));
  writeFileSync(join(folder, 'without-wait.cjs'), withoutWait);
  const kept = (place = 'dist') => {
    const names = readdirSync(join(folder, place)).filter((name) => name !== 'wheelhouse.cjs');
    return names.map((name) => join(folder, place, name));
  };
  return { folder, bundle, kept };
}

type Installed = ReturnType<typeof install>;

/** Runs Node to its end, with a cache folder for this installation. */
function node(
  { folder }: Installed,
  args: readonly string[],
  more: Readonly<Record<string, string>> = {},
): Promise<string> {
  const env = { ...process.env, XDG_CACHE_HOME: join(folder, 'user-cache'), ...more };
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (bytes: Buffer) => {
      output += bytes.toString();
    });
  }
  return new Promise((resolve) => child.on('close', (code) => resolve(`${output} ${code}`)));
}

const serve = (installed: Installed, env?: Readonly<Record<string, string>>) =>
  node(
    installed,
    [
      ...['--require', join(installed.folder, 'without-wait.cjs')],
      ...[join(installed.folder, 'bin', 'wheelhouse.js'), 'serve'],
    ],
    env,
  );

/** Imports the library, and ends after the timers that it has set. */
const importLibrary = (installed: Installed, env?: Readonly<Record<string, string>>) => {
  const loader = join(installed.folder, 'bin', 'load-library.js');
  const script = `const { main } = require(${JSON.stringify(loader)});
    main([]).then(() => setTimeout(() => process.exit(0)));`;
  const args = ['--require', join(installed.folder, 'without-wait.cjs'), '-e', script];
  return node(installed, args, env);
};

/** Whether a start finds code that V8 accepts. */
async function isTaken(installed: Installed): Promise<boolean> {
  const script = `const { loadBundle } = require(${JSON.stringify(join(installed.folder, 'bin', 'load-bundle.js'))});
    process.stdout.write(String(loadBundle(${JSON.stringify(installed.bundle)}).keepCode === undefined));`;
  return (await node(installed, ['-e', script])) === 'true 0';
}

test('the first server stores a code cache beside the bundle, for its user only', async () => {
  const installed = install();
  expect(await isTaken(installed)).toBe(false);
  expect(await serve(installed)).toBe('one 0');
  const [file = '', ...others] = installed.kept();
  expect(others).toEqual([]);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(await isTaken(installed)).toBe(true);
  const { mtimeMs } = statSync(file);
  expect(await serve(installed)).toBe('one 0');
  expect(statSync(file).mtimeMs).toBe(mtimeMs);
});

test('the cache is in the user’s cache folder when the bundle is read-only', async () => {
  const installed = install();
  expect(await serve(installed)).toBe('one 0');
  const [file = ''] = installed.kept();
  rmSync(file);
  mkdirSync(join(file, 'in-the-way'), { recursive: true });
  expect(await serve(installed)).toBe('one 0');
  const own = installed.kept('user-cache/wheelhouse');
  expect(own.map((path) => statSync(path).mode & 0o777)).toEqual([0o600]);
  expect(statSync(join(installed.folder, 'user-cache', 'wheelhouse')).mode & 0o777).toBe(0o700);
  expect(await isTaken(installed)).toBe(true);
});

test('a cache that is damaged, stale, or writable by others is replaced', async () => {
  const installed = install();
  await serve(installed);
  const [file = ''] = installed.kept();
  const whole = readFileSync(file);
  const spoilt = Buffer.from(whole);
  spoilt[whole.length - 100] = (spoilt[whole.length - 100] ?? 0) ^ 1;
  const spoil: readonly (() => void)[] = [
    () => writeFileSync(file, spoilt),
    () => writeFileSync(file, whole.subarray(0, 1000)),
    () => writeFileSync(file, ''),
    () => chmodSync(file, 0o622),
    () => writeFileSync(installed.bundle, bundleOf('two')),
  ];
  for (const change of spoil) {
    change();
    expect(await isTaken(installed)).toBe(false);
    expect(await serve(installed)).toMatch(/^(one|two) 0$/);
    expect(await isTaken(installed)).toBe(true);
  }
  expect(await serve(installed)).toBe('two 0');
  expect(installed.kept()).toEqual([file]);
});

test('concurrent servers leave one complete file', async () => {
  const installed = install();
  const all = await Promise.all(Array.from({ length: 4 }, () => serve(installed)));
  expect(all).toEqual(Array.from({ length: 4 }, () => 'one 0'));
  expect(installed.kept()).toHaveLength(1);
  expect(await isTaken(installed)).toBe(true);
});

test('a server without a cache works as usual', async () => {
  const installed = install();
  expect(await serve(installed, { NODE_DISABLE_COMPILE_CACHE: '1' })).toBe('one 0');
  expect(installed.kept()).toEqual([]);
  await serve(installed);
  const [file = ''] = installed.kept();
  rmSync(file);
  mkdirSync(join(file, 'in-the-way'), { recursive: true });
  writeFileSync(join(installed.folder, 'user-cache'), 'not a folder');
  expect(await serve(installed)).toBe('one 0');
  const launcher = join(installed.folder, 'bin', 'wheelhouse.js');
  expect(await node(installed, [launcher, 'version'])).toBe('one 0');
});

test('a program that imports the library stores a code cache for servers and planes', async () => {
  const installed = install();
  expect(await importLibrary(installed, { NODE_DISABLE_COMPILE_CACHE: '1' })).toBe('one 0');
  expect(installed.kept()).toEqual([]);
  expect(await importLibrary(installed)).toBe('one 0');
  const [file = '', ...others] = installed.kept();
  expect(others).toEqual([]);
  expect(await isTaken(installed)).toBe(true);
  const { mtimeMs } = statSync(file);
  expect(await importLibrary(installed)).toBe('one 0');
  expect(statSync(file).mtimeMs).toBe(mtimeMs);
});

test('few caches of other releases and V8 flags are kept', async () => {
  const installed = install();
  for (let at = 0; at < 8; at += 1) {
    writeFileSync(`${installed.bundle}.${at}.abc${at}.cache`, 'old');
  }
  await serve(installed);
  expect(installed.kept()).toHaveLength(4);
  expect(await isTaken(installed)).toBe(true);
});

test('the server starts from its code cache', { timeout: 60_000 }, async () => {
  const programs = await untilEnd(buildPrograms());
  const installed = install();
  cpSync(join(dirname(programs.console), 'wheelhouse.cjs'), installed.bundle);
  symlinkSync(join(launchers, '..', 'node_modules'), join(installed.folder, 'node_modules'));
  const launcher = { wheelhouse: join(installed.folder, 'bin', 'wheelhouse.js') };
  const server = await startProcess(launcher);
  const isKept = () => installed.kept().map((path) => /\.cache$/.test(path));
  await expect.poll(isKept).toEqual([true]);
  await server.remove();
  expect(await isTaken(installed)).toBe(true);
  const again = await untilEnd(startProcess(launcher));
  expect(again.url).toMatch(/^https:/);
});

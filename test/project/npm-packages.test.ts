import { execFile } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

/**
 * Packages as npm packs them, installed in a project without the rest of the repository: the store
 * and all its dependencies.
 */

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const packed = ['machinery', 'schema', 'codec', 'http2', 'store'];
const folder = mkdtempSync(join(tmpdir(), 'wheelhouse-packages-'));
const modules = join(folder, 'node_modules');

const execute = promisify(execFile);

/** Runs a program; rejects with its output when it fails. */
async function run(program: string, args: readonly string[], cwd = folder): Promise<string> {
  return (await execute(program, [...args], { cwd, encoding: 'utf8' })).stdout;
}

/** The contents of the tarballs that npm would create for the built packages, by name. */
const contents = new Map<string, readonly string[]>();

async function readContents(): Promise<void> {
  const workspaces = packed.map((name) => `--workspace=packages/${name}`);
  const pack = ['pack', '--dry-run', '--json', '--ignore-scripts', ...workspaces];
  const tarballs: readonly {
    readonly name: string;
    readonly files: readonly { readonly path: string }[];
  }[] = JSON.parse(await run('npm', pack, root));
  for (const { name, files } of tarballs) {
    contents.set(
      name.replace('@wheelhouse/', ''),
      files.map(({ path }) => path),
    );
  }
}

const contentsOf = (name: string): readonly string[] => contents.get(name) ?? [];

beforeAll(async () => {
  // `npm test` has already checked the types of the sources.
  const script = join(root, 'scripts', 'build-packages.mjs');
  await run(process.execPath, [script, '--checked', ...packed]);
  await readContents();
  mkdirSync(join(modules, '@wheelhouse'), { recursive: true });
  for (const name of packed) {
    for (const path of contentsOf(name)) {
      const to = join(modules, '@wheelhouse', name, path);
      mkdirSync(dirname(to), { recursive: true });
      cpSync(join(root, 'packages', name, path), to);
    }
  }
  for (const name of readdirSync(join(root, 'node_modules'))) {
    const to = join(modules, name);
    if (name.startsWith('.') || existsSync(to)) continue;
    symlinkSync(join(root, 'node_modules', name), to);
  }
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'module' }));
}, 240_000);
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
  for (const name of packed) {
    rmSync(join(root, 'packages', name, 'dist'), { recursive: true, force: true });
    rmSync(join(root, 'packages', name, 'LICENSE'), { force: true });
  }
});

describe.each(packed)('the package %s', (name) => {
  test('has only code, declarations, a README, and the license', () => {
    const files = readdirSync(join(modules, '@wheelhouse', name));
    expect(files.sort()).toEqual(['LICENSE', 'README.md', 'dist', 'package.json']);
    const inside = contentsOf(name);
    expect(inside).toEqual(expect.arrayContaining(['dist/index.js', 'dist/index.d.ts']));
    expect(inside.filter((path) => /\.test\.|\.map$|(?<!\.d)\.ts$/.test(path))).toEqual([]);
  });
});

test('an installed package runs the example of its README', async () => {
  const readme = readFileSync(join(root, 'packages', 'store', 'README.md'), 'utf8');
  const example = /```js\n([\s\S]*?)\n```/.exec(readme)?.[1] ?? '';
  writeFileSync(join(folder, 'example.mjs'), example);
  expect(await run(process.execPath, ['example.mjs'])).toContain('/boats/elisa=12 1');
});

test('an installed package type-checks in a strict project', { timeout: 120_000 }, async () => {
  const file = `import { loadMemoryStore, type Store } from '@wheelhouse/store';
export const open = async (): Promise<Store> => (await loadMemoryStore()).createMemoryStore();
// @ts-expect-error: it takes no arguments
loadMemoryStore(1);
`;
  writeFileSync(join(folder, 'consumer.ts'), file);
  const tsc = join(root, 'node_modules', 'typescript-native', 'bin', 'tsc');
  const flags = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2023'];
  const args = [tsc, ...flags, '--types', 'node', 'consumer.ts'];
  const printed = await run(process.execPath, args).catch(
    ({ stdout }: { stdout: string }) => stdout,
  );
  expect(printed).toBe('');
});

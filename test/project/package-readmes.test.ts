import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build, stop } from 'esbuild';
import { afterAll, describe, expect, test, vi } from 'vitest';

/**
 * Runs the example in each package's README. A comment after `console.log(...)` states what that
 * call prints.
 */

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const folder = join(root, 'node_modules', '.cache', `readmes-${process.pid}`);
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  // Its service would keep its memory as long as the process, which runs more files.
  await stop();
});

const exampleOf = (name: string): string => {
  const text = readFileSync(join(root, 'packages', name, 'README.md'), 'utf8');
  return /## Example\n\n```js\n([\s\S]*?)\n```/.exec(text)?.[1] ?? '';
};

/** Bundles an example with its package's sources; returns the module's URL. */
async function bundled(name: string): Promise<string> {
  mkdirSync(folder, { recursive: true });
  const outfile = join(folder, `${name}.mjs`);
  await build({
    stdin: { contents: exampleOf(name), resolveDir: root, loader: 'ts' },
    outfile,
    absWorkingDir: root,
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    conditions: ['source'],
    external: ['lmdb', 'fs-native-extensions'],
    logLevel: 'silent',
    banner: {
      js: "import { createRequire as makeRequire } from 'node:module'; const require = makeRequire(import.meta.url);",
    },
  });
  return pathToFileURL(outfile).href;
}

describe.each(readdirSync(join(root, 'packages')))('the README of %s', (name) => {
  test('has an example that prints what the README shows', { timeout: 60_000 }, async () => {
    const wanted = [...exampleOf(name).matchAll(/console\.log\(.*\); \/\/ (.*)$/gm)].map(
      ([, text = '']) => text.replaceAll('\\n', '\n'),
    );
    expect(wanted.length).toBeGreaterThan(0);
    const printed: string[] = [];
    const log = vi.spyOn(console, 'log').mockImplementation((...values: unknown[]) => {
      const shown = (value: unknown) => (typeof value === 'bigint' ? `${value}n` : `${value}`);
      printed.push(values.map(shown).join(' '));
    });
    try {
      await import(await bundled(name));
    } finally {
      log.mockRestore();
    }
    expect(printed).toEqual(wanted);
  });
});

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

/**
 * Checks what pages say about files; their other statements must name a file or a test that proves
 * them.
 */

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const decisions = readdirSync(join(root, 'docs', 'decisions')).map(
  (name) => `docs/decisions/${name}`,
);
const pages = [
  ...['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'bench/RESULTS.md', 'scripts/peers/README.md'],
  'examples/README.md',
  ...readdirSync(join(root, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
  ...['guides', 'reference', 'start'].flatMap((folder) =>
    readdirSync(join(root, 'docs', folder))
      .filter((name) => name.endsWith('.md'))
      .map((name) => `docs/${folder}/${name}`),
  ),
  ...decisions,
  ...readdirSync(join(root, 'packages')).map((name) => `packages/${name}/README.md`),
];
const read = (page: string): string => readFileSync(join(root, page), 'utf8');

/** All files in the folders to which pages refer. */
const folders = ['packages', 'test', 'scripts', 'bench', 'docs', 'bin', 'examples'];
const filesOf = (folder: string): string[] =>
  readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`;
    if (entry.name === 'node_modules' || entry.name === 'dist') return [];
    return entry.isDirectory() ? [`${path}/`, ...filesOf(path)] : [path];
  });
const files = folders.flatMap(filesOf);

/** Other paths in backquotes: TypeScript files and scripts, or folders. */
const otherFiles =
  /`((?:[\w-]+\/)*[\w-]+(?:\.[\w-]+)*\.(?:ts|tsx|mjs)|(?:src|gates|test)\/[\w/-]*\/)`/g;
const flag = /`--([a-z][a-z0-9-]+)/g;
const sources = files
  .filter((path) => /\.(?:ts|mjs|js|txt)$/.test(path) && !/\/gen\//.test(path))
  .map((path) => readFileSync(join(root, path), 'utf8'))
  .join('\n');
/** Whether a name is a flag: a key of a flag table, or an argument. */
const isFlag = (name: string): boolean =>
  new RegExp(`['"\`]${name}['"\`]|--${name}\\b|^\\s*${name}:`, 'm').test(sources);
/** Example files in pages, and files that readers write. */
const madeUp = new Set(['x.ts', 'x.test.ts', 'plane.mjs', 'greeting.test.mjs']);

/**
 * A path in backquotes that begins at the root of the repository, possibly with a constant in that
 * file.
 */
const named = /`((?:packages|test|scripts|bench|docs|bin|examples)\/[\w./-]*)(?:#\w+)?`/g;
const link = /\]\((?!https?:)([^)#\s]+)(?:#[^)]*)?\)/g;

describe.each(pages)('%s', (page) => {
  test('names files that exist', () => {
    const paths = [...read(page).matchAll(named)].map(([, path = '']) => path);
    expect(paths.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  });

  test('names files by parts of their paths that exist', () => {
    const paths = [...read(page).matchAll(otherFiles)].map(([, path = '']) => path);
    const lost = paths.filter(
      (path) => !madeUp.has(path) && !files.some((file) => `/${file}`.endsWith(`/${path}`)),
    );
    expect(lost).toEqual([]);
  });

  test('names flags that a program of the repository has', () => {
    const names = [...read(page).matchAll(flag)].map(([, name = '']) => name);
    expect(names.filter((name) => !isFlag(name))).toEqual([]);
  });

  test('links to files that exist', () => {
    const outsideCode = read(page).replaceAll(/`[^`\n]*`/g, '');
    const targets = [...outsideCode.matchAll(link)].map(([, target = '']) => target);
    expect(targets.filter((target) => !existsSync(join(root, dirname(page), target)))).toEqual([]);
  });
});

describe.each(decisions)('the decision %s', (page) => {
  test('has a date and names the test or measurement behind it', () => {
    const [, text = ''] = read(page).split(/\n\n/, 2);
    expect(text).toMatch(/^20\d\d-\d\d-\d\d\. /);
    expect(text).toMatch(/Enforced by `[^`]+\.test\.ts`|`npm run bench` measures it/);
  });
});

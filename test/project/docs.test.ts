import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

/** What pages say of files is checked; what else they say names a file or a test behind it. */

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

/** Everything the repository has in the folders that pages speak of. */
const folders = ['packages', 'test', 'scripts', 'bench', 'docs', 'bin', 'examples'];
const filesOf = (folder: string): string[] =>
  readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`;
    if (entry.name === 'node_modules' || entry.name === 'dist') return [];
    return entry.isDirectory() ? [`${path}/`, ...filesOf(path)] : [path];
  });
const files = folders.flatMap(filesOf);

/** Other paths in backquotes: of TypeScript and of scripts, or of folders. */
const otherFiles =
  /`((?:[\w-]+\/)*[\w-]+(?:\.[\w-]+)*\.(?:ts|tsx|mjs)|(?:src|gates|test)\/[\w/-]*\/)`/g;
const flag = /`--([a-z][a-z0-9-]+)/g;
const sources = files
  .filter((path) => /\.(?:ts|mjs|js|txt)$/.test(path) && !/\/gen\//.test(path))
  .map((path) => readFileSync(join(root, path), 'utf8'))
  .join('\n');
/** A flag is a key of a table, or an argument. */
const isFlag = (name: string): boolean =>
  new RegExp(`['"\`]${name}['"\`]|--${name}\\b|^\\s*${name}:`, 'm').test(sources);
/** Files that pages make up, or have their reader write. */
const madeUp = new Set(['x.ts', 'x.test.ts', 'plane.mjs', 'greeting.test.mjs']);

/** A path in backquotes that begins at the root of the repository, with the constant in it, if any. */
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

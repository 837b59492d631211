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

/** A path in backquotes that begins at the root of the repository, with the constant in it, if any. */
const named = /`((?:packages|test|scripts|bench|docs|bin|examples)\/[\w./-]*)(?:#\w+)?`/g;
const link = /\]\((?!https?:)([^)#\s]+)(?:#[^)]*)?\)/g;

describe.each(pages)('%s', (page) => {
  test('names files that exist', () => {
    const paths = [...read(page).matchAll(named)].map(([, path = '']) => path);
    expect(paths.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  });

  test('links to files that exist', () => {
    const targets = [...read(page).matchAll(link)].map(([, target = '']) => target);
    expect(targets.filter((target) => !existsSync(join(root, dirname(page), target)))).toEqual([]);
  });
});

describe.each(decisions)('the decision %s', (page) => {
  test('has a date, and the test that enforces it or what measures it', () => {
    const [, text = ''] = read(page).split(/\n\n/, 2);
    expect(text).toMatch(/^20\d\d-\d\d-\d\d\. /);
    expect(text).toMatch(/Enforced by `[^`]+\.test\.ts`|`npm run bench` measures it/);
  });
});

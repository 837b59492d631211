import { spawn } from 'node:child_process';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { fieldErrorTypes, statusReasons } from '@wheelhouse/machinery';
import { serverFlags } from '@wheelhouse/server/testing';
import { beforeAll, describe, expect, test } from 'vitest';
import { temporaryFolder } from '../support/cleanup.ts';

/** The documentation site, built as `npm run docs` builds it. */

const root = fileURLToPath(new URL('../..', import.meta.url));
const out = temporaryFolder();
const pages = new Map<string, string>();

function filesUnder(folder: string): string[] {
  return readdirSync(join(out, folder)).flatMap((name) => {
    const path = posix.join(folder, name);
    return statSync(join(out, path)).isDirectory() ? filesUnder(path) : [path];
  });
}

beforeAll(async () => {
  // A larger young generation collects the build's many short-lived trees seldom.
  const args = ['--max-semi-space-size=64', join(root, 'scripts', 'docs.mjs'), '--out', out];
  const child = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (bytes: Buffer) => {
      output += bytes.toString();
    });
  }
  const code = await new Promise((resolve) => child.on('close', resolve));
  expect(`${code} ${output}`).toMatch(/^0 /);
  for (const path of filesUnder('')) {
    if (path.endsWith('.html')) pages.set(path, readFileSync(join(out, path), 'utf8'));
  }
}, 300_000);

/** The texts of the packages' sources, without tests. */
function sources(): string[] {
  const paths = readdirSync(join(root, 'packages'), { recursive: true, encoding: 'utf8' });
  return paths
    .filter((path) => /^[\w-]+\/src\/.*(?<!\.test)\.ts$/.test(path))
    .map((path) => readFileSync(join(root, 'packages', path), 'utf8'));
}

const page = (path: string): string => pages.get(path) ?? '';
const text = (html: string): string =>
  html
    .replace(/<[^>]+>/g, '')
    .replaceAll('&lt;', '<')
    .replaceAll('&amp;', '&');
const idsOf = (html: string): Set<string> =>
  new Set([...html.matchAll(/\sid="([^"]+)"/g)].map(([, id = '']) => id));

/** The target of a link in a page: the file, and the anchor in it. */
function targetOf(from: string, href: string): { file: string; place: string } {
  const [path = '', place = ''] = decodeURI(href).split('#');
  const file = path.startsWith('/') ? path.slice(1) : posix.join(posix.dirname(from), path);
  if (path === '') return { file: from, place };
  if (file === '' || file.endsWith('/')) return { file: `${file}index.html`, place };
  return { file: file.endsWith('.html') ? file : `${file}.html`, place };
}

describe('npm run docs', () => {
  test('has a page for each page of docs/', () => {
    const sources = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.md') && !path.includes('generated'))
      .map((path) => path.replace(/\.md$/, '.html'));
    expect(sources.length).toBeGreaterThan(45);
    expect([...pages.keys()]).toEqual(expect.arrayContaining(sources));
  });

  test('has no broken internal link', () => {
    const places = new Map([...pages].map(([path, html]) => [path, idsOf(html)]));
    const lost: string[] = [];
    for (const [path, html] of pages) {
      for (const [, href = ''] of html.matchAll(/<a\s[^>]*href="([^"]+)"/g)) {
        if (/^[a-z]+:/.test(href)) continue;
        const { file, place } = targetOf(path, href);
        const ids = places.get(file);
        if (ids === undefined || (place !== '' && !ids.has(place))) lost.push(`${path}: ${href}`);
      }
    }
    expect(lost).toEqual([]);
  });

  test('loads nothing from other hosts', () => {
    const loading = /<(?:script|link|img)\s[^>]*(?:src|href)="(?:https?:)?\/\/[^"]*"/g;
    const found = [...pages].flatMap(([path, html]) =>
      [...html.matchAll(loading)].map(([tag]) => `${path}: ${tag}`),
    );
    expect(found).toEqual([]);
  });

  test('finds every included file', () => {
    const broken = [...pages].filter(([, html]) => /Code snippet path not found/.test(html));
    expect(broken.map(([path]) => path)).toEqual([]);
  });
});

describe('the reference pages', () => {
  test('list every flag with its default', () => {
    const html = page('reference/flags.html');
    const rows = new Map(
      [...html.matchAll(/<tr><td[^>]*><a id="([^"]+)"><\/a>(.*?)<\/tr>/gs)].map(
        ([, name = '', row = '']) => [name, text(row)],
      ),
    );
    for (const [name, flag] of Object.entries<{ default: string; hidden?: true }>(serverFlags)) {
      if (flag.hidden) expect(rows.has(name), name).toBe(false);
      else expect(rows.get(name), name).toContain(flag.default);
    }
  });

  test('list every reason of an error', () => {
    const html = text(page('reference/errors.html'));
    for (const [reason, { meaning }] of Object.entries(statusReasons)) {
      expect(html).toContain(reason);
      expect(html).toContain(meaning.split('`')[0]);
    }
    for (const [reason, meaning] of Object.entries(fieldErrorTypes)) {
      expect(html).toContain(`${reason}\n${meaning}`.replace('\n', ''));
    }
  });

  test('name the metrics that the sources define, also those of parts loaded on demand', () => {
    const defined = sources().flatMap((source) =>
      [...source.matchAll(/\bname: '([a-z0-9_]+)',\s*help: /g)].map(([, name = '']) => name),
    );
    expect(defined.length).toBeGreaterThan(50);
    const html = text(page('reference/metrics.html'));
    expect(defined.filter((name) => !html.includes(name))).toEqual([]);
  });
});

test('error codes in the sources match the catalogue', () => {
  const found = new Set<string>();
  for (const source of sources()) {
    for (const [, code, reason] of source.matchAll(/code: (\d{3}),\s*reason: '(\w+)'/g)) {
      found.add(`${reason} ${code}`);
    }
  }
  expect(found.size).toBeGreaterThan(15);
  const listed = Object.entries(statusReasons).flatMap(([reason, { codes }]) =>
    codes.map((code) => `${reason} ${code}`),
  );
  expect(listed).toEqual(expect.arrayContaining([...found]));
});

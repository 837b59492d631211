import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freePort } from '../support/local-server.ts';
import { buildPrograms, type Programs } from '../support/program.ts';
import { isAsShown, type PageStep, stepsOf, Transcript } from './transcript.ts';

/**
 * Follows pages exactly: writes the files that they show, runs their commands, and compares the
 * output. An `…` in a page matches any output.
 */

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const folder = mkdtempSync(join(tmpdir(), 'wheelhouse-pages-'));
let programs: Programs;

beforeAll(async () => {
  programs = await buildPrograms();
}, 120_000);
afterAll(() => {
  programs?.remove();
  rmSync(folder, { recursive: true, force: true });
});

/**
 * Prepares a folder like a clone, or like a project with the package, in which `npm` and `npx`
 * download nothing.
 */
function prepare(name: string, port: number): { work: string; path: string[] } {
  const work = join(folder, name);
  const tools = join(work, '.tools');
  mkdirSync(join(work, 'node_modules'), { recursive: true });
  mkdirSync(join(work, 'scripts'));
  mkdirSync(tools);
  const clone = dirname(dirname(programs.wheelhouse));
  symlinkSync(clone, join(work, 'node_modules', 'wheelhouse'));
  symlinkSync(join(root, 'node_modules', 'vitest'), join(work, 'node_modules', 'vitest'));
  symlinkSync(join(clone, 'bin'), join(work, 'bin'));
  cpSync(join(root, 'scripts', 'start.mjs'), join(work, 'scripts', 'start.mjs'));
  const node = `"${process.execPath}"`;
  const scripts = {
    npm: `shift; [ "$1" = -- ] && shift; exec ${node} scripts/start.mjs --secure-port=${port} "$@"`,
    npx: 'exec "$@"',
    wheelhouse: `exec ${node} "${programs.wheelhouse}" "$@"`,
    svcctl: `exec ${node} "${programs.svcctl}" "$@"`,
    curl: `PATH="$(echo "$PATH" | cut -d: -f2-)" exec curl -sN "$@"`,
  };
  for (const [program, line] of Object.entries(scripts)) {
    writeFileSync(join(tools, program), `#!/bin/sh\n${line}\n`);
    chmodSync(join(tools, program), 0o755);
  }
  return { work, path: [tools, join(root, 'node_modules', '.bin'), dirname(process.execPath)] };
}

/** Each session is one shell; a page without `until` is followed to its end. */
const sessions = [
  [{ page: 'README.md', until: '### With kubectl' }],
  [{ page: 'docs/start/typescript.md' }],
  [
    { page: 'docs/guides/custom-control-planes.md' },
    { page: 'docs/guides/monitoring.md' },
    { page: 'docs/guides/operations.md' },
  ],
];

function stepsOfPage({ page, until }: { page: string; until?: string }, port: number): PageStep[] {
  const text = readFileSync(join(root, page), 'utf8').replaceAll('6443', String(port));
  const end = until === undefined ? text.length : text.indexOf(until);
  expect(end, until).toBeGreaterThan(0);
  return stepsOf(text.slice(0, end));
}

const titled = sessions.map((pages) => ({
  title: pages.map(({ page }) => page).join(', '),
  pages,
}));

test.each(titled)('$title', { timeout: 180_000 }, async ({ title, pages }) => {
  const port = await freePort();
  const { work, path } = prepare(title.replaceAll(/\W+/g, '-'), port);
  const transcript = new Transcript(work, path);
  try {
    for (const page of pages) {
      const steps = stepsOfPage(page, port);
      expect(steps.length).toBeGreaterThan(2);
      for (const step of steps) await transcript.follow(step);
    }
  } finally {
    await transcript.close();
  }
});

test('pages are followed as a reader would', () => {
  const page = [
    '`a.yaml`:',
    '',
    '```yaml',
    'a: 1',
    '```',
    '',
    '    $ one',
    '    two 3s',
    '    $ three',
    '',
    'Text.',
  ].join('\n');
  expect(stepsOf(page)).toEqual([
    { name: 'a.yaml', text: 'a: 1\n' },
    { command: 'one', output: 'two 3s' },
    { command: 'three', output: undefined },
  ]);
  expect(isAsShown('two 14s \n', 'two 3s')).toBe(true);
  expect(isAsShown('two\n3\nfour', 'two\n…\nfour')).toBe(true);
  expect(isAsShown('two, not three', 'two')).toBe(false);
});

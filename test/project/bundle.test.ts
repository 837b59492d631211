import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { temporaryFolder, untilEnd } from '../support/cleanup.ts';
import { buildPrograms, type Programs, run, startProcess } from '../support/program.ts';

let programs: Programs;
let bundle: string;
beforeAll(async () => {
  programs = await buildPrograms();
  bundle = join(dirname(programs.wheelhouse), '..', 'dist', 'wheelhouse.cjs');
}, 60_000);
afterAll(() => programs.remove());

test('the bundle is ASCII, as its loader reads one byte per character', () => {
  const text = readFileSync(bundle);
  expect(text.findIndex((byte) => byte >= 0x80)).toBe(-1);
});

test('a code cache that V8 rejects does no harm', async () => {
  const copy = temporaryFolder();
  cpSync(dirname(programs.wheelhouse), join(copy, 'bin'), { recursive: true });
  cpSync(bundle, join(copy, 'dist', 'wheelhouse.cjs'));
  writeFileSync(join(copy, 'dist', 'wheelhouse.cjs.cache'), Buffer.alloc(4096, 0xc0));
  const { code, stdout, stderr } = await run(join(copy, 'bin', 'wheelhouse.js'), ['version']);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toContain('Wheelhouse');
});

test('a new build replaces the one before, and leaves the single executable', async () => {
  const script = new URL('../../scripts/build.mjs', import.meta.url).href;
  const { replaceBuild } = (await import(script)) as {
    replaceBuild(finished: string, outdir: string): void;
  };
  const folder = temporaryFolder();
  const [finished, outdir] = [join(folder, 'dist'), join(folder, 'new')];
  for (const [name, files] of [
    [finished, ['wheelhouse', 'old.js']],
    [outdir, ['new.js']],
  ] as const) {
    mkdirSync(name);
    for (const file of files) writeFileSync(join(name, file), file);
  }
  replaceBuild(finished, outdir);
  expect(readdirSync(folder)).toEqual(['dist']);
  expect(readdirSync(finished).sort()).toEqual(['new.js', 'wheelhouse']);
  mkdirSync(outdir);
  replaceBuild(join(folder, 'first'), outdir);
  expect(readdirSync(join(folder, 'first'))).toEqual([]);
});

test('without a build both programs say so in one line', async () => {
  const bare = temporaryFolder();
  cpSync(dirname(programs.wheelhouse), join(bare, 'bin'), { recursive: true });
  for (const name of ['wheelhouse', 'svcctl']) {
    const { code, stderr } = await run(join(bare, 'bin', `${name}.js`), ['version']);
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /^error: .*\/dist\/[a-z.]+ does not exist: build it with `npm run build`\n$/,
    );
  }
});

test('the bundle has LMDB’s JavaScript and finds its native part', () => {
  const text = readFileSync(bundle, 'latin1');
  expect(text).not.toMatch(/require\("lmdb"\)/);
  expect(text).not.toContain('import.meta.url');
});

test('PLANE-8: the bundle holds the descriptions of built-in kinds', async () => {
  const server = await untilEnd(startProcess(programs));
  const args = [`--kubeconfig=${server.kubeconfig}`, 'explain', 'pods.metadata'];
  const { code, stdout, stderr } = await run(programs.svcctl, args);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toContain("Standard object's metadata");
  expect(stdout).not.toContain('<no description>');
}, 60_000);

// Bundles the programs into dist/: few files to open is what makes a start quick.
import { spawnSync } from 'node:child_process';
import { existsSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const keeper = join(root, 'scripts', 'keep-code.mjs');
const entryPoints = Object.fromEntries(
  [
    ['svcctl', 'src/cli/main.ts'],
    ['library', 'src/library.ts'],
  ].filter(([, path]) => existsSync(join(root, path))),
);

/** Lets bundled CommonJS packages call `require`, which an ES module does not have. */
const banner = {
  js: "import { createRequire as makeRequire } from 'node:module'; const require = makeRequire(import.meta.url);",
};

const shared = {
  absWorkingDir: root,
  bundle: true,
  platform: 'node',
  target: 'node20',
  sourcemap: 'external',
  legalComments: 'none',
  external: ['lmdb'],
  logLevel: 'warning',
};

/**
 * Builds `dist/`, or another folder, anew: the server as one CommonJS file, for whose machine code
 * `keepCode` makes room, and the other programs as ES modules. Throws, having printed why, when the
 * sources do not bundle.
 */
export async function build({ finished = join(root, 'dist'), keepCode = true } = {}) {
  const { build: bundle } = await import('esbuild');
  const outdir = `${finished}.${process.pid}.tmp`;
  const server = join(outdir, 'wheelhouse.cjs');
  try {
    await Promise.all([
      bundle({ ...shared, entryPoints: ['src/main.ts'], outfile: server, format: 'cjs' }),
      bundle({
        ...shared,
        entryPoints,
        outdir,
        splitting: true,
        format: 'esm',
        chunkNames: 'chunks/[name]-[hash]',
        banner,
      }),
    ]);
    // A server without it starts too, only slower.
    if (keepCode) spawnSync(process.execPath, [keeper, server], { stdio: 'ignore' });
    rmSync(finished, { recursive: true, force: true });
    renameSync(outdir, finished);
  } finally {
    rmSync(outdir, { recursive: true, force: true });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await build();

// Bundles the programs into dist/: few files to open is what makes a start quick.
import { existsSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const entryPoints = Object.fromEntries(
  [
    ['wheelhouse', 'src/main.ts'],
    ['svcctl', 'src/cli/main.ts'],
    ['library', 'src/library.ts'],
  ].filter(([, path]) => existsSync(join(root, path))),
);

/** Lets bundled CommonJS packages call `require`, which an ES module does not have. */
const banner = {
  js: "import { createRequire as makeRequire } from 'node:module'; const require = makeRequire(import.meta.url);",
};

/**
 * Builds `dist/`, or another folder, anew. Throws, having printed why, when the sources do not
 * bundle.
 */
export async function build(finished = join(root, 'dist')) {
  const { build: bundle } = await import('esbuild');
  const outdir = `${finished}.${process.pid}.tmp`;
  try {
    await bundle({
      absWorkingDir: root,
      entryPoints,
      outdir,
      bundle: true,
      splitting: true,
      platform: 'node',
      target: 'node20',
      format: 'esm',
      sourcemap: 'external',
      legalComments: 'none',
      external: ['lmdb'],
      chunkNames: 'chunks/[name]-[hash]',
      banner,
      logLevel: 'warning',
    });
    rmSync(finished, { recursive: true, force: true });
    renameSync(outdir, finished);
  } finally {
    rmSync(outdir, { recursive: true, force: true });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await build();

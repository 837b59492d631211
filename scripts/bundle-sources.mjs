// Bundles a program that runs from the sources of this repository into one file, which takes less
// time than translating each source when the program loads it.
import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');

/**
 * Sets `import.meta.url` to the address of the source file, from which sources find their
 * neighbors.
 */
const sourceLocations = {
  name: 'source-locations',
  setup({ onLoad }) {
    onLoad({ filter: /\.(ts|mjs)$/ }, async ({ path }) => {
      const text = await readFile(path, 'utf8');
      const location = JSON.stringify(pathToFileURL(path).href);
      const contents = text.replaceAll('import.meta.url', location);
      return { contents, loader: path.endsWith('.ts') ? 'ts' : 'js' };
    });
  },
};

/**
 * Bundles a program with everything that it imports, except native packages.
 *
 * @param options.entry path of the program's source, from the root of the repository
 * @param options.outfile path of the bundle, inside `node_modules`, so that it finds native packages
 * @param options.plugins further plugins of esbuild
 */
export async function bundleSources({ entry, outfile, plugins = [] }) {
  await build({
    absWorkingDir: root,
    entryPoints: [entry],
    outfile,
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    conditions: ['source'],
    external: ['lmdb', 'fs-native-extensions', 'esbuild'],
    plugins: [sourceLocations, ...plugins],
    sourcemap: 'linked',
    logLevel: 'warning',
    banner: {
      js: "import { createRequire as makeRequire } from 'node:module'; const require = makeRequire(import.meta.url);",
    },
  });
}

/** Runs a bundle with this process's arguments, and passes on its exit code. */
export function runBundle(path) {
  const child = spawn(process.execPath, [path, ...process.argv.slice(2)], {
    cwd: root,
    stdio: 'inherit',
  });
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal));
  child.on('exit', (code) => {
    process.exitCode = code ?? 1;
  });
}

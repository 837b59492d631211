// `npm run siege`: attacks servers in seeded, bounded ways. `npm run siege -- --help` lists the
// parts.
import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build as bundle } from 'esbuild';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');

/**
 * Sets `import.meta.url` to the address of the source file, from which sources find their
 * neighbors.
 */
const sourceLocations = {
  name: 'source-locations',
  setup({ onLoad }) {
    onLoad({ filter: /\.ts$/ }, async ({ path }) => {
      const text = await readFile(path, 'utf8');
      const location = JSON.stringify(pathToFileURL(path).href);
      return { contents: text.replaceAll('import.meta.url', location), loader: 'ts' };
    });
  },
};

/**
 * Replaces the files and locks of the embedded store by the simulation's. `kernel-lock.ts` is a
 * separate file for this reason.
 */
const simulatedFiles = {
  name: 'simulated-files',
  setup({ onResolve }) {
    const path = join(root, 'test', 'siege', 'simulation', 'simulated-files.ts');
    const store = join(root, 'packages', 'store', 'src', 'embedded');
    const directories = join(root, 'packages', 'machinery', 'src', 'base', 'directories.ts');
    onResolve({ filter: /^node:fs$|\/kernel-lock\.ts$/ }, ({ importer }) => {
      const isStore = dirname(importer) === store && !importer.endsWith('kernel-lock.ts');
      return isStore || importer === directories ? { path } : undefined;
    });
  },
};

/**
 * Bundles the siege into one file: lazy imports then take a constant number of microtasks and no
 * real time, on which the simulation's determinism relies.
 * @param outfile path of the bundle, inside `node_modules`, so that it finds native packages
 */
export async function bundleSiege(outfile) {
  await bundle({
    absWorkingDir: root,
    entryPoints: ['test/siege/main.ts'],
    outfile,
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    conditions: ['source'],
    external: ['lmdb', 'fs-native-extensions', 'esbuild'],
    plugins: [sourceLocations, simulatedFiles],
    sourcemap: 'linked',
    logLevel: 'warning',
    banner: {
      js: "import { createRequire as makeRequire } from 'node:module'; const require = makeRequire(import.meta.url);",
    },
  });
}

async function main() {
  const outfile = join(root, 'node_modules', '.cache', 'siege.mjs');
  await bundleSiege(outfile);
  const child = spawn(process.execPath, [outfile, ...process.argv.slice(2)], {
    cwd: root,
    stdio: 'inherit',
  });
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal));
  child.on('exit', (code) => {
    process.exitCode = code ?? 1;
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();

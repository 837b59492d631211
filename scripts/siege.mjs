// `npm run siege`: attacks servers in seeded, bounded ways. `npm run siege -- --help` lists the
// parts.
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleSources, runBundle } from './bundle-sources.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');

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
  await bundleSources({ entry: 'test/siege/main.ts', outfile, plugins: [simulatedFiles] });
}

async function main() {
  const outfile = join(root, 'node_modules', '.cache', 'siege.mjs');
  await bundleSiege(outfile);
  runBundle(outfile);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();

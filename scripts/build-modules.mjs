// Bundles the packages into JavaScript modules for the tests. Node loads them natively; vitest's own
// loader, which the sources need, is slower to load and slows down each call between modules.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { requireInModules } from './build.mjs';
import { packedDescriptions } from './pack-descriptions.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');

/** Each entry that a package exports, such as `server/testing`, and the path of its source. */
function entriesOf(name) {
  const folder = join('packages', name);
  const { exports } = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'));
  return Object.entries(exports)
    .filter(([entry]) => !entry.includes('*'))
    .map(([entry, { source }]) => [
      join(name, entry === '.' ? 'index' : entry),
      join(folder, source),
    ]);
}

/** Plugin of esbuild: bundles workspaces and leaves other packages to Node. */
const otherPackagesOutside = {
  name: 'other-packages-outside',
  setup({ onResolve }) {
    onResolve({ filter: /^[^./]/ }, ({ path, kind }) =>
      kind === 'entry-point' || path.startsWith('@wheelhouse/')
        ? undefined
        : { path, external: true },
    );
  },
};

/**
 * Writes a module for each entry of each package: `@wheelhouse/server/testing` becomes
 * `server/testing.mjs`. Throws, after printing why, if the sources do not bundle.
 *
 * @param outdir a folder within `node_modules`, whose modules vitest leaves to Node
 */
export async function buildModules(outdir) {
  const { build: bundle } = await import('esbuild');
  await bundle({
    absWorkingDir: root,
    bundle: true,
    splitting: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    conditions: ['source'],
    entryPoints: Object.fromEntries(readdirSync(join(root, 'packages')).flatMap(entriesOf)),
    outdir,
    outExtension: { '.js': '.mjs' },
    chunkNames: 'chunks/[name]-[hash]',
    banner: requireInModules,
    legalComments: 'none',
    logLevel: 'warning',
    plugins: [packedDescriptions, otherPackagesOutside],
  });
}

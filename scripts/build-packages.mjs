// `npm run build:packages -- [name...]`: builds what `npm pack` puts into the tarballs of the
// workspaces: the JavaScript and declarations of all packages or of the named ones, in `dist/` of
// each. The programs' bundle comes from build.mjs. `--checked` states that the types of the sources
// have been checked.
import { readdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build as bundle } from 'esbuild';
import {
  copyDeclarations,
  copyLicense,
  discardEmitted,
  emitDeclarations,
} from './declarations.mjs';
import { packedDescriptions } from './pack-descriptions.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');

/** Builds packages. Throws, after printing why, if one does not bundle or has type errors. */
async function buildPackages(
  names = readdirSync(join(root, 'packages')),
  { areChecked = false } = {},
) {
  emitDeclarations(names, { areChecked });
  for (const name of names) {
    const folder = join(root, 'packages', name);
    const outdir = join(folder, 'dist');
    rmSync(outdir, { recursive: true, force: true });
    await bundle({
      absWorkingDir: folder,
      entryPoints: ['index', 'browser']
        .map((entry) => join('src', `${entry}.ts`))
        .filter((entry) => readdirSync(join(folder, 'src')).includes(entry.slice('src/'.length))),
      outdir,
      bundle: true,
      splitting: true,
      packages: 'external',
      platform: 'node',
      target: 'node20',
      format: 'esm',
      legalComments: 'none',
      logLevel: 'warning',
      plugins: [packedDescriptions],
    });
    copyDeclarations(name);
    copyLicense(folder);
  }
  discardEmitted();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const names = process.argv.slice(2).filter((word) => word !== '--checked');
  const areChecked = process.argv.includes('--checked');
  await buildPackages(names.length > 0 ? names : undefined, { areChecked });
}

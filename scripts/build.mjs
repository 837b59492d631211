// Bundles the programs into dist/, because opening few files makes a start quick.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildConsole } from './build-console.mjs';
import {
  bundleDeclarations,
  copyKindTypes,
  discardEmitted,
  emitDeclarations,
} from './declarations.mjs';
import { directImports } from './direct-imports.mjs';
import { packedDescriptions } from './pack-descriptions.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const keeper = join(root, 'scripts', 'keep-code.mjs');
const svcctlEntry = 'packages/svcctl/src/main.ts';
/** The entries that test runners import, such as `wheelhouse/vitest`. */
const presets = ['vitest', 'node-test', 'jest'];
/** The ES modules that users import, by their names in `dist/`. */
const libraryEntries = {
  library: 'packages/server/src/library.ts',
  ...Object.fromEntries(
    presets.map((name) => [name, `packages/server/src/plane/presets/${name}.ts`]),
  ),
};

const shared = {
  absWorkingDir: root,
  bundle: true,
  platform: 'node',
  target: 'node20',
  conditions: ['source'],
  sourcemap: 'external',
  legalComments: 'none',
  logLevel: 'warning',
  plugins: [packedDescriptions, directImports(root)],
};

/**
 * The server is one function, which `bin/load-bundle.js` calls; wrapping it there would copy it. It
 * includes even LMDB's JavaScript, whose dozen files would otherwise be located and compiled at
 * every start; its optional accelerator for a message format that the server does not use is left
 * out. Names and short lines are kept, so that stack traces are readable.
 */
const asFunction = {
  format: 'cjs',
  alias: { msgpackr: 'msgpackr/pack' },
  inject: ['scripts/lmdb-package.mjs'],
  define: { 'import.meta.url': 'lmdbPackage.url', bundleDirectory: '__dirname' },
  minifyWhitespace: true,
  minifySyntax: true,
  lineLimit: 120,
  banner: { js: '(function (exports, require, module, __filename, __dirname) { "use strict";' },
  footer: { js: '})' },
};

/** Programs whose parts are loaded on demand. */
const asModules = {
  external: ['lmdb'],
  splitting: true,
  format: 'esm',
  chunkNames: 'chunks/[name]-[hash]',
  minifySyntax: true,
  minifyWhitespace: true,
  // Bundled CommonJS packages call `require`, which an ES module does not have.
  banner: {
    js: "import { createRequire as makeRequire } from 'node:module'; const require = makeRequire(import.meta.url);",
  },
};

/**
 * A plugin of esbuild: what the library's modules import from the server comes from the server's
 * bundle, so that the package contains the server once and a plane starts with its machine code.
 */
const overBundle = {
  name: 'over-bundle',
  setup({ onLoad, onResolve }) {
    const entries = Object.values(libraryEntries).map((path) => join(root, path));
    onResolve({ filter: /^\.\.?\/|^@wheelhouse\/client$/ }, ({ importer }) =>
      entries.includes(importer) ? { path: 'bundle', namespace: 'over-bundle' } : undefined,
    );
    onLoad({ filter: /.*/, namespace: 'over-bundle' }, () => ({
      contents: `module.exports = require(${JSON.stringify(loader)});`,
    }));
    onResolve({ filter: /.*/, namespace: 'over-bundle' }, ({ path }) => ({ path, external: true }));
  },
};
/** Relative to `dist/`. */
const loader = '../bin/load-library.js';

/** Bundles a program into one function in an ASCII file. */
async function bundleFunction(entryPoint, outfile, options = {}) {
  const { build: bundle } = await import('esbuild');
  await bundle({ ...shared, ...asFunction, ...options, entryPoints: [entryPoint], outfile });
  spellInAscii(outfile);
}

/** Only svcctl opens WebSockets with `ws`, but client code that the server shares imports it. */
const leftOut = { external: ['ws'] };

const bundleServer = (outfile, options = {}) =>
  bundleFunction('packages/server/src/bundle.ts', outfile, { ...leftOut, ...options });

/** Bundles the server with white space and with comments that name the file of each part. */
export const bundleServerWithComments = (outfile) =>
  bundleServer(outfile, { minifyWhitespace: false, minifySyntax: false });

/** Bundles svcctl into one file for the executable. */
export const bundleSvcctl = (outfile) => bundleFunction(svcctlEntry, outfile);

/**
 * Builds `dist/`, or another folder, from scratch: the server as one CommonJS file, for which
 * `keepCode` reserves space for machine code, the other programs as ES modules, and the console's
 * files. Throws, after printing why, if the sources do not bundle.
 */
export async function build({ finished = join(root, 'dist'), keepCode = true } = {}) {
  const { build: bundle } = await import('esbuild');
  const outdir = `${finished}.${process.pid}.tmp`;
  const server = join(outdir, 'wheelhouse.cjs');
  try {
    await Promise.all([
      bundleServer(server),
      bundle({ ...shared, ...asModules, entryPoints: { svcctl: svcctlEntry }, outdir }),
      bundle({
        ...shared,
        ...asModules,
        splitting: false,
        external: ['vitest'],
        entryPoints: libraryEntries,
        outdir,
        plugins: [overBundle],
      }),
      buildConsole(join(outdir, 'console')),
    ]);
    // The server also starts without it, only slower.
    if (keepCode) spawnSync(process.execPath, [keeper, server], { stdio: 'ignore' });
    replaceBuild(finished, outdir);
  } finally {
    rmSync(outdir, { recursive: true, force: true });
  }
}

/**
 * Replaces the previous build. The single executable stays, because programs of test environments
 * start it by its path.
 */
export function replaceBuild(finished, outdir) {
  const executable = join(finished, 'wheelhouse');
  if (existsSync(executable)) renameSync(executable, join(outdir, 'wheelhouse'));
  rmSync(finished, { recursive: true, force: true });
  renameSync(outdir, finished);
}

/** An ASCII file is read without decoding and permanently takes half the memory. */
function spellInAscii(path) {
  const escaped = (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
  const text = readFileSync(path, 'utf8');
  writeFileSync(path, text.replace(/[\u0080-\uffff]/g, escaped));
}

/** Declaration files in `dist/` by the server module that they describe. */
const declared = {
  library: 'library.d.ts',
  ...Object.fromEntries(presets.map((name) => [`plane/presets/${name}`, `${name}.d.ts`])),
};

/** Adds the library's declarations and the types of kinds to a folder that `build` has made. Throws for type errors. */
export function addDeclarations(finished = join(root, 'dist'), { areChecked = false } = {}) {
  try {
    emitDeclarations(['machinery', 'codec', 'client', 'server'], { areChecked });
    bundleDeclarations(finished, declared);
    copyKindTypes(join(finished, 'kinds'));
  } finally {
    discardEmitted();
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await build();
  // npm runs this script for tarballs and after installations; only tarballs need types.
  if (['pack', 'publish'].includes(process.env.npm_command)) addDeclarations();
}

// Bundles the programs into dist/: few files to open is what makes a start quick.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
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
/** What test runners import: `wheelhouse/vitest`. */
const presets = ['vitest', 'node-test', 'jest'];
const entryPoints = Object.fromEntries(
  [
    ['svcctl', 'packages/svcctl/src/main.ts'],
    ['library', 'packages/server/src/library.ts'],
    ...presets.map((name) => [name, `packages/server/src/plane/presets/${name}.ts`]),
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
  conditions: ['source'],
  sourcemap: 'external',
  legalComments: 'none',
  logLevel: 'warning',
  plugins: [packedDescriptions, directImports(root)],
};

/**
 * The server is one function, as `bin/load-bundle.js` calls it: to wrap it there would copy it. Even
 * LMDB's JavaScript is inside, whose dozen files would otherwise be found and compiled at every
 * start; the addition that speeds up a message format we do not use is left out. Names and short lines
 * stay, so that stack traces can be read.
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

/** Bundles a program into one function in a file of ASCII. */
async function bundleFunction(entryPoint, outfile, options = {}) {
  const { build: bundle } = await import('esbuild');
  await bundle({ ...shared, ...asFunction, ...options, entryPoints: [entryPoint], outfile });
  spellInAscii(outfile);
}

/** Only svcctl opens WebSockets with it, but client code that the server shares names it. */
const leftOut = { external: ['ws'] };

const bundleServer = (outfile, options = {}) =>
  bundleFunction('packages/server/src/main.ts', outfile, { ...leftOut, ...options });

/** Bundles the server with white space, and comments that name the file of each part. */
export const bundleServerWithComments = (outfile) =>
  bundleServer(outfile, { minifyWhitespace: false, minifySyntax: false });

/** Bundles svcctl into one file as the executable takes it. */
export const bundleSvcctl = (outfile) => bundleFunction('packages/svcctl/src/main.ts', outfile);

/**
 * Builds `dist/`, or another folder, anew: the server as one CommonJS file, for whose machine code
 * `keepCode` makes room, the other programs as ES modules, and the console's files. Throws, having printed why, when the
 * sources do not bundle.
 */
export async function build({ finished = join(root, 'dist'), keepCode = true } = {}) {
  const { build: bundle } = await import('esbuild');
  const outdir = `${finished}.${process.pid}.tmp`;
  const server = join(outdir, 'wheelhouse.cjs');
  try {
    await Promise.all([
      bundleServer(server),
      bundle({
        ...shared,
        external: ['lmdb', 'vitest'],
        entryPoints,
        outdir,
        splitting: true,
        format: 'esm',
        chunkNames: 'chunks/[name]-[hash]',
        minifySyntax: true,
        minifyWhitespace: true,
        banner,
      }),
      buildConsole(join(outdir, 'console')),
    ]);
    loadInTurn(outdir);
    // A server without it starts too, only slower.
    if (keepCode) spawnSync(process.execPath, [keeper, server], { stdio: 'ignore' });
    replaceBuild(finished, outdir);
  } finally {
    rmSync(outdir, { recursive: true, force: true });
  }
}

/**
 * Puts a new build in the place of the one before. The single executable stays, since programs of test environments
 * start it by its path.
 */
export function replaceBuild(finished, outdir) {
  const executable = join(finished, 'wheelhouse');
  if (existsSync(executable)) renameSync(executable, join(outdir, 'wheelhouse'));
  rmSync(finished, { recursive: true, force: true });
  renameSync(outdir, finished);
}

/**
 * Makes modules that are loaded by need load one after another: jest before its release 30 fails
 * when two of them that share a third are loaded at once ("request for … is not in cache").
 */
function loadInTurn(outdir) {
  const turns = 'let last = Promise.resolve();\n';
  // No source declares a name with a dollar sign.
  const inTurn = 'export const $inTurn = (load) => (last = last.then(load, load));\n';
  writeFileSync(join(outdir, 'chunks', 'in-turn.js'), turns + inTurn);
  for (const path of readdirSync(outdir, { recursive: true })) {
    if (!path.endsWith('.js') || path.startsWith('console')) continue;
    const file = join(outdir, path);
    const text = readFileSync(file, 'utf8');
    const loaded = text.replaceAll(/\bimport\(("[^"]+")\)/g, '$$inTurn(()=>import($1))');
    if (loaded === text) continue;
    const from = path.startsWith('chunks') ? './in-turn.js' : './chunks/in-turn.js';
    writeFileSync(file, `import{$inTurn}from${JSON.stringify(from)};${loaded}`);
  }
}

/** A file of one byte a character is read without decoding, and takes half the memory for good. */
function spellInAscii(path) {
  const escaped = (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
  const text = readFileSync(path, 'utf8');
  writeFileSync(path, text.replace(/[\u0080-\uffff]/g, escaped));
}

/** Files of declarations in `dist/` by the module of the server that they describe. */
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
  // npm runs this script for a tarball as well as after an installation, which needs no types.
  if (['pack', 'publish'].includes(process.env.npm_command)) addDeclarations();
}

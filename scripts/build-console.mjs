// Bundles the web console: the files that a browser loads, each compressed.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants } from 'node:zlib';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const sources = join(root, 'packages', 'console', 'src', 'browser');

/**
 * Removes what the page's own policy forbids from the libraries: Preact's only way to create markup
 * from text, and CodeMirror's style element, which a constructed style sheet replaces.
 */
const underPolicy = {
  name: 'under-policy',
  setup({ onLoad }) {
    const replacing = (filter, before, after) =>
      onLoad({ filter }, ({ path }) => {
        const text = readFileSync(path, 'utf8');
        if (!text.includes(before)) throw new Error(`${path} no longer has ${before}`);
        return { contents: text.replaceAll(before, after), loader: 'js' };
      });
    replacing(/preact[\\/]dist[\\/]preact\.mjs$/, '.innerHTML', '.textContent');
    replacing(/style-mod\.js$/, '!root.head && root.adoptedStyleSheets', 'root.adoptedStyleSheets');
  },
};

/** Licenses of libraries that may be part of the console. */
const fineLicenses = new Set(['MIT', 'ISC', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause']);

/**
 * The licenses of the packages whose files are in the bundle. Throws for a license that is not
 * allowed.
 */
function licensesOf(inputs) {
  const folders = new Set(
    Object.keys(inputs).flatMap(
      (path) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? [],
    ),
  );
  const texts = [...folders].sort().map((folder) => {
    const { name, version, license } = JSON.parse(
      readFileSync(join(root, folder, 'package.json'), 'utf8'),
    );
    if (!fineLicenses.has(license)) throw new Error(`${name} is licensed as ${license}`);
    const file = readdirSync(join(root, folder)).find((entry) => /^licen[cs]e/i.test(entry));
    const text = file === undefined ? '' : readFileSync(join(root, folder, file), 'utf8').trim();
    return `${name} ${version} (${license})\n\n${text}\n`;
  });
  return `Libraries that are part of the console, and their licenses.\n\n${texts.join('\n\n')}`;
}

/**
 * Writes the console's files into a folder, compressed (`index.html.br`). The names of all files
 * except the page contain a hash of their contents, so that browsers may cache them forever.
 * Throws, after printing why, if the sources do not bundle.
 */
export async function buildConsole(outdir) {
  const { build: bundle } = await import('esbuild');
  const { metafile, outputFiles } = await bundle({
    absWorkingDir: root,
    entryPoints: ['main.ts', 'style.css', 'icon.svg'].map((name) => join(sources, name)),
    loader: { '.svg': 'copy' },
    jsx: 'automatic',
    jsxImportSource: 'preact',
    plugins: [underPolicy],
    bundle: true,
    conditions: ['source'],
    splitting: true,
    format: 'esm',
    platform: 'browser',
    // Named by modules that the browser bundle excludes, which the check below ensures.
    external: ['node:*'],
    target: 'es2022',
    minify: true,
    legalComments: 'none',
    logLevel: 'warning',
    entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]',
    metafile: true,
    write: false,
    outdir,
  });
  const foreign = Object.values(metafile.outputs).flatMap(({ imports }) =>
    imports.filter(({ external }) => external === true),
  );
  if (foreign.length > 0) throw new Error(`no browser has ${foreign[0].path}`);
  mkdirSync(outdir, { recursive: true });
  const licenses = join(outdir, 'licenses.txt');
  const texts = Buffer.from(licensesOf(metafile.inputs));
  write(licenses, texts);
  // The package also contains them uncompressed, for people.
  writeFileSync(licenses, texts);
  for (const { path, contents } of outputFiles) write(path, contents);
  const names = new Map(
    Object.entries(metafile.outputs)
      .filter(([, { entryPoint }]) => entryPoint !== undefined)
      .map(([path, { entryPoint }]) => [basename(entryPoint), basename(path)]),
  );
  const page = readFileSync(join(sources, 'index.html'), 'utf8');
  const named = page.replace(/\{\{(.+?)\}\}/g, (_, name) => {
    const found = names.get(name);
    if (found === undefined)
      throw new Error(`the console's page names ${name}, which is not built`);
    return found;
  });
  write(join(outdir, 'index.html'), Buffer.from(named));
}

function write(path, contents) {
  const size = { [constants.BROTLI_PARAM_SIZE_HINT]: contents.length };
  writeFileSync(`${path}.br`, brotliCompressSync(contents, { params: size }));
}

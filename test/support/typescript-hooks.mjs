// Lets the processes of tests import TypeScript without vite, whose modules take more time to load
// and to run. Blanks replace the types, so that errors have the lines and columns of the sources.
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const cache = join(root, 'node_modules', '.cache', 'typescript');
const compiler = createRequire(import.meta.url)('ts-blank-space/package.json').version;
/** Results of another compiler or of another version of this file are not used. */
const version = compiler + readFileSync(fileURLToPath(import.meta.url), 'utf8');

/** vitest's global setup: fills the cache once for all processes, and removes other results. */
export async function setup() {
  mkdirSync(cache, { recursive: true });
  const unused = new Set(readdirSync(cache));
  for (const directory of ['packages', 'test']) {
    for (const path of readdirSync(join(root, directory), { recursive: true, encoding: 'utf8' })) {
      if (!path.endsWith('.ts') || path.includes('node_modules')) continue;
      const { name } = await scriptOf(readFileSync(join(root, directory, path), 'utf8'));
      unused.delete(name);
    }
  }
  for (const name of unused) rmSync(join(cache, name), { force: true });
}

/** A hook of Node's loader: ignores vitest's condition that leads to TypeScript in packages. */
export function resolve(specifier, context, next) {
  const conditions = context.conditions.filter((name) => name !== 'development');
  return next(specifier, { ...context, conditions });
}

/** A hook of Node's loader. */
export async function load(url, context, next) {
  const isSource = /\.ts(?:\?|$)/.test(url) && !url.includes('/node_modules/');
  if (!isSource) return next(url, context);
  const { script } = await scriptOf(readFileSync(fileURLToPath(url), 'utf8'));
  return { format: 'module', shortCircuit: true, source: script };
}

/** The JavaScript of a TypeScript text, and the name of its file in the cache. */
async function scriptOf(text) {
  const name = `${createHash('sha256').update(version).update(text).digest('hex')}.js`;
  const path = join(cache, name);
  try {
    return { name, script: readFileSync(path, 'utf8') };
  } catch {
    const { default: blankTypes } = await import('ts-blank-space');
    const script = await withRepeatedImports(blankTypes(text));
    // Another process may write the same file.
    const draft = `${path}.${process.pid}`;
    writeFileSync(draft, script);
    renameSync(draft, path);
    return { name, script };
  }
}

/** Imports each module once: with hooks, every `import()` asks another thread for the module's URL. */
const importOnce = `
var $mported;
function $mport(name) {
  $mported ??= new Map();
  let module = $mported.get(name);
  if (module === undefined) {
    module = import(name);
    module.catch(() => $mported.delete(name));
    $mported.set(name, module);
  }
  return module;
}`;

/** A script whose `import()` calls return the first call's promise; nothing changes its position. */
async function withRepeatedImports(script) {
  const { init, parse } = await import('es-module-lexer');
  await init;
  const [imports] = parse(script);
  const dynamic = imports.filter(({ d, a }) => d >= 0 && a < 0);
  if (dynamic.length === 0) return script;
  const pieces = [];
  let at = 0;
  for (const { ss } of dynamic) {
    pieces.push(script.slice(at, ss), '$mport');
    at = ss + 'import'.length;
  }
  return pieces.join('') + script.slice(at) + importOnce;
}

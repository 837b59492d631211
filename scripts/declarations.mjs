// Type declarations of the packages, and of the library as one folder that needs no other package.
import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { endedMark } from './facts/types.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
/** Specific to this process, because two builds may run concurrently. */
const emitted = join(root, 'node_modules', '.cache', `types-${process.pid}`);
const specifier = /(?<=from '|import\(')([^']+)(?=')/g;
const named = /\b(import|export) (type )?\{([^}]*)\} from '@wheelhouse\/([\w-]+)';/g;
const entry = /export (?:type )?\{([^}]*)\} from '\.\/([^']+)';/g;

/**
 * Emits the declarations of packages and of their imports. Throws if the sources have type errors.
 *
 * @param options.areChecked whether the caller has checked the types, which takes most of the time
 */
export function emitDeclarations(names, { areChecked = false } = {}) {
  const config = join(root, 'node_modules', '.cache', `tsconfig.types.${process.pid}.json`);
  rmSync(emitted, { recursive: true, force: true });
  mkdirSync(dirname(config), { recursive: true });
  const include = names.flatMap((name) =>
    ['index', 'browser', 'library', 'plane/presets/*', 'gen/types/*/*'].map((path) =>
      join(root, 'packages', name, 'src', `${path}.ts`),
    ),
  );
  const extended = join(root, 'tsconfig.types.json');
  const compilerOptions = { outDir: emitted, paths: sourcePaths() };
  writeFileSync(config, JSON.stringify({ extends: extended, compilerOptions, include }));
  try {
    const tsc = join(root, 'node_modules', 'typescript-native', 'bin', 'tsc');
    const args = ['-p', config, ...(areChecked ? ['--noCheck'] : [])];
    const { status, stdout } = spawnSync(process.execPath, [tsc, ...args], { encoding: 'utf8' });
    if (status !== 0) throw new Error(`no declarations:\n${stdout}`);
  } finally {
    rmSync(config);
  }
}

/**
 * The sources behind the names by which packages import each other. The compiler takes what it
 * reaches through links in `node_modules` for foreign, and emits no declarations of it.
 */
function sourcePaths() {
  const paths = {};
  for (const name of readdirSync(join(root, 'packages'))) {
    const folder = join(root, 'packages', name);
    const { exports = {} } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    for (const [entry, { source }] of Object.entries(exports)) {
      if (source !== undefined) {
        paths[`@wheelhouse/${name}${entry.slice(1)}`] = [join(folder, source)];
      }
    }
  }
  return paths;
}

/** Removes the emitted declarations. */
export const discardEmitted = () => rmSync(emitted, { recursive: true, force: true });

const outside = (text) => text.replace(/\.ts$/, '.js');

/** Copies the declarations of a package into its `dist/`. */
export function copyDeclarations(name) {
  const [from, to] = [join(emitted, name, 'src'), join(root, 'packages', name, 'dist')];
  const copy = (folder) => {
    for (const item of readdirSync(join(from, folder), { withFileTypes: true })) {
      const path = join(folder, item.name);
      if (item.isDirectory()) copy(path);
      else if (path.endsWith('.d.ts')) {
        const text = readFileSync(join(from, path), 'utf8');
        mkdirSync(dirname(join(to, path)), { recursive: true });
        writeFileSync(join(to, path), text.replace(specifier, outside));
      }
    }
  };
  copy('.');
}

/** The file and the name behind each name that a package's index exports. */
const indexes = new Map();
function indexOf(name) {
  if (!indexes.has(name)) {
    const text = readFileSync(join(emitted, name, 'src', 'index.d.ts'), 'utf8');
    const found = new Map();
    for (const [, names, file] of text.matchAll(entry)) {
      for (const exported of names.split(',').map((part) => part.trim().replace(/^type /, ''))) {
        if (exported === '') continue;
        const [inside, public_ = inside] = exported.split(' as ');
        found.set(public_, { inside, file: join(name, 'src', declared(file)) });
      }
    }
    indexes.set(name, found);
  }
  return indexes.get(name);
}

const declared = (file) => file.replace(/\.ts$/, '.d.ts');

/**
 * Writes the declarations that modules of the server need into `outdir/types`, and a file for each
 * entry that exports its module's names. Imports of other packages become imports of files.
 *
 * @param entries file names by the path of a module in `packages/server/src`, without extension
 */
export function bundleDeclarations(outdir, entries) {
  const pending = Object.keys(entries).map((path) => join('server', 'src', `${path}.d.ts`));
  const done = new Set();
  for (let path = pending.pop(); path !== undefined; path = pending.pop()) {
    if (done.has(path)) continue;
    done.add(path);
    const link = (target) => {
      pending.push(target);
      const to = relative(dirname(path), target).replace(/\.d\.ts$/, '.js');
      return to.startsWith('.') ? to : `./${to}`;
    };
    const text = readFileSync(join(emitted, path), 'utf8')
      .replace(named, (_, keyword, type = '', names, name) =>
        names
          .split(',')
          .map((part) => part.trim())
          .filter((part) => part !== '')
          .map((part) => {
            const isType = type !== '' || part.startsWith('type ');
            const [public_, local = public_] = part.replace(/^type /, '').split(' as ');
            const at = indexOf(name).get(public_);
            if (at === undefined) throw new Error(`@wheelhouse/${name} exports no ${public_}`);
            const what = at.inside === local ? local : `${at.inside} as ${local}`;
            return `${keyword} ${isType ? 'type ' : ''}{ ${what} } from '${link(at.file)}';`;
          })
          .join('\n'),
      )
      .replace(specifier, (target) => {
        if (!/^\.\.?\/.*\.ts$/.test(target)) return target;
        return link(join(dirname(path), declared(target)));
      });
    const to = join(outdir, 'types', path);
    mkdirSync(dirname(to), { recursive: true });
    writeFileSync(to, text);
  }
  for (const [path, file] of Object.entries(entries)) {
    const from = `./types/server/src/${path}.js`;
    writeFileSync(join(outdir, file), `export * from '${from}';\n`);
  }
}

/**
 * Copies the types of the built-in kinds to a folder, except those of versions that no current
 * release serves. They import only each other.
 */
export function copyKindTypes(to) {
  const from = join(root, 'packages', 'kinds', 'src', 'gen', 'types');
  for (const group of readdirSync(from)) {
    for (const file of readdirSync(join(from, group))) {
      const text = readFileSync(join(from, group, file), 'utf8');
      if (text.startsWith(endedMark)) continue;
      mkdirSync(join(to, group), { recursive: true });
      writeFileSync(join(to, group, declared(file)), text.replace(specifier, outside));
    }
  }
}

/** Copies the license and notices that each published folder of the repository must contain. */
export function copyLicense(to) {
  if (!existsSync(join(to, 'LICENSE'))) cpSync(join(root, 'LICENSE'), join(to, 'LICENSE'));
}

import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import ts from 'typescript';
import { describe, expect, test } from 'vitest';
import { filesUnder, root } from './repository.ts';

/** Which packages and server folders may import each other. */

/** Each package depends only on packages above it. */
const packages = [
  'machinery',
  'schema',
  'codec',
  'structured-merge',
  'cel',
  'http2',
  'store',
  'kinds',
  'client',
  'svcctl',
  'console',
  'server',
];

/** The server's folders; each may import from the lines above it and from its own line. */
const layers = [
  ['watchcache'],
  ['catalogue'],
  ['documents'],
  ['registry'],
  ['admission'],
  ['gates/authn'],
  ['gates/authz'],
  ['gates/audit'],
  ['gates/flowcontrol'],
  ['request'],
  ['endpoints', 'answer', 'observe'],
  ['serving'],
  ['controllers'],
  ['files', 'flags'],
  ['webhooks'],
  ['aggregation'],
  ['pipeline.ts', 'pipeline.test.ts'],
  ['compose'],
  ['plane'],
  ['library.ts', 'main.ts', 'backup-command.ts', 'bundle.ts'],
  ['index.ts', 'testing.ts'],
];

/**
 * Additional restrictions: the serving code must not know kinds, and clients must not know the
 * server.
 */
const forbidden: Readonly<Record<string, readonly string[]>> = {
  client: ['schema', 'structured-merge', 'cel', 'http2', 'store', 'kinds'],
  console: ['schema', 'structured-merge', 'cel', 'http2', 'store', 'kinds', 'client', 'svcctl'],
  svcctl: ['cel', 'http2', 'store'],
  http2: ['schema', 'codec', 'structured-merge', 'cel'],
  store: ['structured-merge', 'cel'],
};

interface Import {
  /** `packages/store/src/contract.ts` */
  readonly from: string;
  readonly specifier: string;
}

const isTest = (path: string): boolean =>
  /(\.(test|fuzz|bench|fixture)|suite|testing)\.ts$/.test(path) || !path.startsWith('packages/');

function importsOf(path: string): Import[] {
  const text = readFileSync(join(root, path), 'utf8');
  const { importedFiles } = ts.preProcessFile(text);
  return importedFiles.map(({ fileName }) => ({ from: path, specifier: fileName }));
}

const imports = ['packages', 'test', 'bench']
  .flatMap((folder) => filesUnder(folder))
  .flatMap(importsOf);
const ofCode = imports.filter(({ from }) => !isTest(from));

const packageOf = (path: string): string | undefined => /^packages\/([^/]+)\//.exec(path)?.[1];

/** The file that a relative import names; undefined for a package. */
function fileOf({ from, specifier }: Import): string | undefined {
  return specifier.startsWith('.') ? join(dirname(from), specifier) : undefined;
}

/** `cel` of `@wheelhouse/cel/testing`. */
const workspaceOf = ({ specifier }: Import): string | undefined =>
  /^@wheelhouse\/([^/]+)/.exec(specifier)?.[1];

const shown = ({ from, specifier }: Import): string => `${from} -> ${specifier}`;

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, unknown>>;
}

const manifestOf = (name: string): Manifest =>
  JSON.parse(readFileSync(join(root, 'packages', name, 'package.json'), 'utf8')) as Manifest;

describe('packages', () => {
  test('every folder of packages/ is in the table', () => {
    expect(readdirSync(join(root, 'packages')).sort()).toEqual([...packages].sort());
  });

  test('a package imports only packages above it', () => {
    const wrong = ofCode.filter((imported) => {
      const [from = '', to] = [packageOf(imported.from), workspaceOf(imported)];
      if (to === undefined) return false;
      if (forbidden[from]?.includes(to) === true) return true;
      return packages.indexOf(to) >= packages.indexOf(from);
    });
    expect(wrong.map(shown)).toEqual([]);
  });

  test('a package is imported only through its entry points', () => {
    const wrong = imports.filter((imported) => {
      const [from, to] = [packageOf(imported.from), fileOf(imported)];
      const isShared = isTest(imported.from) && to?.startsWith('test/') === true;
      if (to !== undefined) return packageOf(to) !== from && !isShared;
      const name = workspaceOf(imported);
      if (name === undefined) return false;
      const entry = imported.specifier
        .replace(`@wheelhouse/${name}`, '.')
        .replace(/^\.\/types\/\w+\/\w+$/, './types/*');
      return !packages.includes(name) || manifestOf(name).exports[entry] === undefined;
    });
    expect(wrong.map(shown)).toEqual([]);
  });

  test('test helpers are imported only by tests', () => {
    const wrong = ofCode.filter(({ specifier }) => specifier.endsWith('/testing'));
    expect(wrong.map(shown)).toEqual([]);
  });

  test.each(packages)('%s declares exactly the dependencies it imports', (name) => {
    const used = ofCode
      .filter(({ from }) => packageOf(from) === name)
      .filter(
        (imported) => fileOf(imported) === undefined && !imported.specifier.startsWith('node:'),
      )
      .map(({ specifier }) => /^(@[^/]+\/)?[^/]+/.exec(specifier)?.[0] ?? specifier);
    const { version, ...manifest } = manifestOf(name);
    const { dependencies = {}, peerDependencies = {}, devDependencies = {} } = manifest;
    // The console's dependencies are bundled rather than installed.
    const bundled = name === 'console' ? devDependencies : {};
    const all = { ...dependencies, ...peerDependencies, ...bundled };
    const declared = Object.keys(all).filter((dependency) => !loadedByHand.has(dependency));
    expect(declared.sort()).toEqual([...new Set(used)].sort());
    for (const [dependency, wanted] of Object.entries(dependencies)) {
      if (dependency.startsWith('@wheelhouse/')) expect(wanted).toBe(version);
    }
  });

  test('no files import each other in a cycle', () => {
    const edges = new Map<string, string[]>();
    for (const imported of ofCode) {
      const to = fileOf(imported);
      if (to !== undefined) edges.set(imported.from, [...(edges.get(imported.from) ?? []), to]);
    }
    expect(cyclesOf(edges)).toEqual([]);
  });
});

/** Native add-ons, loaded by `require`. */
const loadedByHand = new Set(['fs-native-extensions']);

describe("the server's folders", () => {
  const folderOf = (path: string): string => {
    const [first = '', second = ''] = path.replace('packages/server/src/', '').split('/');
    return first === 'gates' ? `gates/${second}` : first;
  };
  const layerOf = (folder: string): number =>
    layers.findIndex((folders) => folders.includes(folder));

  test('every folder is in the table', () => {
    const folders = new Set(filesUnder('packages/server/src').map(folderOf));
    expect([...folders].filter((folder) => layerOf(folder) === -1)).toEqual([]);
  });

  test('only authorization, compound operations, and internal writers create permits', () => {
    const makers = (pattern: RegExp) =>
      filesUnder('packages/server/src')
        .filter((path) => !isTest(path) && path !== 'packages/server/src/registry/permit.ts')
        .filter((path) => pattern.test(readFileSync(join(root, path), 'utf8')))
        .map((path) => path.replace('packages/server/src/', ''));
    expect(makers(/\bgrantPermit\(/)).toEqual(['gates/authz/authorization.ts']);
    expect(makers(/\binternalPermit\(/)).toEqual(['controllers/tools.ts', 'registry/registry.ts']);
    expect(makers(/\bconsequentPermit\(/)).toEqual([
      'endpoints/subresources/binding.ts',
      'endpoints/subresources/eviction.ts',
      'endpoints/subresources/rollback.ts',
    ]);
  });

  test('a folder imports only folders above it', () => {
    const wrong = ofCode
      .filter(({ from }) => packageOf(from) === 'server')
      .filter((imported) => {
        const to = fileOf(imported);
        return to !== undefined && layerOf(folderOf(to)) > layerOf(folderOf(imported.from));
      });
    expect(wrong.map(shown)).toEqual([]);
  });
});

/** One line for each edge that closes a cycle, found depth first. */
function cyclesOf(edges: ReadonlyMap<string, readonly string[]>): string[] {
  const state = new Map<string, 'open' | 'done'>();
  const cycles: string[] = [];
  const visit = (path: string): void => {
    state.set(path, 'open');
    for (const next of edges.get(path) ?? []) {
      if (state.get(next) === 'open') cycles.push(`${path} -> ${next}`);
      else if (!state.has(next)) visit(next);
    }
    state.set(path, 'done');
  };
  for (const path of [...edges.keys()].sort()) if (!state.has(path)) visit(path);
  return cycles;
}

import { execFile } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { buildPrograms, type Programs } from '../support/program.ts';

/** The package that users install, as npm packs it. */

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const folder = mkdtempSync(join(tmpdir(), 'wheelhouse-published-'));
const execute = promisify(execFile);
const buildScript = new URL('../../scripts/build.mjs', import.meta.url).href;
/** Maximum size of the installed package in bytes. */
const unpackedBytesMax = 7.5e6;

let programs: Programs;
let tarball: Buffer;
let packed: { readonly files: readonly { readonly path: string }[]; readonly unpackedSize: number };

beforeAll(async () => {
  programs = await buildPrograms();
  const source = join(folder, 'source');
  cpSync(dirname(programs.console), join(source, 'dist'), { recursive: true });
  for (const name of ['bin', 'package.json', 'README.md', 'CHANGELOG.md', 'LICENSE']) {
    cpSync(join(root, name), join(source, name), { recursive: true });
  }
  // Stands for the single executable, which `npm run executable` writes beside the programs.
  writeFileSync(join(source, 'dist', 'wheelhouse'), 'executable');
  // `npm test` has already checked the types of the sources.
  const declare = `import { addDeclarations } from ${JSON.stringify(buildScript)};
addDeclarations(${JSON.stringify(join(source, 'dist'))}, { areChecked: true });`;
  await execute(process.execPath, ['--input-type=module', '--eval', declare]);
  const pack = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder];
  const { stdout } = await execute('npm', pack, { cwd: source });
  const [result] = JSON.parse(stdout);
  packed = result;
  tarball = readFileSync(join(folder, result.filename));
}, 240_000);
afterAll(() => {
  programs?.remove();
  rmSync(folder, { recursive: true, force: true });
});

test('it has its README and license, no tests, no source maps, and a bounded size', () => {
  const paths = packed.files.map(({ path }) => path);
  expect(paths).toEqual(expect.arrayContaining(['LICENSE', 'README.md', 'dist/library.d.ts']));
  expect(paths.filter((path) => /\.test\.|\.map$|\.cache$|(?<!\.d)\.ts$/.test(path))).toEqual([]);
  expect(paths).not.toContain('dist/wheelhouse');
  expect(packed.unpackedSize).toBeLessThanOrEqual(unpackedBytesMax);
});

test('publint finds no fault', async () => {
  const data = Uint8Array.from(tarball).buffer;
  const { messages, pkg } = await publint({ pack: { tarball: data }, strict: true });
  expect(messages.map((message) => formatMessage(message, pkg))).toEqual([]);
});

test('its types resolve in every mode that supports ES modules', async () => {
  const result = await checkPackage(createPackageFromTarballData(new Uint8Array(tarball)));
  if (!result.types) throw new Error('the package has no types');
  // The package contains only ES modules: CommonJS loads it with `import()`, which these checks
  // report, and the resolution of Node before 12 does not know `exports`.
  const expected = new Set(['CJSResolvesToESM', 'NoResolution']);
  const problems = result.problems.filter(
    (problem) =>
      !expected.has(problem.kind) ||
      (problem.kind === 'NoResolution' && problem.resolutionKind !== 'node10'),
  );
  expect(problems).toEqual([]);
});

/** Unpacks the package as an installation would, beside other packages that a project needs. */
async function install(project: string, packages: readonly string[]): Promise<void> {
  const installed = join(project, 'node_modules', 'wheelhouse');
  mkdirSync(installed, { recursive: true });
  const archive = join(folder, 'package.tgz');
  writeFileSync(archive, tarball);
  await execute('tar', ['xf', archive, '--strip-components=1', '-C', installed]);
  for (const name of packages) {
    const target = join(project, 'node_modules', name);
    mkdirSync(dirname(target), { recursive: true });
    symlinkSync(join(root, 'node_modules', name), target);
  }
}

/** Compiles a project, by default with the faster compiler. Returns its messages. */
async function compile(
  project: string,
  args: readonly string[],
  compiler: 'typescript' | 'typescript-native' = 'typescript-native',
): Promise<string> {
  const tsc = join(root, 'node_modules', compiler, 'bin', 'tsc');
  const compiling = execute(process.execPath, [tsc, ...args], { cwd: project });
  const { stdout } = await compiling.catch((error: { stdout: string }) => error);
  return stdout;
}

test('the TypeScript example compiles with it', { timeout: 120_000 }, async () => {
  const examples = join(folder, 'examples');
  cpSync(join(root, 'examples'), examples, { recursive: true });
  const project = join(examples, 'typescript');
  await install(project, ['@kubernetes/client-node', '@types/node']);
  expect(await compile(project, [])).toBe('');
});

test('a strict project accepts the declarations of every entry', { timeout: 120_000 }, async () => {
  const project = join(folder, 'project');
  await install(project, ['@types/node', 'undici-types']);
  writeFileSync(join(project, 'package.json'), JSON.stringify({ type: 'module' }));
  const file = `import { type ControlPlane, startControlPlane } from 'wheelhouse';
import * as jest from 'wheelhouse/jest';
import * as nodeTest from 'wheelhouse/node-test';
export const open = async (): Promise<string> => {
  const plane: ControlPlane = await startControlPlane({ flags: ['--dialect=kubernetes'] });
  await using closing = plane;
  return closing.url;
};
export const presets = [jest, nodeTest];
// @ts-expect-error: flags are a list
startControlPlane({ flags: 1 });
`;
  writeFileSync(join(project, 'consumer.ts'), file);
  const flags = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2022'];
  const args = [...flags, '--lib', 'es2023,esnext.disposable', '--types', 'node', 'consumer.ts'];
  for (const compiler of ['typescript', 'typescript-native'] as const) {
    expect(await compile(project, args, compiler), compiler).toBe('');
  }
});

test('a program can import the types of built-in kinds', { timeout: 120_000 }, async () => {
  const project = join(folder, 'kinds');
  await install(project, ['@types/node', 'undici-types']);
  writeFileSync(join(project, 'package.json'), JSON.stringify({ type: 'module' }));
  const file = `import type { PlaneClient } from 'wheelhouse';
import type { Deployment, DeploymentList } from 'wheelhouse/types/apps/v1';
import type { CustomResourceDefinition } from 'wheelhouse/types/apiextensions/v1';
import type { Container } from 'wheelhouse/types/core/v1';
import type { IntOrString, Quantity, Time } from 'wheelhouse/types/meta/v1';

const main: Container = { name: 'main', resources: { limits: { cpu: '500m' } } };
const labels = { app: 'boat' };
export const boat: Deployment = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'boat' },
  spec: {
    selector: { matchLabels: labels },
    template: {
      metadata: { labels },
      spec: { containers: [main], terminationGracePeriodSeconds: 5 },
    },
  },
};
export async function ready(client: PlaneClient): Promise<number> {
  const created = await client.create<Deployment>(boat);
  const [first] = await client.list<Deployment>({ apiVersion: 'apps/v1', kind: 'Deployment' });
  const read = await client.get<Deployment>({ ...created, name: 'boat' });
  await client.apply(boat, created);
  const { items } = await client.request<DeploymentList>({ path: '/apis/apps/v1/deployments' });
  return (read.status?.readyReplicas ?? 0) + (first?.spec?.replicas ?? 0) + items.length;
}
export type Named = [IntOrString, Quantity, Time, CustomResourceDefinition['spec']['scope']];
// @ts-expect-error: a Deployment has no such field
export const wrong: Deployment = { ...boat, spec: { ...boat.spec, replica: 1 } };
// @ts-expect-error: seconds are a number
boat.spec!.template.spec!.terminationGracePeriodSeconds = '5';
`;
  writeFileSync(join(project, 'boat.ts'), file);
  const flags = ['--noEmit', '--strict', '--target', 'es2022', '--types', 'node', 'boat.ts'];
  const lib = ['--lib', 'es2023,esnext.disposable'];
  for (const ways of [
    ['--module', 'nodenext'],
    ['--module', 'esnext', '--moduleResolution', 'bundler'],
  ]) {
    expect(await compile(project, [...flags, ...lib, ...ways])).toBe('');
  }
});

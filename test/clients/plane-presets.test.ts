import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { useControlPlane } from '@wheelhouse/server/jest';
import { buildSync } from 'esbuild';
import { afterAll, expect, test, vi } from 'vitest';
import { buildPrograms } from '../support/program.ts';

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, '..', '..');
const cache = join(root, 'node_modules', '.cache');
mkdirSync(cache, { recursive: true });
const folder = mkdtempSync(join(cache, 'presets-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const patienceMs = 120_000;

/** Runs a runner of tests to its end, with the environment of none. */
function run(
  args: readonly string[],
  cwd = root,
): Promise<{ code: number | null; output: string }> {
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(VITEST|NODE_TEST|TEST$)/.test(name)),
  );
  const child = spawn(process.execPath, args, { cwd, env, timeout: patienceMs });
  let output = '';
  const collect = (bytes: Buffer) => {
    output += bytes.toString();
  };
  child.stdout.on('data', collect);
  child.stderr.on('data', collect);
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, output })));
}

/** What a failed test is to print: its writes, and the Event about what it wrote. */
function expectReport(output: string): void {
  expect(output).toMatch(/system:admin create ConfigMap test-\w+\/broken 201/);
  expect(output).toMatch(/system:admin create ConfigMap test-\w+\/broken 409/);
  expect(output).toMatch(/Warning TooSmall ConfigMap test-\w+\/broken: it does not fit/);
  expect(output).not.toContain('ConfigMap test-first');
}

test('PLANE-7: the vitest preset', { timeout: patienceMs }, async () => {
  const config = join(folder, 'vitest.config.mjs');
  const conditions = ['source', 'module', 'node', 'development|production'];
  const settings = {
    root,
    resolve: { conditions },
    ssr: { resolve: { conditions, externalConditions: ['source'] } },
    test: {
      include: ['test/clients/presets/vitest.fixture.ts'],
      pool: 'forks',
      testTimeout: 30000,
    },
  };
  writeFileSync(config, `export default ${JSON.stringify(settings)};\n`);
  const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs');
  const { code, output } = await run([vitest, 'run', '--config', config, '--no-color']);
  expect(output).toMatch(/Tests\s+1 failed \| 4 passed/);
  expectReport(output);
  expect(code).toBe(1);
});

test('PLANE-7: the node:test preset', { timeout: patienceMs }, async () => {
  const fixture = join(here, 'presets', 'node-test.fixture.ts');
  const { code, output } = await run([
    ...['--conditions=source', '--import=tsx', '--test-reporter=tap', '--test'],
    fixture,
  ]);
  expect(output).toMatch(/# pass 4\n# fail 1\n/);
  expectReport(output);
  expect(code).toBe(1);
});

test('PLANE-7: the jest preset of the installed package', { timeout: patienceMs }, async () => {
  const programs = await buildPrograms();
  // jest ignores what is in node_modules, where the programs are.
  const project = mkdtempSync(join(tmpdir(), 'wheelhouse-jest-'));
  try {
    mkdirSync(join(project, 'node_modules'));
    const installed = dirname(dirname(programs.wheelhouse));
    symlinkSync(installed, join(project, 'node_modules', 'wheelhouse'));
    buildSync({
      entryPoints: [join(here, 'presets', 'jest.fixture.ts')],
      outfile: join(project, 'presets.test.mjs'),
      bundle: true,
      format: 'esm',
      platform: 'node',
      alias: { '@wheelhouse/server/jest': 'wheelhouse/jest' },
      external: ['wheelhouse'],
    });
    const config = { testMatch: ['**/*.test.mjs'], transform: {} };
    writeFileSync(join(project, 'jest.config.json'), JSON.stringify(config));
    const jest = join(root, 'node_modules', 'jest', 'bin', 'jest.js');
    const args = ['--experimental-vm-modules', jest, '--ci', '--no-color', '--no-cache'];
    const { code, output } = await run(args, project);
    expect(output).toMatch(/Tests:\s+1 failed, 4 passed/);
    expectReport(output);
    expect(code).toBe(1);
  } finally {
    rmSync(project, { recursive: true, force: true });
    programs.remove();
  }
});

test('PLANE-7: the jest preset with jest’s hooks and state', async () => {
  const hooks = new Map<string, () => Promise<void>>();
  for (const name of ['beforeAll', 'afterAll', 'beforeEach', 'afterEach']) {
    vi.stubGlobal(name, (hook: () => Promise<void>) => hooks.set(name, hook));
  }
  const state = { currentlyRunningTest: { errors: [] as unknown[] } };
  const symbol = Symbol('JEST_STATE_SYMBOL');
  Object.defineProperty(globalThis, symbol, { value: state, configurable: true });
  const printed = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  try {
    const fixture = useControlPlane({ isolation: 'snapshot' });
    const kept = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'own' } };
    const maps = { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'default' };
    expect(() => fixture.plane).toThrow('during tests only');
    await hooks.get('beforeAll')?.();
    for (const errors of [[], ['expected'], []]) {
      state.currentlyRunningTest.errors = errors;
      await hooks.get('beforeEach')?.();
      expect(fixture.namespace).toBe('default');
      const before = await fixture.plane.client.list(maps);
      expect(before.map(({ metadata }) => metadata?.name)).not.toContain('own');
      await fixture.plane.client.create(kept);
      await hooks.get('afterEach')?.();
    }
    await hooks.get('afterAll')?.();
    const texts = printed.mock.calls.map(([text]) => String(text));
    const reports = texts.filter((text) => text.includes('create ConfigMap default/own 201'));
    expect(reports).toHaveLength(1);
  } finally {
    printed.mockRestore();
    vi.unstubAllGlobals();
    Reflect.deleteProperty(globalThis, symbol);
  }
});

test('PLANE-7: the jest preset refuses to run outside jest', () => {
  vi.stubGlobal('beforeAll', undefined);
  expect(() => useControlPlane()).toThrow('for test files that jest runs');
  vi.unstubAllGlobals();
});

test('PLANE-7: a preset refuses an unknown isolation', () => {
  for (const name of ['beforeAll', 'afterAll', 'beforeEach', 'afterEach']) {
    vi.stubGlobal(name, () => undefined);
  }
  const options: object = { isolation: 'snapshots' };
  expect(() => useControlPlane(options)).toThrow('"snapshots" is not one of namespace, snapshot');
  vi.unstubAllGlobals();
});

import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { useControlPlane } from '@wheelhouse/server/jest';
import { buildSync } from 'esbuild';
import { expect, test, vi } from 'vitest';
import { untilEnd } from '../support/cleanup.ts';
import { buildPrograms } from '../support/program.ts';

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, '..', '..');
const programs = await untilEnd(buildPrograms());

const timeoutMs = 120_000;

/** Runs a test runner to its end, without the environment of this one. */
function run(
  args: readonly string[],
  cwd: string,
): Promise<{ code: number | null; output: string }> {
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(VITEST|NODE_TEST|TEST$)/.test(name)),
  );
  const child = spawn(process.execPath, args, { cwd, env, timeout: timeoutMs });
  let output = '';
  const collect = (bytes: Buffer) => {
    output += bytes.toString();
  };
  child.stdout.on('data', collect);
  child.stderr.on('data', collect);
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, output })));
}

/** A failed test must print its writes, and the Event about the written object. */
function expectReport(output: string): void {
  expect(output).toMatch(/system:admin create ConfigMap test-\w+\/broken 201/);
  expect(output).toMatch(/system:admin create ConfigMap test-\w+\/broken 409/);
  expect(output).toMatch(/Warning TooSmall ConfigMap test-\w+\/broken: it does not fit/);
  expect(output).not.toContain('ConfigMap test-first');
}

/**
 * Runs a fixture in a project in which the package is installed, as users do. The test files of
 * runners are outside node_modules, which contains the package.
 */
async function runInProject(
  fixture: 'vitest' | 'node-test' | 'jest',
  { file, args }: { file: string; args: (project: string) => readonly string[] },
): Promise<{ code: number | null; output: string }> {
  const project = mkdtempSync(join(tmpdir(), `wheelhouse-${fixture}-`));
  try {
    mkdirSync(join(project, 'node_modules'));
    const installed = dirname(dirname(programs.wheelhouse));
    symlinkSync(installed, join(project, 'node_modules', 'wheelhouse'));
    symlinkSync(join(root, 'node_modules', 'vitest'), join(project, 'node_modules', 'vitest'));
    buildSync({
      entryPoints: [join(here, 'presets', `${fixture}.fixture.ts`)],
      outfile: join(project, file),
      bundle: true,
      format: 'esm',
      platform: 'node',
      alias: { [`@wheelhouse/server/${fixture}`]: `wheelhouse/${fixture}` },
      external: ['wheelhouse', 'vitest'],
    });
    return await run(args(project), project);
  } finally {
    rmSync(project, { recursive: true, force: true });
  }
}

test('PLANE-7: the vitest preset works in the installed package', {
  timeout: timeoutMs,
}, async () => {
  const { code, output } = await runInProject('vitest', {
    file: 'presets.test.mjs',
    args: () => [
      ...[join(root, 'node_modules', 'vitest', 'vitest.mjs'), 'run', '--no-color'],
      ...['--pool=forks', '--testTimeout=30000'],
    ],
  });
  expect(output).toMatch(/Tests\s+1 failed \| 4 passed/);
  expectReport(output);
  expect(code).toBe(1);
});

test('PLANE-7: the node:test preset works in the installed package', {
  timeout: timeoutMs,
}, async () => {
  const file = 'presets.test.mjs';
  const { code, output } = await runInProject('node-test', {
    file,
    args: () => ['--test-reporter=tap', '--test', file],
  });
  expect(output).toMatch(/# pass 4\n# fail 1\n/);
  expectReport(output);
  expect(code).toBe(1);
});

test('PLANE-7: the jest preset works in the installed package', {
  timeout: timeoutMs,
}, async () => {
  const jest = join(root, 'node_modules', 'jest', 'bin', 'jest.js');
  const { code, output } = await runInProject('jest', {
    file: 'presets.test.mjs',
    args: (project) => {
      const config = { testMatch: ['**/*.test.mjs'], transform: {} };
      writeFileSync(join(project, 'jest.config.json'), JSON.stringify(config));
      return ['--experimental-vm-modules', jest, '--ci', '--no-color', '--no-cache'];
    },
  });
  expect(output).toMatch(/Tests:\s+1 failed, 4 passed/);
  expectReport(output);
  expect(code).toBe(1);
});

test('PLANE-7: the jest preset uses jest’s hooks and state', async () => {
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

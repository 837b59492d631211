import { spawn, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { buildPrograms, type Programs, run as runProgram } from '../support/program.ts';

/** Runs each example as its reader would, with the programs of this tree. */

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
// Inside node_modules, where the packages of the TypeScript example are found.
const cache = join(root, 'node_modules', '.cache');
mkdirSync(cache, { recursive: true });
const folder = mkdtempSync(join(cache, 'examples-'));
const timeoutMs = 300_000;
let programs: Programs;

beforeAll(async () => {
  cpSync(join(root, 'examples'), folder, { recursive: true });
  programs = await buildPrograms();
}, 120_000);
afterAll(() => {
  programs?.remove();
  rmSync(folder, { recursive: true, force: true });
});

/** Runs a command to its end in the folder of an example. */
function run(
  example: string,
  [program, ...args]: readonly [string, ...string[]],
  variables: Readonly<Record<string, string>> = {},
): Promise<{ code: number | null; output: string }> {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !/^(VITEST|NODE_|TEST$)/.test(name),
  );
  const env = { ...Object.fromEntries(inherited), ...variables };
  const child = spawn(program, args, { cwd: join(folder, example), env, timeout: timeoutMs });
  let output = '';
  const collect = (bytes: Buffer) => {
    output += bytes.toString();
  };
  child.stdout.on('data', collect);
  child.stderr.on('data', collect);
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, output }));
  });
}

const succeeds = ([program, ...args]: readonly [string, ...string[]]): boolean =>
  spawnSync(program, args, { stdio: 'ignore' }).status === 0;

test('CLIENT-3: the TypeScript example passes', { timeout: timeoutMs }, async () => {
  const modules = join(folder, 'typescript', 'node_modules');
  mkdirSync(modules);
  symlinkSync(dirname(dirname(programs.wheelhouse)), join(modules, 'wheelhouse'));
  const tap = ['--test-reporter=tap', '--test', 'controller.test.ts'];
  const { code, output } = await run('typescript', [process.execPath, '--import', 'tsx', ...tap]);
  expect(output).toMatch(/# pass 4\n# fail 0\n/);
  expect(code).toBe(0);
});

test('CLIENT-2: the Python example passes', { timeout: timeoutMs }, async ({ skip }) => {
  const python = ['python3', '/usr/bin/python3'].find((program) =>
    succeeds([program, '-c', 'import kubernetes']),
  );
  if (python === undefined) return skip('no python3 with the kubernetes package');
  const variables = { WHEELHOUSE: `'${process.execPath}' '${programs.wheelhouse}'` };
  const { code, output } = await run('python', [python, 'test_boats.py'], variables);
  expect(output).toMatch(/Ran 3 tests in [\d.]+s\s+OK/);
  expect(code).toBe(0);
});

const programVariables = () => ({ WHEELHOUSE: `${process.execPath} ${programs.wheelhouse}` });

test('PLANE-1: the Rust helper passes its tests', { timeout: timeoutMs }, async ({ skip }) => {
  if (!succeeds(['rustc', '--version'])) return skip('no rustc');
  const compile = ['rustc', '--edition', '2021', '--test', 'plane.rs', '-o', 'plane'] as const;
  expect(await run('rust', [...compile])).toEqual({ code: 0, output: expect.any(String) });
  const { code, output } = await run('rust', [join(folder, 'rust', 'plane')], programVariables());
  expect(output).toMatch(/test result: ok\. 1 passed; 0 failed/);
  expect(code).toBe(0);
  const broken = await run('rust', [join(folder, 'rust', 'plane')], { WHEELHOUSE: 'false' });
  expect(broken.output).toContain('the server did not start');
});

test('PLANE-1: the Java helper passes its tests', { timeout: timeoutMs }, async ({ skip }) => {
  if (!succeeds(['javac', '-version'])) return skip('no JDK');
  const { code, output } = await run('java', ['java', 'Plane.java'], programVariables());
  expect(output).toContain('"server": "https://127.0.0.1:');
  expect(output).not.toContain('Exception');
  expect(code).toBe(0);
  const broken = await run('java', ['java', 'Plane.java'], { WHEELHOUSE: 'false' });
  expect(broken.output).toContain('the server did not start');
});

test('PLANE-1: the Go example passes', { timeout: 2 * timeoutMs }, async ({ skip }) => {
  const offline = { GOFLAGS: '-mod=mod', GOPROXY: 'off', GOSUMDB: 'off', GOTOOLCHAIN: 'local' };
  if (!succeeds(['go', 'version'])) return skip('no go');
  const vetted = await run('go', ['go', 'vet', './...'], offline);
  if (/module lookup disabled|cannot find module/.test(vetted.output)) {
    return skip('the modules are not in the module cache');
  }
  expect(vetted).toEqual({ code: 0, output: '' });
  const assets = join(folder, 'assets');
  expect((await runProgram(programs.wheelhouse, ['envtest-assets', assets])).code).toBe(0);
  const variables = { ...offline, KUBEBUILDER_ASSETS: assets };
  const { code, output } = await run('go', ['go', 'test', '-count=1', './...'], variables);
  expect(output).toMatch(/^ok\s+example\.com\/harbor/m);
  expect(code).toBe(0);
});

// `npm test`: checks style and types, builds the programs, and runs all tests. Prints failures,
// ends with one line of counts, and leaves vitest's own report in
// node_modules/.cache/test-results.json. Arguments go to vitest.
import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stop } from 'esbuild';
import { build } from './build.mjs';
import { readResults } from './test-results.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const report = join(root, 'node_modules', '.cache', 'test-results.json');
const bin = (name) => join(root, 'node_modules', '.bin', name);
/** TypeScript's native compiler, which takes a quarter of the time of the one with an API. */
const tsc = [join(root, 'node_modules', 'typescript-native', 'bin', 'tsc'), '--noEmit', '-p'];

/** Runs a program; resolves to whether it succeeds. */
function step(name, command, args, env = process.env) {
  const began = performance.now();
  const child = spawn(command, args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'], env });
  return new Promise((resolve) => {
    const end = (status) => {
      const seconds = ((performance.now() - began) / 1000).toFixed(1);
      console.log(`${status === 0 ? 'passed' : 'FAILED'}: ${name} (${seconds} s)`);
      resolve(status === 0);
    };
    child.on('error', (error) => {
      console.error(String(error));
      end(1);
    });
    child.on('close', end);
  });
}

mkdirSync(dirname(report), { recursive: true });
rmSync(report, { force: true });
// Browser code has the types of browsers, which differ from Node's.
const browser = join('packages', 'console', 'src', 'browser');
// These run beside the build and the first tests, which leave a core idle while they load sources.
const checking = [
  step('style (biome)', bin('biome'), ['check', '--diagnostic-level=error', '.']),
  step('types (tsc)', process.execPath, [...tsc, '.']),
  step("the console's types (tsc)", process.execPath, [...tsc, browser]),
];
// Programs that tests start; otherwise each test file would build them.
const programs = mkdtempSync(join(dirname(report), 'programs-'));
process.on('exit', () => rmSync(programs, { recursive: true, force: true }));
await build({ finished: join(programs, 'dist') });
// Its service would keep hundreds of megabytes until the tests end.
await stop();
for (const name of ['bin', 'package.json']) {
  cpSync(join(root, name), join(programs, name), { recursive: true });
}
const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
const tests = await step(
  'tests (vitest)',
  bin('vitest'),
  ['run', ...reporters, ...process.argv.slice(2)],
  { ...process.env, WHEELHOUSE_TEST_PROGRAMS: programs },
);
const checks = await Promise.all(checking);
const { passed, failures, skipped } = readResults(report, { root });
// Errors outside of tests fail the run too.
if (!tests && failures.length === 0) failures.push('vitest failed outside of the tests');
// Repeated at the end, where readers of a long log find them.
for (const failure of failures.slice(0, 20)) console.log(`FAILED: ${failure.split('\n', 1)[0]}`);
// Style and types are additional checks, each counted like a test.
const passedChecks = checks.filter(Boolean).length;
const failed = failures.length + checks.length - passedChecks;
console.log(`${passed + passedChecks} passed, ${failed} failed, ${skipped} skipped`);
process.exitCode = failed === 0 ? 0 : 1;

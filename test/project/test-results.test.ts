import { spawnSync } from 'node:child_process';
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';

/** `npm test` counts every failure, including those that vitest does not count as failed tests. */

interface Results {
  readonly passed: number;
  readonly failures: readonly string[];
  readonly skipped: number;
}

const root = fileURLToPath(new URL('../..', import.meta.url));
const { readResults } = (await import(
  new URL('../../scripts/test-results.mjs', import.meta.url).href
)) as { readResults(report: string, options: { readonly root: string }): Results };

/** Runs vitest on test files and returns its results. */
function runVitest(files: Readonly<Record<string, string>>): Results {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'wheelhouse-results-')));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text);
  const report = join(directory, 'report.json');
  const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs');
  // One process takes the files, as each process takes many in a run of all tests.
  const pool = ['--no-isolate', '--poolOptions.forks.singleFork'];
  const args = [vitest, 'run', '--globals', ...pool, '--reporter=json', `--outputFile=${report}`];
  spawnSync(process.execPath, args, { cwd: directory, encoding: 'utf8' });
  return readResults(report, { root: directory });
}

test('a failing hook, a file that does not load, and a failing test are failures', () => {
  const hook = (name: string) => `${name}(() => { throw new Error('${name} threw'); });`;
  const { passed, failures, skipped } = runVitest({
    'passes.test.js': `test('one', () => {}); test('two', () => {}); test.skip('three', () => {});`,
    'before.test.js': `${hook('beforeAll')} test('one', () => {}); test('two', () => {});`,
    'after.test.js': `${hook('afterAll')} test('one', () => {});`,
    'loads.test.js': `throw new Error('no module');`,
    'fails.test.js': `test('one', () => {}); test('two', () => { throw new Error('two threw'); });`,
  });
  expect(passed).toBe(4);
  expect(skipped).toBe(3);
  expect(failures.map((failure) => failure.split('\n', 1)[0]).sort()).toEqual([
    'after.test.js: afterAll threw',
    'before.test.js: beforeAll threw',
    'fails.test.js: two: Error: two threw',
    'loads.test.js: no module',
  ]);
});

test('a missing report is a failure', () => {
  const results = readResults(join(root, 'no-such-report.json'), { root });
  expect(results).toEqual({ passed: 0, failures: [expect.any(String)], skipped: 0 });
});

// Runs the tests of a Python library for a live cluster against both servers, with the controllers
// and played kubelets that they depend on, and compares the outcome of each test.
//
// PYTHON names the interpreter and PYTHON_SUITE the library's source folder; the argument names the
// library. Tests that need containers fail against both.
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { haveControllers, startControllers } from './controllers.mjs';
import { playNodes } from './played-nodes.mjs';
import { storedResult, writeResult } from './results.mjs';
import { call, eventually, onBoth, programPath } from './servers.mjs';

/** The pytest arguments and the folder of modules, below the source folder. */
const suites = {
  kopf: { args: ['--only-e2e', 'tests/e2e'], modules: '.' },
  kr8s: { args: ['-o', 'addopts=', '--timeout=30', 'kr8s/tests'], modules: '.' },
  lightkube: { args: ['e2e-tests'], modules: 'src' },
};

const python = programPath({ variable: 'PYTHON', name: 'python3' });
const kubectl = programPath({ variable: 'KUBECTL', name: 'kubectl' });
const source = process.env.PYTHON_SUITE;
const name = process.argv[2];
const suite = suites[name];

const attribute = (tag, wanted) => new RegExp(`\\b${wanted}="([^"]*)"`).exec(tag)?.[1] ?? '';

/** The outcome of each test in a JUnit report. */
function outcomesIn(report) {
  const outcomes = {};
  for (const [, tag, isEmpty, body = ''] of report.matchAll(
    /<testcase\b([^>]*?)(?:(\/)>|>([\s\S]*?)<\/testcase>)/g,
  )) {
    const kind = isEmpty ? undefined : /<(failure|error|skipped)\b([^>]*)/.exec(body);
    const test = `${attribute(tag, 'classname')}.${attribute(tag, 'name')}`;
    outcomes[test] = kind ? `${kind[1]} ${attribute(kind[2], 'message').slice(0, 300)}` : 'passed';
  }
  return outcomes;
}

async function runTests(server) {
  const report = join(server.directory, 'report.xml');
  const path = [dirname(kubectl), process.env.PATH].join(delimiter);
  const modules = [join(source, suite.modules), process.env.PYTHONPATH ?? ''].join(delimiter);
  const env = { ...process.env, KUBECONFIG: server.kubeconfig, PATH: path, PYTHONPATH: modules };
  const args = ['-m', 'pytest', '-p', 'no:cacheprovider', `--junitxml=${report}`, ...suite.args];
  const chosen = process.env.PEERS_TESTS ? ['-k', process.env.PEERS_TESTS] : [];
  const options = { cwd: source, env, timeout: 1_800_000, maxBuffer: 256 * 1024 * 1024 };
  await new Promise((resolve) => {
    execFile(python, [...args, ...chosen], options, (_error, stdout, stderr) => {
      if (process.env.PEERS_KEEP || !existsSync(report)) console.log(stdout, stderr);
      resolve();
    });
  });
  return existsSync(report) ? outcomesIn(readFileSync(report, 'utf8')) : {};
}

async function play(server) {
  const controllers = startControllers(server);
  const nodes = playNodes(server, { names: ['peer-0', 'peer-1'] });
  try {
    const path = '/api/v1/namespaces/default/serviceaccounts/default';
    const exists = async () => (await call(server, { path })).status === 200;
    await eventually(exists, { withinMs: 60_000 });
    return await runTests(server);
  } finally {
    await nodes.stop();
    await controllers.stop();
  }
}

function counts(outcomes) {
  const all = Object.values(outcomes);
  const of = (kind) => all.filter((outcome) => outcome.startsWith(kind)).length;
  const skipped = of('skipped');
  return `${of('passed')} tests pass, ${all.length - of('passed') - skipped} fail, ${skipped} skip`;
}

if (suite === undefined) {
  console.error(`usage: node python-suites.mjs ${Object.keys(suites).join(' | ')}`);
  process.exit(2);
}
if ([python, kubectl, source].includes(undefined) || !haveControllers) {
  console.log('skipped: needs PYTHON, PYTHON_SUITE, KUBECTL, and the controllers (see README.md)');
} else {
  const { reference, wheelhouse } = await onBoth(play);
  for (const [side, outcomes] of Object.entries({ reference, wheelhouse })) {
    if (outcomes !== undefined) console.log(`${side}: ${counts(outcomes)}`);
  }
  if (reference !== undefined && wheelhouse !== undefined) {
    const all = [...new Set([...Object.keys(reference), ...Object.keys(wheelhouse)])];
    const kind = (outcome = 'never run') => outcome.split(' ')[0];
    const different = all.filter((test) => kind(reference[test]) !== kind(wheelhouse[test]));
    for (const test of different) {
      console.log(`${test}\n  - ${reference[test]}\n  + ${wheelhouse[test]}`);
    }
    if (!process.env.PEERS_TESTS) {
      const file = `python-suite-${name}`;
      writeResult(file, {
        program: `${name}, its own tests of a cluster`,
        version: process.env.PYTHON_SUITE_VERSION ?? 'unknown',
        script: 'python-suites.mjs',
        what: 'With controllers and played kubelets. Tests that need containers fail against both.',
        reference: counts(reference),
        wheelhouse: `${counts(wheelhouse)}; ${different.length} of ${all.length} end differently`,
        differences: storedResult(file)?.differences ?? [],
      });
    }
  }
}

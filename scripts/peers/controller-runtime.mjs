// Runs controller-runtime's own test suites with each server as envtest's kube-apiserver.
//
// CONTROLLER_RUNTIME names its source folder in a GOPATH that holds the libraries it needs; the
// README says how to make one. GO names the go command.
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { storedResult, writeResult } from './results.mjs';
import { programPath } from './servers.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const source = process.env.CONTROLLER_RUNTIME;
const suiteTimeoutMs = 15 * 60_000;

const suites = [
  'pkg/client',
  'pkg/cache',
  'pkg/envtest',
  'pkg/manager',
  'pkg/builder',
  'pkg/webhook',
  'pkg/controller',
  'pkg/cluster',
  'pkg/source',
  'pkg/internal/controller',
  'pkg/internal/recorder',
  'pkg/internal/source',
];

function buildSuite(suite, { go, to }) {
  const gopath = join(source, '..', '..', '..');
  const env = { ...process.env, GO111MODULE: 'off', GOPATH: gopath, GOFLAGS: '', CGO_ENABLED: '0' };
  const output = join(to, `${suite.replaceAll('/', '-')}.test`);
  const built = spawnSync(go, ['test', '-c', '-o', output, `./${suite}`], {
    cwd: source,
    env,
    encoding: 'utf8',
  });
  if (built.status !== 0) throw new Error(`${suite} does not build: ${built.stderr}`);
  return output;
}

/** A program named kube-apiserver that starts Wheelhouse with the flags that envtest passes. */
function writeLauncher(folder) {
  const path = join(folder, 'kube-apiserver');
  const flags = '--dialect=kubernetes --controllers=api-server';
  const program = join(root, 'bin', 'wheelhouse.js');
  writeFileSync(path, `#!/bin/sh\nexec '${process.execPath}' '${program}' serve ${flags} "$@"\n`);
  chmodSync(path, 0o755);
  return path;
}

function specName({ ContainerHierarchyTexts: containers, LeafNodeText: leaf }) {
  return [...(containers ?? []), leaf].join(' ').replaceAll(/\s+/g, ' ').trim();
}

function runSuite(suite, { binary, apiServer, etcd, kubectl, folder }) {
  const report = join(folder, 'report.json');
  rmSync(report, { force: true });
  const assets = { TEST_ASSET_KUBE_APISERVER: apiServer, TEST_ASSET_ETCD: etcd };
  const ran = spawnSync(binary, ['-test.timeout=14m', `--ginkgo.json-report=${report}`], {
    cwd: join(source, suite),
    env: { ...process.env, ...assets, TEST_ASSET_KUBECTL: kubectl },
    encoding: 'utf8',
    timeout: suiteTimeoutMs,
    maxBuffer: 256 * 1024 * 1024,
  });
  writeFileSync(join(folder, `${suite.replaceAll('/', '-')}.log`), ran.stdout + ran.stderr);
  if (!existsSync(report)) return { passed: 0, failed: [`${suite}: ended without a report`] };
  const specs = JSON.parse(readFileSync(report, 'utf8')).flatMap((one) => one.SpecReports ?? []);
  const isSpec = (one) => one.LeafNodeType === 'It' || one.State === 'failed';
  const ended = specs.filter((one) => isSpec(one) && !['skipped', 'pending'].includes(one.State));
  const failed = ended.filter((one) => one.State !== 'passed').map(specName);
  return { passed: ended.length - failed.length, failed };
}

function runAll({ name, apiServer, binaries, etcd, kubectl, to }) {
  const folder = mkdtempSync(join(to, `${name}-`));
  const results = {};
  for (const [suite, binary] of Object.entries(binaries)) {
    const result = runSuite(suite, { binary, apiServer, etcd, kubectl, folder });
    results[suite] = result;
    console.log(`${name} ${suite}: ${result.passed} passed, ${result.failed.length} failed`);
    for (const spec of result.failed) console.log(`  FAILED ${spec}`);
  }
  return results;
}

function summary(results) {
  const all = Object.values(results);
  const passed = all.reduce((sum, one) => sum + one.passed, 0);
  const failed = all.reduce((sum, one) => sum + one.failed.length, 0);
  return `${passed} specs pass, ${failed} fail`;
}

const apiServer = programPath({ variable: 'KUBE_APISERVER', name: 'kube-apiserver' });
const etcd = programPath({ variable: 'ETCD', name: 'etcd' });
const kubectl = programPath({ variable: 'KUBECTL', name: 'kubectl' });
const go = programPath({ variable: 'GO', name: 'go' });

if ([source, etcd, kubectl, go].includes(undefined)) {
  console.log('skipped: needs CONTROLLER_RUNTIME, ETCD, KUBECTL, and GO (see README.md)');
} else {
  const to = mkdtempSync(join(tmpdir(), 'peers-suites-'));
  const chosen = process.env.PEERS_SUITES?.split(',') ?? suites;
  const binaries = {};
  for (const suite of chosen) binaries[suite] = buildSuite(suite, { go, to });
  const shared = { binaries, etcd, kubectl, to };
  const only = process.env.PEERS_ONLY;
  const isWanted = (name) => only === undefined || only === name;
  const isReferenceHere = apiServer !== undefined && isWanted('reference');
  const reference = isReferenceHere
    ? runAll({ name: 'reference', apiServer, ...shared })
    : undefined;
  const wheelhouse = isWanted('wheelhouse')
    ? runAll({ name: 'wheelhouse', apiServer: writeLauncher(to), ...shared })
    : undefined;
  if (reference !== undefined && wheelhouse !== undefined && chosen === suites) {
    writeResult('controller-runtime', {
      program: 'controller-runtime, its own suites on envtest',
      version: process.env.CONTROLLER_RUNTIME_VERSION ?? 'unknown',
      script: 'controller-runtime.mjs',
      what: `The suites of ${suites.map((suite) => suite.replace('pkg/', '')).join(', ')}.`,
      reference: summary(reference),
      wheelhouse: summary(wheelhouse),
      differences: storedResult('controller-runtime')?.differences ?? [],
    });
  }
  if (!process.env.PEERS_KEEP) rmSync(to, { recursive: true, force: true });
  else console.log(`logs in ${to}`);
}

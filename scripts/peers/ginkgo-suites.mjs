// Runs Ginkgo suites that start their API server with envtest, with each server as that server.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { storedResult, writeResult } from './results.mjs';
import { programPath } from './servers.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const suiteTimeoutMs = 15 * 60_000;
const reference = programPath({ variable: 'KUBE_APISERVER', name: 'kube-apiserver' });
const etcd = programPath({ variable: 'ETCD', name: 'etcd' });
const kubectl = programPath({ variable: 'KUBECTL', name: 'kubectl' });
const go = programPath({ variable: 'GO', name: 'go' });

function buildSuite(suite, { source, gopath, to }) {
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

/**
 * Writes the programs that start Wheelhouse for envtest; returns the path of its kube-apiserver.
 */
function writeAssets(folder) {
  const to = join(folder, 'assets');
  const program = join(root, 'bin', 'wheelhouse.js');
  const { status, stderr } = spawnSync(process.execPath, [program, 'envtest-assets', to]);
  if (status !== 0) throw new Error(`no assets: ${stderr}`);
  return join(to, 'kube-apiserver');
}

/** With PEERS_ASSETS=1, also uses the written etcd and kubectl; otherwise the real ones. */
function besides(apiServer) {
  if (!process.env.PEERS_ASSETS || apiServer === reference) return { etcd, kubectl };
  const folder = dirname(apiServer);
  return { etcd: join(folder, 'etcd'), kubectl: join(folder, 'kubectl') };
}

function specName({ ContainerHierarchyTexts: containers, LeafNodeText: leaf }) {
  return [...(containers ?? []), leaf].join(' ').replaceAll(/\s+/g, ' ').trim();
}

function runSuite(suite, { source, binary, apiServer, folder }) {
  const report = join(folder, 'report.json');
  rmSync(report, { force: true });
  const programs = besides(apiServer);
  const assets = { TEST_ASSET_KUBE_APISERVER: apiServer, TEST_ASSET_ETCD: programs.etcd };
  const ran = spawnSync(binary, ['-test.timeout=14m', `--ginkgo.json-report=${report}`], {
    cwd: join(source, suite),
    env: { ...process.env, ...assets, TEST_ASSET_KUBECTL: programs.kubectl },
    encoding: 'utf8',
    timeout: suiteTimeoutMs,
    maxBuffer: 256 * 1024 * 1024,
  });
  writeFileSync(join(folder, `${suite.replaceAll('/', '-')}.log`), ran.stdout + ran.stderr);
  if (!existsSync(report)) return { passed: 0, failed: [`${suite}: ended without a report`] };
  const specs = JSON.parse(readFileSync(report, 'utf8')).flatMap(
    ({ SpecReports }) => SpecReports ?? [],
  );
  const isSpec = (node) => node.LeafNodeType === 'It' || node.State === 'failed';
  const ended = specs.filter(
    (node) => isSpec(node) && !['skipped', 'pending'].includes(node.State),
  );
  const failed = ended.filter(({ State }) => State !== 'passed').map(specName);
  return { passed: ended.length - failed.length, failed };
}

function runAll({ name, source, apiServer, binaries, to }) {
  const folder = mkdtempSync(join(to, `${name}-`));
  const results = {};
  for (const [suite, binary] of Object.entries(binaries)) {
    const result = runSuite(suite, { source, binary, apiServer, folder });
    results[suite] = result;
    console.log(`${name} ${suite}: ${result.passed} passed, ${result.failed.length} failed`);
    for (const spec of result.failed) console.log(`  FAILED ${spec}`);
  }
  return results;
}

function summary(results) {
  const all = Object.values(results);
  const passed = all.reduce((sum, result) => sum + result.passed, 0);
  const failed = all.reduce((sum, result) => sum + result.failed.length, 0);
  return `${passed} specs pass, ${failed} fail`;
}

/**
 * Builds suites that do not use modules, runs them against both servers, and writes the results.
 *
 * @param options.name name of the file of results
 * @param options.source folder that contains the suites; undefined if absent
 * @param options.gopath the GOPATH that contains it
 * @param options.suites folders of suites below it; PEERS_SUITES selects some, and then no results
 * are written
 * @param options.variable the environment variable that names the source, for the message if it is
 * unset
 */
export function runSuites({
  name,
  source,
  gopath,
  suites,
  variable,
  program,
  version,
  script,
  what,
}) {
  if ([source, etcd, kubectl, go].includes(undefined)) {
    console.log(`skipped: needs ${variable}, ETCD, KUBECTL, and GO (see README.md)`);
    return;
  }
  const to = mkdtempSync(join(tmpdir(), 'peers-suites-'));
  const chosen = process.env.PEERS_SUITES?.split(',') ?? suites;
  const binaries = {};
  for (const suite of chosen) binaries[suite] = buildSuite(suite, { source, gopath, to });
  const only = process.env.PEERS_ONLY;
  const run = (side, apiServer) =>
    apiServer === undefined || (only !== undefined && only !== side)
      ? undefined
      : runAll({ name: side, apiServer, source, binaries, to });
  const there = run('reference', reference);
  const here = run('wheelhouse', writeAssets(to));
  if (there !== undefined && here !== undefined && chosen === suites) {
    writeResult(name, {
      program,
      version: version ?? 'unknown',
      script,
      what,
      reference: summary(there),
      wheelhouse: summary(here),
      differences: storedResult(name)?.differences ?? [],
    });
  }
  if (!process.env.PEERS_KEEP) rmSync(to, { recursive: true, force: true });
  else console.log(`logs in ${to}`);
}

// Runs the end-to-end specs of Kubernetes that need no containers, with kube-controller-manager,
// kube-scheduler, and played kubelets. Upstream's webhooks and the sample API server run as local
// processes. Everything runs in a network namespace of its own, from which nothing else is reached.
import { existsSync, mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { haveControllers, startControllers } from './controllers.mjs';
import { inOwnNetwork } from './own-network.mjs';
import { playNodes } from './played-nodes.mjs';
import { playProcesses } from './played-processes.mjs';
import { storedResult, writeResult } from './results.mjs';
import { onBoth, programPath, startProgram } from './servers.mjs';

const folder = dirname(fileURLToPath(import.meta.url));
const clusterIps = '10.96.0.0/16';
const suite = programPath({ variable: 'E2E', name: 'e2e.test' });
const kubectl = programPath({ variable: 'KUBECTL', name: 'kubectl' });
const binaries = {
  agnhost: programPath({ variable: 'AGNHOST', name: 'agnhost' }),
  sampleApiServer: programPath({ variable: 'SAMPLE_APISERVER', name: 'sample-apiserver' }),
  etcd: programPath({ variable: 'ETCD', name: 'etcd' }),
};

/** The focus and skip flags of each process. */
function specFlags() {
  const text = readFileSync(join(folder, 'e2e-specs.txt'), 'utf8').replace(/^#.*\n/gm, '');
  const paragraphs = text
    .trim()
    .split('\n\n')
    .map((paragraph) => paragraph.split('\n'));
  const isLeftOut = (line) => line.startsWith('!');
  const skipped = paragraphs
    .flat()
    .filter(isLeftOut)
    .map((line) => line.slice(1));
  const chosen = process.env.PEERS_SPECS
    ? [process.env.PEERS_SPECS]
    : paragraphs.filter((lines) => !lines.every(isLeftOut)).map((lines) => lines.join('|'));
  return chosen.map((focus) => [`--ginkgo.focus=${focus}`, `--ginkgo.skip=${skipped.join('|')}`]);
}

function specName({ ContainerHierarchyTexts: containers, LeafNodeText: leaf }) {
  return [...(containers ?? []), leaf].join(' ').replaceAll(/\s+/g, ' ').trim();
}

/** The outcome of each spec that ran: passed, failed with a message, or skipped by itself. */
function outcomes(report) {
  if (!existsSync(report)) return {};
  const specs = JSON.parse(readFileSync(report, 'utf8')).flatMap(
    ({ SpecReports }) => SpecReports ?? [],
  );
  // The report includes specs that the focus excludes; they have no attempts.
  const ran = specs.filter((spec) => spec.LeafNodeType === 'It' && spec.NumAttempts > 0);
  return Object.fromEntries(
    ran.map((spec) => [specName(spec), { state: spec.State, message: spec.Failure?.Message }]),
  );
}

async function runSuite(server, { folder: to, flags }) {
  const report = join(to, 'report.json');
  const ran = startProgram({
    command: suite,
    args: [
      `--kubeconfig=${server.kubeconfig}`,
      `--kubectl-path=${kubectl}`,
      '--provider=skeleton',
      '--disable-log-dump',
      '--ginkgo.no-color',
      '--ginkgo.silence-skips',
      '--ginkgo.timeout=2h',
      `--ginkgo.json-report=${report}`,
      ...flags,
    ],
    log: join(to, 'e2e.log'),
    env: { KUBECONFIG: server.kubeconfig },
    cwd: to,
  });
  await ran.exited;
  return outcomes(report);
}

async function play(server) {
  const controllers = startControllers(server, {
    flags: [`--service-cluster-ip-range=${clusterIps}`],
    election: 'off',
  });
  const processes = playProcesses(server, { binaries });
  const nodes = playNodes(server, { names: ['peer-0', 'peer-1'], processes });
  try {
    const runs = specFlags().map((flags) => {
      const to = mkdtempSync(join(tmpdir(), `peers-e2e-${server.name}-`));
      console.log(`${server.name}: logs to ${to}`);
      return runSuite(server, { folder: to, flags });
    });
    return Object.assign({}, ...(await Promise.all(runs)));
  } finally {
    await nodes.stop();
    await controllers.stop();
    for (const line of new Set(nodes.errors)) console.log(`played nodes: ${line}`);
  }
}

const passedOf = (specs) => Object.values(specs).filter(({ state }) => state === 'passed').length;
const skippedOf = (specs) => Object.values(specs).filter(({ state }) => state === 'skipped').length;

function summary(specs) {
  const passed = passedOf(specs);
  const failed = Object.keys(specs).length - passed - skippedOf(specs);
  return `${passed} specs pass, ${failed} fail`;
}

function report({ reference, wheelhouse }) {
  for (const [name, { state, message }] of Object.entries(wheelhouse)) {
    const there = reference[name]?.state ?? 'never run';
    if (state === there) continue;
    console.log(`difference: ${name}: reference ${there}, Wheelhouse ${state}: ${message}`);
  }
  writeResult('e2e', {
    program: 'end-to-end specs of Kubernetes',
    version: process.env.KUBERNETES_VERSION ?? 'unknown',
    script: 'e2e.mjs',
    what: 'The specs that pass without a container runtime (`e2e-specs.txt`), with played kubelets, the controllers, and the webhooks and the sample API server of upstream as local processes.',
    reference: summary(reference),
    wheelhouse: summary(wheelhouse),
    differences: storedResult('e2e')?.differences ?? [],
  });
}

const needed = [suite, kubectl, ...Object.values(binaries)];
if (needed.includes(undefined) || !haveControllers) {
  const controllers = 'KUBE_CONTROLLER_MANAGER and KUBE_SCHEDULER';
  const names = `E2E, KUBECTL, AGNHOST, SAMPLE_APISERVER, ETCD, ${controllers}`;
  console.log(`skipped: needs ${names} (see README.md)`);
} else if (inOwnNetwork()) {
  const flags = [`--service-cluster-ip-range=${clusterIps}`, '--advertise-address=10.0.0.1'];
  const results = await onBoth(play, { flags });
  for (const [name, specs] of Object.entries(results)) {
    console.log(`${name}: ${summary(specs)}`);
    const failed = Object.entries(specs).filter(([, { state }]) => !/passed|skipped/.test(state));
    for (const [spec, { message }] of failed) console.log(`  ${spec}: ${message}`);
  }
  if (results.reference !== undefined && results.wheelhouse !== undefined) report(results);
}

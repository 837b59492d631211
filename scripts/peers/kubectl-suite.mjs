// Runs upstream's own suite of kubectl commands (test/cmd of the Kubernetes tree) against both
// servers, with kube-controller-manager, and compares the outcome of each of its groups.
//
// KUBERNETES names the tree; arguments limit the run to groups, such as `configmap`. With SVCCTL=1 the
// suite calls svcctl where it says kubectl, against Wheelhouse only.
import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { haveManager, startManager } from './controllers.mjs';
import { storedResult, writeResult } from './results.mjs';
import { onBoth, programPath } from './servers.mjs';

const tree = process.env.KUBERNETES;
const kubectl = programPath({ variable: 'KUBECTL', name: 'kubectl' });
const convert = programPath({ variable: 'KUBECTL_CONVERT', name: 'kubectl-convert' });
const svcctl = fileURLToPath(new URL('../../bin/svcctl.js', import.meta.url));
const isSvcctl = process.env.SVCCTL === '1';
const groups = process.argv.slice(2);

/** What the suite reads. It also writes files into the folder that it runs in. */
const parts = ['hack', 'test/cmd', 'test/fixtures', 'test/e2e/testing-manifests', 'cluster'];
const library = 'third_party/forked/shell2junit';

/** The flags with which the suite starts its server. */
const flags = [
  '--authorization-mode=RBAC,AlwaysAllow',
  '--enable-admission-plugins=LimitRanger,ResourceQuota',
  '--disable-admission-plugins=ServiceAccount,DefaultStorageClass,DefaultTolerationSeconds,' +
    'MutatingAdmissionWebhook,ValidatingAdmissionWebhook,StorageObjectInUseProtection',
  '--runtime-config=api/v1',
  `--client-ca-file=${join(tree ?? '', 'hack/testdata/ca/ca.crt')}`,
];

/** Sources the suite's libraries without what builds and starts programs, and runs its tests. */
const driver = `exec 2>&1
set +o errexit
source hack/lib/init.sh
source hack/lib/test.sh
set +o errexit
export THIS_PLATFORM_BIN=$PROGRAMS
source test/cmd/legacy-script.sh
kube::util::ensure-gnu-sed
CONTEXT=test
kubectl config set-credentials test-admin --token admin-token
kubectl config set-cluster local --insecure-skip-tls-verify --server "https://127.0.0.1:$SECURE_API_PORT"
kubectl config set-context test --user test-admin --cluster local
kubectl config use-context test
kubectl create -f "$HOME/node.json"
export SUPPORTED_RESOURCES='*'
runTests
`;

const node = {
  kind: 'Node',
  apiVersion: 'v1',
  metadata: { name: '127.0.0.1', annotations: { 'save-managers': 'true' } },
  status: { capacity: { memory: '1Gi' } },
};

/** Copies the suite and writes its programs; returns the folder and the environment to run it in. */
function prepare(server) {
  const at = (name) => join(server.directory, name);
  const folder = at('suite');
  for (const part of [...parts, library]) {
    const filter = (path) => !path.endsWith('.go');
    cpSync(join(tree, part), join(folder, part), { recursive: true, filter });
  }
  const [programs, home] = [at('programs'), at('home')];
  for (const made of [programs, home]) mkdirSync(made);
  if (isSvcctl) {
    const script = `#!/bin/sh\nexec ${process.execPath} ${svcctl} "$@"\n`;
    writeFileSync(join(programs, 'kubectl'), script, { mode: 0o755 });
  } else {
    symlinkSync(kubectl, join(programs, 'kubectl'));
    if (convert !== undefined) symlinkSync(convert, join(programs, 'kubectl-convert'));
  }
  writeFileSync(join(home, 'node.json'), JSON.stringify(node));
  // The suite reads the serving certificate from here.
  cpSync(at('serving.crt'), join(home, 'apiserver.crt'));
  const env = {
    ...process.env,
    HOME: home,
    KUBE_TEMP: home,
    TMPDIR: home,
    PROGRAMS: programs,
    KUBE_JUNIT_REPORT_DIR: at('report'),
    SECURE_API_PORT: new URL(server.url).port,
    ALLOW_SKEW: 'y',
    WHAT: groups.join(' '),
  };
  delete env.KUBECONFIG;
  return { folder, env };
}

/** The outcome of each group in the suite's output: `passed`, or the first failure's lines. */
function outcomesIn(output) {
  const outcomes = {};
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the suite colors its output.
  const plain = output.replace(/\x1b\[[0-9;]*m|\x1b\(B/g, '');
  for (const part of plain.split(/^Recording: /m).slice(1)) {
    const name = part.slice(0, part.indexOf('\n')).replace(/^run_|_tests?$/g, '');
    if (name === 'record_command_canary') continue;
    const end = part.indexOf('+++ exit code: ');
    const isPassed = part.startsWith('+++ exit code: 0', end);
    const lines = part
      .slice(0, end)
      .trim()
      .split('\n')
      .filter((line) => !line.startsWith('!!!'));
    outcomes[name] = isPassed ? 'passed' : lines.slice(-8).join('\n');
  }
  return outcomes;
}

async function play(server) {
  const ca = join(tree, 'hack/testdata/ca');
  const manager = startManager(server, {
    flags: [`--cluster-signing-cert-file=${ca}/ca.crt`, `--cluster-signing-key-file=${ca}/ca.key`],
  });
  try {
    const { folder, env } = prepare(server);
    const options = { cwd: folder, env, timeout: 3_600_000, maxBuffer: 256 * 1024 * 1024 };
    const output = await new Promise((resolve) => {
      execFile('bash', ['-c', driver], options, (_error, stdout) => resolve(stdout));
    });
    if (process.env.PEERS_KEEP) writeFileSync(join(server.directory, 'suite.log'), output);
    return outcomesIn(output);
  } finally {
    await manager.stop();
  }
}

function counts(outcomes) {
  const all = Object.values(outcomes);
  const passed = all.filter((outcome) => outcome === 'passed').length;
  return `${passed} of ${all.length} groups pass`;
}

if (tree === undefined || !existsSync(tree) || kubectl === undefined || !haveManager) {
  console.log('skipped: needs KUBERNETES, KUBECTL, and KUBE_CONTROLLER_MANAGER (see README.md)');
} else {
  if (isSvcctl) process.env.PEERS_ONLY = 'wheelhouse';
  const { reference, wheelhouse } = await onBoth(play, { flags });
  for (const [side, outcomes] of Object.entries({ reference, wheelhouse })) {
    if (outcomes === undefined) continue;
    for (const [group, outcome] of Object.entries(outcomes)) {
      if (outcome !== 'passed') console.log(`${side} ${group}:\n${outcome}\n`);
    }
    console.log(`${side}: ${counts(outcomes)}`);
  }
  if (reference !== undefined && wheelhouse !== undefined && groups.length === 0) {
    const file = 'kubectl-suite';
    writeResult(file, {
      program: 'kubectl, its own suite of commands',
      version: process.env.KUBERNETES_VERSION ?? 'unknown',
      script: 'kubectl-suite.mjs',
      what: 'With kube-controller-manager, each group of the suite in the tree of Kubernetes up to its first failure.',
      reference: counts(reference),
      wheelhouse: counts(wheelhouse),
      differences: storedResult(file)?.differences ?? [],
    });
  }
}

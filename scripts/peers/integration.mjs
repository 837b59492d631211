// Runs upstream's integration tests. On the reference they run as they are, with the server in the
// test's process; for Wheelhouse the two functions that start that server are rewritten while
// compiling, so that they start `wheelhouse serve` on the test's etcd instead.
//
// KUBERNETES names the source tree of Kubernetes 1.32, GO the go command, ETCD the etcd binary.
import { spawnSync } from 'node:child_process';
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { storedResult, writeResult } from './results.mjs';
import { pause, programPath, startEtcd } from './servers.mjs';

const folder = dirname(fileURLToPath(import.meta.url));
const root = join(folder, '..', '..');
const source = process.env.KUBERNETES;
const go = programPath({ variable: 'GO', name: 'go' });
const etcd = programPath({ variable: 'ETCD', name: 'etcd' });
const timeoutMinutes = Number(process.env.PEERS_TIMEOUT ?? '35');
let outcomesFolder = process.env.PEERS_OUTCOMES;

const publicPackages = `
  apimachinery apiserver apiserver/admissionwebhook apiserver/anonymous apiserver/apply apiserver/cel
  apiserver/certreload apiserver/discovery apiserver/flowcontrol apiserver/oidc apiserver/openapi auth
  certificates client cloudprovider clustertrustbundles configmap controlplane controlplane/audit
  cronjob daemonset deployment disruption dryrun dualstack endpoints endpointslice etcd events
  evictions garbagecollector job kubelet metrics namespace network node pods podgc pvc quota
  replicaset replicationcontroller resourceclaim scale scheduler scheduler/bind
  scheduler/eventhandler scheduler/extender scheduler/filters scheduler/plugins
  scheduler/preemption scheduler/queueing scheduler/scoring scheduler/serving secrets service
  serviceaccount servicecidr serving statefulset storageclasses storageversion
  storageversionmigrator tls ttlcontroller volume volumescheduling
`;

const packages = (process.env.PEERS_PACKAGES ?? publicPackages)
  .split(/[,\s]+/)
  .filter((name) => name !== '');

/** Replaces the code between two texts; throws if upstream's file lacks either. */
function replaced(text, { from, to, by }) {
  const start = text.indexOf(from);
  const end = text.indexOf(to, start);
  if (start < 0 || end < 0) throw new Error(`the source tree has no ${JSON.stringify(from)}`);
  return text.slice(0, start) + by + text.slice(end);
}

/** Adds uses of imports that the rewritten function no longer needs. */
function withUses(text, uses) {
  return `${text}\n${uses.map((use) => `var _ = ${use}\n`).join('')}`;
}

function rewrittenTestServer(path) {
  const started = replaced(readFileSync(path, 'utf8'), {
    from: '\tconfig, err := app.NewConfig(completedOptions)',
    to: '\tclient, err := kubernetes.NewForConfig(',
    by: [
      '\ts.SecureServing.Listener.Close()',
      '\tloopback, ended, err := spawnWheelhouse(tCtx, s, s.SecureServing.BindPort, result.TmpDir,',
      '\t\tfeatureGate)',
      '\tif err != nil {',
      '\t\treturn result, err',
      '\t}',
      '\terrCh = ended',
      '\tif instanceOptions.StorageVersionWrapFunc != nil {',
      '\t\tt.Fatalf("unsupported: a wrapped storage version manager")',
      '\t}',
      '',
    ].join('\n'),
  });
  const kept = started
    .replaceAll('server.GenericAPIServer.LoopbackClientConfig', 'loopback')
    .replace('defer os.RemoveAll(saSigningKeyFile.Name())', '');
  return withUses(kept, ['app.NewConfig']);
}

function rewrittenFramework(path) {
  const built = replaced(readFileSync(path, 'utf8'), {
    from: '\tgenericConfig, versionedInformers, storageFactory, err :=',
    to: '\tgenericConfig, versionedInformers, storageFactory, err :=',
    by: '\tvar spawnAdded []string\n\tvar spawnAnonymous bool\n\tif setup.ModifyServerConfig != nil {\n',
  });
  const configured = replaced(built, {
    from: '\tif setup.ModifyServerConfig != nil {\n\t\tsetup.ModifyServerConfig(',
    to: '\t// Adjust the loopback config',
    by: [
      '\t\tspawnAdded, err = spawnConfigured(ctx, kubeAPIServerConfig, setup.ModifyServerConfig, opts, certDir)',
      '\t\tif err != nil {',
      '\t\t\tt.Skipf("unsupported: %v", err)',
      '\t\t}',
      '\t\tspawnAnonymous = kubeAPIServerConfig.ControlPlane.Generic.LoopbackClientConfig.BearerToken == ""',
      '\t}',
      '',
    ].join('\n'),
  });
  const started = replaced(configured, {
    from: '\t// Adjust the loopback config',
    to: '\t// wait for health',
    by: [
      '\tlistener.Close()',
      '\tport := listener.Addr().(*net.TCPAddr).Port',
      '\tkubeAPIServerClientConfig, ended, err := spawnWheelhouse(ctx, opts, port, certDir,',
      '\t\tutilfeature.DefaultMutableFeatureGate, spawnAdded...)',
      '\tif err != nil {',
      '\t\tt.Fatal(err)',
      '\t}',
      '\terrCh = ended',
      '\tif spawnAnonymous {',
      '\t\tkubeAPIServerClientConfig.BearerToken = "peers-any-token"',
      '\t}',
      '',
    ].join('\n'),
  });
  const imported = started.replace(
    'import (',
    'import (\n\tutilfeature "k8s.io/apiserver/pkg/util/feature"',
  );
  return withUses(imported, ['genericapiserver.NewEmptyDelegate']);
}

function writeOverlay(to) {
  const spawn = readFileSync(join(folder, 'overlay', 'spawn.go.txt'), 'utf8');
  const servers = [
    ['cmd/kube-apiserver/app/testing', 'testserver.go', rewrittenTestServer, 'testing'],
    ['test/integration/framework', 'test_server.go', rewrittenFramework, 'framework'],
  ];
  const replace = {};
  for (const [place, file, rewrite, name] of servers) {
    const path = join(source, place, file);
    const written = join(to, `${name}-${file}`);
    writeFileSync(written, rewrite(path));
    replace[path] = written;
    const added = join(to, `${name}-spawn.go`);
    writeFileSync(added, spawn.replace('package PACKAGE', `package ${name}`));
    replace[join(source, place, 'wheelhouse_spawn.go')] = added;
  }
  const configured = join(folder, 'overlay', 'configured.go.txt');
  replace[join(source, 'test/integration/framework', 'wheelhouse_configured.go')] = configured;
  const overlay = join(to, 'overlay.json');
  writeFileSync(overlay, JSON.stringify({ Replace: replace }));
  return overlay;
}

const goEnv = {
  ...process.env,
  GOFLAGS: '-mod=vendor',
  GOTOOLCHAIN: 'local',
  GOPROXY: 'off',
  CGO_ENABLED: '0',
};

function compile(name, { overlay, to }) {
  const output = join(to, `${name.replaceAll('/', '-')}.test`);
  const flags = overlay === undefined ? [] : [`-overlay=${overlay}`];
  const args = ['test', '-c', ...flags, '-o', output, `./test/integration/${name}`];
  const built = spawnSync(go, args, { cwd: source, env: goEnv, encoding: 'utf8' });
  if (built.status !== 0) console.log(`${name} does not build: ${built.stderr.slice(0, 2000)}`);
  return existsSync(output) ? output : undefined;
}

/** The outcomes of the tests in a log; a test that began but did not end has failed. */
function outcomes(output) {
  const tests = new Map();
  for (const [, state, name] of output.matchAll(/^--- (PASS|FAIL|SKIP): (\S+)/gm)) {
    tests.set(name, state);
  }
  const started = [...output.matchAll(/^=== RUN {3}([^/\s]+)$/gm)].map(([, name]) => name);
  for (const name of started) if (!tests.has(name)) tests.set(name, 'FAIL');
  return tests;
}

async function startStore(to) {
  const directory = mkdtempSync(join(to, 'etcd-'));
  const started = await startEtcd({ directory, etcd, flags: ['--unsafe-no-fsync'] });
  await pause(1000);
  return started;
}

function runBinary(binary, { name, to, url, args, log }) {
  const file = openSync(log, 'a');
  spawnSync(binary, args, {
    cwd: join(source, 'test', 'integration', name),
    env: {
      ...process.env,
      KUBE_INTEGRATION_ETCD_URL: url,
      PATH: `${dirname(etcd)}${delimiter}${process.env.PATH}`,
      WHEELHOUSE: join(root, 'bin', 'wheelhouse.js'),
      NODE: process.execPath,
      PEERS_LOGS: to,
    },
    stdio: ['ignore', file, file],
    timeout: (timeoutMinutes + 2) * 60_000,
  });
  closeSync(file);
  return readFileSync(log, 'utf8');
}

/**
 * Runs a package's tests in one process, as `go test` does. A test that never ends blocks the rest
 * of its process, so the others run again without it.
 */
async function runPackage(name, { binary, to }) {
  const { url, program } = await startStore(to);
  const file = join(to, name.replaceAll('/', '-'));
  const options = { name, to, url };
  const pattern = process.env.PEERS_TESTS ?? '.';
  const listed = { ...options, args: [`-test.list=${pattern}`], log: `${file}.list` };
  let left = runBinary(binary, listed).match(/^Test\S+$/gm) ?? [];
  const tests = new Map();
  for (let pass = 0; left.length > 0; pass += 1) {
    const args = ['-test.v', `-test.timeout=${timeoutMinutes}m`, `-test.run=^(${left.join('|')})$`];
    const seen = outcomes(runBinary(binary, { ...options, args, log: `${file}-${pass}.log` }));
    for (const [test, state] of seen) tests.set(test, state);
    const unseen = left.filter((test) => !tests.has(test));
    if (unseen.length === left.length) break;
    left = unseen;
  }
  for (const test of left) tests.set(test, 'FAIL');
  await program.stop();
  return Object.fromEntries(tests);
}

/** The outcomes of one server by package, including those of earlier runs. */
function storedOutcomes(side) {
  const path = join(outcomesFolder, side);
  if (!existsSync(path)) return {};
  const files = readdirSync(path).sort();
  return Object.fromEntries(
    files.map((file) => [
      file.replace(/\.json$/, '').replaceAll('--', '/'),
      JSON.parse(readFileSync(join(path, file), 'utf8')),
    ]),
  );
}

function storeOutcomes(side, name, tests) {
  const path = join(outcomesFolder, side);
  mkdirSync(path, { recursive: true });
  const earlier = process.env.PEERS_TESTS ? (storedOutcomes(side)[name] ?? {}) : {};
  const file = join(path, `${name.replaceAll('/', '--')}.json`);
  writeFileSync(file, JSON.stringify({ ...earlier, ...tests }, undefined, 1));
}

async function runSide(side, { to, overlay }) {
  const own = join(to, side);
  mkdirSync(own);
  for (const name of packages) {
    const binary = compile(name, { overlay, to: own });
    if (binary === undefined) continue;
    const tests = await runPackage(name, { binary, to: own });
    rmSync(binary);
    storeOutcomes(side, name, tests);
    const states = Object.entries(tests);
    const failed = states.filter(([, state]) => state === 'FAIL').map(([test]) => test);
    const passed = states.filter(([, state]) => state === 'PASS').length;
    console.log(`${side} ${name}: ${passed} of ${states.length}; failed: ${failed.join(' ')}`);
  }
}

function summary(side) {
  const results = storedOutcomes(side);
  const states = Object.values(results).flatMap((tests) => Object.values(tests));
  const count = (state) => states.filter((outcome) => outcome === state).length;
  return states.length === 0
    ? 'not run'
    : `${count('PASS')} tests pass, ${count('FAIL')} fail, ${count('SKIP')} skip`;
}

if ([source, go, etcd].includes(undefined)) {
  console.log('skipped: needs KUBERNETES, GO, and ETCD (see README.md)');
} else {
  const to = mkdtempSync(join(tmpdir(), 'peers-integration-'));
  outcomesFolder ??= join(to, 'outcomes');
  console.log(`logs in ${to}`);
  const only = process.env.PEERS_ONLY;
  if (only !== 'reference') await runSide('wheelhouse', { to, overlay: writeOverlay(to) });
  if (only !== 'wheelhouse') await runSide('reference', { to });
  if (only === undefined) {
    writeResult('integration', {
      program: 'Integration tests of Kubernetes',
      version: process.env.KUBERNETES_VERSION ?? 'unknown',
      script: 'integration.mjs',
      what: `With Wheelhouse in place of the server in their process, packages ${Object.keys(storedOutcomes('wheelhouse')).join(', ')}.`,
      reference: summary('reference'),
      wheelhouse: summary('wheelhouse'),
      differences: storedResult('integration')?.differences ?? [],
    });
  }
}

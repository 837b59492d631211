// Runs upstream's integration tests. On the reference they run as they are, with the server in the
// test's process; for Wheelhouse the two functions that start that server are rewritten while
// compiling, so that they start `wheelhouse serve` on the test's etcd instead.
//
// KUBERNETES names the source tree of Kubernetes 1.32, GO the go command, ETCD the etcd binary.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { storedResult, writeResult } from './results.mjs';
import { freePort, pause, programPath, startProgram } from './servers.mjs';

const folder = dirname(fileURLToPath(import.meta.url));
const root = join(folder, '..', '..');
const source = process.env.KUBERNETES;
const go = programPath({ variable: 'GO', name: 'go' });
const etcd = programPath({ variable: 'ETCD', name: 'etcd' });
const testTimeoutMs = 40 * 60_000;

const packages = (
  process.env.PEERS_PACKAGES ??
  'auth,serviceaccount,servicecidr,apiserver,apiserver/apply,apiserver/admissionwebhook,' +
    'apiserver/cel,apiserver/flowcontrol,apiserver/crd,client,configmap,controlplane,dryrun,' +
    'dualstack,events,evictions,namespace,objectmeta,pods,quota,secrets,service,storageclasses,tls'
).split(',');

/** Replaces what is between two texts, and fails when upstream's file has neither. */
function replaced(text, { from, to, by }) {
  const start = text.indexOf(from);
  const end = text.indexOf(to, start);
  if (start < 0 || end < 0) throw new Error(`the source tree has no ${JSON.stringify(from)}`);
  return text.slice(0, start) + by + text.slice(end);
}

/** Adds uses of imports that the rewritten function needs no more. */
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
      '\t\tfeatureGate, instanceOptions.EmulationVersion)',
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
  const started = replaced(readFileSync(path, 'utf8'), {
    from: '\tgenericConfig, versionedInformers, storageFactory, err :=',
    to: '\t// wait for health',
    by: [
      '\tif setup.ModifyServerConfig != nil {',
      '\t\tunmodified, modified := &controlplane.Config{}, &controlplane.Config{}',
      '\t\t_, _ = unmodified, modified',
      '\t\tt.Skip("unsupported: a modified configuration inside the process")',
      '\t}',
      '\tlistener.Close()',
      '\tport := listener.Addr().(*net.TCPAddr).Port',
      '\tkubeAPIServerClientConfig, ended, err := spawnWheelhouse(ctx, opts, port, certDir,',
      '\t\tutilfeature.DefaultMutableFeatureGate, "")',
      '\tif err != nil {',
      '\t\tt.Fatal(err)',
      '\t}',
      '\terrCh = ended',
      '\t_ = completedOptions',
      '',
    ].join('\n'),
  });
  const imported = started.replace(
    'import (',
    'import (\n\tutilfeature "k8s.io/apiserver/pkg/util/feature"',
  );
  return withUses(imported, [
    'apiextensionsapiserver.Scheme',
    'runtime.NewScheme',
    'genericapiserver.NewEmptyDelegate',
    'aggregatorscheme.Scheme',
    'app.NewConfig',
    'legacyscheme.Scheme',
    'controlplaneapiserver.BuildGenericConfig',
    'generatedopenapi.GetOpenAPIDefinitions',
  ]);
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

function outcomes(output) {
  const tests = new Map();
  for (const [, state, name] of output.matchAll(/^--- (PASS|FAIL|SKIP): (\S+)/gm)) {
    tests.set(name, state);
  }
  const started = [...output.matchAll(/^=== RUN {3}([^/\s]+)$/gm)].map(([, name]) => name);
  for (const name of started) if (!tests.has(name)) tests.set(name, 'FAIL');
  return Object.fromEntries(tests);
}

async function runPackage(name, { binary, to }) {
  const [port, peerPort] = [await freePort(), await freePort()];
  const store = mkdtempSync(join(to, 'etcd-'));
  const url = `http://127.0.0.1:${port}`;
  const peerUrl = `http://127.0.0.1:${peerPort}`;
  const args = [
    `--data-dir=${store}`,
    `--listen-client-urls=${url}`,
    `--advertise-client-urls=${url}`,
    `--listen-peer-urls=${peerUrl}`,
    `--initial-advertise-peer-urls=${peerUrl}`,
    `--initial-cluster=default=${peerUrl}`,
    '--unsafe-no-fsync',
  ];
  const program = startProgram({ command: etcd, args, log: join(to, 'etcd.log') });
  await pause(1000);
  const run = process.env.PEERS_TESTS ? [`-test.run=${process.env.PEERS_TESTS}`] : [];
  const ran = spawnSync(binary, ['-test.v', '-test.timeout=35m', ...run], {
    cwd: join(source, 'test', 'integration', name),
    env: {
      ...process.env,
      KUBE_INTEGRATION_ETCD_URL: url,
      PATH: `${dirname(etcd)}${delimiter}${process.env.PATH}`,
      WHEELHOUSE: join(root, 'bin', 'wheelhouse.js'),
      NODE: process.execPath,
      PEERS_LOGS: to,
    },
    encoding: 'utf8',
    timeout: testTimeoutMs,
    maxBuffer: 512 * 1024 * 1024,
  });
  await program.stop();
  const output = ran.stdout + ran.stderr;
  writeFileSync(join(to, `${name.replaceAll('/', '-')}.log`), output);
  return outcomes(output);
}

async function runSide(side, { to, overlay }) {
  const own = join(to, side);
  mkdirSync(own);
  const results = {};
  for (const name of packages) {
    const binary = compile(name, { overlay, to: own });
    results[name] =
      binary === undefined ? { build: 'FAIL' } : await runPackage(name, { binary, to: own });
    const states = Object.entries(results[name]);
    const failed = states.filter(([, state]) => state === 'FAIL').map(([test]) => test);
    console.log(
      `${side} ${name}: ${states.length - failed.length} of ${states.length}; failed: ${failed.join(' ')}`,
    );
  }
  return results;
}

function summary(results) {
  const states = Object.values(results).flatMap((tests) => Object.values(tests));
  const count = (state) => states.filter((one) => one === state).length;
  return `${count('PASS')} tests pass, ${count('FAIL')} fail, ${count('SKIP')} skip`;
}

if ([source, go, etcd].includes(undefined)) {
  console.log('skipped: needs KUBERNETES, GO, and ETCD (see README.md)');
} else {
  const to = mkdtempSync(join(tmpdir(), 'peers-integration-'));
  console.log(`logs in ${to}`);
  const only = process.env.PEERS_ONLY;
  const wheelhouse =
    only === 'reference'
      ? undefined
      : await runSide('wheelhouse', { to, overlay: writeOverlay(to) });
  const reference = only === 'wheelhouse' ? undefined : await runSide('reference', { to });
  if (wheelhouse !== undefined) {
    writeResult('integration', {
      program: 'Integration tests of Kubernetes',
      version: process.env.KUBERNETES_VERSION ?? 'unknown',
      script: 'integration.mjs',
      what: `Packages ${packages.join(', ')}.`,
      reference: reference === undefined ? 'not run' : summary(reference),
      wheelhouse: summary(wheelhouse),
      differences: storedResult('integration')?.differences ?? [],
    });
  }
}

// Runs an operator's controllers and webhooks unmodified, with kube-controller-manager,
// kube-scheduler, and played kubelets, against both servers: installs it from its manifests, creates
// its examples, and compares what kubectl prints and the objects that come of them. Every program
// runs in a network namespace with its Pod's address; nothing outside is reached.
//
// The argument names the operator. OPERATOR_SOURCE names its source folder, and OPERATOR_PROGRAMS a
// folder with the programs that its folder `cmd` makes.
import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { haveControllers, startControllers } from './controllers.mjs';
import { inOwnNetwork } from './own-network.mjs';
import { playNodes } from './played-nodes.mjs';
import { podNetworks, serverAddress } from './pod-networks.mjs';
import { call, eventually, onBoth, pause, programPath } from './servers.mjs';
import { compareSession, ordered, plain } from './sessions.mjs';

const clusterIps = '10.96.0.0/16';
const installWithinMs = 240_000;
const settleWithinMs = 300_000;
/** Objects of which none has changed for this long are compared. */
const quietMs = 10_000;

const operators = {
  tekton: {
    program: 'Tekton Pipelines',
    /** Folders of manifests, in the order in which they are applied. */
    install: [
      ...['config/100-namespace', 'config/300-crds', 'config'],
      ...['config/resolvers/100-namespace.yaml', 'config/resolvers'],
    ],
    examples: ['examples/v1/taskruns', 'examples/v1/pipelineruns'],
    /** The first step of a task waits until the controller marks its Pod as ready. */
    outcomeOf: ({ metadata: { labels, annotations } }) =>
      labels?.['tekton.dev/taskRun'] && annotations?.['tekton.dev/ready'] ? 'succeed' : 'run',
    kinds: ['pods', 'persistentvolumeclaims', 'configmaps', 'secrets', 'serviceaccounts'],
    groups: ['tekton.dev', 'resolution.tekton.dev'],
  },
  knative: {
    program: 'Knative Serving',
    install: [
      ...['100-namespace.yaml', '200-roles', '200-serviceaccount.yaml', '300-resources'],
      ...['300-imagecache.yaml', '300-knativecertificate.yaml', 'configmaps', 'deployments'],
      ...['webhooks', '999-cache.yaml'],
    ].map((name) => `config/core/${name}`),
    examples: [join(import.meta.dirname, 'operator-examples', 'knative')],
    outcomeOf: () => 'run',
    kinds: ['pods', 'services', 'configmaps'],
    groups: [
      ...['apps', 'serving.knative.dev'],
      ...['networking.internal.knative.dev', 'autoscaling.internal.knative.dev'],
    ],
  },
};

const source = process.env.OPERATOR_SOURCE;
const programs = process.env.OPERATOR_PROGRAMS;
const kubectl = programPath({ variable: 'KUBECTL', name: 'kubectl' });
const operator = operators[process.argv[2]];

/** Runs kubectl while this process continues to play kubelets. */
function runKubectl(server, args) {
  const all = [`--kubeconfig=${server.kubeconfig}`, ...args];
  return new Promise((resolve) => {
    execFile(kubectl, all, { maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) =>
      resolve({ status: error?.code ?? 0, text: `${stdout}${stderr}` }),
    );
  });
}

/** Removes the random parts of names and the addresses of Services. */
const plainNames = (text, server) =>
  plain(text, server)
    .replace(/\b10\.(96|244)\.\d+\.\d+\b/g, 'ADDRESS')
    .replace(/-[a-z0-9]{6,10}-[a-z0-9]{5}\b/g, '-HASH')
    .replace(/-[bcdfghjklmnpqrstvwxz2456789]{5}\b/g, '-RANDOM')
    .replace(/\b[0-9a-f]{8,64}\b/g, 'HEX')
    .replace(/(extra-params)[a-z0-9]{5}\b/g, '$1RANDOM')
    .replace(/"value": "\d+(\.\d+)?m?s"/g, '"value": "DURATION"')
    .replace(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g, 'CERTIFICATE')
    .replace(/"nodeName": "peer-\d"/g, '"nodeName": "NODE"')
    .replace(/read udp \S+->/g, 'read udp SOCKET->')
    .replace(/\\n[A-Za-z0-9+/=]{60,}\\n/g, '\\nENCODED\\n');

/** Applies every manifest until none fails: an operator's webhooks check its own configuration. */
async function install(server) {
  let steps = {};
  const isApplied = async () => {
    steps = {};
    let failures = 0;
    for (const path of operator.install) {
      const { status, text } = await runKubectl(server, ['apply', '-f', join(source, path)]);
      if (status !== 0) failures += 1;
      steps[`apply ${path}`] = `exit ${status}\n${plainNames(text, server)}`;
    }
    return failures === 0;
  };
  await eventually(isApplied, { withinMs: installWithinMs, everyMs: 5000 });
  const isAvailable = async () => {
    const { body } = await call(server, { path: '/apis/apps/v1/deployments' });
    return body.items.every(({ spec, status }) => status?.availableReplicas === spec.replicas);
  };
  const isInstalled = await eventually(isAvailable, { withinMs: installWithinMs, everyMs: 1000 });
  if (!isInstalled) console.log(`${server.name}: the operator's Deployments are not available`);
  return steps;
}

const examples = () =>
  operator.examples.flatMap((folder) =>
    readdirSync(resolve(source, folder))
      .filter((name) => name.endsWith('.yaml'))
      .sort()
      .map((name) => ({
        name: `${basename(folder)}/${name}`,
        path: resolve(source, folder, name),
      })),
  );

/** The paths of the collections that are compared, without their namespaces. */
async function collections(server) {
  const found = operator.kinds.map((plural) => ({ base: '/api/v1', plural }));
  for (const group of operator.groups) {
    const { body } = await call(server, { path: `/apis/${group}` });
    for (const { groupVersion } of body.versions ?? []) {
      const { body: list } = await call(server, { path: `/apis/${groupVersion}` });
      for (const { name, namespaced } of list.resources) {
        if (namespaced && !name.includes('/')) {
          found.push({ base: `/apis/${groupVersion}`, plural: name });
        }
      }
    }
  }
  return found;
}

/** Resolves when no object of the collections has changed for a while. */
async function settle(server, paths) {
  let last = '';
  let since = Date.now();
  const isQuiet = async () => {
    const versions = [];
    for (const { base, plural } of paths) {
      const { body } = await call(server, { path: `${base}/${plural}` });
      versions.push(...(body.items ?? []).map(({ metadata }) => metadata.resourceVersion));
    }
    const now = versions.join();
    if (now !== last) since = Date.now();
    last = now;
    return Date.now() - since > quietMs;
  };
  const isSettled = await eventually(isQuiet, { withinMs: settleWithinMs, everyMs: 1000 });
  if (!isSettled) console.log(`${server.name}: the examples have not settled`);
}

/** Omits the volume that the vendor of the reference's tree adds to the credentials of Pods. */
function withoutVendorsTrust(_, value) {
  if (!Array.isArray(value)) return value;
  return value.filter((item) => item?.configMap?.name !== 'openshift-service-ca.crt');
}

async function objectsIn(server, { namespace, paths }) {
  const texts = [];
  for (const { base, plural } of paths) {
    const { body } = await call(server, { path: `${base}/namespaces/${namespace}/${plural}` });
    for (const item of body.items ?? []) {
      const text = JSON.stringify(ordered(item), withoutVendorsTrust, 1);
      texts.push(`${base}/${plural}\n${plainNames(text, server)}`);
    }
  }
  return texts.sort().join('\n');
}

async function runExamples(server) {
  const all = examples().map((example, at) => ({ ...example, namespace: `example-${at}` }));
  const created = {};
  for (const { name, path, namespace } of all) {
    await runKubectl(server, ['create', 'namespace', namespace]);
    const { status, text } = await runKubectl(server, ['create', '-n', namespace, '-f', path]);
    created[name] = `exit ${status}\n${plainNames(text, server)}`;
  }
  const paths = await collections(server);
  await settle(server, paths);
  const steps = {};
  for (const { name, namespace } of all) {
    steps[name] = `${created[name]}${await objectsIn(server, { namespace, paths })}`;
  }
  return steps;
}

async function play(server) {
  const controllers = startControllers(server, {
    flags: [`--service-cluster-ip-range=${clusterIps}`],
    election: 'off',
  });
  const processes = podNetworks(server, { programs });
  const { outcomeOf } = operator;
  const nodes = playNodes(server, { names: ['peer-0', 'peer-1'], processes, outcomeOf });
  try {
    await pause(1000);
    return { ...(await install(server)), ...(await runExamples(server)) };
  } finally {
    if (process.env.PEERS_KEEP) console.log(processes.logs().join('\n'));
    await nodes.stop();
    await controllers.stop();
    for (const line of new Set(nodes.errors)) console.log(`played nodes: ${line}`);
  }
}

if (operator === undefined) {
  console.log(`usage: operators.mjs ${Object.keys(operators).join('|')}`);
  process.exitCode = 1;
} else if (!haveControllers || [source, programs, kubectl].includes(undefined)) {
  const controllers = 'KUBE_CONTROLLER_MANAGER and KUBE_SCHEDULER';
  console.log(
    `skipped: needs OPERATOR_SOURCE, OPERATOR_PROGRAMS, KUBECTL, ${controllers} (see README.md)`,
  );
} else if (inOwnNetwork({ addresses: ['10.0.0.0/24', clusterIps] })) {
  const flags = [
    `--service-cluster-ip-range=${clusterIps}`,
    '--bind-address=0.0.0.0',
    `--advertise-address=${serverAddress}`,
  ];
  const sides = await onBoth(play, { flags });
  compareSession({
    name: `operator-${process.argv[2]}`,
    program: operator.program,
    version: process.env.OPERATOR_VERSION ?? 'unknown',
    script: 'operators.mjs',
    what: 'With controllers and played kubelets, its controllers and webhooks as local processes, installed from its manifests, and examples: a session',
    step: 'manifests and examples',
    sides,
  });
}

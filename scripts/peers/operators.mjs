// Runs an operator's controllers and webhooks unmodified, with kube-controller-manager,
// kube-scheduler, and played kubelets, against both servers: installs it from its manifests, creates
// its examples, and compares what kubectl prints and the objects that come of them. Every program
// runs in a network namespace with its Pod's address; nothing outside is reached.
//
// The argument names the operator. OPERATOR_SOURCE names its source folder, and OPERATOR_PROGRAMS a
// folder with the programs that its folder `cmd` makes.
import { existsSync, readdirSync, statSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { haveControllers, startControllers } from './controllers.mjs';
import {
  available,
  kubectl,
  plainNames,
  playSession,
  runKubectl,
  settle,
  withoutVendorsTrust,
} from './operator-session.mjs';
import { inOwnNetwork } from './own-network.mjs';
import { playNodes } from './played-nodes.mjs';
import { podNetworks, serverAddress } from './pod-networks.mjs';
import { call, eventually, onBoth, pause } from './servers.mjs';
import { compareSession, ordered } from './sessions.mjs';

const clusterIps = '10.96.0.0/16';
const installWithinMs = 240_000;

/** Operators have manifests to apply and examples to create, or a session of commands. */
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
  gatekeeper: { program: 'Gatekeeper' },
  kueue: { program: 'Kueue' },
  olm: { program: 'Operator Lifecycle Manager' },
  snapshotter: {
    program: 'CSI snapshot controller',
    images: { 'registry.k8s.io/sig-storage/snapshot-controller': 'snapshot-controller' },
  },
};

const source = process.env.OPERATOR_SOURCE;
const programs = process.env.OPERATOR_PROGRAMS;
const operator = operators[process.argv[2]];

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
  await available(server);
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

/** The path of a container's program, which its command names, or else its image. */
function programOf({ image, command = [], args = [] }) {
  const [, built] = /^ko:\/\/.*\/cmd\/([a-z-]+)$/.exec(image) ?? [];
  const [first] = [...command, ...args];
  const named = first?.startsWith('/') ? basename(first) : operator.images?.[image.split(':')[0]];
  const path = resolve(programs, built ?? named ?? '');
  return existsSync(path) && statSync(path).isFile() ? path : undefined;
}

async function play(server) {
  const controllers = startControllers(server, {
    flags: [`--service-cluster-ip-range=${clusterIps}`],
    election: 'off',
  });
  const processes = podNetworks(server, { programOf });
  const { outcomeOf = () => 'run' } = operator;
  const nodes = playNodes(server, {
    names: ['peer-0', 'peer-1'],
    processes,
    outcomeOf,
    // Whatever an operator's examples request fits.
    cpu: '16',
  });
  try {
    await pause(1000);
    if (operator.examples === undefined) {
      return await playSession(server, { ...operator, name: process.argv[2], source });
    }
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
    step: operator.examples ? 'manifests and examples' : 'commands and collections',
    sides,
  });
}

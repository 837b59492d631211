// Runs the programs of Pods as local processes, each in a network namespace of its own that has the
// address of the Pod, so that programs with fixed ports run side by side, and with the volumes of
// the Pod in place of the host's files. Forwarders answer on the addresses of Services. Needs
// `inOwnNetwork` with the range of Services, and statically linked programs.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readlinkSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { forward, writeAccount } from './played-processes.mjs';
import { environmentOf, expanded, isProbed, portNumber, writeRoot, writeVolumes } from './pods.mjs';
import { call, eventually, startProgram } from './servers.mjs';

/** The address at which the server is reached from Pods; its certificate names it. */
export const serverAddress = '10.0.0.1';

/**
 * Takes the name of the Pod, which leaders are elected by, waits for the interface that connects the
 * namespace, gives it the address of the Pod, and runs the program with the root folder of the Pod.
 */
const insidePod = `
name=$1; address=$2; root=$3; program=$4; shift 4
echo "$name" > /proc/sys/kernel/hostname
until ip link show eth0 >/dev/null 2>&1; do sleep 0.05; done
ip link set lo up && ip addr add "$address/32" dev eth0 && ip link set eth0 up
ip route add default dev eth0
mount --rbind /dev "$root/dev" && mount --rbind /proc "$root/proc"
mkdir -p "$root/$(dirname "$1")" && touch "$root/$1" && mount --bind "$program" "$root/$1"
exec chroot "$root" "$@"
`;

let links = 0;

function readNamespace(pid) {
  try {
    return readlinkSync(`/proc/${pid}/ns/net`);
  } catch {
    return undefined;
  }
}

/** Connects the namespace of a process as soon as the process has one of its own. */
async function connectNamespace({ pid, address }) {
  links += 1;
  const link = `pod${links}`;
  const isSeparate = () => {
    const [own, other] = ['self', pid].map((one) => readNamespace(one));
    return other !== undefined && other !== own;
  };
  if (!(await eventually(isSeparate, { withinMs: 30_000, everyMs: 20 }))) return;
  const ip = (...args) => spawnSync('ip', args, { encoding: 'utf8' });
  const peer = ['type', 'veth', 'peer', 'name', 'eth0', 'netns', `${pid}`];
  const steps = [
    ['link', 'add', link, ...peer],
    ['link', 'set', link, 'up'],
    ['route', 'replace', `${address}/32`, 'dev', link, 'src', serverAddress],
  ];
  for (const step of steps) {
    const { status, stderr } = ip(...step);
    if (status !== 0) console.log(`ip ${step.join(' ')}: ${stderr}`);
  }
}

/** The words of a container's command; without one, its image names the program. */
function wordsOf({ command = [], args = [] }) {
  const words = [...command, ...args];
  return words[0]?.startsWith('/') ? words : ['/program', ...words];
}

/** Makes the folder of a Pod, and returns how its program is started. */
async function preparePod(server, { pod, container, address, path }) {
  const folder = mkdtempSync(join(server.directory, 'pod-'));
  const root = join(folder, 'root');
  writeRoot(root);
  await writeAccount(server, { pod, folder });
  const secrets = join(root, 'var/run/secrets/kubernetes.io');
  mkdirSync(secrets, { recursive: true });
  renameSync(join(folder, 'account'), join(secrets, 'serviceaccount'));
  const env = environmentOf(container, { pod, address });
  const words = wordsOf(container);
  const command = words.map((word) => expanded(word, env));
  const run = () => {
    const program = startProgram({
      command: 'unshare',
      args: [
        ...['--net', '--mount', '--uts', 'sh', '-c', insidePod],
        ...['sh', pod.metadata.name, address, root, path, ...command],
      ],
      log: join(folder, 'log'),
      cwd: folder,
      env: {
        ...env,
        KUBERNETES_SERVICE_HOST: serverAddress,
        KUBERNETES_SERVICE_PORT: new URL(server.url).port,
        HOME: '/',
      },
    });
    connectNamespace({ pid: program.child.pid, address });
    return program;
  };
  return { pod, container, address, run, folder, root, hosts: '' };
}

/** The names of Services, as DNS has them in a cluster. */
function hostsOf(services) {
  const lines = services
    .filter(({ spec }) => /^\d/.test(spec.clusterIP ?? ''))
    .map(({ metadata: { name, namespace }, spec }) => {
      const full = `${name}.${namespace}.svc`;
      return `${spec.clusterIP} ${full}.cluster.local ${full} ${name}.${namespace}`;
    });
  return ['127.0.0.1 localhost', ...lines, ''].join('\n');
}

/**
 * Starts and stops the processes of Pods, for `playNodes`.
 *
 * @param options.programOf returns the path of a container's program, if it has one here
 * @returns `start` and `end` of one Pod, `tick`, which follows the Services and what Pods mount,
 * and `stop`
 */
export function podNetworks(server, { programOf }) {
  const pods = new Map();
  const forwarders = new Map();

  const prepare = async (pod, { address }) => {
    const container = pod.spec.containers.find((one) => programOf(one) !== undefined);
    return preparePod(server, { pod, container, address, path: programOf(container) });
  };

  const start = async (pod, { address }) => {
    if (!pod.spec.containers.some((one) => programOf(one) !== undefined)) return true;
    const { uid } = pod.metadata;
    if (!pods.has(uid)) pods.set(uid, await prepare(pod, { address }));
    const known = pods.get(uid);
    if (known.program === undefined) {
      if (await writeVolumes(server, known)) known.program = known.run();
      return false;
    }
    known.isReady = await isProbed(known);
    return known.isReady;
  };

  const end = async (uid) => {
    const known = pods.get(uid);
    pods.delete(uid);
    await known?.program?.stop();
  };

  const follow = ({ metadata, spec }) => {
    const selected = Object.entries(spec.selector ?? {});
    if (selected.length === 0 || !/^\d/.test(spec.clusterIP)) return;
    for (const { port, targetPort = port } of spec.ports) {
      const key = `${spec.clusterIP} ${port}`;
      if (forwarders.has(key)) continue;
      const target = () => {
        const found = [...pods.values()].find(
          ({ pod, isReady }) =>
            isReady &&
            pod.metadata.namespace === metadata.namespace &&
            selected.every(([name, value]) => pod.metadata.labels?.[name] === value),
        );
        const number = found && portNumber(found.container, targetPort);
        return number && { host: found.address, port: number };
      };
      forwarders.set(key, forward({ address: spec.clusterIP, port, target }));
    }
  };

  const tick = async () => {
    const { body } = await call(server, { path: '/api/v1/services' });
    for (const service of body.items ?? []) follow(service);
    const hosts = hostsOf(body.items ?? []);
    for (const known of pods.values()) {
      if (known.program === undefined) continue;
      if (known.hosts !== hosts) writeFileSync(join(known.root, 'etc', 'hosts'), hosts);
      known.hosts = hosts;
      await writeVolumes(server, known);
      if (known.program.child.exitCode !== null) known.program = known.run();
    }
  };

  const stop = async () => {
    for (const uid of [...pods.keys()]) await end(uid);
    for (const forwarder of forwarders.values()) forwarder.close();
  };
  const logs = () =>
    [...pods.values()].map(({ pod, folder }) => `${pod.metadata.name}: ${join(folder, 'log')}`);
  return { start, end, tick, stop, logs };
}

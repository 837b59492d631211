// Runs the programs of Pods as local processes, each in a network namespace of its own that has the
// address of the Pod, so that programs with fixed ports run side by side. Forwarders answer on the
// addresses of Services. Needs `inOwnNetwork` with the range of Services.
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { forward, isListening, writeAccount } from './played-processes.mjs';
import { call, startProgram } from './servers.mjs';

/** The address at which the server is reached from Pods; its certificate names it. */
export const serverAddress = '10.0.0.1';

/** What a program finds in `/etc` besides mounted volumes. */
const hostFiles = ['ssl', 'passwd', 'group', 'nsswitch.conf'];

/**
 * Waits for the interface that connects the namespace, gives it the address of the Pod, and runs
 * the program with the folders of the Pod in place of the host's.
 */
const insidePod = `
address=$1; folder=$2; shift 2
until ip link show eth0 >/dev/null 2>&1; do sleep 0.05; done
ip link set lo up && ip addr add "$address/32" dev eth0 && ip link set eth0 up
ip route add default dev eth0
mount --bind "$folder/etc" /etc
mount -t tmpfs none /run
mkdir -p /run/secrets/kubernetes.io
cp -r "$folder/account" /run/secrets/kubernetes.io/serviceaccount
exec "$@"
`;

/** The program of a container whose image names its source, such as `ko://module/cmd/webhook`. */
function programOf(container, programs) {
  const name = /^ko:\/\/.*\/cmd\/(?<name>[a-z-]+)$/.exec(container.image)?.groups.name;
  const path = name && join(programs, name);
  return path && existsSync(path) ? path : undefined;
}

/** The environment of a container, as far as it is literal or about the Pod. */
function environmentOf(container, { pod, address }) {
  const fields = {
    'metadata.name': pod.metadata.name,
    'metadata.namespace': pod.metadata.namespace,
    'status.podIP': address,
  };
  return Object.fromEntries(
    (container.env ?? []).map(({ name, value, valueFrom }) => [
      name,
      value ?? fields[valueFrom?.fieldRef?.fieldPath] ?? '',
    ]),
  );
}

/** Writes the ConfigMaps and Secrets that a container mounts below `/etc`. */
async function writeEtc(server, { pod, container, folder }) {
  const etc = join(folder, 'etc');
  mkdirSync(etc);
  for (const name of hostFiles) {
    if (existsSync(join('/etc', name))) {
      cpSync(join('/etc', name), join(etc, name), { recursive: true, dereference: true });
    }
  }
  const base = `/api/v1/namespaces/${pod.metadata.namespace}`;
  for (const { name, mountPath } of container.volumeMounts ?? []) {
    const { configMap, secret } = pod.spec.volumes.find((volume) => volume.name === name);
    if (!mountPath.startsWith('/etc/') || !(configMap || secret)) continue;
    const path = configMap ? `configmaps/${configMap.name}` : `secrets/${secret.secretName}`;
    const { body } = await call(server, { path: `${base}/${path}` });
    const to = join(folder, mountPath);
    mkdirSync(to, { recursive: true });
    for (const [key, text] of Object.entries(body.data ?? {})) {
      writeFileSync(join(to, key), Buffer.from(text, configMap ? 'utf8' : 'base64'));
    }
  }
}

function connectNamespace({ pid, address, link }) {
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

const portNumber = (container, port) =>
  typeof port === 'number'
    ? port
    : container.ports?.find(({ name }) => name === port)?.containerPort;

/**
 * Starts and stops the processes of Pods, for `playNodes`.
 *
 * @param options.programs the folder of the programs
 * @returns `start` and `end` of one Pod, `tick`, which follows the Services, and `stop`
 */
export function podNetworks(server, { programs }) {
  const pods = new Map();
  const forwarders = new Map();
  let links = 0;

  const begin = async (pod, { address }) => {
    const container = pod.spec.containers.find((one) => programOf(one, programs) !== undefined);
    const folder = mkdtempSync(join(server.directory, 'pod-'));
    await writeEtc(server, { pod, container, folder });
    await writeAccount(server, { pod, folder });
    links += 1;
    const link = `pod${links}`;
    const command = [programOf(container, programs), ...(container.args ?? [])];
    const run = () => {
      const program = startProgram({
        command: 'unshare',
        args: ['--net', '--mount', 'sh', '-c', insidePod, 'sh', address, folder, ...command],
        log: join(folder, 'log'),
        cwd: folder,
        env: {
          ...environmentOf(container, { pod, address }),
          KUBERNETES_SERVICE_HOST: serverAddress,
          KUBERNETES_SERVICE_PORT: new URL(server.url).port,
          HOME: folder,
        },
      });
      connectNamespace({ pid: program.child.pid, address, link });
      return program;
    };
    return { pod, container, address, run, program: run(), folder };
  };

  const start = async (pod, { address }) => {
    if (!pod.spec.containers.some((one) => programOf(one, programs) !== undefined)) return true;
    const { uid } = pod.metadata;
    if (!pods.has(uid)) {
      pods.set(uid, await begin(pod, { address }));
      return false;
    }
    const { container } = pods.get(uid);
    const { readinessProbe: probe } = container;
    const port = portNumber(container, probe?.httpGet?.port ?? probe?.tcpSocket?.port);
    return port === undefined || isListening({ port, host: address });
  };

  const end = async (uid) => {
    const known = pods.get(uid);
    pods.delete(uid);
    await known?.program.stop();
  };

  const follow = ({ metadata, spec }) => {
    const selected = Object.entries(spec.selector ?? {});
    if (selected.length === 0 || !/^\d/.test(spec.clusterIP)) return;
    for (const { port, targetPort = port } of spec.ports) {
      const key = `${spec.clusterIP} ${port}`;
      if (forwarders.has(key)) continue;
      const target = () => {
        const found = [...pods.values()].find(
          ({ pod }) =>
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
    for (const known of pods.values()) {
      if (known.program.child.exitCode !== null) known.program = known.run();
    }
    const { body } = await call(server, { path: '/api/v1/services' });
    for (const service of body.items ?? []) follow(service);
  };

  const stop = async () => {
    for (const uid of [...pods.keys()]) await end(uid);
    for (const forwarder of forwarders.values()) forwarder.close();
  };
  return { start, end, tick, stop, logs: () => [...pods.values()].map(({ folder }) => folder) };
}

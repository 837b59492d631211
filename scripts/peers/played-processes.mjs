// Plays the containers of the few Pods whose programs can run as local processes: upstream's
// webhooks, the sample API server, and its etcd. The addresses of the Pods and of their Services
// lead to these processes, so they must be addresses of this host: see `inOwnNetwork`.
import { copyFileSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { call, freePort, startProgram } from './servers.mjs';

/** The program of a container, and the flag that sets its port. */
function programOf(container, { agnhost, sampleApiServer, etcd }) {
  const [first] = [...(container.command ?? []), ...(container.args ?? [])];
  if (container.image.includes('/agnhost') && /^(crd-conversion-)?webhook$/.test(first ?? '')) {
    return { command: agnhost, port: (port) => [`--port=${port}`] };
  }
  if (container.image.includes('/sample-apiserver')) {
    return { command: sampleApiServer, port: (port) => [`--secure-port=${port}`] };
  }
  if (first?.endsWith('/etcd')) return { command: etcd, port: () => [] };
  return undefined;
}

function readinessPort(container) {
  return container.readinessProbe?.httpGet?.port ?? container.ports?.[0]?.containerPort;
}

/**
 * Forwards connections to an address.
 *
 * @param options.target returns where a connection leads; undefined closes it
 */
export function forward({ address, port, target }) {
  const server = createServer((socket) => {
    const to = target();
    if (to === undefined) return socket.destroy();
    const other = connect(to);
    for (const [side, peer] of [
      [socket, other],
      [other, socket],
    ]) {
      side.on('error', () => peer.destroy());
      side.on('close', () => peer.destroy());
    }
    socket.pipe(other).pipe(socket);
  });
  server.on('error', (error) => console.log(`no forwarder on ${address}:${port}: ${error}`));
  server.listen(port, address);
  return server;
}

/** Whether a program listens at an address. */
export function isListening({ port, host }) {
  return new Promise((resolve) => {
    const socket = connect({ port, host, timeout: 1000 });
    const end = (answer) => {
      resolve(answer);
      socket.destroy();
    };
    socket.on('connect', () => end(true));
    for (const event of ['error', 'timeout']) socket.on(event, () => end(false));
  });
}

const local = (port) => ({ port, host: '127.0.0.1' });

/** Writes the Secrets that a Pod mounts to files; resolves with their folders by mount path. */
async function writeVolumes(server, { pod, folder }) {
  const folders = new Map();
  for (const { name, secret } of pod.spec.volumes ?? []) {
    if (secret === undefined) continue;
    const path = `/api/v1/namespaces/${pod.metadata.namespace}/secrets/${secret.secretName}`;
    const { body } = await call(server, { path });
    const to = join(folder, name);
    mkdirSync(to);
    for (const [key, data] of Object.entries(body.data ?? {})) {
      writeFileSync(join(to, key), Buffer.from(data, 'base64'));
    }
    for (const container of pod.spec.containers) {
      const mount = container.volumeMounts?.find((volumeMount) => volumeMount.name === name);
      if (mount !== undefined) folders.set(mount.mountPath, to);
    }
  }
  return folders;
}

const accountFolder = 'account';

/** Runs a program with a copy of a folder at the path where programs expect their account. */
const withAccount = [
  'mount -t tmpfs none /run',
  'mkdir -p /run/secrets/kubernetes.io',
  'cp -r "$1" /run/secrets/kubernetes.io/serviceaccount',
  'shift',
  'exec "$@"',
].join(' && ');

/** Writes the credentials of a Pod's service account, as its kubelet does. */
export async function writeAccount(server, { pod, folder }) {
  const { namespace } = pod.metadata;
  const account = pod.spec.serviceAccountName ?? 'default';
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`;
  const { body } = await call(server, { method: 'POST', path, body: {} });
  const to = join(folder, accountFolder);
  mkdirSync(to);
  writeFileSync(join(to, 'token'), body.status.token);
  writeFileSync(join(to, 'namespace'), namespace);
  copyFileSync(join(server.directory, 'ca.crt'), join(to, 'ca.crt'));
}

/**
 * Starts and stops the processes of Pods, for `playNodes`.
 *
 * @param options.binaries paths of `agnhost`, `sampleApiServer`, and `etcd`
 * @returns `start` and `end` of one Pod, `tick`, which follows the Services, and `stop`
 */
export function playProcesses(server, { binaries }) {
  const pods = new Map();

  const startContainer = async (container, { folder, folders }) => {
    const program = programOf(container, binaries);
    if (program === undefined) return undefined;
    const own = await freePort();
    const written = [...(container.command ?? []).slice(1), ...(container.args ?? [])];
    const args = written.map((arg) => {
      const mounted = [...folders].find(([path]) => arg.includes(path));
      return mounted === undefined ? arg : arg.replace(mounted[0], mounted[1]);
    });
    const run = () =>
      startProgram({
        command: 'unshare',
        args: [
          ...['--mount', 'sh', '-c', withAccount, 'sh', join(folder, accountFolder)],
          ...[program.command, ...args, ...program.port(own)],
        ],
        log: join(folder, `${container.name}.log`),
        cwd: folder,
        env: {
          KUBERNETES_SERVICE_HOST: '127.0.0.1',
          KUBERNETES_SERVICE_PORT: new URL(server.url).port,
        },
      });
    return { run, running: run(), container: readinessPort(container), local: own };
  };

  const start = async (pod, { address }) => {
    const known = pods.get(pod.metadata.uid);
    if (known === undefined) {
      if (!pod.spec.containers.some((container) => programOf(container, binaries) !== undefined))
        return true;
      const folder = mkdtempSync(join(server.directory, 'pod-'));
      const folders = await writeVolumes(server, { pod, folder });
      await writeAccount(server, { pod, folder });
      const programs = [];
      for (const container of pod.spec.containers) {
        const program = await startContainer(container, { folder, folders });
        if (program !== undefined) programs.push(program);
      }
      const forwarders = new Map();
      for (const { container: port, local: own } of programs) {
        const target = () => local(own);
        if (port !== undefined) forwarders.set(`${port}`, forward({ address, port, target }));
      }
      pods.set(pod.metadata.uid, { pod, programs, forwarders });
      return false;
    }
    const probed = known.programs.filter(({ container }) => container !== undefined);
    const answers = await Promise.all(probed.map((program) => isListening(local(program.local))));
    return answers.every((answer) => answer);
  };

  const end = async (uid) => {
    const known = pods.get(uid);
    if (known === undefined) return;
    pods.delete(uid);
    for (const forwarder of known.forwarders.values()) forwarder.close();
    for (const program of known.programs) await program.running.stop();
  };

  const follow = ({ metadata, spec }, { pod, programs, forwarders }) => {
    const selected = Object.entries(spec.selector ?? {});
    const isSelected =
      metadata.namespace === pod.metadata.namespace &&
      selected.length > 0 &&
      selected.every(([key, value]) => pod.metadata.labels?.[key] === value);
    if (!isSelected) return;
    for (const { port, targetPort } of spec.ports) {
      const key = `${spec.clusterIP} ${port}`;
      const program = programs.find(({ container }) => container === targetPort);
      if (program === undefined || forwarders.has(key)) continue;
      const target = () => local(program.local);
      forwarders.set(key, forward({ address: spec.clusterIP, port, target }));
    }
  };

  const tick = async () => {
    if (pods.size === 0) return;
    for (const program of [...pods.values()].flatMap(({ programs }) => programs)) {
      // Restarts a program that has ended, as a kubelet does; for example, because its role was not
      // yet bound.
      if (program.running.child.exitCode !== null) program.running = program.run();
    }
    const { body } = await call(server, { path: '/api/v1/services' });
    for (const service of body.items ?? []) {
      for (const entry of pods.values()) follow(service, entry);
    }
  };

  const stop = async () => {
    for (const uid of [...pods.keys()]) await end(uid);
  };
  return { start, end, tick, stop };
}

// What a kubelet gives the program of a container: its environment, its files, and its probe.
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { request as plainRequest } from 'node:http';
import { request as secureRequest } from 'node:https';
import { dirname, join } from 'node:path';
import { isListening } from './played-processes.mjs';
import { call } from './servers.mjs';

/** What a program finds in `/etc` besides mounted volumes. */
const hostFiles = ['ssl', 'passwd', 'group', 'nsswitch.conf'];
const probeWithinMs = 2_000;

/** Replaces references such as `$(POD_NAME)`. */
export const expanded = (text, env) =>
  text.replace(/\$\((\w+)\)/g, (reference, name) => env[name] ?? reference);

/** The environment of a container, as far as it is literal or about the Pod. */
export function environmentOf(container, { pod, address }) {
  const fields = {
    'metadata.name': pod.metadata.name,
    'metadata.namespace': pod.metadata.namespace,
    'metadata.uid': pod.metadata.uid,
    'spec.nodeName': pod.spec.nodeName,
    'spec.serviceAccountName': pod.spec.serviceAccountName,
    'status.podIP': address,
  };
  const env = {};
  for (const { name, value, valueFrom } of container.env ?? []) {
    env[name] = expanded(value ?? fields[valueFrom?.fieldRef?.fieldPath] ?? '', env);
  }
  return env;
}

/** Makes a root folder with what programs expect besides their volumes. */
export function writeRoot(root) {
  for (const name of ['dev', 'proc', 'tmp', 'etc', 'ko-app']) {
    mkdirSync(join(root, name), { recursive: true });
  }
  for (const name of hostFiles) {
    if (existsSync(join('/etc', name))) {
      cpSync(join('/etc', name), join(root, 'etc', name), { recursive: true, dereference: true });
    }
  }
}

function writeChanged(path, bytes) {
  if (existsSync(path) && readFileSync(path).equals(bytes)) return;
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, bytes);
}

/** Writes one volume; resolves with false while the object of its source does not exist. */
async function writeVolume(server, { namespace, volume, mount, to }) {
  const { configMap, secret } = volume;
  if (!(configMap || secret)) {
    if (volume.emptyDir) mkdirSync(to, { recursive: true });
    return true;
  }
  const source = configMap ?? secret;
  const path = configMap ? `configmaps/${configMap.name}` : `secrets/${secret.secretName}`;
  const { status, body } = await call(server, { path: `/api/v1/namespaces/${namespace}/${path}` });
  if (status !== 200) return source.optional === true;
  if (mount.subPath === undefined) mkdirSync(to, { recursive: true });
  for (const [key, text] of Object.entries(body.data ?? {})) {
    const item = source.items?.find((one) => one.key === key);
    if (source.items && !item) continue;
    const name = item?.path ?? key;
    if (mount.subPath !== undefined && mount.subPath !== name) continue;
    const file = mount.subPath === undefined ? join(to, name) : to;
    writeChanged(file, Buffer.from(text, configMap ? 'utf8' : 'base64'));
  }
  return true;
}

/** Writes the ConfigMaps and Secrets that a container mounts, as they are now. */
export async function writeVolumes(server, { pod, container, root }) {
  const { namespace } = pod.metadata;
  let isComplete = true;
  for (const mount of container.volumeMounts ?? []) {
    const volume = pod.spec.volumes.find(({ name }) => name === mount.name);
    const to = join(root, mount.mountPath);
    isComplete = (await writeVolume(server, { namespace, volume, mount, to })) && isComplete;
  }
  return isComplete;
}

/** The number of a container's port, which may be given by its name. */
export const portNumber = (container, port) =>
  typeof port === 'number'
    ? port
    : container.ports?.find(({ name }) => name === port)?.containerPort;

function isHealthy({ host, port, path, scheme, headers }) {
  const send = scheme === 'HTTPS' ? secureRequest : plainRequest;
  return new Promise((resolve) => {
    const options = { host, port, path, headers, rejectUnauthorized: false };
    const sent = send({ ...options, timeout: probeWithinMs }, (answer) => {
      answer.resume();
      resolve(answer.statusCode < 400);
    });
    sent.on('timeout', () => sent.destroy());
    sent.on('error', () => resolve(false));
    sent.end();
  });
}

/** Whether the readiness probe of a container succeeds. */
export async function isProbed({ container, address: host }) {
  const { httpGet, tcpSocket } = container.readinessProbe ?? {};
  const port = portNumber(container, httpGet?.port ?? tcpSocket?.port);
  if (port === undefined) return true;
  if (httpGet === undefined) return isListening({ port, host });
  const { path = '/', scheme, httpHeaders = [] } = httpGet;
  const headers = Object.fromEntries(httpHeaders.map(({ name, value }) => [name, value]));
  return isHealthy({ host, port, path, scheme, headers });
}

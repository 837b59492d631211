// Starts Wheelhouse and the reference with the same flags and credentials, so that a program can
// run against one and then the other.
import { execFile, execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const token = 'peers-admin-token';
const startWithinMs = 60_000;

/** Resolves after `ms` milliseconds. */
export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** The path of a program: the value of the environment variable, or the first match in PATH. */
export function programPath({ variable, name }) {
  const chosen = process.env[variable];
  if (chosen) return existsSync(chosen) ? chosen : undefined;
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    const path = join(folder, name);
    if (existsSync(path)) return path;
  }
  return undefined;
}

/** Polls `check` until it returns a truthy value; undefined after `withinMs`. */
export async function eventually(check, { withinMs, everyMs = 200 }) {
  const end = Date.now() + withinMs;
  for (;;) {
    const value = await check();
    if (value) return value;
    if (Date.now() > end) return undefined;
    await pause(everyMs);
  }
}

/** A free TCP port of the loopback interface. */
export function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

/** Runs a program while this process continues; resolves with its exit code and its output. */
export function runProgram(command, args, options) {
  const limits = { maxBuffer: 256 * 1024 * 1024, ...options };
  return new Promise((resolve) => {
    const child = execFile(command, args, limits, (_error, stdout, stderr) =>
      resolve({ status: child.exitCode, stdout, stderr }),
    );
  });
}

/** Starts a program that writes its output to a file; `stop` ends it and waits for its exit. */
export function startProgram({ command, args, log, env = {}, cwd = root }) {
  const file = openSync(log, 'a');
  const child = spawn(command, args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', file, file],
  });
  const exited = new Promise((resolve) => child.on('exit', resolve));
  const stop = async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM');
    const killer = setTimeout(() => child.kill('SIGKILL'), 10_000);
    await exited;
    clearTimeout(killer);
  };
  return { child, exited, stop };
}

/**
 * Sends one request to a server; resolves with the status code, the decoded body, and warnings. A
 * body that is a Buffer is sent as it is, with no Content-Type but that of `headers`.
 */
export function call(server, { method = 'GET', path, body, headers = {} }) {
  const isRaw = Buffer.isBuffer(body);
  const text = body === undefined || isRaw ? body : JSON.stringify(body);
  const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
  return new Promise((resolve, reject) => {
    const sent = request(`${server.url}${path}`, {
      method,
      rejectUnauthorized: false,
      headers: {
        authorization: `Bearer ${server.token}`,
        accept: 'application/json',
        // Without a length, Node sends the body of a DELETE as if it were another request.
        ...(text === undefined
          ? {}
          : { ...(!isRaw && { 'content-type': type }), 'content-length': Buffer.byteLength(text) }),
        ...headers,
      },
    });
    sent.on('error', reject);
    sent.on('response', (answer) => {
      const parts = [];
      answer.on('data', (part) => parts.push(part));
      answer.on('error', reject);
      answer.on('end', () => {
        const answered = Buffer.concat(parts).toString();
        const isJson = answer.headers['content-type']?.includes('json');
        const { warning: warnings } = answer.headers;
        const decoded = isJson && answered !== '' ? JSON.parse(answered) : answered;
        resolve({ status: answer.statusCode, body: decoded, warnings });
      });
    });
    sent.end(text);
  });
}

/** Writes the credentials with which both servers are started. */
function writeCredentials(directory) {
  const at = (name) => join(directory, name);
  const openssl = (...args) => execFileSync('openssl', args, { stdio: 'ignore' });
  openssl('genrsa', '-out', at('sa.key'), '2048');
  openssl('rsa', '-in', at('sa.key'), '-pubout', '-out', at('sa.pub'));
  // Python 3.13 accepts no authority without a key usage.
  const usage = ['-addext', 'keyUsage=critical,keyCertSign,cRLSign'];
  const subject = ['-subj', '/CN=peers-ca', '-days', '30', ...usage];
  const keys = ['-newkey', 'rsa:2048', '-nodes', '-keyout', at('ca.key'), '-out', at('ca.crt')];
  openssl('req', '-x509', ...keys, ...subject);
  writeFileSync(
    at('serving.ext'),
    'subjectAltName=DNS:localhost,IP:127.0.0.1,IP:10.0.0.1\nauthorityKeyIdentifier=keyid\n',
  );
  const request = ['-newkey', 'rsa:2048', '-nodes', '-keyout', at('serving.key')];
  openssl('req', ...request, '-out', at('serving.csr'), '-subj', '/CN=peers');
  const signer = ['-CA', at('ca.crt'), '-CAkey', at('ca.key'), '-CAcreateserial', '-days', '30'];
  const signed = ['-extfile', at('serving.ext'), '-out', at('serving.crt')];
  openssl('x509', '-req', '-in', at('serving.csr'), ...signer, ...signed);
  const proxyKeys = ['-newkey', 'rsa:2048', '-nodes', '-keyout', at('proxy.key')];
  openssl('req', ...proxyKeys, '-out', at('proxy.csr'), '-subj', '/CN=front-proxy-client');
  openssl('x509', '-req', '-in', at('proxy.csr'), ...signer, '-out', at('proxy.crt'));
  // The suite of kubectl's commands has a token of its own.
  const tokens = [token, 'admin-token'].map((line) => `${line},admin,admin,"system:masters"\n`);
  writeFileSync(at('tokens.csv'), tokens.join(''));
}

function commonFlags({ directory, port, flags }) {
  const at = (name) => join(directory, name);
  const nameOf = (flag) => flag.slice(0, flag.indexOf('='));
  const replaced = new Set(flags.map(nameOf));
  const common = [
    '--bind-address=127.0.0.1',
    `--secure-port=${port}`,
    `--tls-cert-file=${at('serving.crt')}`,
    `--tls-private-key-file=${at('serving.key')}`,
    `--service-account-key-file=${at('sa.key')}`,
    `--service-account-signing-key-file=${at('sa.key')}`,
    '--service-account-issuer=https://kubernetes.default.svc.cluster.local',
    '--service-cluster-ip-range=10.0.0.0/24',
    `--token-auth-file=${at('tokens.csv')}`,
    `--client-ca-file=${at('ca.crt')}`,
    `--requestheader-client-ca-file=${at('ca.crt')}`,
    '--requestheader-username-headers=X-Remote-User',
    '--requestheader-group-headers=X-Remote-Group',
    '--requestheader-extra-headers-prefix=X-Remote-Extra-',
    '--requestheader-allowed-names=front-proxy-client',
    `--proxy-client-cert-file=${at('proxy.crt')}`,
    `--proxy-client-key-file=${at('proxy.key')}`,
    '--authorization-mode=Node,RBAC',
    '--allow-privileged=true',
  ];
  return [...common.filter((flag) => !replaced.has(nameOf(flag))), ...flags];
}

function writeKubeconfig({ path, url, directory }) {
  const cluster = { server: url, 'certificate-authority': join(directory, 'ca.crt') };
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'peer', cluster }],
    users: [{ name: 'admin', user: { token } }],
    contexts: [{ name: 'peer', context: { cluster: 'peer', user: 'admin' } }],
    'current-context': 'peer',
  };
  writeFileSync(path, JSON.stringify(config, undefined, 2), { mode: 0o600 });
}

async function ready(server, { programs, log }) {
  const isReady = async () => {
    if (programs.some(({ child }) => child.exitCode !== null)) {
      throw new Error(`${server.name} ended while starting; see ${log}`);
    }
    const answer = await call(server, { path: '/readyz' }).catch(() => undefined);
    return answer?.status === 200;
  };
  const isUp = await eventually(isReady, { withinMs: startWithinMs, everyMs: 20 });
  if (!isUp) throw new Error(`${server.name} was not ready within ${startWithinMs} ms; see ${log}`);
}

async function startServer({ name, flags, start }) {
  const directory = mkdtempSync(join(tmpdir(), `peers-${name}-`));
  writeCredentials(directory);
  const port = await freePort();
  const url = `https://127.0.0.1:${port}`;
  const log = join(directory, 'server.log');
  const before = performance.now();
  const programs = await start({ directory, log, flags: commonFlags({ directory, port, flags }) });
  const kubeconfig = join(directory, 'kubeconfig');
  writeKubeconfig({ path: kubeconfig, url, directory });
  const server = {
    name,
    url,
    token,
    directory,
    kubeconfig,
    log,
    stop: async () => {
      for (const program of [...programs].reverse()) await program.stop();
      if (!process.env.PEERS_KEEP) rmSync(directory, { recursive: true, force: true });
    },
  };
  try {
    await ready(server, { programs, log });
    const readyMs = performance.now() - before;
    const { body } = await call(server, { path: '/version' });
    const pids = programs.map(({ child }) => child.pid);
    return { ...server, version: body.gitVersion, pids, readyMs };
  } catch (error) {
    for (const program of programs) await program.stop();
    throw error;
  }
}

/** Starts etcd in `directory`; resolves with the program and its client URL. */
export async function startEtcd({ directory, etcd, flags = [] }) {
  const [port, peerPort] = [await freePort(), await freePort()];
  const url = `http://127.0.0.1:${port}`;
  const peerUrl = `http://127.0.0.1:${peerPort}`;
  const args = [
    `--data-dir=${join(directory, 'etcd')}`,
    `--listen-client-urls=${url}`,
    `--advertise-client-urls=${url}`,
    `--listen-peer-urls=${peerUrl}`,
    `--initial-advertise-peer-urls=${peerUrl}`,
    `--initial-cluster=default=${peerUrl}`,
    ...flags,
  ];
  const log = join(directory, 'etcd.log');
  return { url, program: startProgram({ command: etcd, args, log }) };
}

/**
 * Starts the reference, kube-apiserver, on an etcd of its own.
 *
 * @param options.flags additional flags
 * @returns the running server; undefined, after a message, if a binary is missing
 */
export async function startReference({ flags = [] } = {}) {
  const binary = programPath({ variable: 'KUBE_APISERVER', name: 'kube-apiserver' });
  const etcd = programPath({ variable: 'ETCD', name: 'etcd' });
  if (binary === undefined || etcd === undefined) {
    console.log('skipped: the reference needs KUBE_APISERVER and ETCD (see README.md)');
    return undefined;
  }
  const start = async ({ directory, log, flags: all }) => {
    const store = await startEtcd({ directory, etcd });
    const args = [`--etcd-servers=${store.url}`, `--cert-dir=${join(directory, 'certs')}`, ...all];
    return [store.program, startProgram({ command: binary, args, log })];
  };
  return startServer({ name: 'reference', flags, start });
}

/**
 * Starts the built server of this repository, with only the controllers of an API server.
 *
 * @param options.flags additional flags
 * @param options.store `embedded`, or `etcd` for an etcd of its own
 * @returns the running server; undefined, after a message, if etcd is needed and missing
 */
export async function startWheelhouse({ flags = [], store = 'embedded' } = {}) {
  const etcd = store === 'etcd' ? programPath({ variable: 'ETCD', name: 'etcd' }) : undefined;
  if (store === 'etcd' && etcd === undefined) {
    console.log('skipped: Wheelhouse on etcd needs ETCD (see README.md)');
    return undefined;
  }
  const start = async ({ directory, log, flags: all }) => {
    const peer = etcd === undefined ? undefined : await startEtcd({ directory, etcd });
    const own = [
      '--dialect=kubernetes',
      '--controllers=api-server',
      `--data-dir=${join(directory, 'data')}`,
      ...(peer === undefined ? [] : [`--etcd-servers=${peer.url}`]),
    ];
    const args = [join(root, 'bin', 'wheelhouse.js'), 'serve', ...own, ...all];
    const server = startProgram({ command: process.execPath, args, log });
    return peer === undefined ? [server] : [peer.program, server];
  };
  return startServer({ name: 'wheelhouse', flags, start });
}

/**
 * Runs `play` against the reference and against Wheelhouse, one after the other; PEERS_ONLY selects
 * one of them.
 *
 * @returns the results by server; `reference` is undefined if it is not available
 */
export async function onBoth(play, { flags = [] } = {}) {
  const results = {};
  const only = process.env.PEERS_ONLY;
  for (const [name, start] of Object.entries({
    reference: startReference,
    wheelhouse: startWheelhouse,
  })) {
    if (only !== undefined && only !== name) continue;
    const server = await start({ flags });
    if (server === undefined) continue;
    console.log(`${server.name} ${server.version} at ${server.url}`);
    try {
      results[server.name] = await play(server);
    } finally {
      await server.stop();
    }
  }
  return results;
}

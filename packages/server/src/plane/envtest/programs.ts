import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer, get, type IncomingMessage, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { isSea } from 'node:sea';
import { contained, itemAt, listen } from '@wheelhouse/machinery';
import { FlagError } from '../../flags/flags.ts';

/**
 * The name in an etcd address by which the API server recognizes the stand-in, which stores
 * nothing.
 */
const standInName = 'wheelhouse-stand-in';
const probeTimeoutMs = 2000;

/**
 * Converts envtest's flags for kube-apiserver to flags of `wheelhouse serve` (PLANE-1): the
 * Kubernetes dialect, no controllers, and objects in memory if the etcd is the stand-in. All files
 * are stored below the certificate directory. The caller's flags take precedence.
 * @returns the flags, and `discard`, which removes the temporary directory if one was created
 */
export async function apiServerFlags(
  args: readonly string[],
): Promise<{ readonly flags: readonly string[]; readonly discard: () => void }> {
  const keep = { discard: () => {} };
  const flags = ['--dialect=kubernetes', '--controllers=api-server'];
  if (args.includes('--help') || args.includes('--version')) return { flags: args, ...keep };
  const servers = valuesOf(args, 'etcd-servers');
  const isReal = servers.length > 0 && !(await isStandIn(servers.at(-1) ?? ''));
  if (isReal) return { flags: [...flags, ...args], ...keep };
  const rest = withoutEtcd(args);
  const dataDirFlag = valuesOf(args, 'data-dir').at(-1);
  const certDir = valuesOf(args, 'cert-dir').at(-1) ?? '';
  const needsTemporary = dataDirFlag === undefined && certDir === '';
  const temporary = needsTemporary ? mkdtempSync(join(tmpdir(), 'wheelhouse-envtest-')) : undefined;
  const dataDir = dataDirFlag ?? temporary ?? join(certDir, 'wheelhouse');
  const discard = () => {
    if (temporary !== undefined) rmSync(temporary, { recursive: true, force: true });
  };
  return {
    flags: [...flags, '--storage-backend=memory', ...rest, `--data-dir=${dataDir}`],
    discard,
  };
}

/** The values of a flag, given as `--name=value` or `--name value`. */
function valuesOf(args: readonly string[], name: string): readonly string[] {
  return args.flatMap((arg, at) => {
    if (arg.startsWith(`--${name}=`)) return [arg.slice(name.length + 3)];
    return arg === `--${name}` ? [args[at + 1] ?? ''] : [];
  });
}

/** Removes the etcd flags and their values. A flag without a value stays and is rejected later. */
function withoutEtcd(args: readonly string[]): readonly string[] {
  const kept: string[] = [];
  for (let at = 0; at < args.length; at += 1) {
    const arg = itemAt(args, at);
    if (!/^--(etcd-|storage-backend)/.test(arg)) kept.push(arg);
    else if (!arg.includes('=')) {
      if (at + 1 === args.length) kept.push(arg);
      at += 1;
    }
  }
  return kept;
}

function isStandIn(servers: string): Promise<boolean> {
  const [first = ''] = servers.split(',', 1);
  if (!first.startsWith('http://')) return Promise.resolve(false);
  return new Promise((resolve) => {
    const no = () => resolve(false);
    const request = get(new URL('/health', first), { timeout: probeTimeoutMs });
    const response = (answer: IncomingMessage) => {
      answer.resume();
      resolve(answer.headers.server === standInName);
    };
    const timeout = () => request.destroy();
    listen(request, { where: 'process', end: no }, { response, error: no, timeout });
  });
}

const etcdVersion = '3.5.21';

const etcdUsage = `Stands in for etcd where a test environment keeps its objects in the API server's memory.
All other flags of etcd are accepted and ignored.

  --listen-client-urls 'http://127.0.0.1:2379'
    The address whose health check is answered; of several, the first.
  --data-dir ''
    A directory to create. Nothing is written to it.
  --unsafe-no-fsync 'false'
    Ignored: nothing is stored.
`;

/**
 * The stand-in's output for `--help` and `--version`, since envtest looks for a flag in etcd's
 * help; undefined otherwise.
 */
export function etcdAnswer(args: readonly string[]): string | undefined {
  if (args.some((arg) => ['--help', '-help', '-h'].includes(arg))) return etcdUsage;
  return args.includes('--version') ? `etcd Version: ${etcdVersion}\n` : undefined;
}

/**
 * Starts a stand-in for etcd while objects are in the API server's memory: it accepts etcd's flags,
 * answers its health check, and stores nothing. Resolves when it listens and rejects if it cannot.
 */
export async function startEtcdStandIn(
  args: readonly string[],
): Promise<{ readonly url: string; stop(): Promise<void> }> {
  const address = valuesOf(args, 'listen-client-urls').at(-1) ?? 'http://127.0.0.1:2379';
  const url = clientUrl(address);
  const directory = valuesOf(args, 'data-dir').at(-1) ?? '';
  if (directory !== '') mkdirSync(directory, { recursive: true, mode: 0o700 });
  const server = createServer(contained({ where: 'process' }, answerAsEtcd));
  await new Promise<void>((resolve, reject) => {
    listen(server, { where: 'process', end: reject }, { error: reject, listening: resolve });
    server.listen(Number(url.port || 80), url.hostname.replace(/^\[|\]$/g, ''));
  });
  const { port } = server.address() as { port: number };
  const stop = () =>
    new Promise<void>((resolve) => {
      server.close(contained({ where: 'process' }, () => resolve()));
      server.closeAllConnections();
    });
  return { url: `http://${url.hostname}:${port}`, stop };
}

function clientUrl(address: string): URL {
  const [first = ''] = address.split(',', 1);
  try {
    const url = new URL(first);
    if (url.protocol === 'http:') return url;
  } catch {
    // Reported below.
  }
  throw new FlagError(`--listen-client-urls ${JSON.stringify(address)} is not an http:// URL`);
}

const answers: Readonly<Record<string, unknown>> = {
  '/health': { health: 'true', reason: '' },
  '/readyz': { health: 'true' },
  '/livez': { health: 'true' },
  '/version': { etcdserver: etcdVersion, etcdcluster: '3.5.0' },
};

function answerAsEtcd(request: IncomingMessage, response: ServerResponse): void {
  request.resume();
  const path = itemAt((request.url ?? '').split('?', 1), 0);
  const answer = Object.hasOwn(answers, path) ? answers[path] : undefined;
  response.setHeader('server', standInName);
  response.setHeader('content-type', 'application/json');
  response.statusCode = answer === undefined ? 404 : 200;
  response.end(JSON.stringify(answer ?? { error: 'nothing is stored here' }));
}

/** The commands that start the programs of this installation. */
interface Launcher {
  /** The command that takes the arguments of `wheelhouse`, such as `serve`. */
  readonly wheelhouse: readonly string[];
  /** The command that takes the arguments of `svcctl`. */
  readonly svcctl: readonly string[];
}

const mark = '# Written by `wheelhouse envtest-assets`.';

const usage = `Writes kube-apiserver, etcd, and kubectl for test environments that start them as programs.

Usage:
  wheelhouse envtest-assets DIR
`;

/**
 * Writes the executables that envtest looks for (PLANE-1), which start this installation, and
 * returns the message for the user. Throws FlagError without a directory, and if an existing file
 * was not written by this command.
 */
export function writeEnvtestAssets(args: readonly string[], launcher: Launcher): string {
  const [directory, ...rest] = args;
  if (directory === '--help' || directory === '-h') return usage;
  if (directory === undefined || directory === '' || directory.startsWith('-') || rest.length > 0) {
    throw new FlagError('envtest-assets takes one argument, the directory to write to');
  }
  const path = resolve(directory);
  const programs = {
    'kube-apiserver': [...launcher.wheelhouse, 'envtest', 'kube-apiserver'],
    etcd: [...launcher.wheelhouse, 'envtest', 'etcd'],
    kubectl: launcher.svcctl,
  };
  mkdirSync(path, { recursive: true });
  const files = Object.entries(programs).map(([name, words]) => [join(path, name), words] as const);
  for (const [file] of files) requireReplaceable(file);
  for (const [file, words] of files) {
    const line = [...words.map(quoted), '"$@"'].join(' ');
    writeFileSync(file, `#!/bin/sh\n${mark}\nexec ${line}\n`);
    chmodSync(file, 0o755);
  }
  return `export KUBEBUILDER_ASSETS=${quoted(path)}\n`;
}

/** Returns the commands of the running installation: Node.js with a script, or one executable. */
export function ownLauncher(): Launcher {
  if (isSea()) return { wheelhouse: [process.execPath], svcctl: [process.execPath, 'svcctl'] };
  const script = realpathSync(process.argv[1] ?? '');
  const svcctl = join(dirname(script), 'svcctl.js');
  return { wheelhouse: [process.execPath, script], svcctl: [process.execPath, svcctl] };
}

function requireReplaceable(file: string): void {
  if (!existsSync(file) || readFileSync(file, 'utf8').includes(mark)) return;
  throw new FlagError(`${file} is there and was not written by envtest-assets: it is left alone`);
}

/** Quotes one word for a shell. */
function quoted(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}

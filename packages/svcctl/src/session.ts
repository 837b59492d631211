import { readFileSync } from 'node:fs';
import path from 'node:path';
import {
  type ApiClient,
  type ApiResource,
  createApiClient,
  type Discovery,
  discover,
  type Kubeconfig,
  type KubeconfigOverrides,
  kubeconfigFiles,
  loadKubeconfig,
  processExecHost,
  type ResolvedContext,
  RestMapper,
  resolveContext,
} from '@wheelhouse/client';
import {
  type Clock,
  type Dialect,
  dialectNames,
  dialectOf,
  formatTime,
  pause,
  programClock,
  systemErrorCode,
} from '@wheelhouse/machinery';
import { printGoDuration } from '@wheelhouse/schema';
import type { FlagSpec, Flags } from './flags.ts';
import { CliError, type CliIo } from './io.ts';

/** Groups that differ between dialects; every server has one of them. */
const typicalGroups = ['rbac.authorization', 'apiextensions', 'coordination', 'authorization'];

/** Flags that every command takes. */
export const globalFlags: readonly FlagSpec[] = [
  { name: 'kubeconfig', type: 'text', help: 'Path of the kubeconfig file' },
  { name: 'context', type: 'text', help: 'Context to use' },
  { name: 'cluster', type: 'text', help: 'Cluster of the kubeconfig to use' },
  { name: 'user', type: 'text', help: 'User of the kubeconfig to use' },
  { name: 'namespace', short: 'n', type: 'text', help: 'Namespace of the request' },
  { name: 'server', short: 's', type: 'text', help: 'Address and port of the API server' },
  { name: 'token', type: 'text', help: 'Bearer token' },
  { name: 'certificate-authority', type: 'text', help: 'File of the CA that signed the server' },
  { name: 'client-certificate', type: 'text', help: 'Client certificate file' },
  { name: 'client-key', type: 'text', help: 'Client key file' },
  {
    name: 'insecure-skip-tls-verify',
    type: 'boolean',
    help: "Don't check the server's certificate",
  },
  { name: 'tls-server-name', type: 'text', help: 'Name to check the certificate against' },
  { name: 'as', type: 'text', help: 'User to impersonate' },
  { name: 'as-group', type: 'list', help: 'Group to impersonate; repeatable' },
  { name: 'as-uid', type: 'text', help: 'UID to impersonate' },
  { name: 'username', type: 'text', help: 'User name for basic authentication' },
  { name: 'password', type: 'text', help: 'Password for basic authentication' },
  { name: 'request-timeout', type: 'text', help: 'How long to wait for an answer; 0: forever' },
  { name: 'cache-dir', type: 'text', help: 'Accepted and ignored: svcctl keeps no cache' },
  { name: 'warnings-as-errors', type: 'boolean', help: 'Fail when the server warns' },
  { name: 'v', short: 'v', type: 'text', help: 'Verbosity: 6 logs requests' },
  { name: 'help', short: 'h', type: 'boolean', help: 'Show help' },
];

/** The limit of a wait. */
export interface Deadline {
  readonly signal: AbortSignal;
  /** Whether the time is up; false after an interrupt alone. */
  isOver(): boolean;
}

/** One run of the command line: its flags and, created on first use, what they stand for. */
export class Session {
  readonly io: CliIo;
  readonly flags: Flags;
  /** Flags of the command that shadow global ones, such as `--user` of bindings. */
  readonly #own: ReadonlySet<string>;
  readonly #timeoutMs: number;
  #config: Kubeconfig | undefined;
  #configError: unknown = new Error('the kubeconfig was not read');
  #resolved: ResolvedContext | undefined;
  #client: ApiClient | undefined;
  #discovery: Promise<Discovery> | undefined;
  #warnings = 0;

  /** @param options.timeoutMs limit of a request, unless a flag sets another; 0 for none */
  constructor(options: {
    readonly io: CliIo;
    readonly flags: Flags;
    readonly ownFlags?: readonly FlagSpec[];
    readonly timeoutMs?: number;
  }) {
    this.io = options.io;
    this.flags = options.flags;
    this.#timeoutMs = options.timeoutMs ?? 0;
    this.#own = new Set(options.ownFlags?.map((flag) => flag.name));
  }

  /** The kubeconfig files of this command line. */
  get kubeconfigFiles(): readonly string[] {
    const flag = this.flags.text('kubeconfig');
    const { env, home } = this.io;
    return kubeconfigFiles({ flag: flag === undefined ? flag : this.path(flag), env, home });
  }

  /** Reads the kubeconfig. `context` throws its errors, so commands that need none ignore them. */
  async prepare(): Promise<void> {
    const required = this.flags.has('kubeconfig');
    try {
      this.#config = await loadKubeconfig({ files: this.kubeconfigFiles, required });
    } catch (error) {
      this.#configError = error;
    }
  }

  get context(): ResolvedContext {
    if (this.#resolved === undefined) {
      if (this.#config === undefined) throw this.#configError;
      this.#resolved = resolveContext(this.#config, this.#overrides(), {
        execHost: {
          ...processExecHost,
          env: this.io.env,
          stdinIsTerminal: () => this.io.stdinIsTerminal,
          stdinUnavailable: () =>
            this.flags.list('filename').includes('-')
              ? 'used by stdin resource manifest reader'
              : undefined,
          stderr: (text) => this.io.err(text),
        },
      });
    }
    return this.#resolved;
  }

  /** Number of warnings from the server. */
  get warnings(): number {
    return this.#warnings;
  }

  get namespace(): string {
    return this.context.namespace;
  }

  get client(): ApiClient {
    if (this.#client === undefined) {
      const verbosity = this.flags.integer('v') ?? 0;
      const { io } = this;
      this.#client = createApiClient(
        { ...this.context.client, userAgent: `svcctl/${clientVersion}` },
        {
          timeoutMs: this.requestTimeoutMs ?? this.#timeoutMs,
          ...(this.requestTimeoutMs ? { toldTimeout: goDuration(this.requestTimeoutMs) } : {}),
          observer: {
            warning: (text) => {
              this.#warnings += 1;
              io.err(`Warning: ${text}\n`);
            },
            request: ({ method, url, status, tookMs }) => {
              if (verbosity >= 6) io.err(`${method} ${url} ${status} in ${tookMs} milliseconds\n`);
            },
          },
        },
      );
    }
    return this.#client;
  }

  /** `--request-timeout` in milliseconds. Throws CliError. */
  get requestTimeoutMs(): number | undefined {
    try {
      return this.flags.durationMs('request-timeout');
    } catch {
      throw new CliError(
        'Invalid timeout value. Timeout must be a single integer in seconds, or an integer ' +
          'followed by a corresponding time unit (e.g. 1s | 2m | 3h)',
      );
    }
  }

  discovery(): Promise<Discovery> {
    this.#discovery ??= discover(this.client);
    return this.#discovery;
  }

  async mapper(): Promise<RestMapper> {
    return new RestMapper(await this.discovery());
  }

  /** The server's dialect, recognized by its API groups; the first dialect if none is typical. */
  async dialect(): Promise<Dialect> {
    const { resources } = await this.discovery();
    const served = new Set(resources.map(({ group }) => group));
    const dialects = dialectNames.map(dialectOf);
    const speaks = (one: Dialect) => typicalGroups.some((stem) => served.has(one.group(stem)));
    return dialects.find(speaks) ?? dialects[0]!;
  }

  /** The resource that a word names. Throws CliError if the server has none. */
  async resource(word: string): Promise<ApiResource> {
    const found = (await this.mapper()).byName(word);
    if (found === undefined) {
      const [name] = word.split('.');
      throw new CliError(`the server doesn't have a resource type ${JSON.stringify(name)}`);
    }
    return found;
  }

  /** The resource of a built-in kind, in any group. Rejects with CliError if there is none. */
  async resourceOfKind(kind: string): Promise<ApiResource> {
    const { resources } = await this.discovery();
    const found = resources.find((one) => one.kind === kind && one.preferred);
    if (found === undefined) throw new CliError(`the server does not serve ${kind}`);
    return found;
  }

  /** The clock of waits and ages. */
  get clock(): Clock {
    return this.io.clock ?? programClock;
  }

  /** Waits; rejects with the reason of an interrupt. */
  async pause(delayMs: number): Promise<void> {
    await pause(this.clock, { ms: delayMs, signal: this.io.signal, where: 'client' });
  }

  /** The time as objects carry it, in RFC 3339 and whole seconds. */
  timestamp(): string {
    return formatTime(this.clock.now());
  }

  /**
   * Limits a wait: the signal aborts when the user interrupts, or after `timeoutMs`. Without
   * `timeoutMs` there is no limit.
   */
  deadline(timeoutMs: number | undefined): Deadline {
    const timeout =
      timeoutMs === undefined ? undefined : AbortSignal.timeout(Math.max(0, Math.ceil(timeoutMs)));
    const signals = [this.io.signal, ...(timeout === undefined ? [] : [timeout])];
    return { signal: AbortSignal.any(signals), isOver: () => timeout?.aborted === true };
  }

  /** Resolves a path of the command line against the working directory. */
  path(file: string): string {
    return path.resolve(this.io.cwd, file);
  }

  /**
   * Reads a file of the command line. Throws a CliError whose message `failure` makes of the
   * reason, such as `open x: no such file or directory`.
   */
  readFile(file: string, failure: (why: string) => string): Buffer {
    try {
      return readFileSync(this.path(file));
    } catch (error) {
      const code = systemErrorCode(error) ?? '';
      throw new CliError(failure(`open ${file}: ${fileProblems[code] ?? code}`));
    }
  }

  close(): void {
    this.#client?.close();
  }

  #overrides(): KubeconfigOverrides {
    const { flags } = this;
    const text = (name: string) => (this.#own.has(name) ? undefined : flags.text(name));
    const file = (name: string) => {
      const value = text(name);
      return value === undefined ? undefined : this.path(value);
    };
    return {
      context: text('context'),
      cluster: text('cluster'),
      user: text('user'),
      namespace: text('namespace'),
      server: text('server'),
      token: text('token'),
      certificateAuthority: file('certificate-authority'),
      clientCertificate: file('client-certificate'),
      clientKey: file('client-key'),
      tlsServerName: flags.text('tls-server-name'),
      asUser: flags.text('as'),
      asGroups: flags.list('as-group'),
      asUid: flags.text('as-uid'),
      username: text('username'),
      password: text('password'),
      insecureSkipTlsVerify: flags.has('insecure-skip-tls-verify')
        ? flags.boolean('insecure-skip-tls-verify')
        : undefined,
    };
  }
}

/** System error codes in Go's words. */
const fileProblems: Readonly<Record<string, string | undefined>> = {
  EACCES: 'permission denied',
  EISDIR: 'is a directory',
  ENOENT: 'no such file or directory',
};

const goDuration = (durationMs: number): string =>
  printGoDuration(BigInt(Math.round(durationMs * 1_000_000)));

/** The version of this client, for User-Agent and `version`. */
export const clientVersion = '0.1.0';

import { readFileSync } from 'node:fs';
import { STATUS_CODES } from 'node:http';
import path from 'node:path';
import {
  type ApiClient,
  ApiError,
  type ApiResource,
  ConnectionError,
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
import { pemBlocks } from '@wheelhouse/codec';
import {
  type Clock,
  type Dialect,
  delayMsMax,
  dialectNames,
  dialectOf,
  formatTime,
  pause,
  programClock,
  systemErrorCode,
} from '@wheelhouse/machinery';
import { parseGoDuration, printGoDuration } from '@wheelhouse/schema';
import type { FlagSpec, Flags } from './flags.ts';
import { CliError, type CliIo } from './io.ts';
import { withGroup } from './objects.ts';

/** Stems of groups whose names differ between dialects; every server serves one of them. */
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
  {
    name: 'certificate-authority',
    type: 'text',
    help: 'CA file for the certificate of the server',
  },
  { name: 'client-certificate', type: 'text', help: 'Client certificate file' },
  { name: 'client-key', type: 'text', help: 'Client key file' },
  {
    name: 'insecure-skip-tls-verify',
    type: 'boolean',
    help: "Do not verify the server's certificate",
  },
  { name: 'tls-server-name', type: 'text', help: 'Name to expect in the server certificate' },
  { name: 'as', type: 'text', help: 'User to impersonate' },
  { name: 'as-group', type: 'list', help: 'Group to impersonate; repeatable' },
  { name: 'as-uid', type: 'text', help: 'UID to impersonate' },
  { name: 'username', type: 'text', help: 'User name for basic authentication' },
  { name: 'password', type: 'text', help: 'Password for basic authentication' },
  {
    name: 'request-timeout',
    type: 'text',
    help: 'How long to wait for a response; 0 for no limit',
  },
  { name: 'cache-dir', type: 'text', help: 'Ignored; svcctl keeps no cache' },
  { name: 'disable-compression', type: 'boolean', help: 'Ignored; responses may be compressed' },
  {
    name: 'log-flush-frequency',
    type: 'duration',
    help: 'Ignored; svcctl does not buffer its log',
  },
  { name: 'warnings-as-errors', type: 'boolean', help: 'Treat warnings from the server as errors' },
  {
    name: 'v',
    short: 'v',
    type: 'level',
    help: 'Verbosity: 5 logs expired watches, 6 requests, 7 headers',
  },
  { name: 'help', short: 'h', type: 'boolean', help: 'Show help' },
];

/** The exit code of a program that an interrupt ends. */
export const killedExitCode = 130;

/** The limit of a wait. */
export interface Deadline {
  readonly signal: AbortSignal;
  /** Whether the time limit has passed; false if only the user interrupted. */
  isOver(): boolean;
}

/**
 * One run of a command: its flags, and the context, client, and discovery that it creates on
 * demand.
 */
export class Session {
  readonly io: CliIo;
  readonly flags: Flags;
  /** The command line without flags: the command and its arguments. */
  readonly words: readonly string[];
  /** Flags of the command that shadow global ones, such as `--user` of bindings. */
  readonly #shadowed: ReadonlySet<string>;
  readonly #timeoutMs: number;
  /** Returns the help text of the command. */
  readonly help: () => Promise<string>;
  #config: Kubeconfig | undefined;
  #configError: unknown = new Error('the kubeconfig was not read');
  #resolved: ResolvedContext | undefined;
  #client: ApiClient | undefined;
  #discovery: Promise<Discovery> | undefined;
  readonly #deferred: unknown[] = [];
  readonly #ambiguities = new Set<string>();
  #documents = 0;
  /** The distinct warnings of the server. */
  readonly #warnings = new Set<string>();

  /** @param options.timeoutMs default time limit of a request; 0 for none */
  constructor(options: {
    readonly io: CliIo;
    readonly flags: Flags;
    readonly ownFlags?: readonly FlagSpec[];
    readonly words?: readonly string[];
    readonly timeoutMs?: number;
    readonly help?: () => Promise<string>;
  }) {
    this.io = options.io;
    this.flags = options.flags;
    this.words = options.words ?? [];
    this.#timeoutMs = options.timeoutMs ?? 0;
    this.help = options.help ?? (async () => '');
    this.#shadowed = new Set(options.ownFlags?.map((flag) => flag.name));
  }

  /** The kubeconfig files of this command line. */
  get kubeconfigFiles(): readonly string[] {
    const flag = this.flags.text('kubeconfig');
    const { env, home } = this.io;
    return kubeconfigFiles({ flag: flag === undefined ? flag : this.path(flag), env, home });
  }

  /** Reads the kubeconfig. Errors are deferred to `context`, since some commands do not need it. */
  async prepare(): Promise<void> {
    const required = this.flags.has('kubeconfig');
    try {
      this.#config = await loadKubeconfig({ files: this.kubeconfigFiles, required });
    } catch (error) {
      this.#configError = error;
    }
  }

  /** The selected context. Throws the error of a failed `prepare`, or KubeconfigError. */
  get context(): ResolvedContext {
    if (this.#resolved === undefined) {
      if (this.#config === undefined) throw this.#configError;
      this.#resolved = resolveContext(this.#config, this.#overrides(), {
        env: this.io.env,
        execHost: {
          ...processExecHost,
          env: this.io.env,
          stdinIsTerminal: () => this.io.stdinIsTerminal,
          stdinUnavailable: () =>
            this.flags.list('filename').includes('-') || this.words.includes('-')
              ? 'used by stdin resource manifest reader'
              : undefined,
          stderr: (text) => this.io.err(text),
        },
      });
    }
    return this.#resolved;
  }

  /** Throws like `context`: commands without requests require a context too, as in kubectl. */
  checkContext(): void {
    void this.context;
  }

  /** Number of distinct warnings received from the server. */
  get warnings(): number {
    return this.#warnings.size;
  }

  get namespace(): string {
    return this.context.namespace;
  }

  get client(): ApiClient {
    if (this.#client === undefined) {
      const verbosity = this.flags.integer('v') ?? 0;
      const { io } = this;
      checkCertificates(this.context.client);
      this.#client = createApiClient(
        { ...this.context.client, userAgent: `svcctl/${clientVersion}` },
        {
          timeoutMs: this.requestTimeoutMs ?? this.#timeoutMs,
          ...(this.requestTimeoutMs ? { timeoutText: goDuration(this.requestTimeoutMs) } : {}),
          observer: {
            warning: (text) => {
              if (this.#warnings.has(text)) return;
              this.#warnings.add(text);
              io.err(`Warning: ${text}\n`);
            },
            request: ({ method, url, headers, status, tookMs }) => {
              const text = `${status} ${STATUS_CODES[status] ?? ''}`.trim();
              if (verbosity >= 6) io.err(`${method} ${url} ${text} in ${tookMs} milliseconds\n`);
              if (verbosity >= 7) io.err(headersText(headers));
            },
          },
        },
      );
    }
    return this.#client;
  }

  /** `--request-timeout` in milliseconds; 0 for no limit. Throws CliError. */
  get requestTimeoutMs(): number | undefined {
    const text = this.flags.text('request-timeout');
    if (text === undefined) return undefined;
    // Unlike other durations, this one may be plain seconds.
    const nanoseconds = parseGoDuration(/^\+?\d+$/.test(text) ? `${text}s` : text);
    if (nanoseconds !== undefined) return Math.max(0, Number(nanoseconds) / 1e6);
    throw new CliError(
      'Invalid timeout value. Timeout must be a single integer in seconds, or an integer ' +
        'followed by a corresponding time unit (e.g. 1s | 2m | 3h)',
    );
  }

  /** Records failures that do not stop the command; they are reported after it. */
  defer(failures: readonly unknown[]): void {
    this.#deferred.push(...failures);
  }

  /** Removes and returns the deferred failures. */
  takeDeferred(): unknown[] {
    return this.#deferred.splice(0);
  }

  /** Counts a document of YAML output; returns its number, from 1. */
  countDocument(): number {
    this.#documents += 1;
    return this.#documents;
  }

  /** Throws the first deferred failure, for commands that change all objects or none. */
  throwDeferred(): void {
    const [first] = this.takeDeferred();
    if (first !== undefined) throw first;
  }

  discovery(): Promise<Discovery> {
    this.#discovery ??= discover(this.client);
    return this.#discovery;
  }

  /** Finds resources; warns once of each ambiguous short name. */
  async mapper(): Promise<RestMapper> {
    return new RestMapper(await this.discovery(), (shortName, { resource, group }) => {
      const text =
        `short name ${JSON.stringify(shortName)} could also match lower priority resource ` +
        withGroup(resource, group);
      if (this.#ambiguities.has(text)) return;
      this.#ambiguities.add(text);
      this.io.err(`Warning: ${text}\n`);
    });
  }

  /** The server's dialect, detected by its API groups; the first one if none matches. */
  async dialect(): Promise<Dialect> {
    const { resources } = await this.discovery();
    const served = new Set(resources.map(({ group }) => group));
    const dialects = dialectNames.map(dialectOf);
    const isTypical = (candidate: Dialect) =>
      typicalGroups.some((stem) => served.has(candidate.group(stem)));
    return dialects.find(isTypical) ?? dialects[0]!;
  }

  /** The resource that a word names. Rejects with CliError if there is none. */
  async resource(word: string): Promise<ApiResource> {
    const resource = (await this.mapper()).byName(word);
    if (resource === undefined) {
      const [name] = word.split('.');
      throw new CliError(`the server doesn't have a resource type ${JSON.stringify(name)}`);
    }
    return resource;
  }

  /** The resource of a built-in kind, in any group. Rejects with CliError if there is none. */
  async resourceOfKind(kind: string): Promise<ApiResource> {
    const { resources } = await this.discovery();
    const resource = resources.find((resource) => resource.kind === kind && resource.preferred);
    if (resource === undefined) throw new CliError(`the server does not serve ${kind}`);
    return resource;
  }

  /** The exit code for an interrupt; like kubectl's, 1 while the command watches. */
  interruptExitCode = killedExitCode;

  /** The clock for waits and ages. */
  get clock(): Clock {
    return this.io.clock ?? programClock;
  }

  /** Waits for `delayMs`. Rejects if the user interrupts. */
  async pause(delayMs: number): Promise<void> {
    await pause(this.clock, { ms: delayMs, signal: this.io.signal, where: 'client' });
  }

  /** The current time in RFC 3339, in whole seconds. */
  timestamp(): string {
    return formatTime(this.clock.now());
  }

  /**
   * Limits a wait: the signal aborts when the user interrupts, or after `timeoutMs`; undefined sets
   * no limit.
   */
  deadline(timeoutMs: number | undefined): Deadline {
    const timeout =
      timeoutMs === undefined
        ? undefined
        : AbortSignal.timeout(Math.min(Math.max(0, Math.ceil(timeoutMs)), delayMsMax));
    const signals = [this.io.signal, ...(timeout === undefined ? [] : [timeout])];
    return { signal: AbortSignal.any(signals), isOver: () => timeout?.aborted === true };
  }

  /**
   * Runs a wait, with `deadline`'s signal, for at most `timeoutMs`. Rejects with CliError after it.
   */
  async waitFor<T>(
    timeoutMs: number | undefined,
    wait: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const deadline = this.deadline(timeoutMs);
    try {
      return await wait(deadline.signal);
    } catch (error) {
      if (!deadline.isOver() || error instanceof ApiError) throw error;
      throw new CliError('timed out waiting for the condition');
    }
  }

  /** Resolves a path of the command line against the working directory. */
  path(file: string): string {
    // Relative paths of the process stay as they are, for messages.
    return this.io.cwd === process.cwd() ? file : path.resolve(this.io.cwd, file);
  }

  /**
   * Reads a file of the command line. Throws a CliError if that fails.
   * @param failure composes the message from a reason such as `open x: no such file or directory`
   */
  readFile(file: string, failure: (reason: string) => string): Buffer {
    try {
      return readFileSync(this.path(file));
    } catch (error) {
      // A folder can be opened, but not read.
      const action = systemErrorCode(error) === 'EISDIR' ? 'read' : 'open';
      throw new CliError(failure(`${action} ${file}: ${fileProblem(error)}`));
    }
  }

  /** Closes the connections to the server. */
  close(): void {
    this.#client?.close();
  }

  #overrides(): KubeconfigOverrides {
    const { flags } = this;
    const text = (name: string) => (this.#shadowed.has(name) ? undefined : flags.text(name));
    const file = (name: string) => {
      const value = text(name);
      return value === undefined ? undefined : this.path(value);
    };
    return {
      context: text('context'),
      cluster: text('cluster'),
      user: text('user'),
      namespace: text('namespace'),
      needsNoNamespace: asksServerFirst(this.words),
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

/** Commands that, in kubectl, ask the server before they look for the namespace. */
const serverFirst: ReadonlySet<string> = new Set([
  'api-resources',
  'api-versions',
  'apply',
  'auth',
  'autoscale',
  'certificate',
  'cluster-info',
  'cordon',
  'create',
  'diff',
  'drain',
  'explain',
  'expose',
  'proxy',
  'replace',
  'run',
  'set env',
  'top node',
  'uncordon',
  'version',
  'wait',
]);

/** Subcommands of these that look for the namespace first. */
const namespaceFirst: ReadonlySet<string> = new Set([
  'apply edit-last-applied',
  'apply set-last-applied',
  'apply view-last-applied',
  'auth reconcile',
  'create token',
]);

function asksServerFirst([command = '', subcommand = '']: readonly string[]): boolean {
  const both = `${command} ${subcommand}`;
  return serverFirst.has(both) || (serverFirst.has(command) && !namespaceFirst.has(both));
}

/** Throws for the first certificate or key that is not in PEM, as Go reports it. */
function checkCertificates({ caPem, certificatePem, keyPem }: ResolvedContext['client']): void {
  const isOther = (text: string | undefined) => text !== undefined && pemBlocks(text).length === 0;
  if (isOther(caPem)) {
    throw new CliError('unable to load root certificates: unable to parse bytes as PEM block');
  }
  for (const [input, text] of Object.entries({ certificate: certificatePem, key: keyPem })) {
    if (!isOther(text)) continue;
    throw new ConnectionError('', new Error(`tls: failed to find any PEM data in ${input} input`));
  }
}

/** The headers of a request, with names as Go writes them: `Content-Type`. */
function headersText(headers: Readonly<Record<string, string>>): string {
  const lines = Object.entries(headers).map(([name, value]) => {
    const title = name.replace(/\b[a-z]/g, (letter) => letter.toUpperCase());
    return `    ${title}: ${value}\n`;
  });
  return `Request Headers:\n${lines.join('')}`;
}

/** Go's wording for system error codes. */
const fileProblems: Readonly<Record<string, string | undefined>> = {
  EACCES: 'permission denied',
  EISDIR: 'is a directory',
  ENAMETOOLONG: 'file name too long',
  ENOENT: 'no such file or directory',
  ENOTDIR: 'not a directory',
};

/** Go's wording for the error of a file operation. */
export function fileProblem(error: unknown): string {
  const code = systemErrorCode(error) ?? '';
  return fileProblems[code] ?? code;
}

/** A time as Go prints it: `1m30s`. */
export const goDuration = (durationMs: number): string =>
  printGoDuration(BigInt(Math.round(durationMs * 1_000_000)));

/** The version of this client, for User-Agent and `version`. */
export const clientVersion = '0.1.0';

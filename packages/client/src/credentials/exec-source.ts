import { type Clock, errorText, systemClock } from '@wheelhouse/machinery';
import { type Credential, CredentialError, type CredentialSource } from './credential.ts';
import { type ExecCluster, type ExecConfig, execDialect } from './exec-config.ts';

/** The parts of the process that running a plugin needs. */
export interface ExecHost {
  readonly env: Readonly<Record<string, string | undefined>>;
  stdinIsTerminal(): boolean;
  /** Why a plugin may not read standard input even on a terminal; undefined if it may. */
  stdinUnavailable?(): string | undefined;
  stderr(text: string): void;
  readonly clock: Clock;
  /** Time limit of one plugin run in milliseconds; leaves a user time to log in. */
  readonly timeoutMs: number;
  /** Maximum size of a plugin's output. */
  readonly outputBytesMax: number;
}

/** This process; limits a plugin to five minutes and one MiB. */
export const processExecHost: ExecHost = {
  env: process.env,
  stdinIsTerminal: () => process.stdin.isTTY === true,
  stderr: (text) => process.stderr.write(text),
  clock: systemClock,
  timeoutMs: 300_000,
  outputBytesMax: 1024 * 1024,
};

/**
 * Credentials from an exec plugin (AUTHN-11), cached until they expire, the server responds with
 * 401, or the process ends. Concurrent requests share a run. Throws CredentialError for an unknown
 * apiVersion.
 */
export function createExecSource(options: {
  readonly config: ExecConfig;
  readonly cluster: ExecCluster;
  readonly host: ExecHost;
}): CredentialSource {
  return new ExecSource(options);
}

interface Kept {
  readonly credential: Credential;
  readonly expiresMs: number | undefined;
}

class ExecSource implements CredentialSource {
  readonly #config: ExecConfig;
  readonly #cluster: ExecCluster;
  readonly #host: ExecHost;
  readonly #inputVariable: string;
  readonly #listeners = new Set<() => void>();
  #kept: Kept | undefined;
  #running: Promise<Credential> | undefined;
  #hintGiven = false;

  constructor(options: { config: ExecConfig; cluster: ExecCluster; host: ExecHost }) {
    const { config, cluster, host } = options;
    const dialect = execDialect(config.apiVersion);
    if (dialect === undefined) {
      throw new CredentialError(
        `exec plugin: invalid apiVersion ${JSON.stringify(config.apiVersion)}`,
      );
    }
    this.#config = config;
    this.#cluster = cluster;
    this.#host = host;
    this.#inputVariable = dialect.execInfo;
  }

  async current(): Promise<Credential> {
    const kept = this.#kept;
    if (kept !== undefined && !this.#isExpired(kept)) return kept.credential;
    return this.#refresh();
  }

  async renew(refused: Credential): Promise<Credential> {
    const kept = this.#kept?.credential;
    if (kept !== undefined && kept !== refused) return kept;
    try {
      return await this.#refresh();
    } catch (error) {
      this.#host.stderr(`refreshing credentials: ${errorText(error)}\n`);
      return refused;
    }
  }

  onCertificateChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #isExpired({ expiresMs }: Kept): boolean {
    return expiresMs !== undefined && this.#host.clock.now() > expiresMs;
  }

  #refresh(): Promise<Credential> {
    this.#running ??= this.#fetch().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #fetch(): Promise<Credential> {
    const { decodeExecOutput } = await import('./exec-credential.ts');
    const output = await decodeExecOutput(await this.#run(), this.#config.apiVersion);
    const before = this.#kept?.credential;
    this.#kept = output;
    const { credential } = output;
    if (before !== undefined && !sameCertificate(before, credential)) {
      for (const listener of [...this.#listeners]) listener();
    }
    return credential;
  }

  async #run(): Promise<string> {
    const { encodeExecInput } = await import('./exec-credential.ts');
    const { PluginMissingError, runPlugin } = await import('./exec-credential.ts');
    const { command, args, env, apiVersion, provideClusterInfo } = this.#config;
    const interactive = this.#isInteractive();
    const cluster = provideClusterInfo ? this.#cluster : undefined;
    const input = encodeExecInput({ apiVersion, interactive, cluster });
    const { stderr, clock, timeoutMs, outputBytesMax } = this.#host;
    try {
      return await runPlugin({
        command,
        args,
        env: Object.fromEntries([
          ...Object.entries(this.#host.env),
          ...env.map(({ name, value }) => [name, value] as const),
          [this.#inputVariable, input],
        ]),
        stdin: interactive ? 'inherit' : 'ignore',
        stderr,
        clock,
        timeoutMs,
        outputBytesMax,
      });
    } catch (error) {
      throw error instanceof PluginMissingError ? this.#missing() : error;
    }
  }

  #isInteractive(): boolean {
    const { interactiveMode } = this.#config;
    if (interactiveMode === 'Never') return false;
    const isTerminal = this.#host.stdinIsTerminal();
    const unavailable = this.#host.stdinUnavailable?.();
    if (interactiveMode !== 'Always') return isTerminal && unavailable === undefined;
    const refuse = (why: string) =>
      new CredentialError(`exec plugin cannot support interactive mode: ${why}`);
    if (!isTerminal) throw refuse('standard input is not a terminal');
    if (unavailable !== undefined) {
      throw refuse(`standard input is unavailable${unavailable && `: ${unavailable}`}`);
    }
    return true;
  }

  /** Prints the install hint only once, so that long-running clients do not repeat it. */
  #missing(): CredentialError {
    const { command, installHint } = this.#config;
    const hints = [
      'The kubeconfig names a credential plugin that is not installed.',
      ...(installHint === '' ? [] : [installHint]),
    ];
    const shown = this.#hintGiven ? [] : hints;
    this.#hintGiven = true;
    return new CredentialError([`exec: executable ${command} not found`, ...shown].join('\n\n'));
  }
}

function sameCertificate(one: Credential, other: Credential): boolean {
  return one.certificatePem === other.certificatePem && one.keyPem === other.keyPem;
}

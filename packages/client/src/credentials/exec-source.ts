import { type Clock, errorText, systemClock } from '@wheelhouse/machinery';
import {
  type Credential,
  CredentialError,
  type CredentialSource,
} from '../kubeconfig/client-config.ts';
import { type ExecCluster, type ExecConfig, execDialect } from './exec-config.ts';

/** The environment in which plugins run. */
export interface ExecHost {
  readonly env: Readonly<Record<string, string | undefined>>;
  stdinIsTerminal(): boolean;
  /** Why a plugin may not read standard input although it is a terminal; undefined if it may. */
  stdinUnavailable?(): string | undefined;
  stderr(text: string): void;
  readonly clock: Clock;
  /** Time limit of a run in milliseconds, long enough for a user to log in. */
  readonly timeoutMs: number;
  /** Maximum size of a plugin's output in bytes. */
  readonly outputBytesMax: number;
}

/** The environment of this process. Limits a plugin to five minutes and one MiB. */
export const processExecHost: ExecHost = {
  env: process.env,
  stdinIsTerminal: () => process.stdin.isTTY === true,
  stderr: (text) => process.stderr.write(text),
  clock: systemClock,
  timeoutMs: 300_000,
  outputBytesMax: 1024 * 1024,
};

/**
 * Creates a source of credentials from an exec plugin (AUTHN-11). It caches a credential until it
 * expires or the server responds with 401. Concurrent requests share a run. Throws CredentialError
 * for an unknown apiVersion.
 */
export function createExecSource(options: {
  readonly config: ExecConfig;
  readonly cluster: ExecCluster;
  readonly host: ExecHost;
}): CredentialSource {
  return new ExecSource(options);
}

interface CachedCredential {
  readonly credential: Credential;
  readonly expiresMs: number | undefined;
}

class ExecSource implements CredentialSource {
  readonly #config: ExecConfig;
  readonly #cluster: ExecCluster;
  readonly #host: ExecHost;
  readonly #inputVariable: string;
  readonly #listeners = new Set<() => void>();
  #cached: CachedCredential | undefined;
  #running: Promise<Credential> | undefined;
  #hintPrinted = false;

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
    const cached = this.#cached;
    if (cached !== undefined && !this.#isExpired(cached)) return cached.credential;
    return this.#refresh();
  }

  async renew(refused: Credential): Promise<Credential> {
    const cached = this.#cached?.credential;
    if (cached !== undefined && cached !== refused) return cached;
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

  #isExpired({ expiresMs }: CachedCredential): boolean {
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
    const before = this.#cached?.credential;
    this.#cached = output;
    const { credential } = output;
    if (before !== undefined && !sameCertificate(before, credential)) {
      for (const listener of [...this.#listeners]) listener();
    }
    return credential;
  }

  async #run(): Promise<string> {
    const { encodeExecInput, PluginMissingError, runPlugin } = await import('./exec-credential.ts');
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
      throw error instanceof PluginMissingError ? this.#missingError() : error;
    }
  }

  #isInteractive(): boolean {
    const { interactiveMode } = this.#config;
    if (interactiveMode === 'Never') return false;
    const isTerminal = this.#host.stdinIsTerminal();
    const unavailable = this.#host.stdinUnavailable?.();
    if (interactiveMode !== 'Always') return isTerminal && unavailable === undefined;
    const modeError = (why: string) =>
      new CredentialError(`exec plugin cannot support interactive mode: ${why}`);
    if (!isTerminal) throw modeError('standard input is not a terminal');
    if (unavailable !== undefined) {
      throw modeError(`standard input is unavailable${unavailable && `: ${unavailable}`}`);
    }
    return true;
  }

  /** The error for a missing plugin, with the install hint only the first time. */
  #missingError(): CredentialError {
    const { command, installHint } = this.#config;
    const hints = [
      'The kubeconfig names a credential plugin that is not installed.',
      ...(installHint === '' ? [] : [installHint]),
    ];
    const hintsToPrint = this.#hintPrinted ? [] : hints;
    this.#hintPrinted = true;
    return new CredentialError(
      [`exec: executable ${command} not found`, ...hintsToPrint].join('\n\n'),
    );
  }
}

function sameCertificate(left: Credential, right: Credential): boolean {
  return left.certificatePem === right.certificatePem && left.keyPem === right.keyPem;
}

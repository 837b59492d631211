import { type Clock, errorText, systemClock } from '@wheelhouse/machinery';
import { type Credential, CredentialError, type CredentialSource } from './credential.ts';
import { type ExecCluster, type ExecConfig, execDialect } from './exec-config.ts';

/** What a plugin's run touches of the process around it. */
export interface ExecHost {
  readonly env: Readonly<Record<string, string | undefined>>;
  stdinIsTerminal(): boolean;
  /** Why a plugin may not read standard input though it is a terminal; undefined: it may. */
  stdinUnavailable?(): string | undefined;
  stderr(text: string): void;
  readonly clock: Clock;
  /** Longest run of a plugin. A person may have to log in meanwhile. */
  readonly timeoutMs: number;
  /** Most a plugin may print. */
  readonly outputBytesMax: number;
}

/** This process, with five minutes and a mebibyte for a plugin. */
export const processExecHost: ExecHost = {
  env: process.env,
  stdinIsTerminal: () => process.stdin.isTTY === true,
  stderr: (text) => process.stderr.write(text),
  clock: systemClock,
  timeoutMs: 300_000,
  outputBytesMax: 1024 * 1024,
};

/**
 * Credentials that a program prints (AUTHN-11): kept until they expire, until the server answers
 * 401, or until the process ends. Requests that need one at the same time share a run. Throws
 * CredentialError for an unknown apiVersion.
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
    const { PluginMissingError, runPlugin } = await import('./run-plugin.ts');
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

  /** Tells how to install it once; a client that goes on for days need not hear it each time. */
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

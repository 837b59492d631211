import { spawn } from 'node:child_process';
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import {
  type Clock,
  isObject,
  type JsonObject,
  type JsonValue,
  listen,
  member,
  parseGoTime,
  systemErrorCode,
} from '@wheelhouse/machinery';
import { type Credential, CredentialError } from '../kubeconfig/client-config.ts';
import { parseYaml } from '../yaml.ts';
import { type ExecCluster, execDialect } from './exec-config.ts';

/** One run of a plugin. */
interface PluginRun {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Whether the plugin reads the client's standard input, to prompt the user. */
  readonly stdin: 'inherit' | 'ignore';
  readonly stderr: (text: string) => void;
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly outputBytesMax: number;
}

/** The plugin does not exist or is not executable. */
export class PluginMissingError extends Error {}

/**
 * Runs a plugin. Resolves with its output. Kills it if it exceeds the output or time limit. Rejects
 * with PluginMissingError, or with a CredentialError in client-go's wording.
 */
export function runPlugin(run: PluginRun): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = start(run, reject);
    if (child === undefined) return;
    const chunks: Buffer[] = [];
    let bytes = 0;
    const timer = run.clock.after(run.timeoutMs, () =>
      abort(`executable ${run.command} did not end within ${run.timeoutMs} ms`),
    );
    const abort = (why: string): void => {
      timer.stop();
      child.kill('SIGKILL');
      // Processes that the plugin started may keep its output open.
      child.stdout.destroy();
      child.stderr.destroy();
      reject(new CredentialError(`exec: ${why}`));
    };
    const containment = {
      where: 'client',
      end: (error: unknown) => abort(String(error)),
    } as const;
    listen(child.stdout, containment, {
      data(chunk: Buffer) {
        bytes += chunk.length;
        if (bytes <= run.outputBytesMax) chunks.push(chunk);
        else abort(`executable ${run.command} printed more than ${run.outputBytesMax} bytes`);
      },
    });
    listen(child.stderr.setEncoding('utf8'), containment, { data: run.stderr });
    listen(child, containment, {
      error(error: NodeJS.ErrnoException) {
        timer.stop();
        reject(startError(error));
      },
      close(code: number | null) {
        timer.stop();
        if (code === 0) resolve(Buffer.concat(chunks).toString());
        // Go reports exit code -1 for a process that a signal ended.
        const message = `executable ${run.command} failed with exit code ${code ?? -1}`;
        reject(new CredentialError(`exec: ${message}`));
      },
    });
  });
}

function start(run: PluginRun, reject: (error: Error) => void) {
  try {
    return spawn(run.command, [...run.args], {
      env: { ...run.env },
      stdio: [run.stdin, 'pipe', 'pipe'],
    });
  } catch (error) {
    // The arguments are invalid; for example, one contains a NUL.
    reject(new CredentialError(`exec: ${systemErrorCode(error) ?? 'not started'}`));
    return undefined;
  }
}

const missingCodes: ReadonlySet<unknown> = new Set(['ENOENT', 'EACCES', 'ENOTDIR', 'EISDIR']);

function startError(error: NodeJS.ErrnoException): Error {
  if (missingCodes.has(error.code)) return new PluginMissingError();
  return new CredentialError(`exec: ${error.code ?? 'not started'}`);
}

/** Encodes the input of a plugin: an ExecCredential with its `spec`. */
export function encodeExecInput(options: {
  readonly apiVersion: string;
  readonly interactive: boolean;
  readonly cluster: ExecCluster | undefined;
}): string {
  const { apiVersion, interactive, cluster } = options;
  const clusterMember = cluster === undefined ? {} : { cluster: clusterOf(cluster) };
  return JSON.stringify({
    kind: 'ExecCredential',
    apiVersion,
    spec: { ...clusterMember, interactive },
  });
}

function clusterOf(cluster: ExecCluster): JsonObject {
  const { tlsServerName, caPem, proxyUrl, config } = cluster;
  return {
    server: cluster.server,
    ...(tlsServerName ? { 'tls-server-name': tlsServerName } : {}),
    ...(cluster.insecureSkipTlsVerify === true ? { 'insecure-skip-tls-verify': true } : {}),
    ...(caPem ? { 'certificate-authority-data': Buffer.from(caPem).toString('base64') } : {}),
    ...(proxyUrl ? { 'proxy-url': proxyUrl } : {}),
    ...(cluster.disableCompression === true ? { 'disable-compression': true } : {}),
    ...(config === undefined ? {} : { config }),
  };
}

/** The output of a plugin. */
interface ExecOutput {
  readonly credential: Credential;
  /** When the credential expires, in milliseconds since 1970; undefined if it does not. */
  readonly expiresMs: number | undefined;
}

/**
 * Parses the output of a plugin, JSON or YAML. Rejects with CredentialError in client-go's wording,
 * without quoting the output, which may contain secrets.
 */
export async function decodeExecOutput(text: string, apiVersion: string): Promise<ExecOutput> {
  const status = await readStatus(text, apiVersion);
  const token = textOf(status, 'token');
  const certificatePem = textOf(status, 'clientCertificateData');
  const keyPem = textOf(status, 'clientKeyData');
  const expiresMs = readExpiry(textOf(status, 'expirationTimestamp'));
  if (token === '' && certificatePem === '' && keyPem === '') {
    throw new CredentialError("exec plugin didn't return a token or cert/key pair");
  }
  if ((certificatePem === '') !== (keyPem === '')) {
    throw new CredentialError('exec plugin returned only certificate or key, not both');
  }
  if (certificatePem !== '') checkPair(certificatePem, keyPem);
  return {
    credential: {
      ...(token === '' ? {} : { token }),
      ...(certificatePem === '' ? {} : { certificatePem, keyPem }),
    },
    expiresMs,
  };
}

async function readStatus(text: string, apiVersion: string): Promise<JsonObject> {
  let value: JsonValue;
  try {
    value = await parseYaml(text);
  } catch {
    throw decodeError("couldn't get version/kind; json parse error");
  }
  if (!isObject(value)) throw decodeError("couldn't get version/kind; json parse error");
  // client-go defaults a missing kind, but at an internal version that no plugin may use.
  const internal = `${apiVersion.split('/')[0]}/__internal`;
  const kind = textOf(value, 'kind') || 'ExecCredential';
  const version = textOf(value, 'apiVersion') || internal;
  const isSupported = version === internal || execDialect(version) !== undefined;
  if (kind !== 'ExecCredential' || !isSupported) {
    throw decodeError(
      `no kind ${JSON.stringify(kind)} is registered for version ${JSON.stringify(version)}`,
    );
  }
  if (version !== apiVersion) {
    throw new CredentialError(
      `exec plugin is configured to use API version ${apiVersion}, ` +
        `plugin returned version ${version}`,
    );
  }
  const status = member(value, 'status');
  if (status === undefined || status === null) {
    throw new CredentialError("exec plugin didn't return a status field");
  }
  if (!isObject(status)) throw decodeError('status must be an object');
  return status;
}

const decodeError = (why: string): CredentialError =>
  new CredentialError(`decoding stdout: ${why}`);

function textOf(object: JsonObject, name: string): string {
  const value = member(object, name) ?? '';
  if (typeof value !== 'string') throw decodeError(`${name} must be a string`);
  return value;
}

function readExpiry(text: string): number | undefined {
  if (text === '') return undefined;
  const parsed = parseGoTime(text);
  if ('error' in parsed) throw decodeError(parsed.error);
  return parsed.ms;
}

/** Throws CredentialError, in client-go's words, unless a certificate and a key belong together. */
export function checkPair(certificatePem: string, keyPem: string): void {
  const pairError = (why: string) =>
    new CredentialError(`failed parsing client key/certificate: tls: ${why}`);
  if (!certificatePem.includes('-----BEGIN')) {
    throw pairError('failed to find any PEM data in certificate input');
  }
  if (!keyPem.includes('-----BEGIN')) throw pairError('failed to find any PEM data in key input');
  let certificate: X509Certificate;
  let key: KeyObject;
  try {
    certificate = new X509Certificate(certificatePem);
  } catch {
    throw pairError('failed to parse certificate');
  }
  try {
    key = createPrivateKey(keyPem);
  } catch {
    throw pairError('failed to parse private key');
  }
  if (!certificate.checkPrivateKey(key)) throw pairError('private key does not match public key');
}

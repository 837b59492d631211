import { createPrivateKey, X509Certificate } from 'node:crypto';
import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname } from 'node:path';
import { env } from 'node:process';
import {
  type Clock,
  type Dialect,
  type Logger,
  type MetricRegistry,
  makeDirectories,
  syncDirectoryNow,
} from '@wheelhouse/machinery';
import { serverIdentityHash } from '../observe/server-identity.ts';

/**
 * What a later start does with a file: it reads a `kept` one. A `remade` one, which each start
 * rewrites or which lies in a temporary directory, is not synced, and a power failure may empty it.
 */
export type FileAtStart = 'kept' | 'remade';

/**
 * Writes a file atomically and with `mode` from the beginning: a private key is never readable by
 * others, and a crash leaves no partial file.
 */
export function writeFileAtomically(options: {
  path: string;
  text: string;
  mode: number;
  /** Defaults to `kept`. */
  atStart?: FileAtStart | undefined;
}): void {
  const { path, text, mode, atStart = 'kept' } = options;
  const lifetime = atStart === 'kept' ? 'lasting' : 'temporary';
  makeDirectories(dirname(path), { mode: 0o700, lifetime });
  const temporary = `${path}.${process.pid}.tmp`;
  rmSync(temporary, { force: true });
  const file = openSync(temporary, 'wx', mode);
  try {
    try {
      // Not `writeSync`, which may write only a part when the disk is nearly full.
      writeFileSync(file, text);
      if (atStart === 'kept') fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
  if (atStart === 'kept') syncDirectoryNow(dirname(path));
}

/** Where systems keep the CAs they trust, tried in order. */
const bundles = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/pki/tls/cacert.pem',
  '/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem',
  '/etc/ssl/cert.pem',
];

/**
 * The CAs that the host trusts, in PEM, from `SSL_CERT_FILE` or the system's bundle; Node.js itself
 * only knows those it was built with. Undefined if none is found; Node.js's own CAs apply then.
 */
export function hostRoots(): string | undefined {
  const certFile = env['SSL_CERT_FILE'];
  const files = certFile === undefined || certFile === '' ? bundles : [certFile];
  for (const file of files) {
    try {
      return readFileSync(file, 'utf8');
    } catch {
      // Try the next one.
    }
  }
  return undefined;
}

/** Counts one reload of a file; created once per controller and registry. */
type CountReload = (status: 'success' | 'failure') => void;

/**
 * Metrics of the reloads of a configuration file (AUTHN-8), named after kube-apiserver's
 * controller, such as `authentication_config_controller`. `what` appears in their help.
 */
export function createReloadMetrics(
  registry: MetricRegistry,
  options: {
    readonly controller: string;
    readonly what: string;
    readonly clock: Clock;
    readonly dialect: Dialect;
    /** The release that deprecated the separate metric for each status, if there is one. */
    readonly former?: string;
  },
): CountReload {
  const { controller, what, clock, dialect } = options;
  const labels = ['status', 'apiserver_id_hash'];
  const split = `of ${what} split by status and apiserver identity.`;
  const total = registry.counter({
    name: `apiserver_${controller}_automatic_reloads_total`,
    help: `Total number of automatic reloads ${split}`,
    stability: 'ALPHA',
    labels,
  });
  const last = registry.gauge({
    name: `apiserver_${controller}_automatic_reload_last_timestamp_seconds`,
    help: `Timestamp of the last automatic reload ${split}`,
    stability: 'ALPHA',
    labels,
  });
  const identity = serverIdentityHash(hostname(), dialect.serverProgram);
  const { former } = options;
  const counter = (word: string, since: string) =>
    registry.counter(formerMetric(controller, { word, since }));
  const formerTotals =
    former === undefined
      ? undefined
      : { success: counter('success', former), failure: counter('failures', former) };
  return (status) => {
    total.of(status, identity).add(1);
    formerTotals?.[status].of(identity).add(1);
    last.of(status, identity).set(clock.now() / 1000);
  };
}

function formerMetric(
  controller: string,
  { word, since }: { readonly word: string; readonly since: string },
) {
  return {
    name: `apiserver_${controller}_automatic_reload_${word}_total`,
    help: 'Total number of automatic reloads of one status, split by apiserver identity.',
    stability: 'ALPHA' as const,
    labels: ['apiserver_id_hash'],
    deprecatedFrom: since,
  };
}

/**
 * Follows a file of certificates or of a key. If `load` throws, the previous content stays in use,
 * and the error is logged and `load` retried, since another file may have to change first. `text`
 * is the content already loaded.
 */
export function followCertificates(options: {
  readonly file: string;
  readonly text: string;
  readonly load: (text: string) => void;
  readonly clock: Clock;
  readonly logger: Logger;
}): ReloadedFile {
  const { file, text, load, clock, logger } = options;
  return followFile({
    file,
    text,
    clock,
    load,
    isTemporary: () => true,
    observe: (outcome) => {
      if (outcome.status === 'success') logger.info('certificates were reloaded', { file });
      else {
        const error = String(outcome.error);
        logger.warn('cannot reload certificates', { file, error });
      }
    },
  });
}

/** A client certificate and its key, in PEM. */
export interface ClientCertificate {
  readonly certificatePem: string;
  readonly keyPem: string;
}

/** Like `readKeyPair`, under the names that Node's servers and clients use for the parts. */
export function readTlsPair(files: { readonly certFile: string; readonly keyFile: string }): {
  readonly certificate: string;
  readonly key: string;
} {
  const { certificatePem, keyPem } = readKeyPair(files);
  return { certificate: certificatePem, key: keyPem };
}

/** Reads a certificate and its key. Throws an error that names the file when they do not match. */
export function readKeyPair(files: {
  readonly certFile: string;
  readonly keyFile: string;
}): ClientCertificate {
  const certificatePem = readConfigurationFile(files.certFile);
  const keyPem = readConfigurationFile(files.keyFile);
  const read = <T>(file: string, what: string, make: () => T): T => {
    try {
      return make();
    } catch (error) {
      throw new Error(`${file} contains no ${what}`, { cause: error });
    }
  };
  const certificate = read(
    files.certFile,
    'certificate',
    () => new X509Certificate(certificatePem),
  );
  const key = read(files.keyFile, 'private key', () => createPrivateKey(keyPem));
  if (!certificate.checkPrivateKey(key)) {
    throw new Error(`${files.keyFile} is not the key of the certificate in ${files.certFile}`);
  }
  return { certificatePem, keyPem };
}

/** Outcome of one check of a followed file. */
export type ReloadOutcome =
  | { readonly status: 'success' }
  | { readonly status: 'failure'; readonly error: unknown };

/** A file that is followed until `stop`. */
export interface ReloadedFile {
  /** Checks the file now, as the timer does; resolves once its content is loaded or refused. */
  look(): Promise<void>;
  stop(): void;
}

const bytesMax = 3 * 1024 * 1024;
const lookEveryMs = 1000;
const readEveryMs = 60_000;

/**
 * The text of a configuration file. Throws an error that names the file when it is unreadable, not
 * a regular file, or larger than 3 MiB.
 */
export function readConfigurationFile(file: string): string {
  // Without O_NONBLOCK, opening a pipe would block the server.
  const handle = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const { size } = fstatSync(handle);
    if (!fstatSync(handle).isFile()) throw new Error(`${file} is not a regular file`);
    if (size > bytesMax) throw new Error(`${file} is larger than ${bytesMax} bytes`);
    // One byte more than the size, so that growth during the read is noticed.
    const buffer = Buffer.alloc(size + 1);
    let length = 0;
    for (let read = -1; read !== 0 && length < buffer.length; length += read) {
      read = readSync(handle, buffer, length, buffer.length - length, null);
    }
    if (length > size) throw new Error(`${file} changed while it was read`);
    return buffer.toString('utf8', 0, length);
  } finally {
    closeSync(handle);
  }
}

/**
 * Follows a configuration file: checks its metadata each second and its text each minute. Passes a
 * new text to `load`; if that throws, the previous content stays in use. Calls `observe` with each
 * outcome until `stop`. `text` is the content already loaded. A refused text is not retried until
 * it changes, unless `isTemporary` accepts the error: then it is retried each minute.
 */
export function followFile(options: {
  readonly file: string;
  readonly text: string;
  readonly clock: Clock;
  readonly load: (text: string) => void | Promise<void>;
  readonly observe: (outcome: ReloadOutcome) => void;
  readonly isTemporary?: (error: unknown) => boolean;
}): ReloadedFile {
  const { file, clock, load, observe } = options;
  let lastText = options.text;
  let seen: string | undefined;
  let readAt = clock.monotonic();
  let looking: Promise<void> | undefined;
  let stopped = false;

  const loadText = async (text: string): Promise<void> => {
    try {
      await load(text);
    } catch (error) {
      if (options.isTemporary?.(error) !== true) lastText = text;
      throw error;
    }
    lastText = text;
    observe({ status: 'success' });
  };
  const look = async (): Promise<void> => {
    try {
      const state = await stateOf(file);
      if (state === seen && clock.monotonic() - readAt < readEveryMs) return;
      seen = state;
      readAt = clock.monotonic();
      const text = readConfigurationFile(file);
      if (text === lastText || stopped) return;
      await loadText(text);
    } catch (error) {
      if (!stopped) observe({ status: 'failure', error });
    }
  };
  const lookOnce = (): Promise<void> => {
    looking ??= look().finally(() => {
      looking = undefined;
    });
    return looking;
  };
  const timer = clock.every(lookEveryMs, lookOnce);
  return {
    look: lookOnce,
    stop() {
      stopped = true;
      timer.stop();
    },
  };
}

/**
 * Identifies the file's state: it changes when the file is written or replaced, also behind a
 * symbolic link. A missing file has a state too, so that its absence is reported once a minute.
 */
async function stateOf(file: string): Promise<string> {
  try {
    const { ino, mtimeMs, ctimeMs, size } = await stat(file);
    return [ino, mtimeMs, ctimeMs, size].join();
  } catch {
    return 'absent';
  }
}

/**
 * The client certificate for servers and kubelets that requests are passed to; follows its files.
 */
export interface ProxyCertificate {
  current(): ClientCertificate;
  close(): void;
}

/**
 * Reads the certificate and key, and again when they change. While they do not match, because only
 * one of the two was written yet, the old pair stays in use. Throws an error that names the file
 * when they are unusable at the start.
 */
export function openProxyCertificate(
  files: { readonly certFile: string; readonly keyFile: string },
  around: { readonly clock: Clock; readonly logger: Logger; changed(): void },
): ProxyCertificate {
  const { clock, logger } = around;
  let pair = readKeyPair(files);
  const load = () => {
    pair = readKeyPair(files);
    around.changed();
  };
  const observe = (outcome: ReloadOutcome) => {
    if (outcome.status === 'success') return;
    logger.warn('cannot reload a client certificate', {
      file: files.certFile,
      error: String(outcome.error),
    });
  };
  const isTemporary = () => true;
  const follow = (file: string, text: string) =>
    followFile({ file, text, clock, load, observe, isTemporary });
  const followed = [
    follow(files.certFile, pair.certificatePem),
    follow(files.keyFile, pair.keyPem),
  ];
  return {
    current: () => pair,
    close() {
      for (const one of followed) one.stop();
    },
  };
}

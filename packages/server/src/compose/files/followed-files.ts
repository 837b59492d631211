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
} from '@wheelhouse/machinery';
import type { ClientCertificate } from '../../aggregation/transport.ts';
import { serverIdentityHash } from '../../controllers/server-identity.ts';

/**
 * Writes a file that appears whole or not at all, with `mode` from its first moment: a private key
 * is never readable by others, and a crash leaves no half of one. A file that every start writes
 * anew may be `remade`: then nothing waits for the disk, and a power failure may empty it.
 */
export function writeFileAtomically(options: {
  path: string;
  text: string;
  mode: number;
  atStart?: 'kept' | 'remade';
}): void {
  const { path, text, mode, atStart = 'kept' } = options;
  makeDirectories(dirname(path), 0o700);
  const temporary = `${path}.${process.pid}.tmp`;
  rmSync(temporary, { force: true });
  const file = openSync(temporary, 'wx', mode);
  try {
    // Not `writeSync`: a disk that is nearly full may take only a part.
    writeFileSync(file, text);
    if (atStart === 'kept') fsyncSync(file);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  } finally {
    closeSync(file);
  }
  renameSync(temporary, path);
}

/** Where systems keep the authorities they trust, asked in order. */
const bundles = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/pki/tls/cacert.pem',
  '/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem',
  '/etc/ssl/cert.pem',
];

/**
 * The authorities the host trusts, in PEM, from `SSL_CERT_FILE` or where systems keep them; Node
 * itself only knows those it was built with. Undefined: none found, Node's serve instead.
 */
export function hostRoots(): string | undefined {
  const certFile = env['SSL_CERT_FILE'];
  const files = certFile === undefined || certFile === '' ? bundles : [certFile];
  for (const file of files) {
    try {
      return readFileSync(file, 'utf8');
    } catch {
      // The next one may be there.
    }
  }
  return undefined;
}

/** Counts one reload of a file; made once for each controller of a registry. */
type CountReload = (status: 'success' | 'failure') => void;

/**
 * The metrics of reloads of a file of configuration (AUTHN-8), named by what upstream calls its
 * controller: `authentication_config_controller`. `what` stands in their help.
 */
export function createReloadMetrics(
  registry: MetricRegistry,
  options: {
    readonly controller: string;
    readonly what: string;
    readonly clock: Clock;
    readonly dialect: Dialect;
    /** From which release on one metric for each status is deprecated, where there is one. */
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
  const identity = serverIdentityHash(hostname(), dialect.component('apiserver'));
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
 * Follows a file of certificates or of a key. What `load` throws leaves in use what was loaded
 * before, is logged, and is tried again: another file may have to change first. `text` is what is
 * loaded already.
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
      if (outcome.status === 'success') logger.info('certificates were read again', { file });
      else {
        const error = String(outcome.error);
        logger.warn('certificates were not read again', { file, error });
      }
    },
  });
}

/** Reads a certificate and its key. Throws, naming the file, when they are no pair. */
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
      throw new Error(`${file} holds no ${what}`, { cause: error });
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

/** What a look at a file that is followed came to. */
export type ReloadOutcome =
  | { readonly status: 'success' }
  | { readonly status: 'failure'; readonly error: unknown };

/** A file that is followed until `stop`. */
export interface ReloadedFile {
  /** Looks now, as the timer does; resolves once what it found is loaded or refused. */
  look(): Promise<void>;
  stop(): void;
}

const bytesMax = 3 * 1024 * 1024;
const lookEveryMs = 1000;
const readEveryMs = 60_000;

/**
 * The text of a file of configuration. Throws, naming the file, when it cannot be read, is no file,
 * or is larger than 3 MiB.
 */
export function readConfigurationFile(file: string): string {
  // Without O_NONBLOCK a pipe in the file's place would hold up the server.
  const handle = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const { size } = fstatSync(handle);
    if (!fstatSync(handle).isFile()) throw new Error(`${file} is not a regular file`);
    if (size > bytesMax) throw new Error(`${file} is larger than ${bytesMax} bytes`);
    // One byte more than there should be, so that a file that grows meanwhile is not cut short.
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
 * Follows a file of configuration: each second by what the file system says of it, each minute by
 * its text. A new text is given to `load`; when that throws, what was loaded before stays. `observe`
 * is called with each outcome, until `stop`. `text` is what is loaded already. A text that was refused
 * is left until it changes, unless `isTemporary` says of the error that it may pass: then it is tried
 * each minute.
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
 * What changes when a file is written or another takes its place, also behind a symbolic link. A
 * file that is gone has a state too, so that its absence is told of once a minute.
 */
async function stateOf(file: string): Promise<string> {
  try {
    const { ino, mtimeMs, ctimeMs, size } = await stat(file);
    return [ino, mtimeMs, ctimeMs, size].join();
  } catch {
    return 'absent';
  }
}

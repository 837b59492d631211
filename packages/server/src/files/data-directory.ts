import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { isObject, makeDirectories } from '@wheelhouse/machinery';
import type { IssuedCertificate } from '../serving/generated-certificates.ts';
import { type FileAtStart, writeFileAtomically } from './followed-files.ts';

/** Permission bits of group and others. */
const othersBits = 0o077;
/** Marks a directory that all users share, such as /tmp. */
const stickyBit = 0o1000;

/**
 * Creates the data directory, or restricts an existing one to its owner, since it holds keys and
 * Secrets. Throws a one-line error for a directory that is shared or owned by another user, and the
 * system's error when it cannot be created.
 */
export function ensureDataDirectory(path: string): { readonly tightened: boolean } {
  makeDirectories(path, { mode: 0o700 });
  const { mode, uid } = statSync(path);
  if ((mode & othersBits) === 0) return { tightened: false };
  const isOwn = process.getuid === undefined || uid === process.getuid();
  if (!isOwn || (mode & stickyBit) !== 0) {
    throw new Error(
      `others can read the data directory ${path}: give a directory of the server's own user with mode 0700`,
    );
  }
  chmodSync(path, mode & 0o700);
  return { tightened: true };
}

/** The embedded store's folder in the data directory. */
export function storeDirectory(dataDir: string): string {
  return join(dataDir, 'store');
}

/** The folder in which a restore builds the store; removed at the end of the restore. */
export function restoringDirectory(dataDir: string): string {
  return join(dataDir, 'store.restoring');
}

/**
 * What a data directory may contain before it has a store: keys and the like, and the remains of a
 * restore.
 */
export const keptWithoutStore: ReadonlySet<string> = new Set([
  'certificates',
  'admin.token',
  'admin.kubeconfig',
  'store.restoring',
]);

/**
 * Refuses a data directory with an interrupted restore, which would start empty. Throws a one-line
 * error.
 */
export function refuseBrokenRestore(dataDir: string): void {
  if (!existsSync(restoringDirectory(dataDir))) return;
  throw new Error(
    `a restore to ${dataDir} is under way or was broken off: run it again, or remove ${restoringDirectory(dataDir)}`,
  );
}

/** Refuses etcd flags, since etcd has its own tool for the purpose. */
export function refuseEtcd(args: readonly string[], tool: string): void {
  if (!args.some((arg) => arg.startsWith('--etcd-'))) return;
  throw new Error(`objects are in etcd: use ${tool} instead`);
}

/**
 * Refuses a data directory with an embedded store that is not configured: its owner would miss the
 * objects in it. Throws a one-line error.
 */
export function refuseIdleStore(dataDir: string): void {
  if (!existsSync(storeDirectory(dataDir))) return;
  throw new Error(
    `--data-dir ${dataDir} has an embedded store, which --etcd-servers would leave unused: give another directory`,
  );
}

const tokenBytes = 32;

/**
 * The administrator's token, generated once per data directory (`admin.token`, 0600) so that
 * existing kubeconfigs stay valid.
 */
export function ensureAdminToken(
  dataDir: string,
  options: { readonly atStart?: FileAtStart } = {},
): string {
  const path = join(dataDir, 'admin.token');
  try {
    const kept = readFileSync(path, 'utf8').trim();
    if (kept.length >= tokenBytes) return kept;
  } catch (error) {
    // Under jest, Node.js errors are instances of another context's Error.
    if (!isObject(error) || error['code'] !== 'ENOENT') throw error;
  }
  const token = randomBytes(tokenBytes).toString('base64url');
  writeFileAtomically({ path, text: `${token}\n`, mode: 0o600, ...options });
  return token;
}

/**
 * Writes the administrator's kubeconfig, readable by its owner alone. The content is JSON, which
 * every YAML reader accepts, so a start loads no YAML library. The file is replaced atomically.
 */
export function writeAdminKubeconfig(options: {
  path: string;
  /** `https://127.0.0.1:6443` */
  server: string;
  /** Absent for plain HTTP. */
  caPem?: string;
  credential:
    | { readonly token: string }
    | { readonly clientCertificate: IssuedCertificate }
    | 'none';
  /** Name of the context, the cluster and the user. */
  context: string;
}): void {
  const { path, server, caPem, credential, context: name } = options;
  const authority = caPem === undefined ? {} : { 'certificate-authority-data': base64(caPem) };
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name, cluster: { server, ...authority } }],
    users: [{ name, user: userOf(credential) }],
    contexts: [{ name, context: { cluster: name, user: name } }],
    'current-context': name,
    preferences: {},
  };
  const text = `${JSON.stringify(config, undefined, 2)}\n`;
  writeFileAtomically({ path, text, mode: 0o600, atStart: 'remade' });
}

function userOf(
  credential: Parameters<typeof writeAdminKubeconfig>[0]['credential'],
): Record<string, string> {
  if (credential === 'none') return {};
  if ('token' in credential) return { token: credential.token };
  return {
    'client-certificate-data': base64(credential.clientCertificate.certificatePem),
    'client-key-data': base64(credential.clientCertificate.keyPem),
  };
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { isObject, makeDirectories } from '@wheelhouse/machinery';
import { writeFileAtomically } from '../files/followed-files.ts';

/** Permissions of others than the owner. */
const othersBits = 0o077;
/** The mark of a directory that everybody shares, as /tmp. */
const stickyBit = 0o1000;

/**
 * Makes the data directory, or takes the one that is there away from others: keys and Secrets are in
 * it. Throws an error of one line for a directory that is shared or somebody else's, and the host's
 * error when it cannot.
 */
export function ensureDataDirectory(path: string): { readonly tightened: boolean } {
  makeDirectories(path, 0o700);
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

/** Where the embedded store is, within the data directory. */
export function storeDirectory(dataDir: string): string {
  return join(dataDir, 'store');
}

/** Where a restore makes the store, beside its place; gone when the restore is done. */
export function restoringDirectory(dataDir: string): string {
  return join(dataDir, 'store.restoring');
}

/** What a data directory may hold before it has a store: keys and the like, and a restore's rest. */
export const keptWithoutStore: ReadonlySet<string> = new Set([
  'certificates',
  'admin.token',
  'admin.kubeconfig',
  'store.restoring',
]);

/**
 * Refuses a data directory where a restore was broken off: a server would begin with nothing there,
 * which nobody wants who has restored. Throws an error of one line.
 */
export function refuseBrokenRestore(dataDir: string): void {
  if (!existsSync(restoringDirectory(dataDir))) return;
  throw new Error(
    `a restore to ${dataDir} is under way or was broken off: run it again, or remove ${restoringDirectory(dataDir)}`,
  );
}

/** Refuses flags about etcd, which has a tool of its own for the purpose. */
export function refuseEtcd(args: readonly string[], tool: string): void {
  if (!args.some((arg) => arg.startsWith('--etcd-'))) return;
  throw new Error(`objects in etcd are kept by etcd's own means: use ${tool}`);
}

/**
 * Refuses a data directory with a store of its own where objects are kept elsewhere: whoever has
 * objects there means to see them. Throws an error of one line.
 */
export function refuseIdleStore(dataDir: string): void {
  if (!existsSync(storeDirectory(dataDir))) return;
  throw new Error(
    `--data-dir ${dataDir} has an embedded store, which --etcd-servers would leave unused: give another directory`,
  );
}

const tokenBytes = 32;

/**
 * The administrator's token, made once per data directory (`admin.token`, 0600) so that a
 * kubeconfig written by an earlier start stays good.
 */
export function ensureAdminToken(dataDir: string): string {
  const path = join(dataDir, 'admin.token');
  try {
    const kept = readFileSync(path, 'utf8').trim();
    if (kept.length >= tokenBytes) return kept;
  } catch (error) {
    // Under jest, node's errors are instances of another context's Error.
    if (!isObject(error) || error['code'] !== 'ENOENT') throw error;
  }
  const made = randomBytes(tokenBytes).toString('base64url');
  writeFileAtomically({ path, text: `${made}\n`, mode: 0o600 });
  return made;
}

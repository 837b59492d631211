import { existsSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import {
  createHttpClient,
  type HttpClient,
  loadKubeconfig,
  resolveContext,
} from '@wheelhouse/client';
import { systemClock } from '@wheelhouse/machinery';
import {
  BackupError,
  type BackupSummary,
  checkNotLocked,
  createRestoredStore,
  fileBytes,
  openEmbeddedStore,
  type Revision,
  readBackup,
  restoredRevision,
  type Store,
  type StoredRecord,
  StoreError,
  writeBackup,
  writeBackupFile,
} from '@wheelhouse/store';
import { backupPath } from './endpoints/backup.ts';
import {
  ensureDataDirectory,
  keptWithoutStore,
  refuseEtcd,
  restoringDirectory,
  storeDirectory,
} from './files/data-directory.ts';
import { describeFlags, FlagError, flagsIn, parseFlags } from './flags/flags.ts';

const backupFlags = flagsIn('Backup', {
  'data-dir': { type: 'string', help: 'Data directory of a stopped server.' },
  kubeconfig: {
    type: 'string',
    help: `Kubeconfig of an administrator of a running server, who must be allowed to post to the path ${backupPath}.`,
  },
  context: { type: 'string', help: 'Context of the kubeconfig; its current one when empty.' },
  to: { type: 'string', help: 'File to write, atomically.' },
  force: { type: 'bool', help: 'Replace an existing file.' },
});

const backupUsage = `Writes a consistent snapshot of all objects to a file that wheelhouse restore reads.

Usage:
  wheelhouse backup --data-dir DIR --to FILE        back up a stopped server
  wheelhouse backup --kubeconfig CONFIG --to FILE   back up a running server

The file contains what the store contains: encrypted values stay encrypted, and anyone who can read
the file can read the others. It contains no keys, so keep copies of certificates/ and admin.token
in the data directory, and of the encryption configuration. To back up objects in etcd, use etcdctl.

`;

/**
 * Runs `wheelhouse backup` (STORE-5); resolves to the text to print. Rejects with a one-line error.
 */
export async function runBackup(args: readonly string[]): Promise<string> {
  refuseEtcd(args, 'etcdctl snapshot save');
  const { values, help } = parseFlags(backupFlags, args);
  if (help) return `${backupUsage}${describeFlags(backupFlags)}`;
  const { to, kubeconfig, context } = values;
  const dataDir = values['data-dir'];
  if (to === '') throw new FlagError('--to is required: the file to write');
  if ((dataDir === '') === (kubeconfig === '')) {
    throw new FlagError('specify either --data-dir, or --kubeconfig for a running server');
  }
  if (context !== '' && kubeconfig === '') {
    throw new FlagError('--context has no effect without --kubeconfig');
  }
  const target: Target = { path: to, replace: values.force ? 'allowed' : 'never' };
  const summary =
    dataDir === ''
      ? await backUpServer({ kubeconfig, context }, target)
      : await backUpDirectory(dataDir, target);
  return `backed up ${summary.records} objects of revision ${summary.revision} to ${to}\n`;
}

interface Target {
  readonly path: string;
  readonly replace: 'never' | 'allowed';
}

async function backUpDirectory(dataDir: string, target: Target): Promise<BackupSummary> {
  if (!existsSync(storeDirectory(dataDir))) throw new Error(`${dataDir} has no store`);
  return writeBackupFile({ ...target, pieces: stored(dataDir, target) });
}

/**
 * The backup of a stopped server's objects. Data in an older format are copied to a folder beside
 * the file first, so that older releases can still read the directory.
 */
async function* stored(dataDir: string, { path }: Target): AsyncGenerator<Buffer, void, undefined> {
  const copy = `${path}.${process.pid}.older.partial`;
  let store: Store | undefined;
  try {
    store = await openStopped(dataDir, copy);
    yield* writeBackup(await store.snapshot(), { nowMs: systemClock.now() });
  } finally {
    try {
      await store?.close();
    } finally {
      rmSync(copy, { recursive: true, force: true });
    }
  }
}

function openStopped(dataDir: string, copyOlderTo: string): Promise<Store> {
  const options = { directory: storeDirectory(dataDir), clock: systemClock, copyOlderTo };
  return openEmbeddedStore(options).catch((error: unknown) => {
    if (!(error instanceof StoreError) || error.code !== 'locked') throw error;
    const config = join(dataDir, 'admin.kubeconfig');
    throw new Error(
      `${error.message}: if that is a server, back it up with --kubeconfig ${config}`,
    );
  });
}

async function backUpServer(
  server: { readonly kubeconfig: string; readonly context: string },
  target: Target,
): Promise<BackupSummary> {
  const config = await loadKubeconfig({ files: [server.kubeconfig], required: true });
  const { client } = resolveContext(config, { context: server.context });
  const http = createHttpClient({ ...client, userAgent: 'wheelhouse-backup' });
  try {
    return await writeBackupFile({ ...target, pieces: received(http) });
  } finally {
    http.close();
  }
}

/** Requested only once the file is writable. */
async function* received(http: HttpClient): AsyncGenerator<Buffer, void, undefined> {
  const { status, body } = await http.stream({ method: 'POST', path: backupPath });
  if (status !== 200) throw new Error(await refusalIn(status, body));
  yield* body;
}

const refusalBytesMax = 64 * 1024;

/** The server's refusal in one line. */
async function refusalIn(status: number, body: AsyncIterable<Buffer>): Promise<string> {
  let text = '';
  for await (const piece of body) {
    text += piece.toString('utf8');
    if (text.length > refusalBytesMax) break;
  }
  let message: unknown;
  try {
    message = (JSON.parse(text) as { message?: unknown }).message;
  } catch {
    message = undefined;
  }
  return `the server refused (${status}): ${typeof message === 'string' ? message : 'no reason given'}`;
}

const restoreFlags = flagsIn('Restore', {
  from: { type: 'string', help: 'Backup file to read.' },
  'data-dir': {
    type: 'string',
    help: 'Data directory to create; an existing one may contain only keys, tokens, and certificates.',
  },
});

const restoreUsage = `Creates a data directory from a backup file.

Usage:
  wheelhouse restore --from FILE --data-dir DIR

The command verifies the whole file before it writes anything. The restored server continues with
resource versions that the old server never assigned, so a watch or list at an old resource version
gets 410 Expired, and clients list again. To keep the trust between clients and the server, copy
certificates/ and admin.token from the old data directory to the new one; otherwise, the server
creates new ones. To restore objects in etcd, use etcdctl.

`;

/**
 * Runs `wheelhouse restore` (STORE-5); resolves to the text to print. Rejects with a one-line error
 * without having changed anything.
 */
export async function runRestore(args: readonly string[]): Promise<string> {
  refuseEtcd(args, 'etcdctl snapshot restore');
  const { values, help } = parseFlags(restoreFlags, args);
  if (help) return `${restoreUsage}${describeFlags(restoreFlags)}`;
  const { from } = values;
  const dataDir = values['data-dir'];
  if (from === '') throw new FlagError('--from is required: the file to read');
  if (dataDir === '') throw new FlagError('--data-dir is required: the directory to create');
  checkTarget(dataDir);
  const checked = await readWhole(from, () => undefined);
  const revision = await restore({ from, dataDir, checked });
  const { records, created } = checked;
  return (
    `restored ${records} objects of revision ${checked.revision} (${created}) to ${dataDir};` +
    ` resource versions continue after ${revision}\n`
  );
}

async function restore(of: {
  readonly from: string;
  readonly dataDir: string;
  readonly checked: BackupSummary;
}): Promise<Revision> {
  const { from, dataDir, checked } = of;
  const createdMs = Date.parse(checked.created);
  const nowMs = systemClock.now();
  const revision = restoredRevision({ revision: checked.revision, createdMs, nowMs });
  ensureDataDirectory(dataDir);
  await createRestoredStore({
    directory: storeDirectory(dataDir),
    staging: restoringDirectory(dataDir),
    clock: systemClock,
    async fill(sink) {
      const read = await readWhole(from, (records) => sink.add(records));
      if (!read.digest.equals(checked.digest))
        throw new Error(`${from} changed while it was being restored`);
      return revision;
    },
  });
  return revision;
}

async function readWhole(
  path: string,
  onRecords: (records: readonly StoredRecord[]) => Promise<void> | undefined,
): Promise<BackupSummary> {
  if (existsSync(path) && !statSync(path).isFile()) throw new Error(`${path} is not a file`);
  try {
    return await readBackup(fileBytes(path), onRecords);
  } catch (error) {
    if (error instanceof BackupError) throw new Error(`${path} ${error.message}`);
    throw error;
  }
}

/** Rejects a target whose content would be lost or mixed with what is restored. */
function checkTarget(dataDir: string): void {
  if (!existsSync(dataDir)) return;
  if (!statSync(dataDir).isDirectory()) throw new Error(`${dataDir} is not a directory`);
  const store = storeDirectory(dataDir);
  if (existsSync(store)) {
    checkNotLocked(store);
    throw new Error(`${dataDir} already has a store: restore to another directory`);
  }
  const strange = readdirSync(dataDir).find((name) => !keptWithoutStore.has(name));
  if (strange === undefined) return;
  throw new Error(`${dataDir} is not empty: it contains ${JSON.stringify(strange)}`);
}

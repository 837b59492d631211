import { existsSync } from 'node:fs';
import { join } from 'node:path';
import {
  createHttpClient,
  type HttpClient,
  loadKubeconfig,
  resolveContext,
} from '@wheelhouse/client';
import { systemClock } from '@wheelhouse/machinery';
import {
  type BackupSummary,
  openEmbeddedStore,
  type Store,
  StoreError,
  writeBackup,
  writeBackupFile,
} from '@wheelhouse/store';
import { backupPath } from '../../endpoints/backup.ts';
import { describeFlags, FlagError, type FlagTable, parseFlags } from '../flags/flags.ts';
import { refuseEtcd, storeDirectory } from './data-directory.ts';

const backupFlags = {
  'data-dir': {
    group: 'Backup',
    type: 'string',
    default: '',
    help: 'Data directory of a server that does not run.',
  },
  kubeconfig: {
    group: 'Backup',
    type: 'string',
    default: '',
    help: `Kubeconfig of an administrator of a server that runs; it needs the verb post on the path ${backupPath}.`,
  },
  context: {
    group: 'Backup',
    type: 'string',
    default: '',
    help: 'Context of the kubeconfig; its current one when empty.',
  },
  to: {
    group: 'Backup',
    type: 'string',
    default: '',
    help: 'File to write, which appears whole or not at all.',
  },
  force: {
    group: 'Backup',
    type: 'bool',
    default: 'false',
    help: 'Replaces the file if there is one.',
  },
} as const satisfies FlagTable;

const usage = `Writes all objects, as they are at one moment, to a file that wheelhouse restore reads.

Usage:
  wheelhouse backup --data-dir DIR --to FILE        of a server that does not run
  wheelhouse backup --kubeconfig CONFIG --to FILE   of one that does

The file holds what the store holds: encrypted values stay encrypted, all others can be read by
whoever has the file. Keys are not in it: keep copies of certificates/ and admin.token in the data
directory, and of the encryption configuration. Objects in etcd are backed up with etcdctl.

`;

/**
 * Runs `wheelhouse backup` (STORE-5); gives what is to be printed. Rejects with an error of one line.
 */
export async function runBackup(args: readonly string[]): Promise<string> {
  refuseEtcd(args, 'etcdctl snapshot save');
  const { values, help } = parseFlags(backupFlags, args);
  if (help) return `${usage}${describeFlags(backupFlags)}`;
  const { to, kubeconfig, context } = values;
  const dataDir = values['data-dir'];
  if (to === '') throw new FlagError('--to must say which file to write');
  if ((dataDir === '') === (kubeconfig === '')) {
    throw new FlagError('give either --data-dir, or --kubeconfig of a server that runs');
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
  const directory = storeDirectory(dataDir);
  if (!existsSync(directory)) throw new Error(`${dataDir} has no store`);
  const clock = systemClock;
  const store: Store = await openEmbeddedStore({ directory, clock }).catch((error: unknown) => {
    if (!(error instanceof StoreError) || error.code !== 'locked') throw error;
    const config = join(dataDir, 'admin.kubeconfig');
    throw new Error(
      `${error.message}: if that is a server, back it up with --kubeconfig ${config}`,
    );
  });
  try {
    const pieces = writeBackup(await store.snapshot(), { nowMs: clock.now() });
    return await writeBackupFile({ ...target, pieces });
  } finally {
    await store.close();
  }
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

/** Asked for only when the file can be written. */
async function* received(http: HttpClient): AsyncGenerator<Buffer, void, undefined> {
  const { status, body } = await http.stream({ method: 'POST', path: backupPath });
  if (status !== 200) throw new Error(await refusalIn(status, body));
  yield* body;
}

const refusalBytesMax = 64 * 1024;

/** What the server says of its refusal, in one line. */
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

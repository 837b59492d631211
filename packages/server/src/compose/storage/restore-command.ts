import { existsSync, readdirSync, statSync } from 'node:fs';
import { systemClock } from '@wheelhouse/machinery';
import {
  BackupError,
  type BackupSummary,
  checkNotHeld,
  fileBytes,
  makeRestoredStore,
  type Revision,
  readBackup,
  restoredRevision,
  type StoredRecord,
} from '@wheelhouse/store';
import { describeFlags, FlagError, type FlagTable, parseFlags } from '../flags/flags.ts';
import {
  ensureDataDirectory,
  keptWithoutStore,
  refuseEtcd,
  restoringDirectory,
  storeDirectory,
} from './data-directory.ts';

const restoreFlags = {
  from: {
    group: 'Restore',
    type: 'string',
    default: '',
    help: 'File that wheelhouse backup has written.',
  },
  'data-dir': {
    group: 'Restore',
    type: 'string',
    default: '',
    help: 'Data directory to make; it may be there if it holds nothing but keys, tokens and certificates.',
  },
} as const satisfies FlagTable;

const usage = `Makes a data directory from a file that wheelhouse backup has written.

Usage:
  wheelhouse restore --from FILE --data-dir DIR

The file is checked as a whole before anything is made of it. The restored server goes on with
resource versions that nobody has seen: what clients remember is answered 410 Expired, and they
list anew. For clients to trust it, and it them, put certificates/ and admin.token of the old data
directory into the new one; without, new ones are made. Objects in etcd are restored with etcdctl.

`;

/**
 * Runs `wheelhouse restore` (STORE-5); gives what is to be printed. Rejects with an error of one
 * line, and then has made nothing.
 */
export async function runRestore(args: readonly string[]): Promise<string> {
  refuseEtcd(args, 'etcdctl snapshot restore');
  const { values, help } = parseFlags(restoreFlags, args);
  if (help) return `${usage}${describeFlags(restoreFlags)}`;
  const { from } = values;
  const dataDir = values['data-dir'];
  if (from === '') throw new FlagError('--from must say which file to read');
  if (dataDir === '') throw new FlagError('--data-dir must say which directory to make');
  checkTarget(dataDir);
  const checked = await readWhole(from, () => undefined);
  const revision = await restore({ from, dataDir, checked });
  const { records, created } = checked;
  return (
    `restored ${records} objects of revision ${checked.revision} (${created}) to ${dataDir};` +
    ` resource versions go on after ${revision}\n`
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
  await makeRestoredStore({
    directory: storeDirectory(dataDir),
    staging: restoringDirectory(dataDir),
    clock: systemClock,
    async fill(sink) {
      const read = await readWhole(from, (records) => sink.add(records));
      if (!read.digest.equals(checked.digest))
        throw new Error(`${from} has been changed meanwhile`);
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

/** Nothing that is there may be lost or mixed with what is restored. */
function checkTarget(dataDir: string): void {
  if (!existsSync(dataDir)) return;
  if (!statSync(dataDir).isDirectory()) throw new Error(`${dataDir} is not a directory`);
  const store = storeDirectory(dataDir);
  if (existsSync(store)) {
    checkNotHeld(store);
    throw new Error(`${dataDir} has a store already: restore to another directory`);
  }
  const strange = readdirSync(dataDir).find((name) => !keptWithoutStore.has(name));
  if (strange === undefined) return;
  throw new Error(`${dataDir} is not empty: it has ${JSON.stringify(strange)}`);
}

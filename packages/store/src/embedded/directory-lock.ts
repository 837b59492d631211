import {
  closeSync,
  constants,
  ftruncateSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { systemErrorCode } from '@wheelhouse/machinery';
import { StoreError } from '../contract.ts';
import { tryKernelLock } from './kernel-lock.ts';

/** The process that holds a directory. Used only in messages. */
interface Holder {
  readonly pid: number;
  readonly host: string;
  /** When it locked the directory, RFC 3339. */
  readonly since: string;
}

/** A held lock on a data directory. */
export interface DirectoryLock {
  /** Releases the lock. Idempotent. */
  release(): void;
}

const lockName = 'lock';
/** Lock files of servers up to format 1, which locked by content. */
const olderName = /^lock\.\d{1,15}$/;

/**
 * Locks the data directory until `release` or until the process ends for any reason (TRUST-7).
 * Takes a kernel lock on the file `lock`, which is never removed: otherwise two processes could
 * lock two different files. The content of the file only names the holder.
 *
 * @throws StoreError `locked`, naming the holder, if another server of this version or an older one
 *   holds the directory; `unavailable` if the file system has no locks
 */
export function lockDirectory(options: {
  readonly directory: string;
  /** Wall time, milliseconds since the epoch. */
  readonly nowMs: number;
}): DirectoryLock {
  const { directory } = options;
  const descriptor = openLocked(directory, constants.O_CREAT);
  try {
    checkNoOlderServer(directory);
  } catch (error) {
    closeSync(descriptor);
    throw error;
  }
  const since = new Date(options.nowMs).toISOString();
  describeHolder(descriptor, { pid: process.pid, host: hostname(), since });
  removeOlderLocks(directory);
  let isHeld = true;
  return {
    release: () => {
      if (isHeld) closeSync(descriptor);
      isHeld = false;
    },
  };
}

/** Throws StoreError `locked` if another server holds the directory, and changes nothing. */
export function checkNotLocked(directory: string): void {
  if (readdirSync(directory).includes(lockName)) closeSync(openLocked(directory, 0));
  checkNoOlderServer(directory);
}

/** The descriptor of the locked file; closing it releases the lock. */
function openLocked(directory: string, flags: number): number {
  const path = join(directory, lockName);
  const descriptor = openSync(path, constants.O_RDWR | flags, 0o600);
  try {
    if (tryKernelLock(descriptor)) return descriptor;
  } catch (error) {
    closeSync(descriptor);
    throw error;
  }
  closeSync(descriptor);
  throw inUse(directory, readHolder(path));
}

/**
 * Servers up to format 1 lock the first byte of LMDB's lock file while they run, so the kernel
 * distinguishes a running server from the files of a crashed one.
 */
function checkNoOlderServer(directory: string): void {
  let descriptor: number;
  try {
    descriptor = openSync(join(directory, 'lock.mdb'), 'r+');
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return;
    throw error;
  }
  try {
    if (tryKernelLock(descriptor, { offset: 0, length: 1 })) return;
  } finally {
    closeSync(descriptor);
  }
  const newest = readdirSync(directory)
    .filter((name) => olderName.test(name))
    .sort()
    .at(-1);
  throw inUse(directory, newest === undefined ? undefined : readHolder(join(directory, newest)));
}

function inUse(directory: string, holder: Holder | undefined): StoreError {
  const who =
    holder === undefined
      ? 'another process'
      : `process ${holder.pid} on host ${holder.host} since ${holder.since}`;
  return new StoreError({
    code: 'locked',
    message: `data directory ${directory} is in use by ${who}`,
  });
}

/** Returns undefined if no server wrote the file's content. */
function readHolder(path: string): Holder | undefined {
  try {
    const holder = JSON.parse(readFileSync(path, 'utf8')) as Holder;
    const isHolder =
      Number.isInteger(holder.pid) &&
      [holder.host, holder.since].every((text) => typeof text === 'string');
    return isHolder ? holder : undefined;
  } catch {
    return undefined;
  }
}

function describeHolder(descriptor: number, holder: Holder): void {
  try {
    ftruncateSync(descriptor);
    writeSync(descriptor, `${JSON.stringify(holder)}\n`, 0);
  } catch {
    // On a full disk the file does not name the holder, but the lock is valid.
  }
}

function removeOlderLocks(directory: string): void {
  for (const name of readdirSync(directory)) {
    if (olderName.test(name)) rmSync(join(directory, name), { force: true });
  }
}

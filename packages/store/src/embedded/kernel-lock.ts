import { createRequire } from 'node:module';
import { errorText, systemErrorCode } from '@wheelhouse/machinery';
import { StoreError } from '../contract.ts';

interface LockBinding {
  /** Throws an error with code EAGAIN if another open file holds a conflicting lock. */
  tryLock(descriptor: number, offset: number, length: number, exclusive: boolean): void;
}

let binding: LockBinding | undefined;

/**
 * Takes an exclusive kernel lock on an open file (an open-file-description lock on Linux). The
 * kernel releases it when the descriptor is closed or the process ends, and enforces it across
 * containers on one kernel and across hosts if the file system supports that. Returns false if
 * another process holds it.
 *
 * @param range bytes to lock; a `length` of 0 means the whole file
 * @throws StoreError `unavailable` when the platform or the file system has no such locks
 */
export function tryKernelLock(descriptor: number, range = { offset: 0, length: 0 }): boolean {
  binding ??= loadBinding();
  try {
    binding.tryLock(descriptor, range.offset, range.length, true);
    return true;
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === 'EAGAIN' || code === 'EACCES' || code === 'EBUSY') return false;
    throw noLocks(`its file system has no locks: ${errorText(error)}`, error);
  }
}

/**
 * Loads only the package's native code, since its JavaScript would add ten files to each start. A
 * bundle has its own `require`, which finds the file where the bundle is installed.
 */
function loadBinding(): LockBinding {
  const platform = `${process.platform}-${process.arch}`;
  const file = `fs-native-extensions/prebuilds/${platform}/fs-native-extensions.node`;
  try {
    const load = typeof require === 'function' ? require : createRequire(import.meta.url);
    return load(file) as LockBinding;
  } catch (error) {
    throw noLocks(`the package fs-native-extensions has nothing for ${platform}`, error);
  }
}

function noLocks(why: string, cause: unknown): StoreError {
  const message = `the data directory cannot be locked against other servers: ${why}`;
  return new StoreError({ code: 'unavailable', message, cause });
}

import { systemErrorCode } from '@wheelhouse/machinery';
import { StoreError } from '../contract.ts';

const spaceCodes: ReadonlySet<unknown> = new Set(['ENOSPC', 'EDQUOT', 'EFBIG']);

/** Whether the host refused a write for want of space, be it the disk's or a quota's. */
export function isOutOfSpace(error: unknown): boolean {
  if (error instanceof StoreError) return error.code === 'no-space';
  return spaceCodes.has(systemErrorCode(error));
}

/** The host's errors as the store's own; those of the store pass. */
export function translate(error: unknown, action: 'read' | 'write'): StoreError {
  if (error instanceof StoreError) return error;
  const { code, syscall, message: plain } = error as NodeJS.ErrnoException;
  // The host's own message has paths in it.
  const text = code === undefined ? plain : [code, syscall].join(' ').trim();
  if (isOutOfSpace(error)) {
    const message = `the disk of the store has no space left: ${text}`;
    return new StoreError({ code: 'no-space', message, cause: error });
  }
  const message = `the disk of the store failed to ${action}: ${text}`;
  return new StoreError({ code: 'disk-failed', message, cause: error });
}

import {
  type GroupResource,
  internalError,
  qualifiedResource,
  StatusError,
  serviceUnavailable,
  timedOut,
} from '@wheelhouse/machinery';
import { StoreError } from '@wheelhouse/store';
import type { UnreadableRecord } from './loader.ts';

/**
 * Converts a store error to the error of the request. A rejection by the service behind the store
 * becomes a 500 with the service's message; an error in converting a value is returned unchanged.
 */
export function statusOfStoreError(error: StoreError): StatusError {
  if (error.cause instanceof StatusError) return error.cause;
  switch (error.code) {
    case 'refused':
    case 'too-large':
    case 'lease-expired':
      return new StatusError({ code: 500, reason: '', message: error.message, cause: error });
    case 'timed-out':
      return timedOut('write', error);
    case 'no-space':
      return unavailable(error.message, error);
    case 'disk-failed':
      return unavailable(
        'the disk of the store failed: the outcome of the request is unknown',
        error,
      );
    default:
      return serviceUnavailable('the store is unavailable');
  }
}

/** Throws an error of the store as `statusOfStoreError` converts it, and others unchanged. */
export function throwStatusOf(error: unknown): never {
  throw error instanceof StoreError ? statusOfStoreError(error) : error;
}

/**
 * Converts errors of single reads and writes to StatusErrors, including those that a cache handles
 * itself; returns other errors unchanged.
 */
export function translateStoreError(error: unknown): unknown {
  if (!(error instanceof StoreError)) return error;
  switch (error.code) {
    case 'no-space':
    case 'disk-failed':
    case 'refused':
    case 'too-large':
    case 'lease-expired':
    case 'timed-out':
    case 'unavailable':
    case 'closed':
    case 'locked':
      return statusOfStoreError(error);
    case 'compacted':
    case 'future-revision':
      return internalError('the store lost the revision that was read', error);
    case 'not-encrypted':
      return internalError(error.message, error);
    case 'damaged':
      return new StatusError({
        code: 500,
        reason: 'StorageReadError',
        message: 'the store could not read an object: its data is damaged',
        cause: error,
      });
  }
}

/** Runs a read of the store and converts its errors. */
export function storing<T>(work: () => Promise<T>): Promise<T> {
  return work().catch((error: unknown) => {
    throw translateStoreError(error);
  });
}

/** A 503, because an administrator can free space, and a disk may recover. */
function unavailable(message: string, cause: StoreError): StatusError {
  return new StatusError({ code: 503, reason: 'ServiceUnavailable', message, cause });
}

/** A stored object cannot be read (STORE-3, DEL-6). */
export class CorruptObjectError extends StatusError {}

type Corrupt = Pick<UnreadableRecord, 'storeKey' | 'problem'>;

/** kube-apiserver's wording, which clients match; 7 is its code for these errors. */
function corruptText({ storeKey, problem }: Corrupt): string {
  return `StorageError: corrupt object, Code: 7, Key: ${storeKey}, ResourceVersion: 0, AdditionalErrorMsg: ${problem}`;
}

/** The error of a get or a change of an unreadable object. */
export function corruptObject(found: Corrupt): CorruptObjectError {
  const message = corruptText(found);
  return new CorruptObjectError({
    code: 500,
    reason: 'InternalError',
    message: `Internal error occurred: ${message}`,
    details: { causes: [{ message }] },
  });
}

/** Maximum number of objects that one error lists. */
const listedMax = 100;

/** The error of a list or watch that covers unreadable objects. */
export function corruptList(
  { group, resource }: GroupResource,
  found: readonly Corrupt[],
): CorruptObjectError {
  const causes = found.slice(0, listedMax).map((corrupt) => ({
    reason: 'UnexpectedServerResponse',
    message: corruptText(corrupt),
    field: corrupt.storeKey,
  }));
  const tooMany = {
    reason: 'FieldValueTooMany',
    message: 'too many errors, the list is truncated',
  };
  const name = qualifiedResource({ group, resource });
  return new CorruptObjectError({
    code: 500,
    reason: 'StorageReadError',
    message: `failed to read one or more ${name} from the storage`,
    details: {
      ...(group === '' ? {} : { group }),
      kind: resource,
      name: 'list',
      causes: found.length < listedMax ? causes : [...causes, tooMany],
    },
  });
}

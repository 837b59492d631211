import {
  type GroupResource,
  StatusError,
  serviceUnavailable,
  timedOut,
} from '@wheelhouse/machinery';
import type { StoreError } from '@wheelhouse/store';
import type { UnreadableRecord } from './loader.ts';

/**
 * The answer to a request whose store does not serve, whether it read or wrote. What a service
 * behind the store says is passed on as upstream does: 500, in the service's own words; so is what
 * kept a value from getting the form that was asked for.
 */
export function unservedBy(error: StoreError): StatusError {
  if (error.cause instanceof StatusError) return error.cause;
  switch (error.code) {
    case 'refused':
    case 'too-large':
    case 'lease-gone':
      return new StatusError({ code: 500, reason: '', message: error.message, cause: error });
    case 'timed-out':
      return timedOut('write', error);
    case 'no-space':
      return unavailable(error.message, error);
    case 'disk-failed':
      return unavailable(
        'the disk of the store failed: nobody knows what became of the request',
        error,
      );
    default:
      return serviceUnavailable('the store is unavailable');
  }
}

/** Retriable: an administrator can make room, and a disk may answer again. */
function unavailable(message: string, cause: StoreError): StatusError {
  return new StatusError({ code: 503, reason: 'ServiceUnavailable', message, cause });
}

/** An object stands in the store and cannot be read (STORE-3, DEL-6). */
export class CorruptObjectError extends StatusError {}

type Corrupt = Pick<UnreadableRecord, 'storeKey' | 'problem'>;

/** Upstream's words, by which its clients tell such errors; 7 is its number for them. */
function corruptText({ storeKey, problem }: Corrupt): string {
  return `StorageError: corrupt object, Code: 7, Key: ${storeKey}, ResourceVersion: 0, AdditionalErrorMsg: ${problem}`;
}

/** The answer to whoever reads, or would change, an object that cannot be read. */
export function corruptObject(found: Corrupt): CorruptObjectError {
  const message = corruptText(found);
  return new CorruptObjectError({
    code: 500,
    reason: 'InternalError',
    message: `Internal error occurred: ${message}`,
    details: { causes: [{ message }] },
  });
}

/** Objects told of in one answer. */
const toldMax = 100;

/** The answer to whoever lists or watches what holds objects that cannot be read. */
export function corruptList(
  { group, resource }: GroupResource,
  found: readonly Corrupt[],
): CorruptObjectError {
  const causes = found.slice(0, toldMax).map((one) => ({
    reason: 'UnexpectedServerResponse',
    message: corruptText(one),
    field: one.storeKey,
  }));
  const tooMany = {
    reason: 'FieldValueTooMany',
    message: 'too many errors, the list is truncated',
  };
  const name = group === '' ? resource : `${resource}.${group}`;
  return new CorruptObjectError({
    code: 500,
    reason: 'StorageReadError',
    message: `failed to read one or more ${name} from the storage`,
    details: {
      ...(group === '' ? {} : { group }),
      kind: resource,
      name: 'list',
      causes: found.length < toldMax ? causes : [...causes, tooMany],
    },
  });
}

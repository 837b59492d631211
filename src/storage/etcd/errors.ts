import { StoreError } from '../contract.ts';

/** Codes of gRPC that are told apart here. */
const code = { deadlineExceeded: 4, resourceExhausted: 8, unavailable: 14 } as const;

/** A failed call, as the gRPC library gives it. */
export interface CallFailure {
  readonly code: number;
  readonly details: string;
}

export function isCallFailure(error: unknown): error is CallFailure {
  return (
    typeof error === 'object' &&
    error !== null &&
    'code' in error &&
    typeof error.code === 'number' &&
    'details' in error &&
    typeof error.details === 'string'
  );
}

const ownWords = 'etcdserver: ';
const compactedWords = 'etcdserver: mvcc: required revision has been compacted';
const futureWords = 'etcdserver: mvcc: required revision is a future revision';
const tooLargeWords = 'etcdserver: request is too large';

/**
 * A failed call as the store's error. What etcd says in its own words comes from a fixed list and
 * goes to clients as upstream gives it; what the connection says does not.
 */
export function storeErrorOf(failure: unknown): StoreError {
  if (failure instanceof StoreError) return failure;
  if (!isCallFailure(failure)) {
    return new StoreError({ code: 'unavailable', message: String(failure), cause: failure });
  }
  const { details } = failure;
  const make = (kind: StoreError['code'], message = details) =>
    new StoreError({ code: kind, message, cause: failure });
  if (details === compactedWords) return make('compacted');
  if (details === futureWords) return make('future-revision');
  if (details.startsWith(ownWords)) return make('refused');
  if (failure.code === code.resourceExhausted && details.includes('larger than max')) {
    return make('refused', tooLargeWords);
  }
  if (failure.code === code.deadlineExceeded) return make('timed-out');
  return make('unavailable', `etcd cannot be reached: ${details}`);
}

/** Whether a write failed since the lease it named is gone. */
export function isLeaseGone(error: unknown): boolean {
  return error instanceof StoreError && error.message === 'etcdserver: requested lease not found';
}

/** Whether the call never reached a server, so that even a write may be made again. */
export function wasNotSent(failure: unknown): boolean {
  if (!isCallFailure(failure) || failure.code !== code.unavailable) return false;
  return /^(No connection established|Name resolution failed)/.test(failure.details);
}

/** Whether another server, or the same one a moment later, may answer. */
export function isPassing(failure: unknown): boolean {
  return isCallFailure(failure) && failure.code === code.unavailable;
}

/** What a call fails with that took longer than it may. */
export function timedOut(): StoreError {
  return new StoreError({ code: 'timed-out', message: 'context deadline exceeded' });
}

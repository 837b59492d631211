import { errorText } from '@wheelhouse/machinery';
import { StoreError } from '../contract.ts';

/** Codes of gRPC that are told apart here. */
export const statusCode = {
  ok: 0,
  deadlineExceeded: 4,
  resourceExhausted: 8,
  internal: 13,
  unavailable: 14,
} as const;

const statusNames = [
  'OK',
  'Canceled',
  'Unknown',
  'InvalidArgument',
  'DeadlineExceeded',
  'NotFound',
  'AlreadyExists',
  'PermissionDenied',
  'ResourceExhausted',
  'FailedPrecondition',
  'Aborted',
  'OutOfRange',
  'Unimplemented',
  'Internal',
  'Unavailable',
  'DataLoss',
  'Unauthenticated',
];

/** The name of a gRPC status; `Unknown` for numbers without one. */
export function statusName(code: number): string {
  return statusNames[code] ?? 'Unknown';
}

/** A call that has failed, as gRPC tells it. */
export class CallError extends Error {
  readonly code: number;
  /** The server's words, or ours where there is no server. */
  readonly details: string;
  /** `unsent`: no server has seen the call. */
  readonly reach: 'sent' | 'unsent';

  constructor(status: {
    readonly code: number;
    readonly details: string;
    readonly reach?: 'sent' | 'unsent';
  }) {
    super(status.details);
    this.name = 'CallError';
    this.code = status.code;
    this.details = status.details;
    this.reach = status.reach ?? 'sent';
  }
}

/** What a call fails with that there was no connection for. */
export function notConnected(cause: unknown): CallError {
  const why = errorText(cause);
  const details = `there is no connection: ${why}`;
  return new CallError({ code: statusCode.unavailable, details, reach: 'unsent' });
}

const ownWords = 'etcdserver: ';
const compactedWords = 'etcdserver: mvcc: required revision has been compacted';
const futureWords = 'etcdserver: mvcc: required revision is a future revision';
const noSpaceWords = 'etcdserver: mvcc: database space exceeded';
const leaseGoneWords = 'etcdserver: requested lease not found';
const tooLargeWords = 'etcdserver: request is too large';

/**
 * A failed call as the store's error. What etcd says in its own words comes from a fixed list and
 * goes to clients as upstream gives it; what the connection says does not.
 */
export function storeErrorOf(failure: unknown): StoreError {
  if (failure instanceof StoreError) return failure;
  if (!(failure instanceof CallError)) {
    return new StoreError({ code: 'unavailable', message: String(failure), cause: failure });
  }
  const { details } = failure;
  const make = (kind: StoreError['code'], message = details) =>
    new StoreError({ code: kind, message, cause: failure });
  if (details === compactedWords) return make('compacted');
  if (details === futureWords) return make('future-revision');
  if (details === noSpaceWords) return make('no-space');
  if (details === leaseGoneWords) return make('lease-gone');
  if (details === tooLargeWords) return make('too-large');
  if (details.startsWith(ownWords)) return make('refused');
  if (failure.code === statusCode.resourceExhausted && details.includes('larger than max')) {
    return make('too-large', tooLargeWords);
  }
  if (failure.code === statusCode.deadlineExceeded) return make('timed-out');
  return make('unavailable', `etcd cannot be reached: ${details}`);
}

/** Whether a write failed since the lease it named is gone. */
export function isLeaseGone(error: unknown): boolean {
  return error instanceof StoreError && error.code === 'lease-gone';
}

/** Whether the call never reached a server, so that even a write may be made again. */
export function wasNotSent(failure: unknown): boolean {
  return failure instanceof CallError && failure.reach === 'unsent';
}

/** Whether another server, or the same one a moment later, may answer. */
export function isPassing(failure: unknown): boolean {
  return failure instanceof CallError && failure.code === statusCode.unavailable;
}

/** Whether etcd refused a call for now alone: it elects a leader, or has too much to do. */
export function isTransient({ cause }: StoreError): boolean {
  const isBusy = cause instanceof CallError && cause.code === statusCode.resourceExhausted;
  return isBusy || isPassing(cause);
}

/** What a call fails with that took longer than it may. */
export function timedOut(): StoreError {
  return new StoreError({ code: 'timed-out', message: 'context deadline exceeded' });
}

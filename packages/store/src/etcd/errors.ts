import { errorText } from '@wheelhouse/machinery';
import { StoreError } from '../contract.ts';

/** The gRPC status codes that this package distinguishes. */
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

/** The name of a gRPC status; `Unknown` for other numbers. */
export function statusName(code: number): string {
  return statusNames[code] ?? 'Unknown';
}

/** A failed gRPC call. */
export class CallError extends Error {
  readonly code: number;
  /** The server's message, or a local one if no server responded. */
  readonly details: string;
  /** `unsent` if no server has received the call. */
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

/** Returns the error of a call for which there was no connection. */
export function notConnected(cause: unknown): CallError {
  const why = errorText(cause);
  const details = `not connected: ${why}`;
  return new CallError({ code: statusCode.unavailable, details, reach: 'unsent' });
}

const etcdPrefix = 'etcdserver: ';
const compactedMessage = 'etcdserver: mvcc: required revision has been compacted';
const futureMessage = 'etcdserver: mvcc: required revision is a future revision';
const noSpaceMessage = 'etcdserver: mvcc: database space exceeded';
const leaseExpiredMessage = 'etcdserver: requested lease not found';
const tooLargeMessage = 'etcdserver: request is too large';
const noLeaderMessage = 'etcdserver: no leader';

/**
 * Converts a failed call to a StoreError. Messages of etcd come from a fixed list, and clients see
 * them as from kube-apiserver; they do not see messages about the connection.
 */
export function storeErrorOf(failure: unknown): StoreError {
  if (failure instanceof StoreError) return failure;
  if (!(failure instanceof CallError)) {
    return new StoreError({ code: 'unavailable', message: String(failure), cause: failure });
  }
  const { details } = failure;
  const make = (kind: StoreError['code'], message = details) =>
    new StoreError({ code: kind, message, cause: failure });
  if (details === compactedMessage) return make('compacted');
  if (details === futureMessage) return make('future-revision');
  if (details === noSpaceMessage) return make('no-space');
  if (details === leaseExpiredMessage) return make('lease-expired');
  if (details === tooLargeMessage) return make('too-large');
  if (details.startsWith(etcdPrefix)) return make('refused');
  if (failure.code === statusCode.resourceExhausted && details.includes('larger than max')) {
    return make('too-large', tooLargeMessage);
  }
  if (failure.code === statusCode.deadlineExceeded) return make('timed-out');
  return make('unavailable', `etcd cannot be reached: ${details}`);
}

/** Whether a write failed because its lease has expired. */
export function isLeaseExpired(error: unknown): boolean {
  return error instanceof StoreError && error.code === 'lease-expired';
}

/** Whether the call never reached a server. */
export function wasNotSent(failure: unknown): boolean {
  return failure instanceof CallError && failure.reach === 'unsent';
}

/**
 * Whether no server has executed the call, so that even a write may be repeated: members without a
 * leader refuse calls before they look at them.
 */
export function wasNotExecuted(failure: unknown): boolean {
  return (
    wasNotSent(failure) || (failure instanceof CallError && failure.details === noLeaderMessage)
  );
}

/** Whether a call failed because the server is unavailable, so that another one may succeed. */
export function isUnavailable(failure: unknown): boolean {
  return failure instanceof CallError && failure.code === statusCode.unavailable;
}

/** Whether etcd refused a call temporarily, during an election or under load. */
export function isTransient({ cause }: StoreError): boolean {
  const isBusy = cause instanceof CallError && cause.code === statusCode.resourceExhausted;
  return isBusy || isUnavailable(cause);
}

/** Returns the error of a call that timed out. */
export function timedOut(): StoreError {
  return new StoreError({ code: 'timed-out', message: 'context deadline exceeded' });
}

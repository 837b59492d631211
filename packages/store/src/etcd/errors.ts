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
  /** `unsent`: no server has received the call. */
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

/** The error of a call for which there was no connection. */
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
 * Translates a failed call to a StoreError. Messages of etcd come from a fixed list and are passed
 * to clients, as kube-apiserver does; messages of the connection are not.
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

/** Whether a write failed because its lease has expired. */
export function isLeaseGone(error: unknown): boolean {
  return error instanceof StoreError && error.code === 'lease-gone';
}

/** Whether the call never reached a server, so that even a write may be repeated. */
export function wasNotSent(failure: unknown): boolean {
  return failure instanceof CallError && failure.reach === 'unsent';
}

/** Whether another server, or the same one later, may respond. */
export function isPassing(failure: unknown): boolean {
  return failure instanceof CallError && failure.code === statusCode.unavailable;
}

/** Whether etcd refused a call temporarily, during an election or under load. */
export function isTransient({ cause }: StoreError): boolean {
  const isBusy = cause instanceof CallError && cause.code === statusCode.resourceExhausted;
  return isBusy || isPassing(cause);
}

/** The error of a call that timed out. */
export function timedOut(): StoreError {
  return new StoreError({ code: 'timed-out', message: 'context deadline exceeded' });
}

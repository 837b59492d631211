import {
  isLongRunning,
  isReadOnly,
  type MaybePromise,
  type RequestSubject,
  StatusError,
  type UserInfo,
} from '@wheelhouse/machinery';

/** The attributes of a request that flow control considers. */
export interface FlowInfo extends RequestSubject {
  readonly query: URLSearchParams;
}

/** A request that asks for seats. */
export interface FlowRequest {
  readonly info: FlowInfo;
  readonly user: UserInfo;
  /** The exchange; a client that leaves removes its waiting request. */
  readonly exchange: { readonly aborted: boolean; onAbort(callback: () => void): void };
}

/** The flow schema and priority level of a request; the uids are empty if they are not stored. */
export interface FlowClass {
  readonly flowSchema: string;
  readonly flowSchemaUid: string;
  readonly priorityLevel: string;
  readonly priorityLevelUid: string;
}

/** The seats that a request holds; `leave` is idempotent. */
export interface GrantedSeat {
  leave(): void;
  /** Undefined if requests are not classified. */
  readonly flowClass: FlowClass | undefined;
  /** Monotonic milliseconds of arrival and admission; absent if they are not measured. */
  readonly arrivalMs?: number;
  readonly startMs?: number | undefined;
}

/** Numbers of requests that only read and of requests that may write. */
export interface ByKind {
  readonly readOnly: number;
  readonly mutating: number;
}

/** Decides which requests run when not all can (OPS-3). */
export interface FlowControl {
  /**
   * Takes seats: synchronously if they are free, otherwise as a promise. Throws or rejects with
   * `Overloaded`.
   */
  enter(request: FlowRequest): MaybePromise<GrantedSeat>;
  /** Running requests, for metrics. */
  readonly inFlight: ByKind;
  /** Waiting requests, for metrics. */
  readonly inQueue: ByKind;
}

/**
 * 429 with Retry-After. It is answered as a line of plain text, not as a Status, like in
 * kube-apiserver, to keep it cheap under load.
 */
export class Overloaded extends StatusError {
  readonly flowClass: FlowClass | undefined;

  constructor(retryAfterSeconds: number, flowClass?: FlowClass) {
    super({
      code: 429,
      reason: 'TooManyRequests',
      message: 'Too many requests, please try again later.',
      details: { retryAfterSeconds },
    });
    this.flowClass = flowClass;
  }
}

/** The seat of requests that are not counted. */
export const uncountedSeat: GrantedSeat = { leave: () => {}, flowClass: undefined };

/**
 * Limits requests in flight, separately for reads and writes (`--max-requests-inflight`,
 * `--max-mutating-requests-inflight`; 0 and infinity: no limit). Long-running requests are not
 * counted, and members of `system:masters` are always admitted.
 */
export function limitInFlight(limits: { readOnlyMax: number; mutatingMax: number }): FlowControl {
  const inFlight = { readOnly: 0, mutating: 0 };
  return {
    inFlight,
    inQueue: { readOnly: 0, mutating: 0 },
    enter({ info, user }) {
      if (isLongRunning(info)) return uncountedSeat;
      const lane = isReadOnly(info.verb) ? 'readOnly' : 'mutating';
      const max = lane === 'readOnly' ? limits.readOnlyMax : limits.mutatingMax;
      if (max > 0 && inFlight[lane] >= max) {
        if (user.groups.includes('system:masters')) return uncountedSeat;
        throw new Overloaded(1);
      }
      inFlight[lane] += 1;
      let isTaken = true;
      return {
        flowClass: undefined,
        leave() {
          if (isTaken) inFlight[lane] -= 1;
          isTaken = false;
        },
      };
    },
  };
}

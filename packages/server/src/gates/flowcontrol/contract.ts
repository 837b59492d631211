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

/** A request that needs seats. */
export interface FlowRequest {
  readonly info: FlowInfo;
  readonly user: UserInfo;
  /** The exchange; a waiting request is removed when its client disconnects. */
  readonly exchange: { readonly aborted: boolean; onAbort(callback: () => void): void };
}

/**
 * The flow schema and priority level of a request; the uids of objects that are not stored are
 * empty.
 */
export interface FlowClass {
  readonly flowSchema: string;
  readonly flowSchemaUid: string;
  readonly priorityLevel: string;
  readonly priorityLevelUid: string;
}

/** The seats that a request holds. */
export interface GrantedSeat {
  /** Returns the seats; later calls have no effect. */
  release(): void;
  /** Undefined if requests are not classified. */
  readonly flowClass: FlowClass | undefined;
  /** Monotonic milliseconds of arrival and admission; absent if they are not measured. */
  readonly arrivalMs?: number;
  readonly startMs?: number | undefined;
}

/** Numbers of read-only requests and of requests that may write. */
export interface ByKind {
  readonly readOnly: number;
  readonly mutating: number;
}

/** Decides which requests run when not all can (OPS-3). */
export interface FlowControl {
  /**
   * Takes the seats of a request: synchronously if they are free, otherwise as a promise. Throws or
   * rejects with `Overloaded`.
   */
  enter(request: FlowRequest): MaybePromise<GrantedSeat>;
  /** Running requests, for metrics. */
  readonly inFlight: ByKind;
  /** Waiting requests, for metrics. */
  readonly inQueue: ByKind;
}

/**
 * A 429 with Retry-After. As in kube-apiserver, its body is a line of plain text, not a Status, so
 * that it is cheap under load.
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
export const uncountedSeat: GrantedSeat = { release: () => {}, flowClass: undefined };

/**
 * Creates flow control that limits requests in flight, separately for reads and writes
 * (`--max-requests-inflight`, `--max-mutating-requests-inflight`; 0 and infinity: no limit).
 * Long-running requests are not counted, and members of `system:masters` are always admitted.
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
      let isHeld = true;
      return {
        flowClass: undefined,
        release() {
          if (isHeld) inFlight[lane] -= 1;
          isHeld = false;
        },
      };
    },
  };
}

import {
  isLongRunning,
  type MaybePromise,
  type RequestSubject,
  StatusError,
  type UserInfo,
} from '@wheelhouse/machinery';

/** What flow control looks at of what a request asks for. */
export interface FlowInfo extends RequestSubject {
  readonly query: URLSearchParams;
}

/** A request that wants to run. */
export interface FlowRequest {
  readonly info: FlowInfo;
  readonly user: UserInfo;
  /** Who waits for the answer: one that leaves while its request waits gives up its turn. */
  readonly exchange: { readonly aborted: boolean; onAbort(callback: () => void): void };
}

/** Which schema and level a request belongs to; the uids are empty for those not stored. */
export interface FlowClass {
  readonly flowSchema: string;
  readonly flowSchemaUid: string;
  readonly priorityLevel: string;
  readonly priorityLevelUid: string;
}

/** The seats that a request holds; leaving twice is harmless. */
export interface GrantedSeat {
  leave(): void;
  /** Undefined where nothing is classified. */
  readonly flowClass: FlowClass | undefined;
  /**
   * When the request arrived and when it was admitted, monotonic; absent where nothing is timed.
   */
  readonly arrivalMs?: number;
  readonly startMs?: number | undefined;
}

/** How many requests there are by whether they may write. */
export interface ByKind {
  readonly readOnly: number;
  readonly mutating: number;
}

/** Who runs when not all can (OPS-3). */
export interface FlowControl {
  /**
   * Takes seats: at once where they are free, else a promise of them. Throws or rejects with
   * `Overloaded`.
   */
  enter(request: FlowRequest): MaybePromise<GrantedSeat>;
  /** Requests that run, for metrics. */
  readonly inFlight: ByKind;
  /** Requests that wait. */
  readonly inQueue: ByKind;
}

/** Tells a client, by its uid, by which schema its request was told from others. */
export const flowSchemaHeader = 'x-kubernetes-pf-flowschema-uid';
/** And the level that it was given. */
export const priorityLevelHeader = 'x-kubernetes-pf-prioritylevel-uid';

/** Adds the headers; those of objects that are not stored would say nothing. */
export function addFlowHeaders(
  headers: Record<string, string>,
  { flowSchemaUid, priorityLevelUid }: FlowClass,
): void {
  if (flowSchemaUid !== '') headers[flowSchemaHeader] = flowSchemaUid;
  if (priorityLevelUid !== '') headers[priorityLevelHeader] = priorityLevelUid;
}

/**
 * 429 with Retry-After. Upstream's filters tell it as a line of plain text, not as a Status, since
 * who writes it has no time for more.
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

/** As upstream: what is neither of these may write. */
export function isReadOnly(verb: string): boolean {
  return verb === 'get' || verb === 'list' || verb === 'watch';
}

/** What requests hold that are not counted. */
export const uncountedSeat: GrantedSeat = { leave: () => {}, flowClass: undefined };

/**
 * Bounds requests in flight, reads and writes apart (`--max-requests-inflight`,
 * `--max-mutating-requests-inflight`; 0 and infinity are no bound). What lasts long is not counted,
 * and members of `system:masters` come in where there is no place left, as upstream.
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

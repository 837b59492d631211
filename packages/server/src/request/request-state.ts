import {
  type Bounded,
  BoundedTexts,
  type Clock,
  type Exchange,
  type Pace,
  pacedBytesMin,
  randomUuid,
  Slices,
  type StatusError,
  timedOut,
  type UserInfo,
} from '@wheelhouse/machinery';
import type { AuditTrail } from '../gates/audit/trail.ts';
import {
  addFlowHeaders,
  type FlowClass,
  type GrantedSeat,
  Overloaded,
} from '../gates/flowcontrol/contract.ts';
import type { Permit } from '../registry/permit.ts';
import type { RequestInfo } from './parse-request.ts';

/** The longest that a write may take, whatever time its request has: the reference's figure. */
const writeTimeMaxMs = 34_000;

/** The time that one request has; see docs/decisions/deadlines.md. Times are monotonic milliseconds. */
export class RequestDeadline implements Bounded {
  /** Infinite for a request that lasts as long as its client likes. */
  dueMs = Number.POSITIVE_INFINITY;
  /** Where it stands among the open deadlines, which keep this number; -1 when it does not. */
  place = -1;
  #request: { expire(): void } | undefined;
  #kind: 'request' | 'write' = 'request';
  #othersMs = 0;

  /** Sets what is called when the time is up. */
  onExpired(request: { expire(): void }): void {
    this.#request = request;
  }

  /** A write has a limit of its own, and is described as a write when its time is up. */
  get kind(): 'request' | 'write' {
    return this.#kind;
  }

  /** How much of the time others had the request: queues of flow control, and webhooks. */
  get othersMs(): number {
    return this.#othersMs;
  }

  addOthersMs(byMs: number): void {
    this.#othersMs += byMs;
  }

  /** Limits the time of a write, which begins when the last gate has let the request through. */
  beginWrite(authorizedMs: number): void {
    this.#kind = 'write';
    this.dueMs = Math.min(this.dueMs, authorizedMs + writeTimeMaxMs);
  }

  expire(): void {
    this.#request?.expire();
  }
}

/** Headers that every answer to a request carries. */
export type BaseHeaders = Readonly<Record<string, string>>;

interface Facts {
  readonly exchange: Exchange;
  readonly auditId: string;
  readonly baseHeaders: BaseHeaders;
  /** Monotonic milliseconds, as all times here. */
  readonly startMs: number;
  /** Texts for `Warning` headers, of failures too. */
  readonly warnings: BoundedTexts;
  readonly deadline: RequestDeadline;
}

interface ParsedFacts extends Facts {
  readonly info: RequestInfo;
}

interface SenderFacts extends ParsedFacts {
  /** Who sent the request. */
  readonly requester: UserInfo;
  /** As whom it acts: the requester, or whom the requester impersonates. */
  readonly user: UserInfo;
  readonly authenticatedMs: number;
  /** The request's record; undefined where the policy wants none (OPS-2). */
  readonly audit: AuditTrail | undefined;
  /** When its record was begun; undefined where there is no audit log. */
  readonly recordedMs: number | undefined;
}

interface SeatFacts extends SenderFacts {
  readonly seat: GrantedSeat;
  readonly admittedMs: number;
}

interface PermitFacts extends SeatFacts {
  readonly permit: Permit;
  readonly authorizedMs: number;
}

/** The head of the request has been read, and its URL has not been parsed. */
export interface Arrived extends Facts {
  readonly phase: 'arrived';
}

/** The URL and the method are parsed; the sender is unknown. */
export interface Received extends ParsedFacts {
  readonly phase: 'received';
}

/** The sender is known, and so is whom the sender impersonates. */
export interface Authenticated extends SenderFacts {
  readonly phase: 'authenticated';
}

/** Flow control has granted a seat. */
export interface Admitted extends SeatFacts {
  readonly phase: 'admitted';
}

/** The acting user may do what the request asks for. */
export interface Authorized extends PermitFacts {
  readonly phase: 'authorized';
}

/** A state in which the request can still go on. */
export type OpenState = Arrived | Received | Authenticated | Admitted | Authorized;

/** Why a request did not succeed. */
export interface Failure {
  /** What a gate or the endpoint threw. */
  readonly error: unknown;
  /** What the client was told. */
  readonly status: StatusError;
  readonly failedMs: number;
}

/** The answer has been given, or the stream that answers has begun. */
export interface Answered {
  readonly phase: 'answered';
  readonly last: OpenState;
  readonly failure: Failure | undefined;
}

/** The deadline passed, and the client was told so. What still runs for the request is futile. */
export interface TimedOut {
  readonly phase: 'timed-out';
  readonly last: OpenState;
  readonly failure: Failure;
  /** A record whose first stage was stored only after the deadline. */
  readonly lateAudit: AuditTrail | undefined;
}

/** One request from its first byte to its last. */
export type RequestState = OpenState | Answered | TimedOut;
export type RequestPhase = RequestState['phase'];

/** The state that each event leads to, where it is not rejected. */
export interface StateAfter {
  readonly receive: Received;
  readonly authenticate: Authenticated;
  readonly record: Authenticated | TimedOut;
  readonly impersonate: Authenticated;
  readonly admit: Admitted;
  readonly authorize: Authorized;
  readonly expire: TimedOut;
  readonly finish: Answered | TimedOut;
}
export type RequestEvent = keyof StateAfter;

type Row = Readonly<Record<RequestEvent, RequestPhase | 'rejected'>>;

const closed: Row = {
  receive: 'rejected',
  authenticate: 'rejected',
  record: 'rejected',
  impersonate: 'rejected',
  admit: 'rejected',
  authorize: 'rejected',
  expire: 'rejected',
  finish: 'rejected',
};
const ends = { expire: 'timed-out', finish: 'answered' } as const;

/**
 * For each phase, where each event leads. Each gate adds what it learns and leads one phase on; the
 * deadline may pass in each phase in which it runs. A request that has timed out keeps a late audit
 * record, so that the record has its end, and finishes when the work behind the timeout does.
 */
export const transitions: Readonly<Record<RequestPhase, Row>> = {
  arrived: { ...closed, receive: 'received', finish: 'answered' },
  received: { ...closed, authenticate: 'authenticated', ...ends },
  authenticated: {
    ...closed,
    record: 'authenticated',
    impersonate: 'authenticated',
    admit: 'admitted',
    ...ends,
  },
  admitted: { ...closed, authorize: 'authorized', ...ends },
  authorized: { ...closed, ...ends },
  answered: closed,
  'timed-out': { ...closed, record: 'timed-out', finish: 'timed-out' },
};

/** The name of a request in logs and records: its client's, if short and plain, or a new one (OPS-4). */
export function auditIdOf(exchange: Exchange): string {
  const requested = exchange.header('audit-id');
  return requested !== undefined && /^[\w.-]{1,64}$/.test(requested) ? requested : randomUuid();
}

/** The headers that every answer carries. */
export function baseHeadersOf(auditId: string, flow?: FlowClass): BaseHeaders {
  const headers = { 'audit-id': auditId, 'cache-control': 'no-cache, private' };
  if (flow !== undefined) addFlowHeaders(headers, flow);
  return headers;
}

/** The first state of a request. */
export function arrive(exchange: Exchange, clock: Clock): Arrived {
  const auditId = auditIdOf(exchange);
  return {
    phase: 'arrived',
    exchange,
    auditId,
    baseHeaders: baseHeadersOf(auditId),
    startMs: clock.monotonic(),
    warnings: new BoundedTexts('warning'),
    deadline: new RequestDeadline(),
  };
}

/** How flow control classified a request, as far as it did. */
export function flowOf({ last, failure }: Answered | TimedOut): FlowClass | undefined {
  if (last.phase === 'admitted' || last.phase === 'authorized') return last.seat.flowClass;
  return failure?.error instanceof Overloaded ? failure.error.flowClass : undefined;
}

/** The part of a call that its slices depend on. */
interface SlicedCall {
  readonly exchange: Pick<Exchange, 'aborted' | 'resumed'>;
  readonly context: { readonly clock: Clock };
}

/** The pace of work on a body of so many bytes; undefined for a small one, which takes one step. */
export function bodyPace(call: SlicedCall, bytes: number): Pace | undefined {
  return bytes < pacedBytesMin ? undefined : new RequestSlices(call).begin();
}

/** Slices of work on behalf of a request, which is given up when nobody waits for its answer. */
export class RequestSlices {
  readonly #slices: Slices;
  readonly #exchange: Pick<Exchange, 'aborted' | 'resumed'>;

  constructor(call: SlicedCall) {
    const { exchange, context } = call;
    this.#slices = new Slices(context.clock);
    this.#exchange = exchange;
  }

  /** As `Slices.begin`. */
  begin(): this {
    this.#slices.begin();
    return this;
  }

  get over(): boolean {
    return this.#slices.over;
  }

  /** As `Slices.pause`. Rejects with the 504 that nobody sees when nobody waits any more. */
  async pause(): Promise<void> {
    await this.#slices.pause();
    this.#exchange.resumed?.();
    if (this.#exchange.aborted) throw timedOut('request');
  }
}

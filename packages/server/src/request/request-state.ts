import {
  BoundedTexts,
  type Clock,
  type DeadlineEntry,
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
import { type FlowClass, type GrantedSeat, Overloaded } from '../gates/flowcontrol/contract.ts';
import type { Permit } from '../registry/permit.ts';
import type { RequestInfo } from './parse-request.ts';

/** Time limit of a write, regardless of the request's own; the same as kube-apiserver's. */
const writeTimeMaxMs = 34_000;

/** The deadline of one request (docs/decisions/deadlines.md). Times are monotonic milliseconds. */
export class RequestDeadline implements DeadlineEntry {
  /** Infinite for long-running requests. */
  dueMs = Number.POSITIVE_INFINITY;
  /** Its index among the open deadlines, which maintain it; -1 when it is not open. */
  place = -1;
  #request: { expire(): void } | undefined;
  #kind: 'request' | 'write' = 'request';
  #othersMs = 0;

  /** Registers the request that expires with this deadline. */
  onExpired(request: { expire(): void }): void {
    this.#request = request;
  }

  /** A write has its own limit, and its timeout error names it as a write. */
  get kind(): 'request' | 'write' {
    return this.#kind;
  }

  /** Milliseconds that the request spent in flow-control queues and webhooks. */
  get othersMs(): number {
    return this.#othersMs;
  }

  addOthersMs(byMs: number): void {
    this.#othersMs += byMs;
  }

  /** Applies the limit of a write, which starts when the request is authorized. */
  beginWrite(authorizedMs: number): void {
    this.#kind = 'write';
    this.dueMs = Math.min(this.dueMs, authorizedMs + writeTimeMaxMs);
  }

  expire(): void {
    this.#request?.expire();
  }
}

/** Headers of every answer to a request. */
export type BaseHeaders = Readonly<Record<string, string>>;

interface Facts {
  readonly exchange: Exchange;
  readonly auditId: string;
  readonly baseHeaders: BaseHeaders;
  /** Monotonic milliseconds, like all times here. */
  readonly startMs: number;
  /** Texts of `Warning` headers, which failures carry too. */
  readonly warnings: BoundedTexts;
  readonly deadline: RequestDeadline;
}

interface ParsedFacts extends Facts {
  readonly info: RequestInfo;
}

interface SenderFacts extends ParsedFacts {
  /** Who sent the request. */
  readonly requester: UserInfo;
  /** The acting user: the requester, or the user that the requester impersonates. */
  readonly user: UserInfo;
  readonly authenticatedMs: number;
  /** The request's audit record; undefined if the policy omits the request (OPS-2). */
  readonly audit: AuditTrail | undefined;
  /** When the record was opened; undefined without an audit log. */
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

/** The head of the request has been read; its URL has not been parsed. */
export interface Arrived extends Facts {
  readonly phase: 'arrived';
}

/** The URL and the method are parsed; the sender is unknown. */
export interface Received extends ParsedFacts {
  readonly phase: 'received';
}

/** The sender is known, and so is the user whom the sender impersonates. */
export interface Authenticated extends SenderFacts {
  readonly phase: 'authenticated';
}

/** Flow control has granted a seat. */
export interface Admitted extends SeatFacts {
  readonly phase: 'admitted';
}

/** The acting user may perform the request. */
export interface Authorized extends PermitFacts {
  readonly phase: 'authorized';
}

/** A state in which the request is still in progress. */
export type OpenState = Arrived | Received | Authenticated | Admitted | Authorized;

/** Why a request did not succeed. */
export interface Failure {
  /** The error that a gate or the endpoint threw. */
  readonly error: unknown;
  /** The Status that the client received. */
  readonly status: StatusError;
  readonly failedMs: number;
}

/** The answer has been sent, or a streamed answer has begun. */
export interface Answered {
  readonly phase: 'answered';
  readonly last: OpenState;
  readonly failure: Failure | undefined;
}

/** The deadline passed and the client received a 504. Work that is still running is futile. */
export interface TimedOut {
  readonly phase: 'timed-out';
  readonly last: OpenState;
  readonly failure: Failure;
  /** An audit record whose first stage was stored only after the deadline. */
  readonly lateAudit: AuditTrail | undefined;
}

/** One request from its first byte to its last. */
export type RequestState = OpenState | Answered | TimedOut;
/** The name of a state, by which code tells the states apart. */
export type RequestPhase = RequestState['phase'];

/** The state that each event leads to, if it is not rejected. */
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
/** What changes the state of a request. */
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
 * The transition table: the next phase for each phase and event. Each gate adds its result and
 * advances by one phase; the deadline may pass in any phase in which it runs. A request that has
 * timed out keeps a late audit record, to complete it, and finishes when its remaining work ends.
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

/**
 * The ID of a request in logs and records (OPS-4): the client's first `Audit-ID`, of any length, or
 * a new one if that is missing, empty, or not printable ASCII.
 */
export function auditIdOf(exchange: Exchange): string {
  if (exchange.header('audit-id') === undefined) return randomUuid();
  const requested = firstValue(exchange.headerLines(), 'audit-id').trim();
  return /^[\x20-\x7e]+$/.test(requested) ? requested : randomUuid();
}

/** The first value of a repeatable header in alternating names and values; empty if absent. */
function firstValue(lines: readonly string[], name: string): string {
  for (let index = 0; index < lines.length; index += 2) {
    if (lines[index]?.toLowerCase() === name) return lines[index + 1] ?? '';
  }
  return '';
}

/** The header with the uid of the flow schema that a request matched. */
export const flowSchemaHeader = 'x-kubernetes-pf-flowschema-uid';
/** The header with the uid of the request's priority level. */
export const priorityLevelHeader = 'x-kubernetes-pf-prioritylevel-uid';

/**
 * The headers that every answer carries. A flow schema or priority level that is not stored has no
 * uid and no header.
 */
export function baseHeadersOf(auditId: string, flow?: FlowClass): BaseHeaders {
  const headers: Record<string, string> = {
    'audit-id': auditId,
    'cache-control': 'no-cache, private',
  };
  if (flow === undefined) return headers;
  if (flow.flowSchemaUid !== '') headers[flowSchemaHeader] = flow.flowSchemaUid;
  if (flow.priorityLevelUid !== '') headers[priorityLevelHeader] = flow.priorityLevelUid;
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

/** How flow control classified a request; undefined if it did not. */
export function flowOf({ last, failure }: Answered | TimedOut): FlowClass | undefined {
  if (last.phase === 'admitted' || last.phase === 'authorized') return last.seat.flowClass;
  return failure?.error instanceof Overloaded ? failure.error.flowClass : undefined;
}

/** The part of a call that its slices need. */
interface SlicedCall {
  readonly exchange: Pick<Exchange, 'aborted' | 'resumed'>;
  readonly context: { readonly clock: Clock };
}

/** Slices of work for a request. The work ends when the client leaves, as at the deadline. */
export function requestSlices({ exchange, context }: SlicedCall): Slices {
  return new Slices(context.clock, () => {
    exchange.resumed?.();
    if (exchange.aborted) throw timedOut('request');
  });
}

/**
 * The pace of work on a body of the given size; undefined for a small body, which takes one step.
 */
export function bodyPace(call: SlicedCall, bytes: number): Pace | undefined {
  return bytes < pacedBytesMin ? undefined : requestSlices(call).begin();
}

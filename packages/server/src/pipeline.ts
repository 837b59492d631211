import {
  deadlineEarlyMs,
  type Exchange,
  isLongRunning,
  type MaybePromise,
  StatusError,
  type Timer,
  timedOut,
  type UserInfo,
  type WholeResponse,
} from '@wheelhouse/machinery';
import { answerFailure, sendStatus } from './answer/failure.ts';
import type { EndpointContext } from './endpoints/call.ts';
import { dispatch } from './endpoints/dispatch.ts';
import type { AuditGate } from './gates/audit/gate.ts';
import type { AuditTrail } from './gates/audit/trail.ts';
import { type Authenticate, anonymousUser } from './gates/authn/authentication.ts';
import { authenticationWarnings } from './gates/authn/credentials.ts';
import type { Impersonate } from './gates/authn/impersonation.ts';
import type { Authorization } from './gates/authz/authorization.ts';
import { type FlowControl, type GrantedSeat, Overloaded } from './gates/flowcontrol/contract.ts';
import type { AfterTimeout } from './observe/request-metrics.ts';
import {
  createRequestObservers,
  type GateEvent,
  type RequestObservers,
} from './observe/request-observers.ts';
import type { Tracer } from './observe/tracing.ts';
import type { Permit } from './registry/permit.ts';
import { requestTimeMs } from './request/options.ts';
import { attributesOf, parseRequest, type RequestInfo } from './request/parse-request.ts';
import {
  type Admitted,
  type Answered,
  type Arrived,
  type Authenticated,
  type Authorized,
  arrive,
  baseHeadersOf,
  type Failure,
  type OpenState,
  type Received,
  type RequestEvent,
  type RequestState,
  type StateAfter,
  type TimedOut,
  transitions,
} from './request/request-state.ts';

/** The gates that a request passes through. */
export interface Gates {
  readonly authenticate: Authenticate;
  /** Undefined without an audit policy. */
  readonly audit: AuditGate | undefined;
  readonly impersonate: Impersonate;
  readonly flowControl: FlowControl;
  readonly authorization: Authorization;
}

interface Pipeline {
  readonly gates: Gates;
  readonly context: EndpointContext;
  readonly observers: RequestObservers;
}

/**
 * Creates the function that answers a server's requests. It never rejects.
 * @param tracer records spans of each request; absent without tracing
 */
export function createPipeline(
  gates: Gates,
  context: EndpointContext,
  tracer?: Tracer,
): (exchange: Exchange) => Promise<void> {
  const observers = createRequestObservers(context, gates.audit, tracer);
  const pipeline = { gates, context, observers };
  if (tracer === undefined) return (exchange) => serve(exchange, pipeline);
  return (exchange) => tracer.serve(exchange, () => serve(exchange, pipeline));
}

/**
 * The path of one request, from top to bottom. Each gate takes the state that the previous gate
 * returned, so none can be skipped. Every error, including a missed deadline, becomes one Status.
 * Values that are already available are not awaited: each await costs more than most steps.
 */
async function serve(exchange: Exchange, pipeline: Pipeline): Promise<void> {
  const { gates, context, observers } = pipeline;
  const { tap } = context;
  const arrived = arrive(exchange, context.clock);
  const request = new RequestLifecycle(arrived, { context, observers });
  let info: RequestInfo | undefined;
  let failure: Failure | undefined;
  try {
    info = parseRequest(exchange.method, exchange.url);
    const received = request.receive(arrived, info);
    const identified = authenticate(request, received, gates);
    const identity = identified instanceof Promise ? await identified : identified;
    const recorded =
      gates.audit === undefined ? identity : await record(request, identity, gates.audit);
    const impersonated = impersonate(request, recorded, gates);
    const authenticated = impersonated instanceof Promise ? await impersonated : impersonated;
    const tapped = tap?.admit(authenticated);
    if (tapped !== undefined) {
      await tapped;
      request.resume();
    }
    const granted = gates.flowControl.enter(authenticated);
    const seat = granted instanceof Promise ? await granted : granted;
    try {
      const admitted = request.admit(authenticated, seat);
      const decided = authorize(request, admitted, gates);
      const authorized = decided instanceof Promise ? await decided : decided;
      if (info.refusal !== undefined) throw info.refusal;
      await dispatch(context, authorized);
      // Producing the answer is work too: the request holds its seat until the answer is sent.
      const delivered = isLongRunning(info) ? undefined : exchange.delivered?.();
      if (delivered !== undefined) await delivered;
    } finally {
      seat.release();
    }
  } catch (error) {
    failure = await request.fail(error);
  }
  const finished = request.finish(failure);
  if (finished !== undefined) await finished;
  tap?.over(exchange, info);
}

function authenticate(
  request: RequestLifecycle,
  received: Received,
  gates: Gates,
): MaybePromise<Authenticated> {
  const requester = gates.authenticate(received.exchange);
  if (requester instanceof Promise) {
    return requester.then((user) => {
      addWarnings(received);
      return request.authenticate(received, user);
    });
  }
  // Other users that are known at once have shown a sound credential.
  if (requester === anonymousUser) addWarnings(received);
  return request.authenticate(received, requester);
}

/** Adds the warnings of authentication. */
function addWarnings({ exchange, warnings }: Received): void {
  for (const text of authenticationWarnings(exchange)) warnings.add(text);
}

async function record(
  request: RequestLifecycle,
  authenticated: Authenticated,
  audit: AuditGate,
): Promise<Authenticated> {
  return request.record(authenticated, await audit.open(authenticated));
}

function impersonate(
  request: RequestLifecycle,
  authenticated: Authenticated,
  gates: Gates,
): MaybePromise<Authenticated> {
  const { exchange, requester } = authenticated;
  const acting = gates.impersonate(exchange, requester);
  if (acting === requester) return authenticated;
  if (!(acting instanceof Promise)) return request.impersonate(authenticated, acting);
  return acting.then((user) => request.impersonate(authenticated, user));
}

function authorize(
  request: RequestLifecycle,
  admitted: Admitted,
  gates: Gates,
): MaybePromise<Authorized> {
  const { info, user, exchange } = admitted;
  const permit = gates.authorization.authorize(attributesOf(info, user, exchange));
  if (!(permit instanceof Promise)) return request.authorize(admitted, permit);
  return permit.then((granted) => request.authorize(admitted, granted));
}

/** How long work may continue after its request timed out before it counts as stuck. */
const stuckAfterMs = 300_000;

/**
 * The current state of one request. Each method is one event of the transition table: it builds the
 * next state from the previous one and the gate's result, and notifies the observers. If the table
 * rejects the event, the method throws: a 504 for a request that has timed out, which stops its
 * gates and endpoint, and an internal error otherwise.
 */
export class RequestLifecycle {
  readonly #context: EndpointContext;
  readonly #observers: RequestObservers;
  #state: RequestState;
  /** Resolves when the timeout has been answered; undefined before the deadline. */
  #timeoutAnswered: Promise<void> | undefined;
  /** Runs while work continues after a timeout. */
  #stuckTimer: Timer | undefined;
  #afterTimeout: AfterTimeout = 'ok';

  constructor(
    arrived: Arrived,
    options: { readonly context: EndpointContext; readonly observers: RequestObservers },
  ) {
    this.#context = options.context;
    this.#observers = options.observers;
    this.#state = arrived;
    arrived.deadline.onExpired(this);
  }

  get state(): RequestState {
    return this.#state;
  }

  /** Sets the deadline of an ordinary request. Throws 400 for a malformed `?timeout`. */
  receive(from: Arrived, info: RequestInfo): Received {
    const next: Received = {
      phase: 'received',
      exchange: from.exchange,
      auditId: from.auditId,
      baseHeaders: from.baseHeaders,
      startMs: from.startMs,
      warnings: from.warnings,
      deadline: from.deadline,
      info,
    };
    this.#advance('receive', from, next);
    this.#setDeadline(next);
    this.#observers.notifyGate('receive', next);
    return next;
  }

  authenticate(from: Received, requester: UserInfo): Authenticated {
    const authenticatedMs = this.#context.clock.monotonic();
    const sender = { requester, user: requester, authenticatedMs };
    const next = authenticated(from, sender, notRecorded);
    this.#pass('authenticate', from, next);
    return next;
  }

  /** @param audit undefined if the audit policy omits the request */
  record(from: Authenticated, audit: AuditTrail | undefined): Authenticated {
    const current = this.#state;
    if (current.phase === 'timed-out') {
      this.#advance('record', current, { ...current, lateAudit: audit });
      throw this.#rejection('record');
    }
    const next = authenticated(from, from, { audit, recordedMs: this.#context.clock.monotonic() });
    this.#pass('record', from, next);
    return next;
  }

  impersonate(from: Authenticated, user: UserInfo): Authenticated {
    const { requester, authenticatedMs } = from;
    const next = authenticated(from, { requester, user, authenticatedMs }, from);
    this.#pass('impersonate', from, next);
    return next;
  }

  admit(from: Authenticated, seat: GrantedSeat): Admitted {
    const { flowClass, arrivalMs } = seat;
    const admittedMs = seat.startMs ?? this.#context.clock.monotonic();
    const next: Admitted = {
      phase: 'admitted',
      exchange: from.exchange,
      auditId: from.auditId,
      baseHeaders:
        flowClass === undefined ? from.baseHeaders : baseHeadersOf(from.auditId, flowClass),
      startMs: from.startMs,
      warnings: from.warnings,
      deadline: from.deadline,
      info: from.info,
      requester: from.requester,
      user: from.user,
      authenticatedMs: from.authenticatedMs,
      audit: from.audit,
      recordedMs: from.recordedMs,
      seat,
      admittedMs,
    };
    this.#pass('admit', from, next);
    if (arrivalMs !== undefined) from.deadline.addOthersMs(admittedMs - arrivalMs);
    return next;
  }

  authorize(from: Admitted, permit: Permit): Authorized {
    const next: Authorized = {
      phase: 'authorized',
      exchange: from.exchange,
      auditId: from.auditId,
      baseHeaders: from.baseHeaders,
      startMs: from.startMs,
      warnings: from.warnings,
      deadline: from.deadline,
      info: from.info,
      requester: from.requester,
      user: from.user,
      authenticatedMs: from.authenticatedMs,
      audit: from.audit,
      recordedMs: from.recordedMs,
      seat: from.seat,
      admittedMs: from.admittedMs,
      permit,
      authorizedMs: this.#context.clock.monotonic(),
    };
    this.#pass('authorize', from, next);
    return next;
  }

  /** Called when a request resumes after a wait. Throws a 504 if it has timed out. */
  resume(): void {
    const { exchange } = 'last' in this.#state ? this.#state.last : this.#state;
    exchange.resumed?.();
    if (this.#state.phase === 'timed-out') throw timedOut(this.#state.last.deadline.kind);
  }

  /**
   * Answers an error with one Status. An error at the deadline is answered as a timeout, and a
   * later one is only counted; neither is passed to `finish` as a failure.
   */
  async fail(error: unknown): Promise<Failure | undefined> {
    const open = this.#openState();
    if (open !== undefined) {
      const failedMs = this.#context.clock.monotonic();
      const { deadline } = open;
      if (deadline.place >= 0 && failedMs >= deadline.dueMs - deadlineEarlyMs) {
        this.#context.deadlines.remove(deadline);
        this.#expire({ error, failedMs });
      }
      if (this.#openState() !== undefined) return this.#answerFailure(open, error, failedMs);
    }
    this.#afterTimeout = error instanceof StatusError ? 'error' : 'panic';
    return undefined;
  }

  async #answerFailure(state: OpenState, error: unknown, failedMs: number): Promise<Failure> {
    const { exchange, auditId, warnings } = state;
    const isClassified = error instanceof Overloaded && error.flowClass !== undefined;
    const baseHeaders = isClassified ? baseHeadersOf(auditId, error.flowClass) : state.baseHeaders;
    const audit = auditOf(state);
    const context = this.#context;
    const failed = { context, exchange, baseHeaders, error, audit, warnings };
    return { error, status: await answerFailure(failed), failedMs };
  }

  /** Ends the request when its work is done. Returns a promise if an observer is asynchronous. */
  finish(failure: Failure | undefined): MaybePromise<void> {
    const current = this.#state;
    if (current.phase === 'timed-out') {
      if (this.#stuckTimer !== undefined) {
        this.#stuckTimer.stop();
        this.#stuckTimer = undefined;
        this.#countAfterTimeout(this.#afterTimeout);
      }
      this.#advance('finish', current, current);
      return this.#timeoutAnswered?.then(() => this.#observers.notifyEnd('finish', current));
    }
    if (current.phase === 'answered') throw this.#rejection('finish');
    this.#context.deadlines.remove(current.deadline);
    const next: Answered = { phase: 'answered', last: current, failure };
    this.#advance('finish', current, next);
    return this.#observers.notifyEnd('finish', next);
  }

  /** Called at the deadline: answers 504, or aborts an answer that is being sent. */
  expire(): void {
    this.#expire(undefined);
  }

  /**
   * Called when the client has ended its side of the connection. kube-apiserver cancels the request
   * and answers like at the deadline, because the client has either left or waits for an answer.
   */
  clientEnded(): void {
    const open = this.#openState();
    if (open === undefined) return;
    this.#context.deadlines.remove(open.deadline);
    const failedMs = this.#context.clock.monotonic();
    const status = timedOut('request');
    this.#expire({ error: status, status, failedMs });
  }

  #expire(failed: (Pick<Failure, 'error' | 'failedMs'> & Partial<Failure>) | undefined): void {
    const last = this.#openState();
    if (last === undefined || transitions[last.phase].expire === 'rejected') return;
    const { exchange } = last;
    const respond = exchange.supersede();
    if (respond === undefined) {
      const isCut = exchange.cutOff?.() === true;
      if (isCut && 'info' in last) this.#context.metrics.countAbort(exchange, last.info);
      return;
    }
    const status = failed?.status ?? timedOut(last.deadline.kind);
    const { error = status, failedMs = this.#context.clock.monotonic() } = failed ?? {};
    const failure = { error, status, failedMs };
    const next: TimedOut = { phase: 'timed-out', last, failure, lateAudit: undefined };
    this.#advance('expire', last, next);
    this.#stuckTimer = this.#context.clock.after(stuckAfterMs, () => {
      this.#stuckTimer = undefined;
      this.#countAfterTimeout('pending');
    });
    this.#timeoutAnswered = this.#answerTimeout(next, respond).catch((cause: unknown) => {
      const { auditId } = last;
      this.#context.logger.error('cannot answer a timeout', { auditId, error: String(cause) });
    });
  }

  async #answerTimeout(state: TimedOut, respond: (response: WholeResponse) => void): Promise<void> {
    const { exchange, baseHeaders, warnings } = state.last;
    const { status: error } = state.failure;
    const audit = auditOf(state.last);
    const context = this.#context;
    await sendStatus({ context, exchange, baseHeaders, error, audit, warnings, respond });
    await this.#observers.notifyEnd('expire', state);
  }

  #countAfterTimeout(ending: AfterTimeout): void {
    const { logger, metrics } = this.#context;
    const state = this.#state;
    if (state.phase !== 'timed-out') return;
    const { auditId, deadline } = state.last;
    metrics.countAfterTimeout(deadline.kind, ending);
    logger.warn('a request kept running after its timeout', { auditId, outcome: ending });
  }

  /** `finish` and `fail` remove the deadline, and so does its expiry. */
  #setDeadline({ exchange, info, deadline, startMs }: Received): void {
    if (isLongRunning(info)) return;
    exchange.endListener = this;
    const { deadlines, limits } = this.#context;
    deadline.dueMs = startMs + requestTimeMs(info.query, limits.requestTimeoutMs);
    deadlines.add(deadline);
  }

  #openState(): OpenState | undefined {
    const state = this.#state;
    return state.phase === 'answered' || state.phase === 'timed-out' ? undefined : state;
  }

  #pass<Event extends GateEvent>(event: Event, from: RequestState, next: StateAfter[Event]): void {
    this.#advance(event, from, next);
    this.#observers.notifyGate(event, next);
  }

  /** Replaces the state that a gate received, unless another event has replaced it meanwhile. */
  #advance(event: RequestEvent, from: RequestState, next: RequestState): void {
    const current = this.#state;
    if (from !== current || transitions[current.phase][event] !== next.phase) {
      throw this.#rejection(event);
    }
    this.#state = next;
  }

  #rejection(event: RequestEvent): Error {
    const { phase } = this.#state;
    if (this.#state.phase === 'timed-out') return timedOut(this.#state.last.deadline.kind);
    return new Error(`a request that is ${phase} rejects the event ${event}`);
  }
}

const notRecorded = { audit: undefined, recordedMs: undefined };

function authenticated(
  from: Received | Authenticated,
  sender: Pick<Authenticated, 'requester' | 'user' | 'authenticatedMs'>,
  record: Pick<Authenticated, 'audit' | 'recordedMs'>,
): Authenticated {
  return {
    phase: 'authenticated',
    exchange: from.exchange,
    auditId: from.auditId,
    baseHeaders: from.baseHeaders,
    startMs: from.startMs,
    warnings: from.warnings,
    deadline: from.deadline,
    info: from.info,
    requester: sender.requester,
    user: sender.user,
    authenticatedMs: sender.authenticatedMs,
    audit: record.audit,
    recordedMs: record.recordedMs,
  };
}

/** The audit record of a request; undefined before there is one. */
function auditOf(state: OpenState): AuditTrail | undefined {
  return state.phase === 'arrived' || state.phase === 'received' ? undefined : state.audit;
}

import {
  type Bounded,
  BoundedTexts,
  deadlineEarlyMs,
  type Exchange,
  isLongRunning,
  randomUuid,
  StatusError,
  type Timer,
  timedOut,
  type UserInfo,
  type WholeResponse,
} from '@wheelhouse/machinery';
import { answerFailure, sendStatus } from '../answer/failure.ts';
import type { AuditGate } from '../gates/audit/gate.ts';
import type { AuditTrail } from '../gates/audit/trail.ts';
import { anonymousUser, NotRecognised } from '../gates/authn/authentication.ts';
import { NotPermitted } from '../gates/authz/authorization.ts';
import {
  addFlowHeaders,
  type FlowClass,
  Overloaded,
  type Place,
} from '../gates/flowcontrol/contract.ts';
import type { Judged, Passage, Recognised } from '../observe/gate-metrics.ts';
import { logRequest, requestLogLevel } from '../observe/request-log.ts';
import type { Afterlife } from '../observe/request-metrics.ts';
import { requestTimeMs } from '../request/query.ts';
import type { RequestInfo } from '../request/request-info.ts';
import type { EndpointContext, RequestDeadline } from './call.ts';

/** The longest that a write may take, whatever time its request has: upstream's figure. */
const writeTimeMaxMs = 34_000;
/** How long what goes on behind a timeout is waited for, before it counts as stuck. */
const patienceMs = 300_000;

/**
 * One request from its first gate to its end: what is learnt of it on the way, and the time it has.
 * When that is up the client is told so at once, and what still goes on finds that nobody waits for
 * it: calls of others are given up, and nothing is stored any more.
 */
export class Flight implements Bounded, RequestDeadline, Passage {
  readonly exchange: Exchange;
  readonly context: EndpointContext;
  readonly auditId: string;
  readonly baseHeaders: Record<string, string>;
  /** Texts for `Warning` headers, of failures too. */
  readonly warnings = new BoundedTexts('warning');
  user: UserInfo | undefined;
  audit: AuditTrail | undefined;
  place = -1;
  dueMs = Number.POSITIVE_INFINITY;
  readonly startMs: number;
  requester: UserInfo | undefined;
  recognised: Recognised | undefined;
  recognisedMs = 0;
  recordedMs = 0;
  arrivedMs = 0;
  enteredMs = 0;
  judged: Judged | undefined;
  judgedMs = 0;
  othersMs = 0;
  readonly #gate: AuditGate | undefined;
  #info: RequestInfo | undefined;
  #flow: FlowClass | undefined;
  #kind: 'request' | 'write' = 'request';
  /** Resolves when it has been answered because its time was up; undefined while it is not. */
  #late: Promise<void> | undefined;
  #isRecorded = false;
  /** The record that has had its end. */
  #recorded: AuditTrail | undefined;
  #afterlife: Afterlife = 'ok';
  #patience: Timer | undefined;

  constructor(options: {
    readonly exchange: Exchange;
    readonly context: EndpointContext;
    /** Undefined where nothing is recorded. */
    readonly audit: AuditGate | undefined;
  }) {
    const { exchange, context } = options;
    this.exchange = exchange;
    this.context = context;
    this.#gate = options.audit;
    this.startMs = context.clock.monotonic();
    this.auditId = auditIdOf(exchange);
    this.baseHeaders = { 'audit-id': this.auditId, 'cache-control': 'no-cache, private' };
  }

  /** Sets the time that an ordinary request has. Throws 400 where its client gives a malformed one. */
  begin(info: RequestInfo): void {
    this.#info = info;
    if (isLongRunning(info)) return;
    const { limits, deadlines } = this.context;
    this.dueMs = this.startMs + requestTimeMs(info.query, limits.requestTimeoutMs);
    deadlines.add(this);
  }

  /** Throws where the request has been answered for want of time: what follows would be for nobody. */
  goOn(): void {
    this.exchange.resumed?.();
    if (this.#late !== undefined) throw timedOut(this.#kind);
  }

  /** It is known who sends it. */
  from(requester: UserInfo): void {
    this.user = requester;
    this.requester = requester;
    this.exchange.userName = requester.name;
    this.recognised = 'success';
    if (requester.name !== anonymousUser.name) {
      this.exchange.connection.memory?.belongTo(`user ${requester.name}`);
    }
    this.recognisedMs = this.context.clock.monotonic();
  }

  /** Its record has been begun, if the policy wants one. */
  recordedAs(audit: AuditTrail | undefined): void {
    this.audit = audit;
    this.recordedMs = this.context.clock.monotonic();
  }

  /** It is its turn. */
  enter(place: Place): void {
    const { arrivalMs, startMs = this.context.clock.monotonic() } = place;
    this.enteredMs = startMs;
    if (arrivalMs !== undefined) {
      this.arrivedMs = arrivalMs;
      this.othersMs += startMs - arrivalMs;
    }
    this.#tellFlow(place.flowClass);
  }

  /** It has come through the last gate. */
  allow(): void {
    this.judged = 'allowed';
    this.judgedMs = this.context.clock.monotonic();
  }

  #tellFlow(flow: FlowClass | undefined): void {
    this.#flow = flow;
    if (flow !== undefined) addFlowHeaders(this.baseHeaders, flow);
  }

  /** The time that a write has begins with the last gate behind it. */
  beginWrite(): void {
    this.#kind = 'write';
    const beginMs = this.judgedMs === 0 ? this.context.clock.monotonic() : this.judgedMs;
    this.dueMs = Math.min(this.dueMs, beginMs + writeTimeMaxMs);
  }

  addOthersMs(byMs: number): void {
    this.othersMs += byMs;
  }

  /** Answers what went wrong, as one Status; what came of its time being up tells that. */
  async failed(error: unknown): Promise<void> {
    this.#noteRefusal(error);
    if (this.place >= 0 && this.context.clock.monotonic() >= this.dueMs - deadlineEarlyMs) {
      this.context.deadlines.remove(this);
      this.expire();
    }
    if (this.#late !== undefined) {
      this.#afterlife = error instanceof StatusError ? 'error' : 'panic';
      return;
    }
    if (error instanceof Overloaded && error.flowClass !== undefined) {
      this.#tellFlow(error.flowClass);
    }
    const { context, exchange, baseHeaders, audit, warnings } = this;
    const failed = { context, exchange, baseHeaders, error, audit, warnings };
    const told = await answerFailure(failed);
    if (this.user === undefined) await this.#refused(told);
  }

  /** A gate that turned it away has a count of that. */
  #noteRefusal(error: unknown): void {
    if (error instanceof NotRecognised) {
      this.recognised = error.credential === 'bad' ? 'error' : 'failure';
      this.recognisedMs = this.context.clock.monotonic();
    } else if (error instanceof NotPermitted && this.enteredMs > 0 && this.judged === undefined) {
      const { decision } = error.result;
      const said = decision === 'deny' ? 'denied' : 'no-opinion';
      this.judged = error.result.error === undefined ? said : 'error';
      this.judgedMs = this.context.clock.monotonic();
    }
  }

  /** The request has been dealt with. Returns what there is to wait for, if anything. */
  end(): Promise<void> | undefined {
    this.context.deadlines.remove(this);
    if (this.#late === undefined) return this.#conclude();
    this.#patience?.stop();
    if (this.#patience !== undefined) this.#tellAfterlife(this.#afterlife);
    return this.#late.then(() => this.#concludeLate());
  }

  /** Answers for want of time; cuts off an answer that has begun and is not out yet. */
  expire(): void {
    const respond = this.exchange.supersede();
    if (respond === undefined) {
      this.#cutOff();
      return;
    }
    this.#patience = this.context.clock.after(patienceMs, () => {
      this.#patience = undefined;
      this.#tellAfterlife('pending');
    });
    this.#late = this.#answerLate(respond).catch((error: unknown) => {
      const { auditId } = this;
      this.context.logger.error('a timeout could not be told', { auditId, error: String(error) });
    });
  }

  #cutOff(): void {
    const { context, exchange } = this;
    const isCut = exchange.cutOff?.() === true;
    if (isCut && this.#info !== undefined) context.metrics.aborted(exchange, this.#info);
  }

  async #answerLate(respond: (response: WholeResponse) => void): Promise<void> {
    const { context, exchange, baseHeaders, audit, warnings } = this;
    const error = timedOut(this.#kind);
    await sendStatus({ context, exchange, baseHeaders, error, audit, warnings, respond });
    if (this.#info !== undefined) context.metrics.terminated(exchange, this.#info);
    if (this.user === undefined) await this.#refused(error);
    await this.#conclude();
  }

  async #refused(error: StatusError): Promise<void> {
    const { exchange, auditId } = this;
    const info = this.#info;
    if (info === undefined) return;
    await this.#gate?.refused({ exchange, info, auditId, error });
  }

  /** A record that was begun when the request had been answered already has its end, too. */
  #concludeLate(): Promise<void> | undefined {
    const { audit, exchange } = this;
    return audit === this.#recorded ? undefined : audit?.over(exchange.answeredStatus);
  }

  /** Tells what has become of the request: once, when it is answered. */
  #conclude(): Promise<void> | undefined {
    if (this.#isRecorded) return undefined;
    this.#isRecorded = true;
    const { audit } = this;
    this.#recorded = audit;
    if (audit !== undefined) {
      return audit.over(this.exchange.answeredStatus).then(() => this.#measure());
    }
    this.#measure();
    return undefined;
  }

  #measure(): void {
    const { context, exchange, user, auditId, startMs, othersMs } = this;
    const info = this.#info;
    const { logger, clock, metrics } = context;
    if (info !== undefined) {
      metrics.passed(this);
      metrics.finished({ exchange, info, startMs, endMs: clock.monotonic(), othersMs });
    }
    if (logger.verbosity < requestLogLevel) return;
    logRequest({ context, exchange, user, flow: this.#flow, auditId, startMs });
  }

  #tellAfterlife(came: Afterlife): void {
    const { context, auditId } = this;
    context.metrics.afterTimeout(this.#kind, came);
    context.logger.warn('a request went on behind its timeout', { auditId, came });
  }
}

/** A client may name its request; anything but a short plain name is replaced (OPS-4). */
/** What a request is called in records: what its client calls it, or a name of our own. */
export function auditIdOf(exchange: Exchange): string {
  const given = exchange.header('audit-id');
  return given !== undefined && /^[\w.-]{1,64}$/.test(given) ? given : randomUuid();
}

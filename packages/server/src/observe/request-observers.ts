import type { MaybePromise } from '@wheelhouse/machinery';
import type { EndpointContext } from '../endpoints/call.ts';
import type { AuditGate } from '../gates/audit/gate.ts';
import { anonymousUser } from '../gates/authn/authentication.ts';
import { ForbiddenError } from '../gates/authz/authorization.ts';
import { Overloaded } from '../gates/flowcontrol/contract.ts';
import {
  type Answered,
  flowOf,
  type RequestEvent,
  type StateAfter,
  type TimedOut,
} from '../request/request-state.ts';

/** Events that end a request; their observers may wait for a backend. */
type EndEvent = 'expire' | 'finish';
/** Events of a request that passes a gate. */
export type GateEvent = Exclude<RequestEvent, EndEvent>;

/** The callbacks of an observer by event, which receive the state after the event. */
interface Callbacks {
  readonly gates: { readonly [Event in GateEvent]: (state: StateAfter[Event]) => void };
  readonly ends: { readonly [Event in EndEvent]: (state: StateAfter[Event]) => MaybePromise<void> };
}

/** Observes requests: each member is called after its event, with the new state. */
export type RequestObserver = Partial<Callbacks['gates'] & Callbacks['ends']>;

/** The observers of a server's requests, which are called in order. */
export class RequestObservers {
  readonly #gates: {
    readonly [Event in GateEvent]: readonly Callbacks['gates'][Event][];
  };
  readonly #ends: { readonly [Event in EndEvent]: readonly Callbacks['ends'][Event][] };

  constructor(observers: readonly RequestObserver[]) {
    this.#gates = {
      receive: observers.flatMap(({ receive }) => receive ?? []),
      authenticate: observers.flatMap(({ authenticate }) => authenticate ?? []),
      record: observers.flatMap(({ record }) => record ?? []),
      impersonate: observers.flatMap(({ impersonate }) => impersonate ?? []),
      admit: observers.flatMap(({ admit }) => admit ?? []),
      authorize: observers.flatMap(({ authorize }) => authorize ?? []),
    };
    this.#ends = {
      expire: observers.flatMap(({ expire }) => expire ?? []),
      finish: observers.flatMap(({ finish }) => finish ?? []),
    };
  }

  /** Calls the observers of a gate event; an error fails the request. */
  notifyGate<Event extends GateEvent>(event: Event, state: StateAfter[Event]): void {
    const callbacks: readonly Callbacks['gates'][Event][] = this.#gates[event];
    for (const callback of callbacks) callback(state);
  }

  /** Calls the observers of an end event in sequence; a promise is returned only if one is. */
  notifyEnd<Event extends EndEvent>(
    event: Event,
    state: StateAfter[Event],
    first = 0,
  ): MaybePromise<void> {
    const callbacks: readonly Callbacks['ends'][Event][] = this.#ends[event];
    for (let index = first; index < callbacks.length; index++) {
      const pending = callbacks[index]?.(state);
      if (pending instanceof Promise) {
        return pending.then(() => this.notifyEnd(event, state, index + 1));
      }
    }
  }
}

/**
 * Creates all observers of a server's requests, in the order in which they are called.
 * @param gate undefined without an audit policy
 * @param tracer undefined without tracing
 */
export function createRequestObservers(
  context: EndpointContext,
  gate: AuditGate | undefined,
  tracer?: { readonly observer: RequestObserver },
): RequestObservers {
  return new RequestObservers([
    attributionObserver,
    ...(gate === undefined ? [] : [auditObserver(gate)]),
    ...(tracer === undefined ? [] : [tracer.observer]),
    metricsObserver(context),
    logObserver(context),
  ]);
}

/** Attributes event-loop time and the connection's memory to the user who sent the request. */
const attributionObserver: RequestObserver = {
  authenticate({ exchange, requester }) {
    exchange.resumed?.();
    exchange.userName = requester.name;
    if (requester.name === anonymousUser.name) return;
    exchange.connection.memory?.transferTo(`user ${requester.name}`);
  },
  authorize({ exchange }) {
    exchange.resumed?.();
  },
};

/** Completes audit records (OPS-2). */
function auditObserver(gate: AuditGate): RequestObserver {
  const conclude = ({ last, failure }: Answered | TimedOut): MaybePromise<void> => {
    if (last.phase === 'arrived') return;
    if (last.phase === 'received') {
      if (failure === undefined) return;
      return gate.reject({ ...last, error: failure.status });
    }
    const { audit, exchange } = last;
    if (audit === undefined) return;
    if (last.phase === 'admitted' && failure?.error instanceof ForbiddenError) {
      audit.setDecision(failure.error.result);
    }
    return audit.complete(exchange.responseCode);
  };
  return {
    impersonate: ({ audit, user }) => audit?.setImpersonatedUser(user),
    authorize: ({ audit, permit }) =>
      audit?.setDecision({ decision: 'allow', reason: permit.reason }),
    expire: conclude,
    finish(state) {
      if (state.phase === 'answered') return conclude(state);
      return state.lateAudit?.complete(state.last.exchange.responseCode);
    },
  };
}

/** Counts each request once, when it has been answered (OPS-1). */
function metricsObserver({ metrics, clock }: EndpointContext): RequestObserver {
  const count = (state: Answered | TimedOut): void => {
    const { last } = state;
    if (last.phase === 'arrived') return;
    const { exchange, info, startMs, deadline } = last;
    metrics.observeGates(state);
    const { othersMs } = deadline;
    metrics.observe({ exchange, info, startMs, endMs: clock.monotonic(), othersMs });
  };
  return {
    expire(state) {
      const { last } = state;
      if (last.phase !== 'arrived') metrics.countTermination(last.exchange, last.info);
      count(state);
    },
    finish(state) {
      if (state.phase !== 'answered') return;
      const { last, failure } = state;
      if (last.phase !== 'arrived' && failure?.error instanceof Overloaded) {
        metrics.countTermination(last.exchange, last.info);
      }
      count(state);
    },
  };
}

/** The `-v` level from which each request is logged, as in kube-apiserver. */
const requestLogLevel = 3;

/**
 * Logs one line for a request whose answer is complete or whose watch has begun. To exclude
 * secrets, it contains the path without the query, and no header except the User-Agent.
 */
function logObserver({ logger, clock }: EndpointContext): RequestObserver {
  const log = (state: Answered | TimedOut): void => {
    if (logger.verbosity < requestLogLevel) return;
    const { exchange, auditId, startMs } = state.last;
    const { method, url, httpVersion, remoteAddress, responseCode } = exchange;
    const flow = flowOf(state);
    logger.debug(requestLogLevel, 'request', {
      auditId,
      method,
      path: url.split('?', 1)[0],
      status: responseCode,
      user: 'user' in state.last ? state.last.user.name : undefined,
      flowSchema: flow?.flowSchema,
      priorityLevel: flow?.priorityLevel,
      userAgent: exchange.header('user-agent'),
      remoteAddress,
      httpVersion,
      durationMs: Math.round((clock.monotonic() - startMs) * 1000) / 1000,
    });
  };
  return {
    expire: log,
    finish(state) {
      if (state.phase === 'answered') log(state);
    },
  };
}

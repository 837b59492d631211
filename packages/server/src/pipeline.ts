import { type Exchange, isLongRunning, type MaybePromise } from '@wheelhouse/machinery';
import type { EndpointContext } from './endpoints/call.ts';
import { dispatch } from './endpoints/dispatch.ts';
import { RequestLifecycle } from './endpoints/request-lifecycle.ts';
import type { AuditGate } from './gates/audit/gate.ts';
import { authenticationWarnings } from './gates/authn/audit-notes.ts';
import type { Authenticate } from './gates/authn/authentication.ts';
import type { Impersonate } from './gates/authn/impersonation.ts';
import type { Authorization } from './gates/authz/authorization.ts';
import type { FlowControl } from './gates/flowcontrol/contract.ts';
import { createRequestObservers, type RequestObservers } from './observe/request-observers.ts';
import type { Tracer } from './observe/tracing.ts';
import { attributesOf, parseRequest } from './request/parse-request.ts';
import type { RequestInfo } from './request/request-info.ts';
import {
  type Admitted,
  type Authenticated,
  type Authorized,
  arrive,
  type Failure,
  type Received,
} from './request/request-state.ts';

/** The gates a request passes. */
export interface Gates {
  readonly authenticate: Authenticate;
  /** Undefined where nothing is recorded. */
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
 * Makes the function that answers the requests of a server. It never rejects.
 * @param tracer follows each request in spans, where that is configured
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
 * The path of one request, read downward. Each gate takes the state of the request that the gate
 * before it returned, so none can be left out. Each error becomes one Status, and so does the
 * request's deadline. Values that are available are not awaited: each await costs more than most steps.
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
      await dispatch(context, authorized);
      // Work goes on until the answer is out: without its seat nothing would bound how much.
      const delivered = isLongRunning(info) ? undefined : exchange.delivered?.();
      if (delivered !== undefined) await delivered;
    } finally {
      seat.leave();
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
  if (!(requester instanceof Promise)) return request.authenticate(received, requester);
  return requester.then((user) => {
    for (const text of authenticationWarnings(received.exchange)) received.warnings.add(text);
    return request.authenticate(received, user);
  });
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

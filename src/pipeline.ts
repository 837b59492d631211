import { randomUUID } from 'node:crypto';
import type { AuditGate } from './audit/gate.ts';
import type { AuditTrail } from './audit/trail.ts';
import type { Authenticate } from './authn/authentication.ts';
import type { Impersonate } from './authn/impersonation.ts';
import type { Authorization } from './authz/authorization.ts';
import type { Exchange } from './base/exchange.ts';
import type { EndpointContext } from './endpoints/call.ts';
import { dispatch } from './endpoints/dispatch.ts';
import { answerFailure } from './endpoints/failure.ts';
import { logRequest, requestLogLevel } from './endpoints/request-log.ts';
import {
  addFlowHeaders,
  type FlowClass,
  type FlowControl,
  Overloaded,
} from './flowcontrol/contract.ts';
import { isLongRunning } from './meta/long-running.ts';
import type { UserInfo } from './meta/types.ts';
import { attributesOf } from './request/attributes.ts';
import { parseRequest } from './request/parse-request.ts';
import { checkTimeout } from './request/query.ts';
import type { RequestInfo } from './request/request-info.ts';

/** The gates a request passes. */
export interface Gates {
  readonly authenticate: Authenticate;
  /** Undefined where nothing is recorded. */
  readonly audit: AuditGate | undefined;
  readonly impersonate: Impersonate;
  readonly flowControl: FlowControl;
  readonly authorization: Authorization;
}

/**
 * The path of one request, read downward: what it asks for, who asks, its audit record, as whom,
 * whether there is room, whether they may, then the endpoint. Each step gives what the next demands,
 * so none can be left out. Every failure, whatever threw it, becomes one Status answer.
 */
export async function serve(
  exchange: Exchange,
  gates: Gates,
  context: EndpointContext,
): Promise<void> {
  const { logger } = context;
  const startMs = context.clock.monotonic();
  let user: UserInfo | undefined;
  let info: RequestInfo | undefined;
  let audit: AuditTrail | undefined;
  let flow: FlowClass | undefined;
  const auditId = auditIdOf(exchange);
  const warnings: string[] = [];
  const baseHeaders: Record<string, string> = {
    'audit-id': auditId,
    'cache-control': 'no-cache, private',
  };
  try {
    info = parseRequest(exchange.method, exchange.url);
    if (!isLongRunning(info)) checkTimeout(info.query);
    user = await gates.authenticate(exchange);
    if (gates.audit !== undefined) {
      audit = await gates.audit.open({ exchange, info, user, auditId });
    }
    const requester = user;
    user = await gates.impersonate(exchange, requester);
    if (user !== requester) audit?.actsAs(user);
    const entered = gates.flowControl.enter({ info, user, exchange });
    const place = entered instanceof Promise ? await entered : entered;
    try {
      flow = place.flowClass;
      if (flow !== undefined) addFlowHeaders(baseHeaders, flow);
      const heard = audit === undefined ? undefined : audit.judged.bind(audit);
      const permit = await gates.authorization.authorize(attributesOf(info, user), heard);
      await dispatch({ context, exchange, info, user, permit, baseHeaders, audit, warnings });
    } finally {
      place.leave();
    }
  } catch (error) {
    if (error instanceof Overloaded && error.flowClass !== undefined) {
      flow = error.flowClass;
      addFlowHeaders(baseHeaders, flow);
    }
    const failed = { context, exchange, baseHeaders, error, audit, warnings };
    const told = await answerFailure(failed);
    if (gates.audit !== undefined && info !== undefined && user === undefined) {
      await gates.audit.refused({ exchange, info, auditId, error: told });
    }
  }
  if (audit !== undefined) await audit.over(exchange.answeredStatus);
  if (info !== undefined) {
    const endMs = context.clock.monotonic();
    context.metrics.finished({ exchange, info, startMs, endMs });
  }
  if (logger.verbosity >= requestLogLevel) {
    logRequest({ context, exchange, user, flow, auditId, startMs });
  }
}

/** A client may name its request; anything but a short plain name is replaced (OPS-4). */
function auditIdOf(exchange: Exchange): string {
  const given = exchange.header('audit-id');
  return given !== undefined && /^[\w.-]{1,64}$/.test(given) ? given : randomUUID();
}

import { type Exchange, isLongRunning } from '@wheelhouse/machinery';
import type { EndpointContext } from './endpoints/call.ts';
import { dispatch } from './endpoints/dispatch.ts';
import { Flight } from './endpoints/flight.ts';
import type { AuditGate } from './gates/audit/gate.ts';
import type { Authenticate } from './gates/authn/authentication.ts';
import type { Impersonate } from './gates/authn/impersonation.ts';
import type { Authorization } from './gates/authz/authorization.ts';
import type { FlowControl } from './gates/flowcontrol/contract.ts';
import { attributesOf } from './request/attributes.ts';
import { parseRequest } from './request/parse-request.ts';
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
 * so none can be left out. Every failure, whatever threw it, becomes one Status answer, and so does
 * its time being up. Nothing is waited for that is there already: each wait costs more than most steps.
 */
export async function serve(
  exchange: Exchange,
  gates: Gates,
  context: EndpointContext,
): Promise<void> {
  const flight = new Flight({ exchange, context, audit: gates.audit });
  const { auditId, baseHeaders, warnings } = flight;
  const { tap } = context;
  let asked: RequestInfo | undefined;
  try {
    const info = parseRequest(exchange.method, exchange.url);
    asked = info;
    flight.begin(info);
    const known = gates.authenticate(exchange);
    const requester = known instanceof Promise ? await known : known;
    flight.goOn();
    flight.from(requester);
    if (gates.audit !== undefined) {
      flight.recordedAs(await gates.audit.open({ exchange, info, user: requester, auditId }));
    }
    const { audit } = flight;
    const acting = gates.impersonate(exchange, requester);
    const user = acting instanceof Promise ? await acting : acting;
    flight.user = user;
    if (user !== requester) audit?.actsAs(user);
    const met = tap?.admit({ exchange, info, user });
    if (met !== undefined) {
      await met;
      flight.goOn();
    }
    const entered = gates.flowControl.enter({ info, user, exchange });
    const place = entered instanceof Promise ? await entered : entered;
    try {
      flight.enter(place);
      const heard = audit === undefined ? undefined : audit.judged.bind(audit);
      const attributes = attributesOf(info, user, exchange);
      const judged = gates.authorization.authorize(attributes, heard);
      const permit = judged instanceof Promise ? await judged : judged;
      flight.allow();
      flight.goOn();
      await dispatch({
        context,
        exchange,
        info,
        user,
        permit,
        baseHeaders,
        audit,
        warnings,
        deadline: flight,
      });
      // Work goes on until the answer is out: without its seat nothing would bound how much.
      const delivered = isLongRunning(info) ? undefined : exchange.delivered?.();
      if (delivered !== undefined) await delivered;
    } finally {
      place.leave();
    }
  } catch (error) {
    await flight.failed(error);
  }
  const ending = flight.end();
  if (ending !== undefined) await ending;
  tap?.over(exchange, asked);
}

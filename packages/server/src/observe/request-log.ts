import type { Exchange, UserInfo } from '@wheelhouse/machinery';
import type { EndpointContext } from '../endpoints/call.ts';
import type { FlowClass } from '../gates/flowcontrol/contract.ts';

/** `-v` from which each request is a line of the log, as upstream. */
export const requestLogLevel = 3;

/**
 * Writes one line for a request whose answer is complete, or whose watch has begun. It names the
 * path without its query and no header but the client's own name: nothing that could be a secret.
 */
export function logRequest(request: {
  readonly context: Pick<EndpointContext, 'logger' | 'clock'>;
  readonly exchange: Exchange;
  readonly user: UserInfo | undefined;
  /** Where nothing is classified, undefined. */
  readonly flow: FlowClass | undefined;
  readonly auditId: string;
  /** Monotonic milliseconds. */
  readonly startMs: number;
}): void {
  const { context, exchange, user, flow, auditId, startMs } = request;
  const { method, url, httpVersion, remoteAddress, answeredStatus } = exchange;
  context.logger.debug(requestLogLevel, 'request', {
    auditId,
    method,
    path: url.split('?', 1)[0],
    status: answeredStatus,
    user: user?.name,
    flowSchema: flow?.flowSchema,
    priorityLevel: flow?.priorityLevel,
    userAgent: exchange.header('user-agent'),
    remoteAddress,
    httpVersion,
    durationMs: Math.round((context.clock.monotonic() - startMs) * 1000) / 1000,
  });
}

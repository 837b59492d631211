import type { Exchange, OnExchange } from '@wheelhouse/machinery';
import { auditIdOf } from '../../request/request-state.ts';
import type { ServerConfig } from '../config.ts';

/**
 * Puts before `answer` what flags want of every request. Where they want nothing `answer` itself is
 * given back, so that nothing is paid for what is off. Rejects with a FlagError for bad patterns.
 */
export async function withFilters(config: ServerConfig, answer: OnExchange): Promise<OnExchange> {
  const { strictTransport, allowedOrigins } = config.traffic ?? {};
  let filtered = answer;
  if (allowedOrigins !== undefined) {
    const { createCrossOrigin } = await import('./cross-origin.ts');
    const answered = createCrossOrigin(allowedOrigins);
    filtered = (exchange) => (answered(exchange) ? undefined : answer(exchange));
  }
  if (strictTransport === undefined || config.listen.tls === 'plaintext') return filtered;
  const headers = { 'strict-transport-security': strictTransport };
  return (exchange) => {
    exchange.addHeaders?.(headers);
    return filtered(exchange);
  };
}

/** Paths that are answered to the end of a stop, and when memory is short. */
const servedToTheEnd = ['/readyz', '/livez', '/healthz', '/metrics'];
const body = Buffer.from('The apiserver is shutting down, please try again later.\n');

/** Whether a path is answered whatever state the server is in. */
export function isAlwaysServed(url: string): boolean {
  return servedToTheEnd.some((path) => url.startsWith(path));
}

/** The answer to what comes while the server stops; undefined for what is served all the same. */
export function refusalWhileStopping(exchange: Exchange) {
  if (isAlwaysServed(exchange.url)) return undefined;
  const headers = {
    'audit-id': auditIdOf(exchange),
    'content-type': 'text/plain; charset=utf-8',
    'retry-after': '5',
    'x-content-type-options': 'nosniff',
  };
  return { status: 429, headers, body };
}

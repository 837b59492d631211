import type { Exchange } from '@wheelhouse/machinery';

/** What tells which site a request comes from. */
type Request = Pick<Exchange, 'method' | 'header'>;

/**
 * Whether a page of another site made the request in a browser, which shows its user's certificate
 * by itself then (CLIENT-4, TRUST-6). A followed link is the user's own wish and changes nothing.
 * Clients that are no browsers send neither `Sec-Fetch-Site` nor, with an upgrade, `Origin`.
 * @param mayUpgradeFrom other origins whose pages may open WebSockets by certificate
 */
export function isOfOtherSite(
  request: Request,
  mayUpgradeFrom: (origin: string) => boolean,
): boolean {
  // Browsers say nothing of the site with a WebSocket's handshake, but always its origin.
  if (request.header('upgrade') !== undefined) return isForeignUpgrade(request, mayUpgradeFrom);
  const site = request.header('sec-fetch-site');
  if (site !== 'cross-site' && site !== 'same-site') return false;
  return request.method !== 'GET' || request.header('sec-fetch-mode') !== 'navigate';
}

function isForeignUpgrade(request: Request, mayUpgradeFrom: (origin: string) => boolean): boolean {
  const origin = request.header('origin');
  return origin !== undefined && !isOwn(origin, request.header('host')) && !mayUpgradeFrom(origin);
}

/** Whether an origin is the one that the client has asked. Certificates are shown over TLS alone. */
function isOwn(origin: string, host = ''): boolean {
  const own = `https://${host}`;
  if (!URL.canParse(origin) || !URL.canParse(own)) return false;
  return new URL(origin).origin === new URL(own).origin;
}

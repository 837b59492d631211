import { cut } from './texts.ts';

/**
 * Prefix of a WebSocket subprotocol that carries a bearer token, because browsers cannot set other
 * headers of a WebSocket. A domain follows, then the token in base64url.
 */
const bearerPrefix = 'base64url.bearer.authorization.';

/**
 * Splits a `Sec-WebSocket-Protocol` header into subprotocols, in order, and encoded bearer tokens.
 */
export function parseWebSocketProtocols(header: string | undefined): {
  readonly names: readonly string[];
  readonly tokens: readonly string[];
} {
  const names: string[] = [];
  const tokens: string[] = [];
  for (const entry of header?.split(',') ?? []) {
    const name = entry.trim();
    if (name.startsWith(bearerPrefix)) tokens.push(name.slice(name.lastIndexOf('.') + 1));
    else if (name !== '') names.push(name);
  }
  return { names, tokens };
}

/** The parts of a request that identify the site whose page sent it. */
export interface SiteRequest {
  readonly method: string;
  /** The value of a header by lower-case name. */
  header(name: string): string | undefined;
}

/**
 * Whether a page of another site sent the request from a browser (TRUST-6). Browsers state the site
 * (`Sec-Fetch-Site`), and old ones at least the origin of writes and of reads across origins. Reads
 * by navigation are excluded: the user initiates them, and they change nothing. Clients other than
 * browsers send neither header.
 * @param scheme the scheme under which browsers reach this server
 */
export function isOfOtherSite(request: SiteRequest, scheme: 'http' | 'https'): boolean {
  const site = request.header('sec-fetch-site');
  if (site === undefined) {
    const origin = request.header('origin');
    return origin !== undefined && !isOwnOrigin(origin, scheme, request.header('host'));
  }
  if (site !== 'cross-site' && site !== 'same-site') return false;
  return request.method !== 'GET' || request.header('sec-fetch-mode') !== 'navigate';
}

/** Whether an origin is the requested host under the scheme; false for malformed values. */
export function isOwnOrigin(origin: string, scheme: 'http' | 'https', host = ''): boolean {
  const own = `${scheme}://${host}`;
  if (!URL.canParse(origin) || !URL.canParse(own)) return false;
  return new URL(origin).origin === new URL(own).origin;
}

const tokenByte = /^[!#$&'*+\-.^_`|~0-9A-Za-z]$/;

/** Percent-encodes bytes that a header name must not contain, and the percent sign. */
export function escapeHeaderKey(key: string): string {
  return Array.from(Buffer.from(key, 'utf8'), (byte) => {
    const character = String.fromCharCode(byte);
    if (tokenByte.test(character)) return character;
    return `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }).join('');
}

/** Maximum number of characters of an `Accept-Encoding` header that are read. */
const codingsLengthMax = 8_192;

/**
 * Whether the first 8,192 characters of an `Accept-Encoding` header list a coding with a weight
 * other than 0.
 * @param coding in lower case
 */
export function acceptsCoding(accepted: string, coding: string): boolean {
  return accepted
    .slice(0, codingsLengthMax)
    .split(',')
    .some((item) => {
      const [name = '', ...parameters] = item.split(';').map((part) => part.trim().toLowerCase());
      return name === coding && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
    });
}

/** Query parameters whose values are credentials, in lower case. */
const secretNames: ReadonlySet<string> = new Set([
  'access_token',
  'api_key',
  'apikey',
  'assertion',
  'authorization',
  'client_secret',
  'id_token',
  'password',
  'refresh_token',
  'secret',
  'token',
]);

const replacement = 'REDACTED';

/**
 * Returns a request's path and query for logs and audit records, with the values of credentials in
 * query parameters redacted. Parameters whose names cannot be decoded are redacted too.
 */
export function redactSecrets(url: string): string {
  const [path, query] = cut(url, '?');
  if (query === undefined) return url;
  const redacted = query.split('&').map(redactParameter).join('&');
  return redacted === query ? url : `${path}?${redacted}`;
}

function redactParameter(parameter: string): string {
  const [name, value] = cut(parameter, '=');
  return value !== undefined && isSecret(name) ? `${name}=${replacement}` : parameter;
}

function isSecret(name: string): boolean {
  try {
    return secretNames.has(decodeURIComponent(name.replaceAll('+', ' ')).trim().toLowerCase());
  } catch {
    return true;
  }
}

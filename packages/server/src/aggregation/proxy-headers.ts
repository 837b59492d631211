import {
  type Exchange,
  parseWebSocketProtocols,
  type ResponseHeaders,
  type UserInfo,
} from '@wheelhouse/machinery';

/** Headers of an outgoing request, by lower-case name. */
export type OutgoingHeaders = Record<string, string[]>;

/** Hop-by-hop headers (RFC 9110, section 7.6.1), which proxies do not forward. */
const perHop = new Set([
  'connection',
  'proxy-connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** Headers addressed to this server alone: credentials, host, and expectations. */
const notForwarded = new Set(['authorization', 'host', 'expect']);
const notForwardedPrefixes = ['impersonate-', 'x-remote-extra-'];
const identity = ['x-remote-user', 'x-remote-uid', 'x-remote-group'];

/** Maximum length of a header name; longer ones are not forwarded. */
const nameLengthMax = 126;

/** CORS headers of responses, which only this server sets. */
const crossOrigin = new Set([
  'access-control-allow-credentials',
  'access-control-allow-headers',
  'access-control-allow-methods',
  'access-control-allow-origin',
]);

/** The user as other servers learn it. */
interface ForwardedUser {
  readonly user: UserInfo;
  /** Whether other servers receive the UID (gate RemoteRequestHeaderUID). */
  readonly forwardsUid: boolean;
}

/**
 * The headers by which authenticating proxies identify the user: other than ASCII is sent as UTF-8,
 * and keys of extra values are escaped as header names require.
 */
export function identityHeaders({ user, forwardsUid }: ForwardedUser): OutgoingHeaders {
  const headers = emptyHeaders();
  headers['x-remote-user'] = [wireText(user.name)];
  if (forwardsUid && user.uid !== '') headers['x-remote-uid'] = [wireText(user.uid)];
  if (user.groups.length > 0) headers['x-remote-group'] = user.groups.map(wireText);
  for (const [key, values] of Object.entries(user.extra)) {
    if (values.length > 0) headers[`x-remote-extra-${escapedKey(key)}`] = values.map(wireText);
  }
  return headers;
}

/** The forwarded headers of a request, with those that a proxy adds. */
export function forwardedHeaders(
  exchange: Pick<Exchange, 'headerLines' | 'remoteAddress'>,
  about: ForwardedUser & {
    /** `host:port` of the other server. */
    readonly host: string;
    /** The requested path, escaped. */
    readonly path: string;
    readonly auditId: string;
    /** The name of this process in Via headers. */
    readonly via: string;
  },
): OutgoingHeaders {
  const headers = endToEnd(exchange.headerLines());
  const clients = headers['x-forwarded-for'] ?? [];
  headers['x-forwarded-for'] = [[...clients, exchange.remoteAddress].join(', ')];
  headers['via'] = [[...(headers['via'] ?? []), `1.1 ${about.via}`].join(', ')];
  headers['x-forwarded-host'] = [about.host];
  headers['x-forwarded-proto'] = ['https'];
  headers['x-forwarded-uri'] = [about.path];
  headers['audit-id'] = [about.auditId];
  headers['host'] = [about.host];
  return Object.assign(headers, identityHeaders(about));
}

/** The forwarded headers of a request to a server that does not learn the user. */
export function anonymousHeaders(
  exchange: Pick<Exchange, 'headerLines' | 'remoteAddress'>,
  { host }: { readonly host: string },
): OutgoingHeaders {
  const headers = endToEnd(exchange.headerLines());
  const clients = headers['x-forwarded-for'] ?? [];
  headers['x-forwarded-for'] = [[...clients, exchange.remoteAddress].join(', ')];
  headers['host'] = [host];
  return headers;
}

function endToEnd(lines: readonly string[]): OutgoingHeaders {
  const isKept = (name: string, value: string) =>
    name === 'te' ? trailersOf(value) : isForwarded(name);
  const headers = keptHeaders(lines, isKept);
  if (headers['te'] !== undefined) headers['te'] = ['trailers'];
  const protocols = (headers['sec-websocket-protocol'] ?? []).flatMap(
    (header) => parseWebSocketProtocols(header).names,
  );
  if (protocols.length > 0) headers['sec-websocket-protocol'] = [protocols.join(', ')];
  else delete headers['sec-websocket-protocol'];
  return headers;
}

function isForwarded(name: string): boolean {
  if (name.startsWith(':') || perHop.has(name) || notForwarded.has(name)) return false;
  if (identity.includes(name)) return false;
  return !notForwardedPrefixes.some((prefix) => name.startsWith(prefix));
}

const trailersOf = (value: string) => value.toLowerCase().includes('trailers');

/** The headers that `isKept` selects, without those that `Connection` lists. */
function keptHeaders(
  lines: readonly string[],
  isKept: (name: string, value: string) => boolean,
): OutgoingHeaders {
  const headers = emptyHeaders();
  const connection: string[] = [];
  for (let index = 0; index + 1 < lines.length; index += 2) {
    const name = (lines[index] ?? '').toLowerCase();
    const value = lines[index + 1] ?? '';
    if (name === 'connection') connection.push(value);
    else if (isKept(name, value)) {
      headers[name] ??= [];
      headers[name].push(value);
    }
  }
  for (const name of namedIn(connection)) delete headers[name];
  return headers;
}

/** Names listed in `Connection`, which are hop-by-hop too. */
function namedIn(connection: readonly string[]): string[] {
  return connection.flatMap((value) => value.split(',').map((one) => one.trim().toLowerCase()));
}

/** The protocol that a request asks to switch to; undefined if none. */
export function wantedProtocol(exchange: Pick<Exchange, 'header'>): string | undefined {
  const asks = exchange.header('connection')?.toLowerCase().includes('upgrade') === true;
  return asks ? exchange.header('upgrade') : undefined;
}

/**
 * The headers of a response to the client, with this server's own, of which only `Cache-Control`
 * yields to the other server's.
 */
export function answeredHeaders(
  lines: readonly string[],
  own: Readonly<Record<string, string>>,
): ResponseHeaders {
  const isKept = (name: string) =>
    !perHop.has(name) &&
    !crossOrigin.has(name) &&
    !(Object.hasOwn(own, name) && name !== 'cache-control') &&
    name.length <= nameLengthMax;
  const headers = keptHeaders(lines, isKept);
  const merged: Record<string, string | readonly string[]> = Object.create(null);
  for (const [name, value] of Object.entries(own)) merged[name] = value;
  for (const [name, values] of Object.entries(headers)) {
    merged[name] = values.length === 1 ? (values[0] ?? '') : values;
  }
  return merged;
}

function emptyHeaders(): OutgoingHeaders {
  return Object.create(null);
}

/** Node.js writes headers as Latin-1. */
function wireText(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}

const tokenByte = /^[!#$&'*+\-.^_`|~0-9A-Za-z]$/;

/** Escapes what a header name cannot contain, and the escape character itself. */
function escapedKey(key: string): string {
  return Array.from(Buffer.from(key, 'utf8'), (byte) => {
    const character = String.fromCharCode(byte);
    if (tokenByte.test(character)) return character;
    return `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }).join('');
}

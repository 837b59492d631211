import {
  type Exchange,
  escapeHeaderKey,
  parseWebSocketProtocols,
  type ResponseHeaders,
  type UserInfo,
} from '@wheelhouse/machinery';

/** Headers of an outgoing request, by lower-case name. */
export type OutgoingHeaders = Record<string, string[]>;

/** Hop-by-hop headers (RFC 9110, section 7.6.1), which proxies do not forward. */
const hopByHop = new Set([
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

/** End-to-end headers that concern only this server. */
const notForwarded = new Set(['authorization', 'host', 'expect']);
const impersonationPrefix = 'impersonate-';
const usualIdentity = {
  usernameHeaders: ['x-remote-user'],
  uidHeaders: ['x-remote-uid'],
  groupHeaders: ['x-remote-group'],
  extraHeaderPrefixes: ['x-remote-extra-'],
};

/** The headers with which an authenticating proxy names users. */
export interface IdentityHeaders {
  readonly usernameHeaders: readonly string[];
  readonly uidHeaders?: readonly string[];
  readonly groupHeaders: readonly string[];
  readonly extraHeaderPrefixes: readonly string[];
}

/** Whether a header, by its lower-case name, names a user. */
export type IdentityTest = (name: string) => boolean;

/** Maximum length of a response header's name; longer ones are not forwarded. */
const nameLengthMax = 126;

/** CORS headers, which only this server sets. */
const crossOrigin = new Set([
  'access-control-allow-credentials',
  'access-control-allow-headers',
  'access-control-allow-methods',
  'access-control-allow-origin',
]);

/**
 * Recognizes the usual identity headers, and those that this server's own proxy uses: other servers
 * trust the same ones, so they must not come from a client.
 */
export function identityTest(own: IdentityHeaders | undefined): IdentityTest {
  const all = own === undefined ? [usualIdentity] : [usualIdentity, own];
  const lower = (headers: readonly string[]) => headers.map((header) => header.toLowerCase());
  const names = new Set(
    all.flatMap(({ usernameHeaders, uidHeaders = [], groupHeaders }) =>
      lower([...usernameHeaders, ...uidHeaders, ...groupHeaders]),
    ),
  );
  const prefixes = all.flatMap(({ extraHeaderPrefixes }) => lower(extraHeaderPrefixes));
  return (name) => names.has(name) || prefixes.some((prefix) => name.startsWith(prefix));
}

/** A user as identified to other servers. */
interface ForwardedUser {
  readonly user: UserInfo;
  /** Whether other servers receive the UID (gate RemoteRequestHeaderUID). */
  readonly forwardsUid: boolean;
}

/**
 * The headers with which an authenticating proxy identifies the user. Values are UTF-8, and keys of
 * extra values are percent-encoded.
 */
export function identityHeaders({ user, forwardsUid }: ForwardedUser): OutgoingHeaders {
  const headers = emptyHeaders();
  headers['x-remote-user'] = [wireText(user.name)];
  if (forwardsUid && user.uid !== '') headers['x-remote-uid'] = [wireText(user.uid)];
  if (user.groups.length > 0) headers['x-remote-group'] = user.groups.map(wireText);
  for (const [key, values] of Object.entries(user.extra)) {
    if (values.length > 0) headers[`x-remote-extra-${escapeHeaderKey(key)}`] = values.map(wireText);
  }
  return headers;
}

/** The headers of a proxied request: the client's, the user's identity, and the proxy's own. */
export function forwardedHeaders(
  exchange: Pick<Exchange, 'headerLines' | 'remoteAddress'>,
  request: ForwardedUser & {
    /** `host:port` of the other server. */
    readonly host: string;
    /** The escaped path. */
    readonly path: string;
    readonly auditId: string;
    /** The name of this process in `Via` headers. */
    readonly via: string;
    readonly isIdentity: IdentityTest;
  },
): OutgoingHeaders {
  const headers = endToEndHeaders(exchange.headerLines(), request.isIdentity);
  const clients = headers['x-forwarded-for'] ?? [];
  headers['x-forwarded-for'] = [[...clients, exchange.remoteAddress].join(', ')];
  headers['via'] = [[...(headers['via'] ?? []), `1.1 ${request.via}`].join(', ')];
  headers['x-forwarded-host'] = [request.host];
  headers['x-forwarded-proto'] = ['https'];
  headers['x-forwarded-uri'] = [request.path];
  headers['audit-id'] = [request.auditId];
  headers['host'] = [request.host];
  return Object.assign(headers, identityHeaders(request));
}

/** The headers of a proxied request without the user's identity. */
export function anonymousHeaders(
  exchange: Pick<Exchange, 'headerLines' | 'remoteAddress'>,
  { host, isIdentity }: { readonly host: string; readonly isIdentity: IdentityTest },
): OutgoingHeaders {
  const headers = endToEndHeaders(exchange.headerLines(), isIdentity);
  const clients = headers['x-forwarded-for'] ?? [];
  headers['x-forwarded-for'] = [[...clients, exchange.remoteAddress].join(', ')];
  headers['host'] = [host];
  return headers;
}

function endToEndHeaders(lines: readonly string[], isIdentity: IdentityTest): OutgoingHeaders {
  const isSelected = (name: string, value: string) =>
    name === 'te' ? acceptsTrailers(value) : isForwarded(name) && !isIdentity(name);
  const headers = selectHeaders(lines, isSelected);
  if (headers['te'] !== undefined) headers['te'] = ['trailers'];
  const protocols = (headers['sec-websocket-protocol'] ?? []).flatMap(
    (header) => parseWebSocketProtocols(header).names,
  );
  if (protocols.length > 0) headers['sec-websocket-protocol'] = [protocols.join(', ')];
  else delete headers['sec-websocket-protocol'];
  return headers;
}

function isForwarded(name: string): boolean {
  if (name.startsWith(':') || hopByHop.has(name) || notForwarded.has(name)) return false;
  return !name.startsWith(impersonationPrefix);
}

const acceptsTrailers = (value: string) => value.toLowerCase().includes('trailers');

/** The headers that `isSelected` selects, without those that `Connection` lists. */
function selectHeaders(
  lines: readonly string[],
  isSelected: (name: string, value: string) => boolean,
): OutgoingHeaders {
  const headers = emptyHeaders();
  const connection: string[] = [];
  for (let index = 0; index + 1 < lines.length; index += 2) {
    const name = (lines[index] ?? '').toLowerCase();
    const value = lines[index + 1] ?? '';
    if (name === 'connection') connection.push(value);
    else if (isSelected(name, value)) {
      headers[name] ??= [];
      headers[name].push(value);
    }
  }
  for (const name of connectionOptions(connection)) delete headers[name];
  return headers;
}

/** The names that `Connection` lists; these headers are hop-by-hop too. */
function connectionOptions(connection: readonly string[]): string[] {
  return connection.flatMap((value) =>
    value.split(',').map((option) => option.trim().toLowerCase()),
  );
}

/** The protocol that a request asks to switch to; undefined if it does not. */
export function requestedProtocol(exchange: Pick<Exchange, 'header'>): string | undefined {
  const isUpgrade = exchange.header('connection')?.toLowerCase().includes('upgrade') === true;
  return isUpgrade ? exchange.header('upgrade') : undefined;
}

/**
 * The headers of a proxied response.
 *
 * @param lines names and values of the other server's headers, alternating
 * @param own this server's headers, which take precedence except for `Cache-Control`
 */
export function responseHeaders(
  lines: readonly string[],
  own: Readonly<Record<string, string>>,
): ResponseHeaders {
  const isSelected = (name: string) =>
    !hopByHop.has(name) &&
    !crossOrigin.has(name) &&
    !(Object.hasOwn(own, name) && name !== 'cache-control') &&
    name.length <= nameLengthMax;
  const headers = selectHeaders(lines, isSelected);
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

/** The text whose Latin-1 encoding, which Node.js uses for headers, is the UTF-8 of `text`. */
function wireText(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}

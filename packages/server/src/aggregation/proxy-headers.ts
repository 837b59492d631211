import {
  type Exchange,
  parseWebSocketProtocols,
  type ResponseHeaders,
  type UserInfo,
} from '@wheelhouse/machinery';

/** Headers of a request on its way, by lower-case name. */
export type OutgoingHeaders = Record<string, string[]>;

/** What concerns one connection alone (RFC 9110, 7.6.1), and so ends at a proxy. */
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

/** What the client has told this server alone: who it is, for whom it acts, whom it speaks to. */
const toldHere = new Set(['authorization', 'host', 'expect']);
const toldHerePrefixes = ['impersonate-', 'x-remote-extra-'];
const identity = ['x-remote-user', 'x-remote-uid', 'x-remote-group'];

/** Longer names of headers are nobody's, and HTTP/2 is not made to carry them here. */
const nameLengthMax = 126;

/** Answers' leave for scripts of other origins is this server's to give, not another's. */
const crossOrigin = new Set([
  'access-control-allow-credentials',
  'access-control-allow-headers',
  'access-control-allow-methods',
  'access-control-allow-origin',
]);

/** Who asks, as the other server is told. */
export interface ToldUser {
  readonly user: UserInfo;
  /** Whether the other server learns the uid (gate RemoteRequestHeaderUID). */
  readonly tellsUid: boolean;
}

/**
 * Headers that say who asks, as authenticating proxies say it: what is not ASCII goes as UTF-8, and
 * keys of extra values are escaped where a header's name could not hold them.
 */
export function identityHeaders({ user, tellsUid }: ToldUser): OutgoingHeaders {
  const headers = emptyHeaders();
  headers['x-remote-user'] = [wireText(user.name)];
  if (tellsUid && user.uid !== '') headers['x-remote-uid'] = [wireText(user.uid)];
  if (user.groups.length > 0) headers['x-remote-group'] = user.groups.map(wireText);
  for (const [key, values] of Object.entries(user.extra)) {
    if (values.length > 0) headers[`x-remote-extra-${escapedKey(key)}`] = values.map(wireText);
  }
  return headers;
}

/** What of a request's headers goes on, with what a proxy adds. */
export function forwardedHeaders(
  exchange: Pick<Exchange, 'headerLines' | 'remoteAddress'>,
  about: ToldUser & {
    /** `host:port` that is asked. */
    readonly host: string;
    /** The path that is asked, escaped. */
    readonly path: string;
    readonly auditId: string;
    /** The name of this process among those that pass requests on. */
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

/** What of a request's headers goes on to a server that is not told who the user is. */
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
  const headers = emptyHeaders();
  const connection: string[] = [];
  for (let index = 0; index + 1 < lines.length; index += 2) {
    const name = (lines[index] ?? '').toLowerCase();
    const value = lines[index + 1] ?? '';
    if (name === 'connection') connection.push(value);
    else if (name === 'te' && trailersOf(value)) headers['te'] = ['trailers'];
    else if (isForwarded(name)) headers[name] = [...(headers[name] ?? []), value];
  }
  for (const name of namedIn(connection)) delete headers[name];
  const protocols = (headers['sec-websocket-protocol'] ?? []).flatMap(
    (header) => parseWebSocketProtocols(header).names,
  );
  if (protocols.length > 0) headers['sec-websocket-protocol'] = [protocols.join(', ')];
  else delete headers['sec-websocket-protocol'];
  return headers;
}

function isForwarded(name: string): boolean {
  if (name.startsWith(':') || perHop.has(name) || toldHere.has(name)) return false;
  if (identity.includes(name)) return false;
  return !toldHerePrefixes.some((prefix) => name.startsWith(prefix));
}

const trailersOf = (value: string) => value.toLowerCase().includes('trailers');

/** Names that `Connection` lists: they, too, concern the connection alone. */
function namedIn(connection: readonly string[]): string[] {
  return connection.flatMap((value) => value.split(',').map((one) => one.trim().toLowerCase()));
}

/** The protocol a request asks to go on in; undefined when it asks for none. */
export function wantedProtocol(exchange: Pick<Exchange, 'header'>): string | undefined {
  const asks = exchange.header('connection')?.toLowerCase().includes('upgrade') === true;
  return asks ? exchange.header('upgrade') : undefined;
}

/**
 * What of an answer's headers goes back, with this server's own: of these only `Cache-Control` gives
 * way to the other's, who knows better how long the answer is good.
 */
export function answeredHeaders(
  lines: readonly string[],
  own: Readonly<Record<string, string>>,
): ResponseHeaders {
  const headers = emptyHeaders();
  const connection: string[] = [];
  for (let index = 0; index + 1 < lines.length; index += 2) {
    const name = (lines[index] ?? '').toLowerCase();
    const value = lines[index + 1] ?? '';
    if (name === 'connection') connection.push(value);
    const isOurs = Object.hasOwn(own, name) && name !== 'cache-control';
    const stays = perHop.has(name) || crossOrigin.has(name) || isOurs;
    if (!stays && name.length <= nameLengthMax) headers[name] = [...(headers[name] ?? []), value];
  }
  for (const name of namedIn(connection)) delete headers[name];
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

/** Node writes headers byte by byte. */
function wireText(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}

const tokenByte = /^[!#$&'*+\-.^_`|~0-9A-Za-z]$/;

/** Escapes what a header's name cannot hold, and the escape's own sign. */
function escapedKey(key: string): string {
  return Array.from(Buffer.from(key, 'utf8'), (byte) => {
    const character = String.fromCharCode(byte);
    if (tokenByte.test(character)) return character;
    return `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }).join('');
}

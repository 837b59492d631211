/**
 * How the name of a protocol begins that is none: browsers, which may set no header of a WebSocket,
 * send a bearer token so. A domain follows, and behind it the token in base64url.
 */
const bearerPrefix = 'base64url.bearer.authorization.';

/** What `Sec-WebSocket-Protocol` names, in order, and the tokens among it, as they are encoded. */
export function protocolsOf(header: string | undefined): {
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

/** Whether an `Accept-Encoding` names a coding, in lower case, with a weight other than 0. */
export function takesCoding(accepted: string, wanted: string): boolean {
  return accepted.split(',').some((one) => {
    const [coding = '', ...parameters] = one.split(';').map((part) => part.trim().toLowerCase());
    return coding === wanted && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
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
 * A request's path and query for logs and records: values of query parameters that carry
 * credentials are replaced. A name that cannot be decoded counts as one of a credential.
 */
export function withoutSecrets(url: string): string {
  const at = url.indexOf('?');
  if (at < 0) return url;
  const query = url.slice(at + 1);
  const shown = query.split('&').map(shownParameter).join('&');
  return shown === query ? url : `${url.slice(0, at)}?${shown}`;
}

function shownParameter(parameter: string): string {
  const at = parameter.indexOf('=');
  if (at < 0) return parameter;
  const name = parameter.slice(0, at);
  return isSecret(name) ? `${name}=${replacement}` : parameter;
}

function isSecret(name: string): boolean {
  try {
    return secretNames.has(decodeURIComponent(name.replaceAll('+', ' ')).trim().toLowerCase());
  } catch {
    return true;
  }
}

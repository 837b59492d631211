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

import type { Exchange } from '../base/exchange.ts';

/**
 * The bearer token of an exchange, or undefined when it has none. As upstream: the scheme in any
 * case, one space, an empty token (two spaces) is no credential, what follows the token is ignored.
 */
export function bearerToken(exchange: Pick<Exchange, 'header'>): string | undefined {
  const header = exchange.header('authorization');
  return header === undefined ? undefined : parseBearer(header);
}

/** The token of an `Authorization` header's value; see `bearerToken`. */
export function parseBearer(header: string): string | undefined {
  const trimmed = header.trim();
  const space = trimmed.indexOf(' ');
  if (space < 0 || trimmed.slice(0, space).toLowerCase() !== 'bearer') return undefined;
  const end = trimmed.indexOf(' ', space + 1);
  const token = end < 0 ? trimmed.slice(space + 1) : trimmed.slice(space + 1, end);
  return token === '' ? undefined : token;
}

/** What an authenticator throws for a token it does not know; says nothing of the token. */
export class InvalidBearerToken extends Error {
  constructor() {
    super('invalid bearer token');
    this.name = 'InvalidBearerToken';
  }
}

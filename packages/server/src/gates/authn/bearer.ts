import { createHash, timingSafeEqual } from 'node:crypto';
import type { Exchange } from '@wheelhouse/machinery';

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
  const trimmed = withoutBlanks(header);
  const space = trimmed.indexOf(' ');
  if (space < 0 || trimmed.slice(0, space).toLowerCase() !== 'bearer') return undefined;
  const end = trimmed.indexOf(' ', space + 1);
  const token = end < 0 ? trimmed.slice(space + 1) : trimmed.slice(space + 1, end);
  return token === '' ? undefined : token;
}

/** Unlike `trim`, takes no bytes of other encodings for blanks. */
function withoutBlanks(text: string): string {
  let from = 0;
  let end = text.length;
  while (isBlank(text.charCodeAt(from))) from += 1;
  while (end > from && isBlank(text.charCodeAt(end - 1))) end -= 1;
  return text.slice(from, end);
}

const isBlank = (code: number) => code === 0x20 || code === 0x09;

/** What an authenticator throws for a token it does not know; says nothing of the token. */
export class InvalidBearerToken extends Error {
  constructor() {
    super('invalid bearer token');
    this.name = 'InvalidBearerToken';
  }
}

/** Compares secrets in a time that reveals nothing of how much of one is right. */
export function isSameSecret(one: string, other: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(one), digest(other));
}

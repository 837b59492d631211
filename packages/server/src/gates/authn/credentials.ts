import { isUtf8 } from 'node:buffer';
import { createHash, timingSafeEqual } from 'node:crypto';
import type { Exchange } from '@wheelhouse/machinery';
import type { Credentials } from './contract.ts';

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

/**
 * The text of a header's value, which the host gives as one character for each byte. Throws for
 * bytes that are not UTF-8: replaced by a placeholder, several names of users would become one.
 */
export function headerText(value: string): string {
  const bytes = Buffer.from(value, 'latin1');
  if (!isUtf8(bytes)) throw new Error('a header that names a user is not UTF-8');
  return bytes.toString('utf8');
}

/** Kept as long as the exchange they are about. */
const notes = new WeakMap<Credentials, Map<string, string>>();

/**
 * Leaves an annotation for the audit log, which begins only once it is known who asks: a credential
 * of a kind that should not be used any more, say.
 */
export function noteForAudit(
  credentials: Credentials,
  note: { readonly key: string; readonly value: string },
): void {
  const entries = notes.get(credentials) ?? new Map<string, string>();
  notes.set(credentials, entries.set(note.key, note.value));
}

/** Kept as long as the exchange they are about. */
const warnings = new WeakMap<Credentials, string[]>();

/** Leaves a warning for whoever shows these credentials, which the answer carries. */
export function warnRequester(credentials: Credentials, text: string): void {
  const texts = warnings.get(credentials);
  if (texts === undefined) warnings.set(credentials, [text]);
  else texts.push(text);
}

/** What authenticators have warned of. */
export function authenticationWarnings(credentials: Credentials): readonly string[] {
  return warnings.get(credentials) ?? [];
}

/** What authenticators have noted of an exchange. */
export function auditNotesOf(credentials: Credentials): ReadonlyMap<string, string> | undefined {
  return notes.get(credentials);
}

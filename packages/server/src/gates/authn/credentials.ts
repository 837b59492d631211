import { isUtf8 } from 'node:buffer';
import { createHash, timingSafeEqual } from 'node:crypto';
import type { Exchange } from '@wheelhouse/machinery';
import type { Credentials } from './contract.ts';

/**
 * The bearer token of an exchange; undefined if there is none. The scheme is case-insensitive and
 * followed by one space; an empty token (two spaces) is no credential, and text after the token is
 * ignored.
 */
export function bearerToken(exchange: Pick<Exchange, 'header'>): string | undefined {
  const header = exchange.header('authorization');
  return header === undefined ? undefined : parseBearer(header);
}

/** The token of an `Authorization` header's value; see `bearerToken`. */
export function parseBearer(header: string): string | undefined {
  const trimmed = trimBlanks(header);
  const space = trimmed.indexOf(' ');
  if (space < 0 || trimmed.slice(0, space).toLowerCase() !== 'bearer') return undefined;
  const end = trimmed.indexOf(' ', space + 1);
  const token = end < 0 ? trimmed.slice(space + 1) : trimmed.slice(space + 1, end);
  return token === '' ? undefined : token;
}

/** Whether a second space after the scheme hides the token of an `Authorization` header. */
export function hasHiddenToken(exchange: Pick<Exchange, 'header'>): boolean {
  return /^[ \t]*bearer {2}[ \t]*[^ \t]/i.test(exchange.header('authorization') ?? '');
}

/** Trims spaces and tabs only; `trim` would also remove bytes of other encodings. */
function trimBlanks(text: string): string {
  let from = 0;
  let end = text.length;
  while (isBlank(text.charCodeAt(from))) from += 1;
  while (end > from && isBlank(text.charCodeAt(end - 1))) end -= 1;
  return text.slice(from, end);
}

const isBlank = (code: number) => code === 0x20 || code === 0x09;

/** Thrown by an authenticator for an unknown token; reveals nothing about the token. */
export class InvalidBearerToken extends Error {
  constructor() {
    super('invalid bearer token');
    this.name = 'InvalidBearerToken';
  }
}

/** Compares secrets in constant time. */
export function isSameSecret(left: string, right: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(left), digest(right));
}

/**
 * Decodes a header's value, which has one character per byte. Throws for bytes that are not UTF-8,
 * because replacement characters could make different user names equal.
 */
export function headerText(value: string): string {
  const bytes = Buffer.from(value, 'latin1');
  if (!isUtf8(bytes)) throw new Error('a header that names a user is not UTF-8');
  return bytes.toString('utf8');
}

/** Annotations by exchange. */
const auditAnnotations = new WeakMap<Credentials, Map<string, string>>();

/**
 * Adds an annotation to the audit record of an exchange, which is created after authentication; for
 * example, about a deprecated kind of credential.
 */
export function addAuditAnnotation(
  credentials: Credentials,
  note: { readonly key: string; readonly value: string },
): void {
  const entries = auditAnnotations.get(credentials) ?? new Map<string, string>();
  auditAnnotations.set(credentials, entries.set(note.key, note.value));
}

/** Warnings by exchange. */
const warnings = new WeakMap<Credentials, string[]>();

/** Adds a warning to the answer of an exchange. */
export function addWarning(credentials: Credentials, text: string): void {
  const texts = warnings.get(credentials);
  if (texts === undefined) warnings.set(credentials, [text]);
  else texts.push(text);
}

/** The warnings that authenticators added to an exchange. */
export function authenticationWarnings(credentials: Credentials): readonly string[] {
  return warnings.get(credentials) ?? [];
}

/** The audit annotations that authenticators added to an exchange. */
export function auditAnnotationsOf(
  credentials: Credentials,
): ReadonlyMap<string, string> | undefined {
  return auditAnnotations.get(credentials);
}

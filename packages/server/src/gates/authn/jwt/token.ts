import { type JsonObject, member } from '@wheelhouse/machinery';
import { readCompact } from './compact.ts';

/**
 * A token that is not good. The message is for a log and for who asked about the token, so it holds
 * nothing out of it.
 */
export class JwtError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'JwtError';
  }
}

/** A token that has the form of a JSON web token; nothing of it is proved. */
export interface UnverifiedToken {
  readonly text: string;
  readonly algorithm: string;
  readonly keyId: string;
  readonly claims: JsonObject;
  /** Empty when there is none. */
  readonly issuer: string;
}

/** What is longer is no token of a provider. */
export const tokenLengthMax = 64 * 1024;

/** Reads a token in the compact form; undefined for what is none. */
export function readToken(text: string): UnverifiedToken | undefined {
  const token = readCompact(text, { lengthMax: tokenLengthMax });
  if (token === undefined) return undefined;
  const { header, claims } = token;
  const issuer = textAt(claims, 'iss');
  return {
    text,
    algorithm: textAt(header, 'alg'),
    keyId: textAt(header, 'kid'),
    claims,
    issuer: issuer === 'accounts.google.com' ? `https://${issuer}` : issuer,
  };
}

function textAt(object: JsonObject, name: string): string {
  const value = member(object, name);
  return typeof value === 'string' ? value : '';
}

const notBeforeLeewayMs = 60_000;

/** Judges when and for whom a token is good. Throws JwtError. @returns when it expires, in ms */
export function checkClaims(
  claims: JsonObject,
  expected: { readonly audiences: readonly string[]; readonly nowMs: number },
): number {
  const { audiences, nowMs } = expected;
  const audience = member(claims, 'aud');
  const named = Array.isArray(audience) ? audience : [audience];
  if (!named.some((one) => typeof one === 'string' && audiences.includes(one))) {
    const list = audiences.map((one) => JSON.stringify(one)).join(' ');
    const wanted = audiences.length === 1 ? list : `in [${list}]`;
    throw new JwtError(`oidc: verify token: oidc: expected audience ${wanted}`);
  }
  const expiresMs = timeAt(claims, 'exp');
  if (expiresMs === undefined || expiresMs < nowMs) {
    throw new JwtError('oidc: verify token: oidc: token is expired');
  }
  const notBeforeMs = timeAt(claims, 'nbf');
  if (notBeforeMs !== undefined && nowMs + notBeforeLeewayMs < notBeforeMs) {
    throw new JwtError('oidc: verify token: oidc: current time before the nbf (not before) time');
  }
  return expiresMs;
}

/** Seconds since the epoch, as a number or as upstream also reads them, a text. */
function timeAt(claims: JsonObject, name: string): number | undefined {
  const value = member(claims, name);
  const isTime =
    typeof value === 'number' ||
    typeof value === 'bigint' ||
    (typeof value === 'string' && /^-?\d{1,15}(\.\d{1,9})?$/.test(value));
  if (isTime) return Number(value) * 1000;
  if (value === undefined || value === null) return undefined;
  throw new JwtError(`oidc: verify token: oidc: failed to unmarshal claims: ${name} is no time`);
}

import { decodeJson, JsonError, structType, textType } from '@wheelhouse/codec';
import { isObject, type JsonObject, member, textOf } from '@wheelhouse/machinery';
import { DecodeError, decodeTyped, FoundPaths, type Schema } from '@wheelhouse/schema';

/** A parsed but unverified JSON web token in compact form. */
interface CompactToken {
  readonly header: JsonObject;
  readonly claims: JsonObject;
  /** The signed text. */
  readonly signed: string;
  readonly signature: Buffer;
}

const limits = { depthMax: 64, valuesMax: 20_000 };

/**
 * Parses a token in compact form, in its only encoding (TRUST-5): three parts in base64url without
 * padding, with zero unused bits, two of them objects without duplicate members. Undefined for
 * everything else, and for a header that requires unsupported extensions (RFC 7515 `crit`, RFC
 * 7797).
 */
export function readCompact(
  text: string,
  { lengthMax }: { readonly lengthMax: number },
): CompactToken | undefined {
  if (text.length > lengthMax) return undefined;
  const [head, body, tail, ...more] = text.split('.', 4);
  if (head === undefined || body === undefined || tail === undefined || more.length > 0) {
    return undefined;
  }
  const header = decodeObject(head);
  const claims = header && decodeObject(body);
  const signature = claims && decodeBase64url(tail);
  if (header === undefined || claims === undefined || signature === undefined) return undefined;
  if (Object.hasOwn(header, 'crit') || Object.hasOwn(header, 'b64')) return undefined;
  return { header, claims, signed: `${head}.${body}`, signature };
}

/** Decodes canonical base64url; undefined for any other text. */
export function decodeBase64url(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url');
  return text !== '' && bytes.toString('base64url') === text ? bytes : undefined;
}

function decodeObject(part: string): JsonObject | undefined {
  const bytes = decodeBase64url(part);
  if (bytes === undefined) return undefined;
  try {
    const { value, duplicates } = decodeJson(bytes, limits);
    return isObject(value) && duplicates.length === 0 ? value : undefined;
  } catch (error) {
    if (error instanceof JsonError) return undefined;
    throw error;
  }
}

/**
 * An invalid token. The message is for the log and for token reviews, so it contains no part of the
 * token.
 */
export class JwtError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'JwtError';
  }
}

/** A parsed but unverified JSON web token with its standard claims. */
export interface UnverifiedToken {
  readonly text: string;
  readonly algorithm: string;
  readonly keyId: string;
  readonly claims: JsonObject;
  /** Empty if absent. */
  readonly issuer: string;
}

/** Longest accepted token. */
export const tokenLengthMax = 64 * 1024;

/** Parses a token in compact form; undefined for other text. */
export function readToken(text: string): UnverifiedToken | undefined {
  const token = readCompact(text, { lengthMax: tokenLengthMax });
  if (token === undefined) return undefined;
  const { header, claims } = token;
  const issuer = textOf(member(claims, 'iss'));
  return {
    text,
    algorithm: textOf(member(header, 'alg')),
    keyId: textOf(member(header, 'kid')),
    claims,
    issuer: issuer === 'accounts.google.com' ? `https://${issuer}` : issuer,
  };
}

const notBeforeLeewayMs = 60_000;

/**
 * Checks the audience, the validity period, and the types of the standard claims of a token, and
 * returns its expiry in milliseconds since the epoch. Throws JwtError.
 */
export function checkClaims(
  claims: JsonObject,
  expected: { readonly audiences: readonly string[]; readonly nowMs: number },
): number {
  const { audiences, nowMs } = expected;
  const audience = member(claims, 'aud');
  const tokenAudiences = Array.isArray(audience) ? audience : [audience];
  if (
    !tokenAudiences.some(
      (tokenAudience) => typeof tokenAudience === 'string' && audiences.includes(tokenAudience),
    )
  ) {
    const list = audiences.map((expectedAudience) => JSON.stringify(expectedAudience)).join(' ');
    const expectedText = audiences.length === 1 ? list : `in [${list}]`;
    throw new JwtError(`oidc: verify token: oidc: expected audience ${expectedText}`);
  }
  checkTypes(claims, tokenAudiences);
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

const mapOf = (values: Schema): Schema => ({ type: 'object', additionalProperties: values });

/** Standard claims with values other than times, by name. */
const standardClaims = {
  sub: textType,
  nonce: textType,
  at_hash: textType,
  _claim_names: mapOf(textType),
  _claim_sources: mapOf(structType('claimSource', { endpoint: textType, access_token: textType })),
};

const decodeStandardClaims = decodeTyped(structType('idToken', standardClaims));

/** Throws JwtError for a standard claim of another type, which is malformed and thus untrusted. */
function checkTypes(claims: JsonObject, audiences: readonly unknown[]): void {
  const failed = (why: string) =>
    new JwtError(`oidc: verify token: oidc: failed to unmarshal claims: ${why}`);
  if (!audiences.every((audience) => typeof audience === 'string' || audience === null)) {
    throw failed('aud is neither a string nor a list of strings');
  }
  if (timeAt(claims, 'iat') === undefined && member(claims, 'iat') === null) {
    throw failed('iat is not a time');
  }
  const present: JsonObject = {};
  for (const name of Object.keys(standardClaims)) {
    const value = member(claims, name);
    if (value !== undefined) present[name] = value;
  }
  try {
    decodeStandardClaims(present, new FoundPaths());
  } catch (error) {
    if (error instanceof DecodeError) throw failed(error.message);
    throw error;
  }
}

/** Seconds since the epoch, as a number or, as kube-apiserver also accepts, a string. */
function timeAt(claims: JsonObject, name: string): number | undefined {
  const value = member(claims, name);
  const isTime =
    typeof value === 'number' ||
    typeof value === 'bigint' ||
    (typeof value === 'string' && /^-?\d{1,15}(\.\d{1,9})?$/.test(value));
  if (isTime) return Number(value) * 1000;
  if (value === undefined || value === null) return undefined;
  throw new JwtError(`oidc: verify token: oidc: failed to unmarshal claims: ${name} is not a time`);
}

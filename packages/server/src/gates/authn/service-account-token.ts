import {
  createHash,
  createPrivateKey,
  createPublicKey,
  type KeyObject,
  sign,
  verify,
} from 'node:crypto';
import { isObject, type JsonObject, randomUuid } from '@wheelhouse/machinery';
import { readCompact } from './jwt/token.ts';

/** The algorithms of service account tokens. */
type TokenAlgorithm = 'RS256' | 'ES256' | 'ES384' | 'ES512';

/**
 * A key of service account tokens, which are JSON web tokens (AUTHN-6). The key's type determines
 * the algorithm. The ID of one of this server's own keys is its digest, so that several can be in
 * use.
 */
export interface TokenKey {
  readonly id: string;
  readonly algorithm: TokenAlgorithm;
  readonly publicKey: KeyObject;
  /** It verifies tokens but is not published. */
  readonly published?: 'never';
}

/** The keys that verify tokens, which may change while the server runs. */
export interface TokenKeys {
  /** The current keys; a new array after each change. */
  current(): readonly TokenKey[];
  /**
   * Refreshes the keys if a token of one of these issuers names an unknown key; returns undefined
   * if no refresh is needed. Never rejects.
   */
  refreshFor?(token: string, issuers: readonly string[]): Promise<void> | undefined;
  /** Seconds for which readers may cache the keys. */
  maxAgeSeconds?(): number;
}

/** A key that also signs tokens. */
export interface SigningKey extends TokenKey {
  readonly privateKey: KeyObject;
}

/** Parses a PEM private key. Throws unless it is RSA, P-256, P-384, or P-521. */
export function readSigningKey(pem: string): SigningKey {
  const privateKey = createPrivateKey(pem);
  return { ...tokenKey(createPublicKey(privateKey)), privateKey };
}

/** Parses a PEM public or private key, or a certificate. Throws for an unsupported key. */
export function readVerificationKey(pem: string): TokenKey {
  return tokenKey(createPublicKey(pem));
}

function tokenKey(publicKey: KeyObject): TokenKey {
  const der = publicKey.export({ type: 'spki', format: 'der' });
  const id = createHash('sha256').update(der).digest('base64url');
  const algorithm = algorithmOf(publicKey);
  if (algorithm !== undefined) return { id, algorithm, publicKey };
  throw new Error('a service account key must be RSA or ECDSA P-256, P-384, or P-521');
}

const curves: Readonly<Record<string, TokenAlgorithm>> = {
  prime256v1: 'ES256',
  secp384r1: 'ES384',
  secp521r1: 'ES512',
};

/** The algorithm of tokens that a key signs; undefined if it cannot sign tokens. */
export function algorithmOf(key: KeyObject): TokenAlgorithm | undefined {
  if (key.asymmetricKeyType === 'rsa') return 'RS256';
  if (key.asymmetricKeyType !== 'ec') return undefined;
  return curves[key.asymmetricKeyDetails?.namedCurve ?? ''];
}

/** The account of a token, or an object that it is bound to. */
interface ObjectName {
  readonly name: string;
  readonly uid: string;
}

/** The claims of a token; times are in seconds since the epoch. */
export interface TokenClaims {
  readonly audiences: readonly string[];
  readonly issuer: string;
  readonly notBefore: number;
  readonly expires: number;
  readonly tokenId: string;
  readonly namespace: string;
  readonly serviceAccount: ObjectName;
  readonly pod: ObjectName | undefined;
  readonly secret: ObjectName | undefined;
  readonly node: ObjectName | undefined;
  /** When the client should have replaced the token, if it is valid for longer than requested. */
  readonly warnAfter?: number | undefined;
}

/**
 * The claims of a token in the form that is signed.
 * @param privateClaim the member that contains the private claims: the label domain
 */
export function tokenPayload(claims: TokenClaims, privateClaim: string): object {
  const { namespace, serviceAccount, pod, secret, node, warnAfter } = claims;
  const own = {
    namespace,
    serviceaccount: serviceAccount,
    pod,
    secret,
    node,
    warnafter: warnAfter,
  };
  return {
    aud: claims.audiences,
    exp: claims.expires,
    iat: claims.notBefore,
    iss: claims.issuer,
    ...(claims.tokenId === '' ? {} : { jti: claims.tokenId }),
    [privateClaim]: own,
    nbf: claims.notBefore,
    sub: `system:serviceaccount:${namespace}:${serviceAccount.name}`,
  };
}

/** Signs any claims as a JSON web token. */
export function signClaims(key: SigningKey, payload: object): string {
  const { algorithm, id, privateKey } = key;
  const signed = `${encode({ alg: algorithm, kid: id })}.${encode(payload)}`;
  const signature = sign(digests[algorithm], Buffer.from(signed), signingOptions(privateKey));
  return `${signed}.${signature.toString('base64url')}`;
}

const digests: Readonly<Record<TokenAlgorithm, string>> = {
  RS256: 'sha256',
  ES256: 'sha256',
  ES384: 'sha384',
  ES512: 'sha512',
};

/** Generates a unique token ID (`jti`). */
export const newTokenId = (): string => randomUuid();

const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url');

/** JWTs use the raw form of ECDSA signatures: the two numbers concatenated. */
function signingOptions(key: KeyObject) {
  return key.asymmetricKeyType === 'ec' ? { key, dsaEncoding: 'ieee-p1363' as const } : { key };
}

/** An invalid token of this server's own issuer. */
export class TokenError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'TokenError';
  }
}

/**
 * How far the clocks of servers may differ: a token is valid this long before and after the times
 * in its claims.
 */
export const leewaySeconds = 60;

/** Longest accepted token. */
export const tokenLengthMax = 16 * 1024;

/**
 * Returns the claims of a token from one of the issuers, signed by one of the keys; undefined for a
 * token of another issuer, which another authenticator may accept. Throws TokenError for an invalid
 * token.
 */
export function verifyToken(
  token: string,
  options: {
    readonly keys: readonly TokenKey[];
    readonly issuers: readonly string[];
    readonly privateClaim: string;
    readonly nowSeconds: number;
  },
): TokenClaims | undefined {
  const signed = signedClaims(token, options);
  return signed === undefined
    ? undefined
    : validateClaims(signed.payload, { ...options, ...signed });
}

/**
 * Returns the claims of a token after verifying only its issuer and signature; undefined for other
 * issuers. Throws TokenError if no key signed it.
 */
export function signedClaims(
  token: string,
  options: { readonly keys: readonly TokenKey[]; readonly issuers: readonly string[] },
): { readonly payload: JsonObject; readonly issuer: string } | undefined {
  const read = readCompact(token, { lengthMax: tokenLengthMax });
  if (read === undefined) return undefined;
  const { header, claims: payload, signed, signature } = read;
  const issuer = payload['iss'];
  if (typeof issuer !== 'string' || !options.issuers.includes(issuer)) return undefined;
  const isSigned = candidateKeys(options.keys, header).some((key) =>
    verify(digests[key.algorithm], Buffer.from(signed), signingOptions(key.publicKey), signature),
  );
  if (!isSigned) throw new TokenError('the token is not signed by a key of this server');
  return { payload, issuer };
}

/**
 * The key that a header names, or all keys of its algorithm; keys, not headers, fix the algorithm.
 */
function candidateKeys(keys: readonly TokenKey[], header: JsonObject): readonly TokenKey[] {
  const ofAlgorithm = keys.filter((key) => key.algorithm === header['alg']);
  const named = ofAlgorithm.filter((key) => key.id === header['kid']);
  return named.length > 0 ? named : header['kid'] === undefined ? ofAlgorithm : [];
}

function validateClaims(
  payload: JsonObject,
  options: { issuer: string; privateClaim: string; nowSeconds: number },
): TokenClaims {
  const own = objectAt(payload, options.privateClaim);
  const serviceAccount = nameAt(own, 'serviceaccount');
  const namespace = own?.['namespace'];
  const expires = payload['exp'];
  const warnAfter = own?.['warnafter'];
  const notBefore = payload['nbf'] ?? 0;
  if (serviceAccount === undefined || typeof namespace !== 'string') {
    throw new TokenError('the token names no service account');
  }
  if (typeof expires !== 'number' || typeof notBefore !== 'number') {
    throw new TokenError('the token has no validity period');
  }
  if (options.nowSeconds > expires + leewaySeconds) {
    throw new TokenError('service account token has expired');
  }
  if (options.nowSeconds < notBefore - leewaySeconds) {
    throw new TokenError('service account token is not valid yet');
  }
  const audience = payload['aud'];
  const audiences = (Array.isArray(audience) ? audience : [audience]).filter(
    (item): item is string => typeof item === 'string',
  );
  return {
    audiences,
    issuer: options.issuer,
    notBefore,
    expires,
    tokenId: String(payload['jti'] ?? ''),
    namespace,
    serviceAccount,
    pod: nameAt(own, 'pod'),
    secret: nameAt(own, 'secret'),
    node: nameAt(own, 'node'),
    warnAfter: typeof warnAfter === 'number' && warnAfter !== 0 ? warnAfter : undefined,
  };
}

function objectAt(parent: JsonObject | undefined, name: string): JsonObject | undefined {
  const value = parent?.[name];
  return isObject(value) ? value : undefined;
}

function nameAt(parent: JsonObject | undefined, name: string): ObjectName | undefined {
  const value = objectAt(parent, name);
  if (value === undefined || typeof value['name'] !== 'string') return undefined;
  return { name: value['name'], uid: String(value['uid'] ?? '') };
}

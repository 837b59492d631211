import {
  createHash,
  createPrivateKey,
  createPublicKey,
  type KeyObject,
  sign,
  verify,
} from 'node:crypto';
import { type JsonObject, randomUuid } from '@wheelhouse/machinery';
import { readCompact } from './jwt/compact.ts';

/**
 * Service account tokens as JSON web tokens (AUTHN-6): RS256 or ES256 by the key's kind, the key
 * named by its digest so that several can be in use.
 */
export interface TokenKey {
  readonly id: string;
  readonly algorithm: 'RS256' | 'ES256';
  readonly publicKey: KeyObject;
}

export interface SigningKey extends TokenKey {
  readonly privateKey: KeyObject;
}

/** Reads a PEM private key; throws for anything but RSA and P-256. */
export function readSigningKey(pem: string): SigningKey {
  const privateKey = createPrivateKey(pem);
  return { ...tokenKey(createPublicKey(privateKey)), privateKey };
}

/** Reads a PEM public or private key, or a certificate. */
export function readVerificationKey(pem: string): TokenKey {
  return tokenKey(createPublicKey(pem));
}

function tokenKey(publicKey: KeyObject): TokenKey {
  const der = publicKey.export({ type: 'spki', format: 'der' });
  const id = createHash('sha256').update(der).digest('base64url');
  if (publicKey.asymmetricKeyType === 'rsa') return { id, algorithm: 'RS256', publicKey };
  const { namedCurve } = publicKey.asymmetricKeyDetails ?? {};
  if (publicKey.asymmetricKeyType === 'ec' && namedCurve === 'prime256v1') {
    return { id, algorithm: 'ES256', publicKey };
  }
  throw new Error('a service account key must be RSA or ECDSA P-256');
}

/** An object a token is bound to, or its account. */
export interface ObjectName {
  readonly name: string;
  readonly uid: string;
}

/** What a token says; times in seconds since the epoch. */
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
  /** From when on it should have been replaced, where it is good for longer than was asked. */
  readonly warnAfter?: number | undefined;
}

/** Makes a token. `privateClaim` is the member its own claims stand under (the label domain). */
export function signToken(
  key: SigningKey,
  options: { claims: TokenClaims; privateClaim: string },
): string {
  const { claims, privateClaim } = options;
  const { namespace, serviceAccount, pod, secret, node, warnAfter } = claims;
  const own = {
    namespace,
    serviceaccount: serviceAccount,
    pod,
    secret,
    node,
    warnafter: warnAfter,
  };
  return signClaims(key, {
    aud: claims.audiences,
    exp: claims.expires,
    iat: claims.notBefore,
    iss: claims.issuer,
    jti: claims.tokenId,
    [privateClaim]: own,
    nbf: claims.notBefore,
    sub: `system:serviceaccount:${namespace}:${serviceAccount.name}`,
  });
}

/** Makes a JSON web token of any claims. */
export function signClaims(key: SigningKey, payload: object): string {
  const header = { alg: key.algorithm, kid: key.id };
  const signed = `${encode(header)}.${encode(payload)}`;
  const signature = sign('sha256', Buffer.from(signed), signingOptions(key.privateKey));
  return `${signed}.${signature.toString('base64url')}`;
}

export const newTokenId = (): string => randomUuid();

const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url');

/** ECDSA signatures in a JWT are the two numbers side by side. */
function signingOptions(key: KeyObject) {
  return key.asymmetricKeyType === 'ec' ? { key, dsaEncoding: 'ieee-p1363' as const } : { key };
}

/** A token that is ours to judge and does not hold. */
export class TokenError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'TokenError';
  }
}

const tokenLengthMax = 16 * 1024;

/**
 * Reads a token's claims if its issuer is ours and a key of ours signed it. Undefined: not a token
 * of this issuer, some other authenticator's business. Throws TokenError: ours, and bad.
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
    : checkedClaims(signed.payload, { ...options, ...signed });
}

/**
 * A token's claims, unjudged but for issuer and signature. Undefined: not of these issuers. Throws
 * TokenError when no key has signed it.
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
  const isSigned = candidates(options.keys, header).some((key) =>
    verify('sha256', Buffer.from(signed), signingOptions(key.publicKey), signature),
  );
  if (!isSigned) throw new TokenError('the token is signed by no key of this server');
  return { payload, issuer };
}

/** The key a header names, or every key of its algorithm; never an algorithm the header chooses. */
function candidates(keys: readonly TokenKey[], header: JsonObject): readonly TokenKey[] {
  const fitting = keys.filter((key) => key.algorithm === header['alg']);
  const named = fitting.filter((key) => key.id === header['kid']);
  return named.length > 0 ? named : header['kid'] === undefined ? fitting : [];
}

function checkedClaims(
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
    throw new TokenError('the token has no times');
  }
  if (options.nowSeconds > expires) throw new TokenError('service account token has expired');
  if (options.nowSeconds < notBefore)
    throw new TokenError('service account token is not valid yet');
  const audience = payload['aud'];
  const audiences = (Array.isArray(audience) ? audience : [audience]).filter(
    (one): one is string => typeof one === 'string',
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
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isObject ? (value as JsonObject) : undefined;
}

function nameAt(parent: JsonObject | undefined, name: string): ObjectName | undefined {
  const value = objectAt(parent, name);
  if (value === undefined || typeof value['name'] !== 'string') return undefined;
  return { name: value['name'], uid: String(value['uid'] ?? '') };
}

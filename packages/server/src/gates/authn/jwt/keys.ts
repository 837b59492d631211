import { isObject, type JsonObject, member } from '@wheelhouse/machinery';
import { type CryptoKey, compactVerify, importJWK, type JWK } from 'jose';
import type { UnverifiedToken } from './token.ts';

/** Supported signing algorithms, each with its type of key. */
const keyKinds: Readonly<Record<string, string>> = {
  RS256: 'RSA',
  RS384: 'RSA',
  RS512: 'RSA',
  ES256: 'EC P-256',
  ES384: 'EC P-384',
  ES512: 'EC P-521',
  PS256: 'RSA',
  PS384: 'RSA',
  PS512: 'RSA',
};

/** The supported algorithms, sorted by name. */
export const signingAlgorithms: readonly string[] = Object.keys(keyKinds).sort();

/** A provider's public key. */
export interface ProviderKey {
  readonly keyId: string;
  /** The key for an algorithm, created once; undefined if it does not fit. */
  forAlgorithm(algorithm: string): Promise<CryptoKey> | undefined;
}

const keysMax = 1000;

/** Parses a JSON web key set; keys of unsupported types are omitted. Throws for malformed text. */
export function readKeySet(text: string): readonly ProviderKey[] {
  const set: unknown = JSON.parse(text);
  const keys = isObject(set) ? member(set, 'keys') : undefined;
  if (!Array.isArray(keys)) throw new Error('the key set has no list of keys');
  return keys.slice(0, keysMax).flatMap((key) => (isObject(key) ? keyOf(key) : []));
}

function keyOf(jwk: JsonObject): ProviderKey[] {
  const { kty, crv, n, e, x, y, use, alg, kid } = jwk;
  const kind = kty === 'EC' ? `EC ${String(crv)}` : String(kty);
  if (!Object.values(keyKinds).includes(kind) || (use !== undefined && use !== 'sig')) return [];
  // Only public members: a key set with private parts must not become a signing key.
  const publicPart = (kty === 'EC' ? { kty, crv, x, y } : { kty, n, e }) as JWK;
  const made = new Map<string, Promise<CryptoKey>>();
  const forAlgorithm = (algorithm: string): Promise<CryptoKey> | undefined => {
    if (keyKinds[algorithm] !== kind || (alg !== undefined && alg !== algorithm)) return undefined;
    const cached = made.get(algorithm);
    if (cached !== undefined) return cached;
    const imported = importJWK(publicPart, algorithm) as Promise<CryptoKey>;
    made.set(algorithm, imported);
    return imported;
  };
  return [{ keyId: typeof kid === 'string' ? kid : '', forAlgorithm }];
}

/** Most keys tried for a token that names no key. */
const triesMax = 16;

/**
 * Whether one of the keys signed a token. A token that names a key is verified with that key only.
 * The caller has already checked the token's algorithm.
 */
export async function isSigned(
  token: UnverifiedToken,
  keys: readonly ProviderKey[],
): Promise<boolean> {
  const { algorithm, keyId, text } = token;
  let tries = 0;
  for (const key of keys) {
    if (keyId !== '' && key.keyId !== keyId) continue;
    const fitting = key.forAlgorithm(algorithm);
    if (fitting === undefined) continue;
    tries += 1;
    if (tries > triesMax) return false;
    if (await isSignedBy(text, fitting, algorithm)) return true;
  }
  return false;
}

async function isSignedBy(
  text: string,
  key: Promise<CryptoKey>,
  algorithm: string,
): Promise<boolean> {
  try {
    await compactVerify(text, await key, { algorithms: [algorithm] });
    return true;
  } catch {
    // Any error in key, header, or signature means that the token is not verified.
    return false;
  }
}

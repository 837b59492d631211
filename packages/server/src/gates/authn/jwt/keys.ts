import { isObject, type JsonObject, member } from '@wheelhouse/machinery';
import { type CryptoKey, compactVerify, importJWK, type JWK } from 'jose';
import type { UnverifiedToken } from './token.ts';

/** Signing algorithms that may be accepted, with the kind of key each takes. */
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

/** Those algorithms, in order of names. */
export const signingAlgorithms: readonly string[] = Object.keys(keyKinds).sort();

/** A public key of a provider. */
export interface ProviderKey {
  readonly keyId: string;
  /** The key for an algorithm, made once; undefined when it is not for it. */
  forAlgorithm(algorithm: string): Promise<CryptoKey> | undefined;
}

const keysMax = 1000;

/** Reads a JSON web key set. Throws when the text is none; keys of other kinds are left out. */
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
  // Only what is public: a provider that shows private parts must not turn verifying into signing.
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

/** Keys tried for one token: only one that names no key has several. */
const triesMax = 16;

/**
 * Whether one of the keys has signed a token. A token that names a key is tried with that one only.
 * The token's algorithm must have been found acceptable before.
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
    // Whatever is wrong with key, header or signature, the token is not proved.
    return false;
  }
}

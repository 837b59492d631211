import { answerLimits, decodeJsonInSlices, JsonError } from '@wheelhouse/codec';
import {
  background,
  errorText,
  isObject,
  type JsonObject,
  type JsonValue,
  type Logger,
  member,
  type Timer,
} from '@wheelhouse/machinery';
import { type CryptoKey, compactVerify, importJWK, type JWK } from 'jose';
import { FetchError, fetchText, httpsUrl, type ProviderAccess } from './fetch.ts';
import { JwtError, type UnverifiedToken } from './token.ts';

const wellKnownPath = '/.well-known/openid-configuration';
const retryMs = 10_000;
/**
 * A token with an unknown key causes an immediate fetch, because the key may be new. Clients can
 * invent such tokens, so after a burst there is at most one fetch per interval.
 */
const refetches = { burst: 3, intervalMs: 5000 };
/**
 * Milliseconds between refreshes of the keys: the default, and bounds on the provider's max-age.
 */
const refreshMs = { usual: 300_000, min: 60_000, max: 3_600_000 };
/**
 * Maximum number of tokens that wait for a fetch, so that a hanging provider does not accumulate
 * requests.
 */
const waitingMax = 100;

/** The keys of a provider. */
interface KeySet {
  readonly keysUrl: string;
  readonly keys: readonly ProviderKey[];
  /** Monotonic milliseconds at which the keys must be refreshed. */
  readonly freshUntil: number;
}

/**
 * An OpenID provider: discovers the location of its keys in the background, with retries (AUTHN-7),
 * fetches them for the first token, follows their rotation, and verifies signatures. States:
 *
 * | state       | `#keySet` | a token                                                           |
 * |-------------|-----------|-------------------------------------------------------------------|
 * | discovering | absent    | is rejected at once                                               |
 * | ready       | present   | is verified with the keys, which are refetched if none matches    |
 * | stopped     | either    | as before, but keys are no longer fetched                         |
 *
 * Known keys stay valid while the provider cannot be reached.
 */
export class Provider {
  readonly issuer: string;
  readonly #options: {
    readonly issuer: string;
    readonly discoveryUrl: string | undefined;
    readonly access: ProviderAccess;
    readonly logger: Logger;
  };
  readonly #whenReady: Promise<void>;
  #isReady: () => void = () => {};
  #keySet: KeySet | undefined;
  #fetching: Promise<void> | undefined;
  #fetchedAt = Number.NEGATIVE_INFINITY;
  /** Monotonic milliseconds at which a full burst of fetches is allowed again. */
  #burstRestoredAt = Number.NEGATIVE_INFINITY;
  #waiting = 0;
  #retry: Timer | undefined;
  #stopped = false;

  /** Starts discovery. @param discoveryUrl undefined: derived from the issuer */
  constructor(options: {
    readonly issuer: string;
    readonly discoveryUrl: string | undefined;
    readonly access: ProviderAccess;
    readonly logger: Logger;
  }) {
    this.#options = options;
    this.issuer = options.issuer;
    this.#whenReady = new Promise((resolve) => {
      this.#isReady = resolve;
    });
    background({ where: 'authn' }, this.#discoverWithRetries());
  }

  get ready(): boolean {
    return this.#keySet !== undefined;
  }

  /** Whether the provider is discovered within `timeoutMs`. */
  readyWithin(timeoutMs: number): Promise<boolean> {
    if (this.ready) return Promise.resolve(true);
    const { clock } = this.#options.access;
    return new Promise((resolve) => {
      const timer = clock.after(timeoutMs, () => resolve(false));
      const done = this.#whenReady.then(() => {
        timer.stop();
        resolve(true);
      });
      background({ where: 'authn' }, done);
    });
  }

  stop(): void {
    this.#stopped = true;
    this.#retry?.stop();
  }

  /** Rejects with JwtError unless a key of the provider signed the token. */
  async verify(token: UnverifiedToken): Promise<void> {
    const keySet = this.#keySet;
    if (keySet === undefined) throw new JwtError('oidc: authenticator not initialized');
    if (await isSigned(token, keySet.keys)) {
      if (this.#now() > keySet.freshUntil) {
        background({ where: 'authn' }, this.#fetchKeys(refreshMs.min));
      }
      return;
    }
    await this.#wait(this.#refetchKeys());
    const fetched = this.#keySet?.keys;
    if (fetched === undefined || fetched === keySet.keys || !(await isSigned(token, fetched))) {
      throw new JwtError('oidc: verify token: failed to verify signature');
    }
  }

  async #wait(fetching: Promise<void>): Promise<void> {
    if (this.#waiting >= waitingMax) throw new JwtError('oidc: too many tokens wait for keys');
    this.#waiting += 1;
    try {
      await fetching;
    } finally {
      this.#waiting -= 1;
    }
  }

  #now(): number {
    return this.#options.access.clock.monotonic();
  }

  async #discoverWithRetries(): Promise<void> {
    try {
      const keysUrl = await this.#discover();
      this.#keySet = { keysUrl, keys: [], freshUntil: this.#now() };
      this.#isReady();
    } catch (error) {
      this.#log('initializing plugin', error);
      if (this.#stopped) return;
      const { clock } = this.#options.access;
      this.#retry = clock.after(retryMs, () => this.#discoverWithRetries());
    }
  }

  /** The URL of the keys, from the provider's discovery document. */
  async #discover(): Promise<string> {
    const { issuer, discoveryUrl, access } = this.#options;
    const address = discoveryUrl ?? issuer.replace(/\/$/, '') + wellKnownPath;
    const { status, text } = await fetchText(address, access);
    if (status !== 200) throw new FetchError(`discovery was answered with status ${status}`);
    const document = await documentIn(text, access);
    if (!isObject(document)) throw new FetchError('discovery was not answered with an object');
    const named = member(document, 'issuer');
    if (named !== issuer) {
      const got = typeof named === 'string' ? JSON.stringify(named.slice(0, 200)) : 'none';
      throw new FetchError(
        `issuer did not match the issuer returned by provider, expected "${issuer}" got ${got}`,
      );
    }
    const keysUrl = member(document, 'jwks_uri');
    if (typeof keysUrl !== 'string') throw new FetchError('discovery names no jwks_uri');
    return httpsUrl(keysUrl).href;
  }

  /** Fetches the keys for a token that the current keys do not verify; rate-limited. */
  #refetchKeys(): Promise<void> {
    if (this.#fetching !== undefined) return this.#fetching;
    const { burst, intervalMs } = refetches;
    const now = this.#now();
    const restoredAt = Math.max(this.#burstRestoredAt, now) + intervalMs;
    if (restoredAt - now > burst * intervalMs) return Promise.resolve();
    this.#burstRestoredAt = restoredAt;
    return this.#fetchKeys(0);
  }

  /** Refreshes the keys; concurrent callers share one fetch, and fetches are rate-limited. */
  #fetchKeys(spacingMs: number): Promise<void> {
    if (this.#fetching !== undefined) return this.#fetching;
    const keysUrl = this.#keySet?.keysUrl;
    const tooSoon = this.#now() - this.#fetchedAt < spacingMs;
    if (keysUrl === undefined || tooSoon || this.#stopped) return Promise.resolve();
    this.#fetching = this.#loadKeys(keysUrl)
      .catch((error: unknown) => this.#log('fetching keys', error))
      .finally(() => {
        this.#fetching = undefined;
      });
    return this.#fetching;
  }

  async #loadKeys(keysUrl: string): Promise<void> {
    this.#fetchedAt = this.#now();
    const { status, text, maxAgeMs } = await fetchText(keysUrl, this.#options.access);
    if (status !== 200) throw new FetchError(`keys were answered with status ${status}`);
    const keys = keysOf(await documentIn(text, this.#options.access));
    const kept = Math.min(Math.max(maxAgeMs ?? refreshMs.usual, refreshMs.min), refreshMs.max);
    this.#fetchedAt = this.#now();
    this.#keySet = { keysUrl, keys, freshUntil: this.#now() + kept };
  }

  #log(what: string, error: unknown): void {
    if (this.#stopped) return;
    const { logger, issuer } = this.#options;
    // The parser's message is dropped, because it quotes the document.
    const why = error instanceof JsonError ? 'the document is not JSON' : errorText(error);
    logger.error(`oidc authenticator: ${what}`, { issuer, error: why });
  }
}

/** Decodes a document of a provider in slices (TRUST-2). Rejects with JsonError. */
async function documentIn(text: string, { clock }: ProviderAccess): Promise<JsonValue> {
  return (await decodeJsonInSlices(Buffer.from(text), { clock, limits: answerLimits })).value;
}

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
interface ProviderKey {
  readonly keyId: string;
  /** The key for an algorithm, created once; undefined if it does not fit. */
  forAlgorithm(algorithm: string): Promise<CryptoKey> | undefined;
}

const keysMax = 1000;

/** The keys of a JSON Web Key Set without those of unsupported types. Throws for malformed sets. */
export function keysOf(set: JsonValue): readonly ProviderKey[] {
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
  const keyByAlgorithm = new Map<string, Promise<CryptoKey>>();
  const forAlgorithm = (algorithm: string): Promise<CryptoKey> | undefined => {
    if (keyKinds[algorithm] !== kind || (alg !== undefined && alg !== algorithm)) return undefined;
    const cached = keyByAlgorithm.get(algorithm);
    if (cached !== undefined) return cached;
    const imported = importJWK(publicPart, algorithm) as Promise<CryptoKey>;
    keyByAlgorithm.set(algorithm, imported);
    return imported;
  };
  return [{ keyId: typeof kid === 'string' ? kid : '', forAlgorithm }];
}

/** Maximum number of keys tried for a token that names no key. */
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
    const imported = key.forAlgorithm(algorithm);
    if (imported === undefined) continue;
    tries += 1;
    if (tries > triesMax) return false;
    if (await isSignedBy(text, imported, algorithm)) return true;
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

import {
  background,
  errorText,
  isObject,
  type Logger,
  member,
  type Timer,
} from '@wheelhouse/machinery';
import { FetchError, fetchText, httpsUrl, type ProviderAccess } from './fetch.ts';
import { isSigned, type ProviderKey, readKeySet } from './keys.ts';
import { JwtError, type UnverifiedToken } from './token.ts';

const wellKnownPath = '/.well-known/openid-configuration';
const retryMs = 10_000;
/**
 * Tokens with unknown keys cause a fetch at once, as a rotated key does, but anybody can make up
 * such tokens: after a burst there is one fetch in each interval.
 */
const refetches = { burst: 3, intervalMs: 5000 };
/**
 * How long keys are used without a look whether they still stand, when the provider does not say.
 */
const keptMs = { usual: 300_000, min: 60_000, max: 3_600_000 };
/** Tokens that may wait for a fetch at once; a provider that hangs must not gather requests. */
const waitingMax = 100;

/** What was learnt of a provider. */
interface KeySet {
  readonly keysUrl: string;
  readonly keys: readonly ProviderKey[];
  /** Monotonic time at which to look again whether the keys still stand. */
  readonly freshUntil: number;
}

/**
 * An OpenID provider: discovers where its keys are, in the background and again until it succeeds
 * (AUTHN-7), fetches them for the first token, follows their rotation, and tells which tokens they
 * have signed. States:
 *
 * | state   | `#keySet` | a token                                                         |
 * |---------|-----------|-----------------------------------------------------------------|
 * | seeking | absent    | is refused at once                                              |
 * | ready   | present   | is judged by the keys; one that they do not prove has them fetched |
 * | stopped | either    | as before; nothing is fetched any more                          |
 *
 * Keys that were learnt stay while the provider cannot be reached.
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
  /** Monotonic time at which all fetches of a burst are allowed again. */
  #burstRestoredAt = Number.NEGATIVE_INFINITY;
  #waiting = 0;
  #retry: Timer | undefined;
  #stopped = false;

  /** Begins to seek the provider. `discoveryUrl` undefined: by the issuer's address. */
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
    background({ where: 'authn' }, this.#seek());
  }

  get ready(): boolean {
    return this.#keySet !== undefined;
  }

  /** Whether the provider is found before `timeoutMs` have passed. */
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

  /** Rejects with JwtError unless a key of the provider has signed the token. */
  async verify(token: UnverifiedToken): Promise<void> {
    const keySet = this.#keySet;
    if (keySet === undefined) throw new JwtError('oidc: authenticator not initialized');
    if (await isSigned(token, keySet.keys)) {
      if (this.#now() > keySet.freshUntil) {
        background({ where: 'authn' }, this.#fetchKeys(keptMs.min));
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

  async #seek(): Promise<void> {
    try {
      const keysUrl = await this.#discover();
      this.#keySet = { keysUrl, keys: [], freshUntil: this.#now() };
      this.#isReady();
    } catch (error) {
      this.#log('initializing plugin', error);
      if (this.#stopped) return;
      const { clock } = this.#options.access;
      this.#retry = clock.after(retryMs, () => this.#seek());
    }
  }

  /** The address of the keys, from the provider's description of itself. */
  async #discover(): Promise<string> {
    const { issuer, discoveryUrl, access } = this.#options;
    const address = discoveryUrl ?? issuer.replace(/\/$/, '') + wellKnownPath;
    const { status, text } = await fetchText(address, access);
    if (status !== 200) throw new FetchError(`discovery was answered with status ${status}`);
    const document: unknown = JSON.parse(text);
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

  /** Fetches the keys for a token that they do not prove, within bounds. */
  #refetchKeys(): Promise<void> {
    if (this.#fetching !== undefined) return this.#fetching;
    const { burst, intervalMs } = refetches;
    const now = this.#now();
    const restoredAt = Math.max(this.#burstRestoredAt, now) + intervalMs;
    if (restoredAt - now > burst * intervalMs) return Promise.resolve();
    this.#burstRestoredAt = restoredAt;
    return this.#fetchKeys(0);
  }

  /** Fetches the keys again; one fetch for all who ask meanwhile, none too soon after the last. */
  #fetchKeys(spacingMs: number): Promise<void> {
    if (this.#fetching !== undefined) return this.#fetching;
    const keysUrl = this.#keySet?.keysUrl;
    const tooSoon = this.#now() - this.#fetchedAt < spacingMs;
    if (keysUrl === undefined || tooSoon || this.#stopped) return Promise.resolve();
    this.#fetching = this.#learn(keysUrl)
      .catch((error: unknown) => this.#log('fetching keys', error))
      .finally(() => {
        this.#fetching = undefined;
      });
    return this.#fetching;
  }

  async #learn(keysUrl: string): Promise<void> {
    this.#fetchedAt = this.#now();
    const { status, text, maxAgeMs } = await fetchText(keysUrl, this.#options.access);
    if (status !== 200) throw new FetchError(`keys were answered with status ${status}`);
    const keys = readKeySet(text);
    const kept = Math.min(Math.max(maxAgeMs ?? keptMs.usual, keptMs.min), keptMs.max);
    this.#fetchedAt = this.#now();
    this.#keySet = { keysUrl, keys, freshUntil: this.#now() + kept };
  }

  #log(what: string, error: unknown): void {
    if (this.#stopped) return;
    const { logger, issuer } = this.#options;
    // A document that is no JSON is not quoted: parsers show the text they stumble over.
    const why = error instanceof SyntaxError ? 'the document is not JSON' : errorText(error);
    logger.error(`oidc authenticator: ${what}`, { issuer, error: why });
  }
}

import { createHash } from 'node:crypto';
import {
  type Clock,
  isObject,
  type JsonObject,
  type JsonValue,
  type Logger,
  member,
  runInSlices,
  type UserInfo,
} from '@wheelhouse/machinery';
import type { Authenticator } from '../contract.ts';
import { bearerToken } from '../credentials.ts';
import { fetchText, fetchTimeoutMs, type ProviderAccess } from './fetch.ts';
import { Provider } from './provider.ts';
import { checkClaims, JwtError, readToken, tokenLengthMax, type UnverifiedToken } from './token.ts';
import { userOfClaims } from './user.ts';
import { type CheckedAuthenticator, pemCertificates } from './validate.ts';

/** Maximum number of issuers of distributed claims that one authenticator follows. */
const issuersMax = 16;
const fetchesMax = 50;

interface DistributedClaimsOptions {
  /** The claim that may be distributed. */
  readonly claim: string;
  readonly algorithms: readonly string[];
  readonly audiences: readonly string[];
  /** The authenticator's own provider, which may have issued the claim too. */
  readonly provider: Provider;
  readonly access: ProviderAccess;
  readonly logger: Logger;
}

/**
 * Resolves distributed claims (OpenID Connect Core 5.6.2): `_claim_names` names the source and
 * `_claim_sources` its endpoint, which answers with another token. Aggregated claims are not
 * supported, as in kube-apiserver. Owns the providers of these tokens; `stop` stops them.
 */
class DistributedClaims {
  readonly #options: DistributedClaimsOptions;
  readonly #providers = new Map<string, Provider>();
  #fetches = 0;
  #stopped = false;

  constructor(options: DistributedClaimsOptions) {
    this.#options = options;
  }

  stop(): void {
    this.#stopped = true;
    for (const provider of this.#providers.values()) provider.stop();
  }

  /**
   * The claims with the distributed one resolved; the same value if there is none. Rejects with
   * JwtError.
   */
  async expand(claims: JsonObject): Promise<JsonObject> {
    const { claim } = this.#options;
    const source = member(claims, claim) === undefined ? sourceOf(claims, claim) : undefined;
    const endpoint = source === undefined ? undefined : member(source, 'endpoint');
    if (source === undefined || typeof endpoint !== 'string' || endpoint === '') return claims;
    const bearer = member(source, 'access_token');
    const value = await this.#fetch(endpoint, typeof bearer === 'string' ? bearer : undefined);
    return { ...claims, [claim]: value };
  }

  async #fetch(endpoint: string, bearer: string | undefined): Promise<JsonValue> {
    const { claim, access, algorithms, audiences } = this.#options;
    const text = await this.#fetchToken(endpoint, bearer);
    const token = readToken(text.trim());
    if (token === undefined) throw this.#error('the answer of its source is not a token');
    if (!algorithms.includes(token.algorithm)) {
      throw this.#error('verify distributed claim token: unsupported algorithm');
    }
    checkClaims(token.claims, { audiences, nowMs: access.clock.now() });
    await this.#verify(token);
    const value = member(token.claims, claim);
    if (value === undefined) throw this.#error('the token of its source does not contain it');
    return value;
  }

  async #fetchToken(endpoint: string, bearer: string | undefined): Promise<string> {
    if (this.#fetches >= fetchesMax) throw this.#error('too many are being fetched');
    this.#fetches += 1;
    try {
      const { status, text } = await fetchText(
        endpoint,
        this.#options.access,
        bearer === '' ? undefined : bearer,
      );
      if (status >= 200 && status <= 226) return text;
      throw this.#error(`its source answered with status ${status}`);
    } catch (error) {
      if (error instanceof JwtError) throw error;
      throw this.#error('its source could not be reached');
    } finally {
      this.#fetches -= 1;
    }
  }

  async #verify(token: UnverifiedToken): Promise<void> {
    const provider = this.#providerOf(token.issuer);
    if (!(await provider.readyWithin(fetchTimeoutMs))) {
      throw this.#error('verifier not initialized for its issuer');
    }
    await provider.verify(token);
  }

  #providerOf(issuer: string): Provider {
    const { provider, access, logger } = this.#options;
    if (issuer === provider.issuer) return provider;
    const existing = this.#providers.get(issuer);
    if (existing !== undefined) return existing;
    if (this.#providers.size >= issuersMax) this.#evictUnready();
    if (this.#stopped || this.#providers.size >= issuersMax) {
      throw this.#error('too many issuers of distributed claims');
    }
    const created = new Provider({ issuer, discoveryUrl: undefined, access, logger });
    this.#providers.set(issuer, created);
    return created;
  }

  /** Evicts one issuer that has not been discovered. */
  #evictUnready(): void {
    for (const [issuer, provider] of this.#providers) {
      if (provider.ready) continue;
      provider.stop();
      this.#providers.delete(issuer);
      return;
    }
  }

  #error(why: string): JwtError {
    const claim = JSON.stringify(this.#options.claim);
    return new JwtError(
      `oidc: could not expand distributed claims: while getting distributed claim ${claim}: ${why}`,
    );
  }
}

/** The endpoint of a distributed claim; undefined if the token names none. */
function sourceOf(claims: JsonObject, claim: string): JsonObject | undefined {
  const failed = (why: string) => new JwtError(`oidc: could not expand distributed claims: ${why}`);
  const names = member(claims, '_claim_names');
  if (names === undefined) return undefined;
  if (!isObject(names)) throw failed('oidc: error parsing distributed claim names');
  const sources = member(claims, '_claim_sources');
  if (sources === undefined) throw failed('oidc: no claim sources');
  if (!isObject(sources)) throw failed('oidc: could not parse claim sources');
  const name = member(names, claim);
  if (name === undefined) return undefined;
  const source = typeof name === 'string' ? member(sources, name) : undefined;
  if (!isObject(source)) throw failed('oidc: source does not exist');
  return source;
}

/** Dependencies of JWT authenticators. */
interface JwtAuthenticationOptions {
  /** Accepted signing algorithms. */
  readonly algorithms: readonly string[];
  /** PEM authorities for providers without their own; undefined: Node's. */
  readonly hostRoots: () => string | undefined;
  /** Returns the URL of the proxy for the URL of a provider; undefined for none. */
  readonly proxyOf: (url: URL) => string | undefined;
  /** Key of the extra value with a token's ID. */
  readonly credentialKey: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Called for each verified token that was not in the cache. */
  readonly onVerified: (verification: {
    readonly issuer: string;
    readonly result: 'success' | 'failure';
    readonly durationMs: number;
  }) => void;
}

/** Authenticates tokens of OpenID providers, whose configuration can be replaced as a whole. */
export interface JwtAuthentication extends Authenticator {
  /**
   * Replaces the authenticators once all their providers have been discovered; rejects and keeps
   * the current ones if that takes longer than a minute.
   */
  replace(authenticators: readonly CheckedAuthenticator[]): Promise<void>;
  stop(): void;
}

/** Providers of a new configuration were not discovered in time; a retry may succeed. */
export class ProvidersNotReady extends Error {
  constructor(issuers: readonly string[]) {
    super(`no keys of ${issuers.join(', ')} within ${replaceTimeoutMs} ms`);
    this.name = 'ProvidersNotReady';
  }
}

const replaceTimeoutMs = 60_000;

/** The authenticators of one configuration, with their cached tokens. */
interface Generation {
  readonly byIssuer: ReadonlyMap<string, IssuerAuthenticator>;
  readonly tokens: TokenCache;
}

/** Starts authenticators whose providers are discovered in the background (AUTHN-7). */
export function createJwtAuthentication(
  authenticators: readonly CheckedAuthenticator[],
  options: JwtAuthenticationOptions,
): JwtAuthentication {
  let stopped = false;
  const make = (list: readonly CheckedAuthenticator[]): Generation => {
    const all = list.map((checked) => new IssuerAuthenticator(checked, options));
    const byIssuer = new Map(all.map((authenticator) => [authenticator.issuer, authenticator]));
    return { byIssuer, tokens: new TokenCache(options.clock) };
  };
  let current = make(authenticators);
  return {
    name: 'jwt',
    verifies: 'tokens',
    authenticate(credentials) {
      const { byIssuer, tokens } = current;
      const text = byIssuer.size === 0 ? undefined : bearerToken(credentials);
      if (text === undefined || text.length > tokenLengthMax) return undefined;
      return tokens.userOf(text, () => {
        const token = readToken(text);
        return token && byIssuer.get(token.issuer)?.verify(token);
      });
    },
    async replace(list) {
      const next = make(list);
      const all = [...next.byIssuer.values()];
      const ready = await Promise.all(
        all.map((authenticator) => authenticator.readyWithin(replaceTimeoutMs)),
      );
      const missing = all.filter((_, index) => ready[index] !== true);
      const isReady = missing.length === 0 && !stopped;
      const unused = isReady ? current : next;
      if (isReady) current = next;
      for (const authenticator of unused.byIssuer.values()) authenticator.stop();
      if (missing.length > 0) throw new ProvidersNotReady(missing.map(({ issuer }) => issuer));
    },
    stop() {
      stopped = true;
      for (const authenticator of current.byIssuer.values()) authenticator.stop();
    },
  };
}

/** Milliseconds for which a valid token is cached, but never beyond its expiry. */
const verifiedMs = 10_000;
const verifiedMax = 5000;

/** The user of a valid token, and the token's expiry in milliseconds of wall time. */
interface Verdict {
  readonly user: UserInfo;
  readonly expiresMs: number;
}

interface CachedToken {
  readonly user: Promise<UserInfo>;
  /** When the cached verdict expires, in monotonic milliseconds. */
  staleMs: number;
  /** When the token expires, in milliseconds of wall time. */
  expiresMs: number;
}

/** Caches valid tokens and verifications in progress by digest; evicts the oldest first. */
class TokenCache {
  readonly #clock: Clock;
  readonly #cached = new Map<string, CachedToken>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * The user of a token; on a cache miss `verify` verifies it and may return undefined.
   */
  userOf(text: string, verify: () => Promise<Verdict> | undefined): Promise<UserInfo> | undefined {
    const digest = createHash('sha256').update(text).digest('base64');
    const cached = this.#cached.get(digest);
    if (cached !== undefined && this.#isFresh(cached)) return cached.user;
    this.#cached.delete(digest);
    const verdict = verify();
    return verdict && this.#cache(digest, verdict);
  }

  #isFresh({ staleMs, expiresMs }: CachedToken): boolean {
    return this.#clock.monotonic() < staleMs && this.#clock.now() < expiresMs;
  }

  #cache(digest: string, verdict: Promise<Verdict>): Promise<UserInfo> {
    const user = verdict.then((verified) => verified.user);
    const never = Number.POSITIVE_INFINITY;
    const entry: CachedToken = { user, staleMs: never, expiresMs: never };
    this.#cached.set(digest, entry);
    if (this.#cached.size > verifiedMax) {
      const [oldest] = this.#cached.keys();
      if (oldest !== undefined) this.#cached.delete(oldest);
    }
    verdict.then(
      ({ expiresMs }) => {
        entry.staleMs = this.#clock.monotonic() + verifiedMs;
        entry.expiresMs = expiresMs;
      },
      () => {
        if (this.#cached.get(digest) === entry) this.#cached.delete(digest);
      },
    );
    return user;
  }
}

/** Verifies the tokens of one issuer. */
class IssuerAuthenticator {
  readonly issuer: string;
  readonly #checked: CheckedAuthenticator;
  readonly #options: JwtAuthenticationOptions;
  readonly #audiences: readonly string[];
  readonly #provider: Provider;
  readonly #distributed: DistributedClaims | undefined;

  constructor(checked: CheckedAuthenticator, options: JwtAuthenticationOptions) {
    const { issuer, claimMappings } = checked.configuration;
    const { logger, algorithms } = options;
    this.issuer = issuer.url;
    this.#checked = checked;
    this.#options = options;
    this.#audiences = issuer.audiences ?? [];
    const own = pemCertificates(issuer.certificateAuthority);
    const authorities = own.length > 0 ? own : options.hostRoots();
    const { clock, proxyOf } = options;
    const access: ProviderAccess = { authorities, clock, proxyOf };
    const discoveryUrl = issuer.discoveryURL || undefined;
    this.#provider = new Provider({ issuer: issuer.url, discoveryUrl, access, logger });
    const { claim } = claimMappings.groups;
    const parts = { algorithms, audiences: this.#audiences, provider: this.#provider, access };
    this.#distributed =
      claim === '' ? undefined : new DistributedClaims({ claim, ...parts, logger });
  }

  readyWithin(timeoutMs: number): Promise<boolean> {
    return this.#provider.readyWithin(timeoutMs);
  }

  stop(): void {
    this.#provider.stop();
    this.#distributed?.stop();
  }

  /** Verifies a token. Rejects with JwtError if it is invalid. */
  async verify(token: UnverifiedToken): Promise<Verdict> {
    const { clock, onVerified } = this.#options;
    const startMs = clock.monotonic();
    const report = (result: 'success' | 'failure') =>
      onVerified({ issuer: this.issuer, result, durationMs: clock.monotonic() - startMs });
    try {
      const verdict = await this.#verifiedUser(token);
      report('success');
      return verdict;
    } catch (error) {
      report('failure');
      throw error;
    }
  }

  async #verifiedUser(token: UnverifiedToken): Promise<Verdict> {
    const { algorithms, clock, credentialKey } = this.#options;
    if (!this.#provider.ready) throw new JwtError('oidc: authenticator not initialized');
    const expected = { audiences: this.#audiences, nowMs: clock.now() };
    const expiresMs = checkClaims(token.claims, expected);
    if (!algorithms.includes(token.algorithm)) {
      const list = algorithms.map((algorithm) => JSON.stringify(algorithm)).join(' ');
      const what = 'oidc: id token signed with unsupported algorithm';
      throw new JwtError(`oidc: verify token: ${what}, expected [${list}]`);
    }
    await this.#provider.verify(token);
    const claims = (await this.#distributed?.expand(token.claims)) ?? token.claims;
    const mapping = userOfClaims(claims, this.#checked, credentialKey);
    return { user: await runInSlices(mapping, clock), expiresMs };
  }
}

import { createHash } from 'node:crypto';
import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/log.ts';
import type { UserInfo } from '../../meta/types.ts';
import { bearerToken } from '../bearer.ts';
import type { Authenticator } from '../contract.ts';
import { DistributedClaims } from './distributed-claims.ts';
import type { ProviderAccess } from './fetch.ts';
import { Provider } from './provider.ts';
import { checkClaims, JwtError, readToken, type UnverifiedToken } from './token.ts';
import { userOfClaims } from './user.ts';
import { type CheckedAuthenticator, pemCertificates } from './validate.ts';

/** What authenticators of JSON web tokens work with. */
export interface JwtAuthenticationOptions {
  /** Signing algorithms accepted. */
  readonly algorithms: readonly string[];
  /** PEM; asked when a provider has no authorities of its own. Undefined: Node's. */
  readonly hostRoots: () => string | undefined;
  /** Key of the extra value that holds a token's id. */
  readonly credentialKey: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Told of each token that was judged, not only looked up. */
  readonly onJudged: (judged: {
    readonly issuer: string;
    readonly result: 'success' | 'failure';
    readonly durationMs: number;
  }) => void;
}

/** Authenticates the tokens of OpenID providers; which providers can be changed as a whole. */
export interface JwtAuthentication extends Authenticator {
  /**
   * Takes other authenticators in the place of those there are, once all their providers are found;
   * rejects, and keeps those there are, when that takes longer than a minute.
   */
  replace(authenticators: readonly CheckedAuthenticator[]): Promise<void>;
  stop(): void;
}

/** Providers of a new configuration that are not found; they may be when it is tried again. */
export class ProvidersNotReady extends Error {
  constructor(issuers: readonly string[]) {
    super(`no keys of ${issuers.join(', ')} within ${replaceTimeoutMs} ms`);
    this.name = 'ProvidersNotReady';
  }
}

const replaceTimeoutMs = 60_000;

/** Begins with authenticators whose providers are sought in the background (AUTHN-7). */
export function createJwtAuthentication(
  authenticators: readonly CheckedAuthenticator[],
  options: JwtAuthenticationOptions,
): JwtAuthentication {
  let stopped = false;
  const make = (list: readonly CheckedAuthenticator[]) =>
    new Map(
      list.map((one) => [one.configuration.issuer.url, new IssuerAuthenticator(one, options)]),
    );
  let current: ReadonlyMap<string, IssuerAuthenticator> = make(authenticators);
  return {
    name: 'jwt',
    authenticate(credentials) {
      const text = current.size === 0 ? undefined : bearerToken(credentials);
      const token = text === undefined ? undefined : readToken(text);
      return token && current.get(token.issuer)?.authenticate(token);
    },
    async replace(list) {
      const next = make(list);
      const all = [...next.values()];
      const ready = await Promise.all(all.map((one) => one.readyWithin(replaceTimeoutMs)));
      const missing = all.filter((_, index) => ready[index] !== true);
      const unused = missing.length > 0 || stopped ? next : current;
      if (unused === current) current = next;
      for (const one of unused.values()) one.stop();
      if (missing.length > 0) throw new ProvidersNotReady(missing.map(({ issuer }) => issuer));
    },
    stop() {
      stopped = true;
      for (const one of current.values()) one.stop();
    },
  };
}

/** How long a good token is not judged again, as upstream; never beyond its expiry. */
const cachedMs = 10_000;
const cachedMax = 5000;

interface Cached {
  readonly user: Promise<UserInfo>;
  untilMs: number;
}

/** Judges the tokens of one issuer. */
class IssuerAuthenticator {
  readonly issuer: string;
  readonly #checked: CheckedAuthenticator;
  readonly #options: JwtAuthenticationOptions;
  readonly #audiences: readonly string[];
  readonly #provider: Provider;
  readonly #distributed: DistributedClaims | undefined;
  /** By digest of the token, oldest first; what is being judged is here too. */
  readonly #cache = new Map<string, Cached>();

  constructor(checked: CheckedAuthenticator, options: JwtAuthenticationOptions) {
    const { issuer, claimMappings } = checked.configuration;
    const { logger, algorithms } = options;
    this.issuer = issuer.url;
    this.#checked = checked;
    this.#options = options;
    this.#audiences = issuer.audiences ?? [];
    const own = pemCertificates(issuer.certificateAuthority);
    const authorities = own.length > 0 ? own : options.hostRoots();
    const access: ProviderAccess = { authorities, clock: options.clock };
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

  /** Rejects with JwtError for a token that is not good. */
  authenticate(token: UnverifiedToken): Promise<UserInfo> {
    const nowMs = this.#options.clock.now();
    const digest = createHash('sha256').update(token.text).digest('base64');
    const known = this.#cache.get(digest);
    if (known !== undefined && nowMs < known.untilMs) return known.user;
    this.#cache.delete(digest);
    const user = this.#judge(token, digest);
    this.#cache.set(digest, { user, untilMs: Number.POSITIVE_INFINITY });
    if (this.#cache.size > cachedMax) this.#forgetOldest();
    return user;
  }

  #forgetOldest(): void {
    const [oldest] = this.#cache.keys();
    if (oldest !== undefined) this.#cache.delete(oldest);
  }

  async #judge(token: UnverifiedToken, digest: string): Promise<UserInfo> {
    const { clock, onJudged } = this.#options;
    const startMs = clock.monotonic();
    const report = (result: 'success' | 'failure') =>
      onJudged({ issuer: this.issuer, result, durationMs: clock.monotonic() - startMs });
    try {
      const { user, expiresMs } = await this.#verify(token);
      report('success');
      const cached = this.#cache.get(digest);
      if (cached !== undefined) cached.untilMs = Math.min(clock.now() + cachedMs, expiresMs);
      return user;
    } catch (error) {
      this.#cache.delete(digest);
      report('failure');
      throw error;
    }
  }

  async #verify(token: UnverifiedToken): Promise<{ user: UserInfo; expiresMs: number }> {
    const { algorithms, clock, credentialKey } = this.#options;
    if (!this.#provider.ready) throw new JwtError('oidc: authenticator not initialized');
    const expected = { audiences: this.#audiences, nowMs: clock.now() };
    const expiresMs = checkClaims(token.claims, expected);
    if (!algorithms.includes(token.algorithm)) {
      const list = algorithms.map((one) => JSON.stringify(one)).join(' ');
      const what = 'oidc: id token signed with unsupported algorithm';
      throw new JwtError(`oidc: verify token: ${what}, expected [${list}]`);
    }
    await this.#provider.verify(token);
    const claims = (await this.#distributed?.expand(token.claims)) ?? token.claims;
    return { user: userOfClaims(claims, this.#checked, credentialKey), expiresMs };
  }
}

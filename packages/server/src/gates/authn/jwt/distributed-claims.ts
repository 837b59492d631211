import {
  isObject,
  type JsonObject,
  type JsonValue,
  type Logger,
  member,
} from '@wheelhouse/machinery';
import { fetchText, fetchTimeoutMs, type ProviderAccess } from './fetch.ts';
import { Provider } from './provider.ts';
import { checkClaims, JwtError, readToken, type UnverifiedToken } from './token.ts';

/** Issuers of claims of other providers that one authenticator follows. */
const issuersMax = 16;
const fetchesMax = 50;

/**
 * Finds a claim that a token only points to (OpenID Connect Core 5.6.2): `_claim_names` names the
 * source, `_claim_sources` its endpoint, which answers with a token of its own. Aggregated claims
 * are not followed, as upstream does not. Owns the providers of such tokens; `stop` ends them.
 */
export class DistributedClaims {
  readonly #options: {
    readonly claim: string;
    readonly algorithms: readonly string[];
    readonly audiences: readonly string[];
    readonly provider: Provider;
    readonly access: ProviderAccess;
    readonly logger: Logger;
  };
  readonly #providers = new Map<string, Provider>();
  #fetches = 0;
  #stopped = false;

  constructor(options: {
    /** The claim that may be elsewhere. */
    readonly claim: string;
    readonly algorithms: readonly string[];
    readonly audiences: readonly string[];
    /** The authenticator's own, which may have issued the claim too. */
    readonly provider: Provider;
    readonly access: ProviderAccess;
    readonly logger: Logger;
  }) {
    this.#options = options;
  }

  stop(): void {
    this.#stopped = true;
    for (const provider of this.#providers.values()) provider.stop();
  }

  /** The claims with the one that was elsewhere; the same value when it is not. Rejects: JwtError. */
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
    if (token === undefined) throw this.#error('the answer of its source is no token');
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
      throw this.#error('its source could not be asked');
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
    if (this.#providers.size >= issuersMax) this.#dropOneNotFound();
    if (this.#stopped || this.#providers.size >= issuersMax) {
      throw this.#error('too many issuers of distributed claims');
    }
    const made = new Provider({ issuer, discoveryUrl: undefined, access, logger });
    this.#providers.set(issuer, made);
    return made;
  }

  /** Issuers that are nowhere must not keep out those that are somewhere. */
  #dropOneNotFound(): void {
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

/** Where a claim is; undefined when the token points nowhere for it. */
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

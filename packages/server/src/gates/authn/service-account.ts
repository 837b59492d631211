import type { Features, GateName } from '@wheelhouse/kinds';
import type { Clock, Counter, UserInfo } from '@wheelhouse/machinery';
import { noteForAudit } from './audit-notes.ts';
import { bearerToken } from './bearer.ts';
import type { Authenticator, Credentials } from './contract.ts';
import {
  type ObjectName,
  type TokenClaims,
  TokenError,
  type TokenKeys,
  verifyToken,
} from './service-account-token.ts';

/** The objects a token depends on, as they are now. */
export interface TokenObjects {
  /** The uid of an object that is not being deleted; undefined when there is none. */
  uidOf(
    resource: 'serviceaccounts' | 'pods' | 'secrets' | 'nodes',
    at: { namespace: string; name: string },
  ): Promise<string | undefined>;
}

/**
 * Authenticates service account tokens (AUTHN-6): the account, and what the token is bound to, must
 * still be there, with the same uid, unless `lookup` is off.
 */
export function createServiceAccountAuthenticator(options: {
  readonly keys: TokenKeys;
  readonly issuers: readonly string[];
  /** Audiences of this server; a token must name one of them. */
  readonly audiences: readonly string[];
  readonly labelDomain: string;
  readonly objects: TokenObjects;
  readonly lookup: 'required' | 'off';
  /** Which claims count; all of them when absent. */
  readonly features?: Features;
  readonly clock: Clock;
  /** Counts tokens that were good. */
  readonly used?: Counter;
  /** For tokens that are good although they should have been replaced. */
  readonly stale?: {
    /** What tells of one in the audit log. */
    readonly annotation: string;
    readonly used: Counter;
  };
}): Authenticator {
  const { keys, issuers, audiences, labelDomain, clock } = options;
  const verified = new TokenMemo(keys);
  const verify = (token: string, targets: readonly string[]): TokenClaims | undefined => {
    if (!token.startsWith('ey')) return undefined;
    const nowSeconds = clock.now() / 1000;
    const of = { keys: keys.current(), issuers, privateClaim: labelDomain, nowSeconds };
    const claims = verified.get(token, nowSeconds) ?? verifyToken(token, of);
    if (claims === undefined) return undefined;
    if (!claims.audiences.some((one) => targets.includes(one))) {
      const [has, wants] = [claims.audiences, targets].map(quotedList);
      throw new TokenError(`token audiences ${has} is invalid for the target audiences ${wants}`);
    }
    verified.put(token, claims);
    return claims;
  };
  const userFor = (claims: TokenClaims) => {
    if (options.lookup !== 'off') return lookUp(options, claims);
    options.used?.add(1);
    return userOf(claims, options);
  };
  const authenticate = (exchange: Credentials, token: string) => {
    const claims = verify(token, audiences);
    if (claims === undefined) return undefined;
    noteStale(exchange, claims, options);
    return userFor(claims);
  };
  return {
    name: 'service-account',
    judges: 'tokens',
    authenticate(exchange) {
      const token = bearerToken(exchange);
      if (token === undefined) return undefined;
      const learned = verified.learn(token, issuers);
      if (learned === undefined) return authenticate(exchange, token);
      return learned.then(() => authenticate(exchange, token));
    },
    async reviewToken(token, targets) {
      await verified.learn(token, issuers);
      const claims = verify(token, targets);
      if (claims === undefined) return undefined;
      const named = claims.audiences.filter((one) => targets.includes(one));
      return { user: await userFor(claims), audiences: named };
    },
  };
}

/** Records and counts the use of a token that should have been replaced. */
function noteStale(
  exchange: Credentials,
  { warnAfter, namespace, serviceAccount }: TokenClaims,
  {
    stale,
    clock,
  }: Pick<Parameters<typeof createServiceAccountAuthenticator>[0], 'clock' | 'stale'>,
): void {
  if (warnAfter === undefined || stale === undefined) return;
  const late = Math.floor(clock.now() / 1000) - warnAfter;
  if (late <= 0) return;
  const subject = `system:serviceaccount:${namespace}:${serviceAccount.name}`;
  const value = `subject: ${subject}, seconds after warning threshold: ${late}`;
  noteForAudit(exchange, { key: stale.annotation, value });
  stale.used.add(1);
}

/** `["a" "b"]`, as upstream prints them. */
function quotedList(texts: readonly string[]): string {
  return `[${texts.map((text) => JSON.stringify(text)).join(' ')}]`;
}

async function lookUp(
  options: {
    readonly objects: TokenObjects;
    readonly labelDomain: string;
    readonly features?: Features;
    readonly used?: Counter;
  },
  claims: TokenClaims,
): Promise<UserInfo> {
  const { namespace, serviceAccount } = claims;
  const isOfNode = claims.node !== undefined && claims.pod === undefined;
  const gate = 'ServiceAccountTokenNodeBindingValidation';
  if (isOfNode && options.features?.enabled(gate) === false) {
    throw new TokenError(
      `token is bound to a Node object but the ${gate} feature gate is disabled`,
    );
  }
  const bound: readonly [
    'serviceaccounts' | 'pods' | 'secrets' | 'nodes',
    ObjectName | undefined,
  ][] = [
    ['serviceaccounts', serviceAccount],
    ['pods', claims.pod],
    ['secrets', claims.secret],
    ['nodes', claims.pod === undefined ? claims.node : undefined],
  ];
  for (const [resource, object] of bound) {
    if (object === undefined) continue;
    const at = { namespace: resource === 'nodes' ? '' : namespace, name: object.name };
    const uid = await options.objects.uidOf(resource, at);
    if (uid === undefined || uid !== object.uid) {
      throw new TokenError(`service account token has been invalidated: ${resource}`);
    }
  }
  options.used?.add(1);
  return userOf(claims, options);
}

/** By the claims of verified tokens, so that a token's requests have one user value. */
const users = new WeakMap<TokenClaims, UserInfo>();

function userOf(claims: TokenClaims, options: Parameters<typeof userOfClaims>[1]): UserInfo {
  const cached = users.get(claims);
  if (cached !== undefined) return cached;
  const made = userOfClaims(claims, options);
  users.set(claims, made);
  return made;
}

function userOfClaims(
  claims: TokenClaims,
  { labelDomain, features }: { readonly labelDomain: string; readonly features?: Features },
): UserInfo {
  const { namespace, serviceAccount, pod } = claims;
  const isLeftOut = (gate: GateName) => features?.enabled(gate) === false;
  const hidesNode = pod !== undefined && isLeftOut('ServiceAccountTokenPodNodeInfo');
  const node = hidesNode ? undefined : claims.node;
  const tokenId = isLeftOut('ServiceAccountTokenJTI') ? '' : claims.tokenId;
  const extra: Record<string, readonly string[]> = {};
  const add = (name: string, value: string | undefined) => {
    if (value !== undefined && value !== '')
      extra[`authentication.${labelDomain}/${name}`] = [value];
  };
  add('credential-id', tokenId === '' ? undefined : `JTI=${tokenId}`);
  add('pod-name', pod?.name);
  add('pod-uid', pod?.uid);
  add('node-name', node?.name);
  add('node-uid', node?.uid);
  return {
    name: `system:serviceaccount:${namespace}:${serviceAccount.name}`,
    uid: serviceAccount.uid,
    groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`],
    extra,
  };
}

const memoMax = 10_000;

/**
 * Tokens whose signature was found good, until they expire or the keys change; the least recently
 * added go first.
 */
class TokenMemo {
  readonly #verified = new Map<string, TokenClaims>();
  readonly #keys: TokenKeys;
  #by: ReturnType<TokenKeys['current']>;

  constructor(keys: TokenKeys) {
    this.#keys = keys;
    this.#by = keys.current();
  }

  /** Fetches the keys again for a token that names an unknown one, as `TokenKeys.learn` does. */
  learn(token: string, issuers: readonly string[]): Promise<void> | undefined {
    if (this.#keys.learn === undefined) return undefined;
    this.#check();
    return this.#verified.has(token) ? undefined : this.#keys.learn(token, issuers);
  }

  get(token: string, nowSeconds: number): TokenClaims | undefined {
    this.#check();
    const claims = this.#verified.get(token);
    if (claims === undefined || nowSeconds <= claims.expires) return claims;
    this.#verified.delete(token);
    return undefined;
  }

  put(token: string, claims: TokenClaims): void {
    if (this.#verified.has(token)) return;
    if (this.#verified.size >= memoMax) {
      const [oldest] = this.#verified.keys();
      if (oldest !== undefined) this.#verified.delete(oldest);
    }
    this.#verified.set(token, claims);
  }

  #check(): void {
    const keys = this.#keys.current();
    if (keys === this.#by) return;
    this.#by = keys;
    this.#verified.clear();
  }
}

import type { Features, GateName } from '@wheelhouse/kinds';
import {
  type ApiObject,
  type Clock,
  type Counter,
  isObject,
  type UserInfo,
} from '@wheelhouse/machinery';
import type { Authenticator, Credentials } from './contract.ts';
import { addAuditAnnotation, addWarning, bearerToken, isSameSecret } from './credentials.ts';
import {
  leewaySeconds,
  type SigningKey,
  signClaims,
  signedClaims,
  type TokenClaims,
  TokenError,
  type TokenKeys,
  verifyToken,
} from './service-account-token.ts';

/** An object that a token depends on. */
interface TokenObject {
  readonly uid: string;
  /**
   * Its deletionTimestamp in milliseconds since the epoch; undefined if it is not being deleted.
   */
  readonly deletedMs: number | undefined;
}

type TokenResource = 'serviceaccounts' | 'pods' | 'secrets' | 'nodes';

/** The current objects that a token depends on. */
interface TokenObjects {
  find(
    resource: TokenResource,
    at: { namespace: string; name: string },
  ): Promise<TokenObject | undefined>;
}

/**
 * Authenticates service account tokens (AUTHN-6): the account and the bound object must still exist
 * with the same uid.
 */
export function createServiceAccountAuthenticator(options: {
  readonly keys: TokenKeys;
  readonly issuers: readonly string[];
  /** Audiences of this server; a token must name one of them. */
  readonly audiences: readonly string[];
  readonly labelDomain: string;
  readonly objects: TokenObjects;
  /** The feature gates that disable claims; absent: all claims are used. */
  readonly features?: Features;
  readonly clock: Clock;
  /** Counts uses of valid tokens that have a time of replacement, before that time. */
  readonly used?: Counter;
  /** Reports uses of valid tokens that should have been replaced. */
  readonly stale?: {
    /** The audit annotation of such a token. */
    readonly annotation: string;
    readonly used: Counter;
  };
}): Authenticator {
  const { keys, issuers, audiences, labelDomain, clock } = options;
  const verified = new VerifiedTokens(keys);
  const verify = (token: string, targets: readonly string[]): TokenClaims | undefined => {
    if (!token.startsWith('ey')) return undefined;
    const nowSeconds = clock.now() / 1000;
    const verification = { keys: keys.current(), issuers, privateClaim: labelDomain, nowSeconds };
    const claims = verified.get(token, nowSeconds) ?? verifyToken(token, verification);
    if (claims === undefined) return undefined;
    if (!claims.audiences.some((audience) => targets.includes(audience))) {
      const [audiences, wanted] = [claims.audiences, targets].map(quotedList);
      const problem = `is invalid for the target audiences ${wanted}`;
      throw new TokenError(`token audiences ${audiences} ${problem}`);
    }
    verified.put(token, claims);
    return claims;
  };
  const userFor = async (claims: TokenClaims, exchange?: Credentials): Promise<UserInfo> => {
    await checkObjects(claims, options);
    return acceptedUser(claims, options, exchange);
  };
  const authenticate = (exchange: Credentials, token: string) => {
    const claims = verify(token, audiences);
    return claims === undefined ? undefined : userFor(claims, exchange);
  };
  return {
    name: 'service-account',
    verifies: 'tokens',
    authenticate(exchange) {
      const token = bearerToken(exchange);
      if (token === undefined) return undefined;
      const refreshed = verified.refreshFor(token, issuers);
      if (refreshed === undefined) return authenticate(exchange, token);
      return refreshed.then(() => authenticate(exchange, token));
    },
    async reviewToken(token, targets) {
      await verified.refreshFor(token, issuers);
      const claims = verify(token, targets);
      if (claims === undefined) return undefined;
      const named = claims.audiences.filter((audience) => targets.includes(audience));
      return { user: await userFor(claims), audiences: named };
    },
  };
}

type AccountOptions = Parameters<typeof createServiceAccountAuthenticator>[0];

/** The user of a valid token. Counts its use, and records it if it should have been replaced. */
function acceptedUser(
  claims: TokenClaims,
  options: AccountOptions,
  exchange: Credentials | undefined,
): UserInfo {
  const { warnAfter } = claims;
  if (warnAfter !== undefined) {
    const late = Math.floor(options.clock.now() / 1000) - warnAfter;
    if (late <= 0) options.used?.add(1);
    else recordStaleUse({ claims, late, exchange }, options);
  }
  return userOf(claims, options);
}

function recordStaleUse(
  use: {
    readonly claims: TokenClaims;
    /** Seconds. */
    readonly late: number;
    readonly exchange: Credentials | undefined;
  },
  { stale }: AccountOptions,
): void {
  if (stale === undefined) return;
  const { namespace, serviceAccount } = use.claims;
  const subject = `system:serviceaccount:${namespace}:${serviceAccount.name}`;
  const value = `subject: ${subject}, seconds after warning threshold: ${use.late}`;
  if (use.exchange !== undefined)
    addAuditAnnotation(use.exchange, { key: stale.annotation, value });
  stale.used.add(1);
}

/** `["a" "b"]`, as Go prints a list. */
function quotedList(texts: readonly string[]): string {
  return `[${texts.map((text) => JSON.stringify(text)).join(' ')}]`;
}

/**
 * Throws TokenError unless the account and the bound object exist with the uids of the claims. An
 * object that is being deleted counts until shortly after its deletionTimestamp, so that a pod can
 * use its token until it has terminated.
 */
async function checkObjects(claims: TokenClaims, options: AccountOptions): Promise<void> {
  const { namespace, serviceAccount } = claims;
  const isOfNode = claims.node !== undefined && claims.pod === undefined;
  const gate = 'ServiceAccountTokenNodeBindingValidation';
  const invalidBeforeMs = options.clock.now() - leewaySeconds * 1000;
  const find = async (resource: TokenResource, at: { namespace: string; name: string }) => {
    const object = await options.objects.find(resource, at);
    const isDeleted = object?.deletedMs !== undefined && object.deletedMs < invalidBeforeMs;
    return { object, isDeleted };
  };
  const account = await find('serviceaccounts', { namespace, name: serviceAccount.name });
  if (account.object === undefined) {
    throw new TokenError(`serviceaccounts ${JSON.stringify(serviceAccount.name)} not found`);
  }
  if (account.object.uid !== serviceAccount.uid) {
    throw new TokenError(
      `service account UID (${account.object.uid}) does not match claim (${serviceAccount.uid})`,
    );
  }
  if (account.isDeleted) {
    throw new TokenError(`service account ${namespace}/${serviceAccount.name} has been deleted`);
  }
  const bound = [
    { kind: 'secret', resource: 'secrets', claim: claims.secret },
    { kind: 'pod', resource: 'pods', claim: claims.pod },
    { kind: 'node', resource: 'nodes', claim: isOfNode ? claims.node : undefined },
  ] as const;
  for (const { kind, resource, claim } of bound) {
    if (claim === undefined) continue;
    if (kind === 'node' && options.features?.enabled(gate) === false) {
      throw new TokenError(
        `token is bound to a Node object but the ${gate} feature gate is disabled`,
      );
    }
    const at = { namespace: kind === 'node' ? '' : namespace, name: claim.name };
    const { object, isDeleted } = await find(resource, at);
    if (object === undefined) throw invalidated();
    if (object.uid !== claim.uid) {
      throw new TokenError(
        `${kind} UID (${object.uid}) does not match service account ${kind} ref claim (${claim.uid})`,
      );
    }
    if (isDeleted) throw invalidated();
  }
}

/** Users by the claims of verified tokens, so that all requests of a token have one user value. */
const users = new WeakMap<TokenClaims, UserInfo>();

function userOf(claims: TokenClaims, options: Parameters<typeof userOfClaims>[1]): UserInfo {
  const cached = users.get(claims);
  if (cached !== undefined) return cached;
  const user = userOfClaims(claims, options);
  users.set(claims, user);
  return user;
}

function userOfClaims(
  claims: TokenClaims,
  { labelDomain, features }: { readonly labelDomain: string; readonly features?: Features },
): UserInfo {
  const { namespace, serviceAccount, pod } = claims;
  const isDisabled = (gate: GateName) => features?.enabled(gate) === false;
  const hidesNode = pod !== undefined && isDisabled('ServiceAccountTokenPodNodeInfo');
  const node = hidesNode ? undefined : claims.node;
  const tokenId = isDisabled('ServiceAccountTokenJTI') ? '' : claims.tokenId;
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
  return accountUser(namespace, serviceAccount, extra);
}

/** The user of a service account. */
function accountUser(
  namespace: string,
  { name, uid }: { readonly name: string; readonly uid: string },
  extra: UserInfo['extra'],
): UserInfo {
  return {
    name: `system:serviceaccount:${namespace}:${name}`,
    uid,
    groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`],
    extra,
  };
}

const verifiedTokensMax = 10_000;

/**
 * Tokens with a verified signature, until they expire or the keys change; the oldest are evicted
 * first.
 */
class VerifiedTokens {
  readonly #verified = new Map<string, TokenClaims>();
  readonly #keys: TokenKeys;
  #keySnapshot: ReturnType<TokenKeys['current']>;

  constructor(keys: TokenKeys) {
    this.#keys = keys;
    this.#keySnapshot = keys.current();
  }

  /** Calls `TokenKeys.refreshFor`, except for tokens that are already verified. */
  refreshFor(token: string, issuers: readonly string[]): Promise<void> | undefined {
    if (this.#keys.refreshFor === undefined) return undefined;
    this.#clearIfKeysChanged();
    return this.#verified.has(token) ? undefined : this.#keys.refreshFor(token, issuers);
  }

  get(token: string, nowSeconds: number): TokenClaims | undefined {
    this.#clearIfKeysChanged();
    const claims = this.#verified.get(token);
    if (claims === undefined || nowSeconds <= claims.expires + leewaySeconds) return claims;
    this.#verified.delete(token);
    return undefined;
  }

  put(token: string, claims: TokenClaims): void {
    if (this.#verified.has(token)) return;
    if (this.#verified.size >= verifiedTokensMax) {
      const [oldest] = this.#verified.keys();
      if (oldest !== undefined) this.#verified.delete(oldest);
    }
    this.#verified.set(token, claims);
  }

  #clearIfKeysChanged(): void {
    const keys = this.#keys.current();
    if (keys === this.#keySnapshot) return;
    this.#keySnapshot = keys;
    this.#verified.clear();
  }
}

/** The account of a legacy token, and the Secret that contains it. */
interface LegacyToken {
  readonly namespace: string;
  readonly secretName: string;
  readonly serviceAccount: { readonly name: string; readonly uid: string };
}

/** The issuer of legacy tokens, and the domain of their claims. */
interface LegacyForm {
  readonly issuer: string;
  readonly labelDomain: string;
}

/**
 * Creates the token of a Secret, which does not expire and is valid while the Secret exists
 * (AUTHN-6).
 */
export function signLegacyToken(key: SigningKey, token: LegacyToken, form: LegacyForm): string {
  const claim = (name: string) => `${form.labelDomain}/serviceaccount/${name}`;
  const { namespace, secretName, serviceAccount } = token;
  return signClaims(key, {
    iss: form.issuer,
    [claim('namespace')]: namespace,
    [claim('secret.name')]: secretName,
    [claim('service-account.name')]: serviceAccount.name,
    [claim('service-account.uid')]: serviceAccount.uid,
    sub: `system:serviceaccount:${namespace}:${serviceAccount.name}`,
  });
}

/** Counts uses of legacy tokens. */
interface LegacyUses {
  readonly all: Counter;
  /** Uses of tokens in Secrets that their account lists, as a controller once created them. */
  readonly automatic: Counter;
  readonly manual: Counter;
  /** Uses of tokens that a label on their Secret invalidates. */
  readonly invalid: Counter;
}

/** Options of the authenticator of legacy tokens. */
interface LegacyTokenOptions {
  readonly keys: TokenKeys;
  readonly form: LegacyForm;
  /** Audiences of this server, which legacy tokens are for. */
  readonly audiences: readonly string[];
  readonly lookup: 'required' | 'off';
  /** The audit annotation with the user's name, and the prefix of the other annotations. */
  readonly auditAnnotation: string;
  /** Counts valid tokens, by how their Secrets were created. */
  readonly used?: LegacyUses;
  /** The label of a Secret whose token is no longer accepted. */
  readonly invalidLabel: string;
  /** Called for each token that is found in its Secret. */
  readonly onUse?: ((secret: ApiObject) => void) | undefined;
  readonly objects: TokenObjects & {
    /** A Secret that is not being deleted; undefined if there is none. */
    secretAt(at: { namespace: string; name: string }): Promise<ApiObject | undefined>;
    /** Whether an account lists a Secret in its `secrets`. */
    isListedBy(secretName: string, account: { namespace: string; name: string }): Promise<boolean>;
  };
}

/**
 * Authenticates the tokens of Secrets (AUTHN-6). Unless `lookup` is off, the Secret must exist with
 * this token, and the account with the same uid.
 */
export function createLegacyTokenAuthenticator(options: LegacyTokenOptions): Authenticator {
  const { keys, form, lookup, objects, auditAnnotation: key } = options;
  const annotate = (to: Credentials | undefined, name: string, value: string) => {
    if (to !== undefined) addAuditAnnotation(to, { key: `${key}-${name}`, value });
  };
  const checkObjects = async (
    legacyToken: LegacyToken,
    token: string,
    credentials: Credentials | undefined,
  ) => {
    const { namespace, serviceAccount, secretName } = legacyToken;
    const secret = await objects.secretAt({ namespace, name: secretName });
    const storedToken = secret === undefined ? undefined : tokenIn(secret);
    if (secret === undefined || storedToken === undefined) throw invalidated();
    if (!isSameSecret(storedToken, token))
      throw new TokenError("token does not match server's copy");
    const at = { namespace, name: serviceAccount.name };
    const account = await objects.find('serviceaccounts', at);
    if (account?.uid !== serviceAccount.uid || account.deletedMs !== undefined) throw invalidated();
    options.onUse?.(secret);
    const isMarked = (secret.metadata.labels?.[options.invalidLabel] ?? '') !== '';
    if (isMarked) {
      options.used?.invalid.add(1);
      annotate(credentials, 'invalidated', `${secretName}/${namespace}`);
      throw new TokenError('the token is marked invalid by a label of its Secret');
    }
    const isAutomatic = await objects.isListedBy(secretName, at);
    options.used?.[isAutomatic ? 'automatic' : 'manual'].add(1);
    annotate(credentials, isAutomatic ? 'autogenerated-secret' : 'manual-secret', secretName);
    if (isAutomatic && credentials !== undefined) addWarning(credentials, automaticWarning);
  };
  const verify = async (token: string, to?: Credentials): Promise<UserInfo | undefined> => {
    const read = await readLegacyToken(token, { keys, form });
    if (read === undefined) return undefined;
    const { namespace, serviceAccount } = read;
    if (lookup === 'required') await checkObjects(read, token, to);
    options.used?.all.add(1);
    return accountUser(namespace, serviceAccount, {});
  };
  return {
    name: 'legacy-token',
    authenticate(credentials) {
      const token = bearerToken(credentials);
      if (token?.startsWith('ey') !== true) return undefined;
      return verify(token, credentials).then((user) => {
        if (user !== undefined) addAuditAnnotation(credentials, { key, value: user.name });
        return user;
      });
    },
    async reviewToken(token, targets) {
      const audiences = options.audiences.filter((audience) => targets.includes(audience));
      const user = audiences.length === 0 ? undefined : await verify(token);
      return user === undefined ? undefined : { user, audiences };
    },
  };
}

const automaticWarning =
  'Use tokens from the TokenRequest API or manually created secret-based tokens instead of ' +
  'auto-generated secret-based tokens.';

const invalidated = () => new TokenError('service account token has been invalidated');

function tokenIn(secret: ApiObject): string | undefined {
  const data = secret['data'];
  const token = isObject(data) ? data['token'] : undefined;
  return typeof token === 'string' ? Buffer.from(token, 'base64').toString() : undefined;
}

async function readLegacyToken(
  token: string,
  { keys, form }: { readonly keys: TokenKeys; readonly form: LegacyForm },
): Promise<LegacyToken | undefined> {
  const issuers = [form.issuer];
  await keys.refreshFor?.(token, issuers);
  const signed = signedClaims(token, { keys: keys.current(), issuers });
  if (signed === undefined) return undefined;
  const claim = (name: string): string => {
    const value = signed.payload[`${form.labelDomain}/serviceaccount/${name}`];
    if (typeof value === 'string' && value !== '') return value;
    throw new TokenError(`the token has no claim ${name}`);
  };
  return {
    namespace: claim('namespace'),
    secretName: claim('secret.name'),
    serviceAccount: { name: claim('service-account.name'), uid: claim('service-account.uid') },
  };
}

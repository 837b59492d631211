import { type ApiObject, type Counter, isObject, type UserInfo } from '@wheelhouse/machinery';
import { noteForAudit } from './audit-notes.ts';
import { bearerToken, isSameSecret } from './bearer.ts';
import type { Authenticator } from './contract.ts';
import type { TokenObjects } from './service-account.ts';
import {
  type SigningKey,
  signClaims,
  signedClaims,
  TokenError,
  type TokenKeys,
} from './service-account-token.ts';

/** Whose a legacy token is, and the Secret that holds it. */
export interface LegacyToken {
  readonly namespace: string;
  readonly secretName: string;
  readonly serviceAccount: { readonly name: string; readonly uid: string };
}

/** How legacy tokens are written: who issues them, and the domain of their claims. */
export interface LegacyForm {
  readonly issuer: string;
  readonly labelDomain: string;
}

/** Makes the token a Secret holds: it does not expire and is good while the Secret is (AUTHN-6). */
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
export interface LegacyUses {
  readonly all: Counter;
  /** Of Secrets that their account names, as its controller once made them. */
  readonly automatic: Counter;
  readonly manual: Counter;
  /** Tokens refused for the label that invalidates their Secret. */
  readonly invalid: Counter;
}

/**
 * Authenticates the tokens of Secrets (AUTHN-6). Unless `lookup` is off, the Secret must stand with
 * this very token, and the account with the same uid.
 */
export function createLegacyTokenAuthenticator(options: {
  readonly keys: TokenKeys;
  readonly form: LegacyForm;
  /** Audiences of this server, for which such tokens are. */
  readonly audiences: readonly string[];
  readonly lookup: 'required' | 'off';
  /** What tells of such a token in the audit log, with the user's name. */
  readonly auditAnnotation: string;
  /** Counts tokens that were good, and by how their Secrets came to be. */
  readonly used?: LegacyUses;
  /** Label of a Secret whose token is no longer accepted. */
  readonly invalidLabel: string;
  /** Hears of each token that is found in its Secret. */
  readonly onUse?: ((secret: ApiObject) => void) | undefined;
  readonly objects: TokenObjects & {
    /** A Secret that is not being deleted; undefined when there is none. */
    secretAt(at: { namespace: string; name: string }): Promise<ApiObject | undefined>;
    /** Whether an account names a Secret among its own. */
    isNamed(secretName: string, account: { namespace: string; name: string }): Promise<boolean>;
  };
}): Authenticator {
  const { keys, form, lookup, objects, auditAnnotation: key } = options;
  const checkObjects = async (read: LegacyToken, token: string): Promise<void> => {
    const { namespace, serviceAccount, secretName } = read;
    const secret = await objects.secretAt({ namespace, name: secretName });
    const held = secret === undefined ? undefined : tokenIn(secret);
    if (secret === undefined || held === undefined) throw invalidated();
    if (!isSameSecret(held, token)) throw new TokenError("token does not match server's copy");
    const at = { namespace, name: serviceAccount.name };
    const uid = await objects.uidOf('serviceaccounts', at);
    if (uid !== serviceAccount.uid) throw invalidated();
    options.onUse?.(secret);
    const isMarked = (secret.metadata.labels?.[options.invalidLabel] ?? '') !== '';
    if (isMarked) {
      options.used?.invalid.add(1);
      throw new TokenError('the token is marked invalid by a label of its Secret');
    }
    const isAutomatic = await objects.isNamed(secretName, at);
    options.used?.[isAutomatic ? 'automatic' : 'manual'].add(1);
  };
  const verify = async (token: string): Promise<UserInfo | undefined> => {
    const read = await readLegacyToken(token, { keys, form });
    if (read === undefined) return undefined;
    const { namespace, serviceAccount } = read;
    if (lookup === 'required') await checkObjects(read, token);
    options.used?.all.add(1);
    return {
      name: `system:serviceaccount:${namespace}:${serviceAccount.name}`,
      uid: serviceAccount.uid,
      groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`],
      extra: {},
    };
  };
  return {
    name: 'legacy-token',
    authenticate(credentials) {
      const token = bearerToken(credentials);
      if (token?.startsWith('ey') !== true) return undefined;
      return verify(token).then((user) => {
        if (user !== undefined) noteForAudit(credentials, { key, value: user.name });
        return user;
      });
    },
    async reviewToken(token, targets) {
      const audiences = options.audiences.filter((one) => targets.includes(one));
      const user = audiences.length === 0 ? undefined : await verify(token);
      return user === undefined ? undefined : { user, audiences };
    },
  };
}

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
  await keys.learn?.(token, issuers);
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

import {
  type ApiObject,
  type Clock,
  type Dialect,
  isObject,
  member,
  parseGoTime,
  type UserInfo,
} from '@wheelhouse/machinery';
import type { Authenticator } from './contract.ts';
import { bearerToken, InvalidBearerToken, isSameSecret } from './credentials.ts';

/** The content of a bootstrap-token Secret, with any usages. */
interface BootstrapToken {
  readonly id: string;
  readonly secret: string;
  /** Milliseconds since the epoch; undefined: never. A malformed time counts as expired. */
  readonly expiresMs: number | undefined;
  readonly uses: { readonly authentication: boolean; readonly signing: boolean };
  /** The additional groups; undefined if one of them is not allowed. */
  readonly groups: readonly string[] | undefined;
}

/** The prefix of the names of bootstrap-token Secrets, before the token ID. */
export const bootstrapSecretPrefix = 'bootstrap-token-';

const idPattern = /^[a-z0-9]{6}$/;
const secretPattern = /^[a-z0-9]{16}$/;

/**
 * Reads a bootstrap-token Secret (AUTHN-4); undefined if its type, name, ID, or secret is invalid.
 */
export function readBootstrapToken(
  object: ApiObject,
  dialect: Dialect,
): BootstrapToken | undefined {
  if (object.type !== bootstrapTokenType(dialect)) return undefined;
  const text = (key: string): string => {
    const value = isObject(object.data) ? member(object.data, key) : undefined;
    return typeof value === 'string' ? Buffer.from(value, 'base64').toString('utf8') : '';
  };
  const id = text('token-id');
  const secret = text('token-secret');
  if (object.metadata.name !== `${bootstrapSecretPrefix}${id}`) return undefined;
  if (!idPattern.test(id) || !secretPattern.test(secret)) return undefined;
  return {
    id,
    secret,
    expiresMs: expiryOf(text('expiration')),
    uses: {
      authentication: text('usage-bootstrap-authentication') === 'true',
      signing: text('usage-bootstrap-signing') === 'true',
    },
    groups: groupsOf(text('auth-extra-groups')),
  };
}

/** The type of bootstrap-token Secrets. */
export function bootstrapTokenType(dialect: Dialect): string {
  return `bootstrap.${dialect.labelDomain}/token`;
}

/**
 * Milliseconds since the epoch at which a Secret of this type expires, even if it is not a valid
 * token otherwise; undefined: never.
 */
export function secretExpiryMs(object: ApiObject): number | undefined {
  const value = isObject(object.data) ? member(object.data, 'expiration') : undefined;
  return expiryOf(typeof value === 'string' ? Buffer.from(value, 'base64').toString('utf8') : '');
}

function expiryOf(text: string): number | undefined {
  if (text === '') return undefined;
  const time = parseGoTime(text);
  return 'error' in time ? 0 : time.ms;
}

/** Whether an expiry, in milliseconds since the epoch, has passed. */
export function isExpired(expiresMs: number | undefined, nowMs: number): boolean {
  return expiresMs !== undefined && expiresMs <= nowMs;
}

const baseGroup = 'system:bootstrappers';
const extraGroup = /^system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]$/;

function groupsOf(text: string): readonly string[] | undefined {
  const extra = text === '' ? [] : text.split(',');
  if (!extra.every((group) => extraGroup.test(group))) return undefined;
  return [...new Set([baseGroup, ...extra])].sort();
}

const tokenPattern = /^([a-z0-9]{6})\.([a-z0-9]{16})$/;

/**
 * Authenticates bootstrap tokens (AUTHN-4): `<id>.<secret>` of a Secret in the system namespace
 * that permits authentication, has not expired, and is not being deleted. `find` returns the
 * current Secret.
 */
export function createBootstrapTokenAuthenticator(options: {
  readonly dialect: Dialect;
  readonly clock: Clock;
  readonly find: (name: string) => Promise<ApiObject | undefined>;
}): Authenticator {
  const { dialect, clock, find } = options;
  return {
    name: 'bootstrap-token',
    verifies: 'tokens',
    authenticate(credentials) {
      const match = tokenPattern.exec(bearerToken(credentials) ?? '');
      if (match === null) return undefined;
      const [, id = '', secret = ''] = match;
      return find(`${bootstrapSecretPrefix}${id}`).then((object) => {
        const user = object && userOf(object, { dialect, nowMs: clock.now(), secret });
        if (user === undefined) throw new InvalidBearerToken();
        return user;
      });
    },
  };
}

function userOf(
  object: ApiObject,
  shown: { readonly dialect: Dialect; readonly nowMs: number; readonly secret: string },
): UserInfo | undefined {
  const token = readBootstrapToken(object, shown.dialect);
  if (token === undefined || !isSameSecret(token.secret, shown.secret)) return undefined;
  if (object.metadata.deletionTimestamp !== undefined) return undefined;
  if (isExpired(token.expiresMs, shown.nowMs) || !token.uses.authentication) return undefined;
  if (token.groups === undefined) return undefined;
  return { name: `system:bootstrap:${token.id}`, uid: '', groups: token.groups, extra: {} };
}

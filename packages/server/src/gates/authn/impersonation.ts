import {
  badRequest,
  type Dialect,
  dnsLabel,
  dnsSubdomain,
  type Exchange,
  type MaybePromise,
  type RequestSubject,
  StatusError,
  type UserInfo,
} from '@wheelhouse/machinery';
import { anonymousUser } from './authentication.ts';
import { headerText } from './credentials.ts';

/** One attribute of the impersonated user, in the form in which it is authorized. */
interface Identity {
  readonly kind: 'User' | 'ServiceAccount' | 'Group' | 'UserExtra' | 'UID';
  readonly resource: string;
  readonly group: string;
  readonly namespace: string;
  readonly name: string;
  /** Key of an extra value, authorized as a subresource; otherwise empty. */
  readonly extraKey: string;
}

/** Authorizes impersonation; throws or rejects with a 403 if it is not allowed. */
interface ImpersonationAuthorizer {
  authorize(attributes: RequestSubject & { readonly user: UserInfo }): MaybePromise<unknown>;
}

/** Returns the acting user of a request: its sender, or the user that its headers name. */
export type Impersonate = (exchange: Exchange, requester: UserInfo) => MaybePromise<UserInfo>;

/**
 * Creates the gate for `Impersonate-User`, `-Group`, `-Uid`, and `-Extra-*` (AUTHN-9). The
 * requester must be allowed the verb `impersonate` for the value of each header, else 403; headers
 * without a user are a 400. (kube-apiserver answers 500.)
 */
export function createImpersonation(options: {
  readonly authorization: ImpersonationAuthorizer;
  readonly dialect: Dialect;
}): Impersonate {
  const { authorization, dialect } = options;
  const authenticationGroup = dialect.group('authentication');
  return (exchange, requester) => {
    const lines = impersonationLines(exchange.headerLines());
    if (lines === undefined) return requester;
    const identities = identitiesOf(lines, authenticationGroup);
    if (identities.length === 0) return requester;
    requireUser(identities);
    return impersonate({ authorization, requester, identities });
  };
}

const prefix = 'impersonate-';

type Line = readonly [name: string, value: string];

/** The impersonation headers; undefined, without allocating, for the many requests without any. */
function impersonationLines(lines: readonly string[]): Line[] | undefined {
  let found: Line[] | undefined;
  for (let index = 0; index + 1 < lines.length; index += 2) {
    const name = lines[index] ?? '';
    if (name.length <= prefix.length || (name[0] !== 'i' && name[0] !== 'I')) continue;
    const lower = name.toLowerCase();
    if (!lower.startsWith(prefix)) continue;
    found ??= [];
    found.push([lower, valueOfLine(lines[index + 1] ?? '')]);
  }
  return found;
}

function valueOfLine(value: string): string {
  try {
    return headerText(value);
  } catch {
    const message = 'an impersonation header is not UTF-8';
    throw new StatusError({ code: 400, reason: 'BadRequest', message });
  }
}

const extraPrefix = 'impersonate-extra-';

/** The identities to authorize, in order: the user, groups, extra values, and the uid. */
function identitiesOf(lines: readonly Line[], authenticationGroup: string): Identity[] {
  const first = (name: string) => lines.find((line) => line[0] === name)?.[1] ?? '';
  const core = { group: '', namespace: '', extraKey: '' };
  const identities: Identity[] = [];
  const user = first('impersonate-user');
  const account = serviceAccountOf(user);
  if (account !== undefined) {
    identities.push({ ...core, kind: 'ServiceAccount', resource: 'serviceaccounts', ...account });
  } else if (user !== '') {
    identities.push({ ...core, kind: 'User', resource: 'users', name: user });
  }
  for (const [name, value] of lines) {
    if (name !== 'impersonate-group') continue;
    identities.push({ ...core, kind: 'Group', resource: 'groups', name: value });
  }
  const shared = { group: authenticationGroup, namespace: '', extraKey: '' };
  for (const [name, value] of lines) {
    if (!name.startsWith(extraPrefix)) continue;
    const extraKey = unescapeHeaderKey(name.slice(extraPrefix.length));
    identities.push({
      ...shared,
      kind: 'UserExtra',
      resource: 'userextras',
      name: value,
      extraKey,
    });
  }
  const uid = first('impersonate-uid');
  if (uid !== '') identities.push({ ...shared, kind: 'UID', resource: 'uids', name: uid });
  return identities;
}

const accountPrefix = 'system:serviceaccount:';

/** Namespace and name in a service account's user name; undefined for any other user. */
function serviceAccountOf(user: string): { namespace: string; name: string } | undefined {
  if (!user.startsWith(accountPrefix)) return undefined;
  const [namespace, name, ...rest] = user.slice(accountPrefix.length).split(':');
  if (namespace === undefined || name === undefined || rest.length > 0) return undefined;
  const isValid = dnsLabel(namespace).length === 0 && dnsSubdomain(name).length === 0;
  return isValid ? { namespace, name } : undefined;
}

/** Decodes a key, which is percent-encoded if a header name could not contain it. */
export function unescapeHeaderKey(key: string): string {
  try {
    return decodeURIComponent(key);
  } catch {
    return key;
  }
}

/** Throws 400 if the headers name no user. */
function requireUser(identities: readonly Identity[]): void {
  const [first] = identities;
  if (first?.kind === 'User' || first?.kind === 'ServiceAccount') return;
  const shown = identities.map((identity) => {
    const version = identity.group === '' ? '' : `${identity.group}/v1`;
    return `{${identity.kind} ${identity.namespace} ${identity.name}  ${version}  ${identity.extraKey}}`;
  });
  throw badRequest(`requested [${shown.join(' ')}] without impersonating a user`);
}

async function impersonate(options: {
  readonly authorization: ImpersonationAuthorizer;
  readonly requester: UserInfo;
  readonly identities: readonly Identity[];
}): Promise<UserInfo> {
  const { authorization, requester, identities } = options;
  for (const { group, resource, namespace, name, extraKey } of identities) {
    await authorization.authorize({
      user: requester,
      verb: 'impersonate',
      isResourceRequest: true,
      group,
      version: group === '' ? '' : 'v1',
      resource,
      subresource: extraKey,
      namespace,
      name,
      path: '',
    });
  }
  return userOf(identities);
}

function userOf(identities: readonly Identity[]): UserInfo {
  const ofKind = (kind: Identity['kind']) =>
    identities.filter((identity) => identity.kind === kind);
  const [account] = ofKind('ServiceAccount');
  const name =
    account === undefined
      ? (ofKind('User')[0]?.name ?? '')
      : `${accountPrefix}${account.namespace}:${account.name}`;
  const groupNames = ofKind('Group').map((identity) => identity.name);
  const accountGroups =
    account === undefined
      ? []
      : ['system:serviceaccounts', `system:serviceaccounts:${account.namespace}`];
  const extra: Record<string, string[]> = Object.create(null);
  for (const { extraKey, name: value } of ofKind('UserExtra')) {
    extra[extraKey] ??= [];
    extra[extraKey].push(value);
  }
  return {
    name,
    uid: ofKind('UID')[0]?.name ?? '',
    groups: withAuthenticationGroup(name, groupNames.length > 0 ? groupNames : accountGroups),
    extra,
  };
}

/** Adds the group of all authenticated or all unauthenticated users, if it is missing. */
function withAuthenticationGroup(name: string, groups: readonly string[]): readonly string[] {
  const authenticated = 'system:authenticated';
  const unauthenticated = 'system:unauthenticated';
  if (name === anonymousUser.name) {
    return groups.includes(unauthenticated) ? groups : [...groups, unauthenticated];
  }
  const hasEither = groups.includes(authenticated) || groups.includes(unauthenticated);
  return hasEither ? groups : [...groups, authenticated];
}

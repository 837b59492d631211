import { isUtf8 } from 'node:buffer';
import {
  type Exchange,
  type MaybePromise,
  protocolsOf,
  StatusError,
  type UserInfo,
} from '@wheelhouse/machinery';
import { bearerToken } from './bearer.ts';
import type { Authenticator, Credentials } from './contract.ts';
import { decodeBase64url } from './jwt/compact.ts';

/** Who everybody is that showed no credential. */
export const anonymousUser: UserInfo = {
  name: 'system:anonymous',
  uid: '',
  groups: ['system:unauthenticated'],
  extra: {},
};

/** The 401 of a request with a bad credential, or with none where one is required. */
export class NotRecognized extends StatusError {
  readonly credential: 'bad' | 'none';

  constructor(credential: 'bad' | 'none') {
    super({ code: 401, reason: 'Unauthorized', message: 'Unauthorized' });
    this.credential = credential;
  }
}

interface Asked {
  readonly exchange: Exchange;
  readonly shown: Credentials;
}

const authenticatedGroup = 'system:authenticated';

/** Tells who sent an exchange; throws or rejects with a 401 StatusError when nobody can. */
export type Authenticate = (exchange: Exchange) => MaybePromise<UserInfo>;

/**
 * Joins authenticators into the gate of the pipeline (AUTHN-1, AUTHN-12). They are asked in order
 * until one succeeds, whatever the ones before it threw; with none successful, one bad credential
 * is a 401, and only a request without any is anonymous (or a 401 when `anonymous` is false, or the
 * path is none of `anonymousPaths`). A bearer token that no authenticator knows is a bad credential.
 * `onRejected` learns why a credential was refused; what it gets never holds the credential.
 */
export function createAuthentication(options: {
  readonly authenticators: readonly Authenticator[];
  readonly anonymous: boolean;
  /** Where anonymous requests are let in; absent: everywhere. */
  readonly anonymousPaths?: ReadonlySet<string> | undefined;
  readonly onRejected?: (failure: { authenticator: string; error: unknown }) => void;
}): Authenticate {
  const { authenticators, anonymous, anonymousPaths, onRejected } = options;
  const finish = ({ exchange, shown }: Asked, rejected: boolean): UserInfo => {
    if (rejected || bearerToken(shown) !== undefined) throw new NotRecognized('bad');
    const isLetIn = anonymous && anonymousPaths?.has(pathOf(exchange)) !== false;
    if (!isLetIn) throw new NotRecognized('none');
    return anonymousUser;
  };
  const refuse = (authenticator: Authenticator, error: unknown): void =>
    onRejected?.({ authenticator: authenticator.name, error });

  const continueAsync = async (
    request: Asked,
    state: { pending: Promise<UserInfo | undefined>; index: number; rejected: boolean },
  ): Promise<UserInfo> => {
    let { pending, rejected } = state;
    for (let index = state.index; ; ) {
      try {
        const user = await pending;
        if (user !== undefined) return withAuthenticatedGroup(user);
      } catch (error) {
        rejected = true;
        refuse(authenticators[index]!, error);
      }
      index += 1;
      const next = authenticators[index];
      if (next === undefined) return finish(request, rejected);
      pending = (async () => next.authenticate(request.shown))();
    }
  };

  const shownBy = (exchange: Exchange): Credentials => {
    try {
      return credentialsOf(exchange);
    } catch (error) {
      onRejected?.({ authenticator: 'websocket', error });
      throw new NotRecognized('bad');
    }
  };

  return (exchange) => {
    const shown = shownBy(exchange);
    let rejected = false;
    for (let index = 0; index < authenticators.length; index++) {
      const authenticator = authenticators[index]!;
      try {
        const user = authenticator.authenticate(shown);
        if (user instanceof Promise) {
          return continueAsync({ exchange, shown }, { pending: user, index, rejected });
        }
        if (user !== undefined) return withAuthenticatedGroup(user);
      } catch (error) {
        rejected = true;
        refuse(authenticator, error);
      }
    }
    return finish({ exchange, shown }, rejected);
  };
}

/** Not decoded: a path written in another way than the condition is none of its paths. */
function pathOf({ url }: Exchange): string {
  const mark = url.indexOf('?');
  return mark < 0 ? url : url.slice(0, mark);
}

const widened = new WeakMap<UserInfo, UserInfo>();

/**
 * Adds `system:authenticated`, except to the anonymous user. Remembered per user value, since
 * authenticators hand out the same value for every request of a credential.
 */
export function withAuthenticatedGroup(user: UserInfo): UserInfo {
  const cached = widened.get(user);
  if (cached !== undefined) return cached;
  const as = user.groups;
  const unchanged =
    user.name === anonymousUser.name ||
    as.includes(authenticatedGroup) ||
    as.includes('system:unauthenticated');
  const result = unchanged ? user : { ...user, groups: [...as, authenticatedGroup] };
  widened.set(user, result);
  return result;
}

/**
 * What tells who sends an exchange: a token that is sent as a protocol of a WebSocket stands in for the
 * header that browsers cannot set (AUTHN-3). Throws for one that cannot be read, and when no other
 * protocol is named, which the handshake could be answered with.
 */
function credentialsOf(exchange: Exchange): Credentials {
  if (exchange.header('authorization') !== undefined) return exchange;
  if (exchange.header('upgrade')?.toLowerCase() !== 'websocket') return exchange;
  const { names, tokens } = protocolsOf(exchange.header('sec-websocket-protocol'));
  const [encoded, ...more] = tokens;
  if (encoded === undefined) return exchange;
  if (more.length > 0) throw new Error('multiple base64.bearer.authorization tokens specified');
  if (encoded === '') return exchange;
  const bytes = decodeBase64url(encoded);
  if (bytes === undefined) {
    throw new Error('invalid base64.bearer.authorization token encoding');
  }
  if (!isUtf8(bytes)) throw new Error('invalid base64.bearer.authorization token');
  if (names.length === 0) throw new Error('missing additional subprotocol');
  const authorization = `Bearer ${bytes.toString()}`;
  return {
    header: (name) => (name === 'authorization' ? authorization : exchange.header(name)),
    headerLines: () => exchange.headerLines(),
    connection: exchange.connection,
  };
}

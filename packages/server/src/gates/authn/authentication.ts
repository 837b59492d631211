import { isUtf8 } from 'node:buffer';
import {
  aggregateText,
  cut,
  type Exchange,
  errorText,
  type MaybePromise,
  type MetricRegistry,
  parseWebSocketProtocols,
  StatusError,
  type UserInfo,
} from '@wheelhouse/machinery';
import type { Authenticator, Credentials, TokenCacheMeter, TokenVerdict } from './contract.ts';
import { addWarning, bearerToken, hasHiddenToken, InvalidBearerToken } from './credentials.ts';
import { decodeBase64url } from './jwt/token.ts';

/** The user of requests without credentials. */
export const anonymousUser: UserInfo = {
  name: 'system:anonymous',
  uid: '',
  groups: ['system:unauthenticated'],
  extra: {},
};

/** A 401 for a bad credential, or for the lack of a required one. */
export class UnauthenticatedError extends StatusError {
  readonly credential: 'bad' | 'none';

  constructor(credential: 'bad' | 'none') {
    super({ code: 401, reason: 'Unauthorized', message: 'Unauthorized' });
    this.credential = credential;
  }
}

interface Attempt {
  readonly exchange: Exchange;
  readonly credentials: Credentials;
}

/** Why no authenticator has accepted a request so far. */
type Rejection = 'none' | 'unknown' | 'failed';

const authenticatedGroup = 'system:authenticated';

/** Authenticates the sender of an exchange; throws or rejects with a 401 StatusError. */
export type Authenticate = (exchange: Exchange) => MaybePromise<UserInfo>;

/**
 * Combines authenticators into the authentication gate (AUTHN-1, AUTHN-12). They are tried in order
 * until one succeeds, even if earlier ones throw. If none succeeds, a bad credential is a 401, and
 * a request without credentials is anonymous, or a 401 if `anonymous` is false or the path is not
 * in `anonymousPaths`. A bearer token that no authenticator recognizes is a bad credential.
 * `onRejected` receives the reason, which never contains the credential. Without a credential, an
 * HTTP/2 connection takes one request if `unauthenticatedHttp2` is `one request`, so that its
 * multiplexing cannot be abused.
 */
export function createAuthentication(options: {
  readonly authenticators: readonly Authenticator[];
  readonly anonymous: boolean;
  /** Paths that accept anonymous requests; absent: all. */
  readonly anonymousPaths?: ReadonlySet<string> | undefined;
  readonly unauthenticatedHttp2?: 'one request' | 'any number';
  readonly onRejected?: (failure: { authenticator: string; error: unknown }) => void;
  readonly tokens?: TokenCacheMeter | undefined;
}): Authenticate {
  const { authenticators, anonymous, anonymousPaths, onRejected, tokens } = options;
  const finish = ({ exchange, credentials }: Attempt, rejection: Rejection): UserInfo => {
    if (options.unauthenticatedHttp2 === 'one request') leaveHttp2(exchange);
    const hasToken = bearerToken(credentials) !== undefined;
    if (hasToken) tokens?.countMiss(rejection === 'failed' ? 'error' : 'ok');
    if (hasToken || rejection !== 'none') throw new UnauthenticatedError('bad');
    const isAllowed = anonymous && anonymousPaths?.has(pathOf(exchange)) !== false;
    if (!isAllowed) throw new UnauthenticatedError('none');
    if (hasHiddenToken(credentials)) addWarning(exchange, hiddenToken);
    return anonymousUser;
  };
  const reject = (authenticator: Authenticator, error: unknown, before: Rejection): Rejection => {
    onRejected?.({ authenticator: authenticator.name, error });
    return rejectionFor(error, before);
  };
  const accept = (authenticator: Authenticator, user: UserInfo): UserInfo => {
    const cachedUser = authenticatedUsers.get(user);
    if (tokens !== undefined && authenticator.verifies === 'tokens') {
      if (cachedUser === undefined) tokens.countMiss('ok');
      else tokens.observeLookup('hit', 0);
    }
    return cachedUser ?? withAuthenticatedGroup(user);
  };

  const continueAsync = async (
    request: Attempt,
    state: { pending: Promise<UserInfo | undefined>; index: number; rejection: Rejection },
  ): Promise<UserInfo> => {
    let { pending, rejection } = state;
    for (let index = state.index; ; ) {
      try {
        const user = await pending;
        if (user !== undefined) return accept(authenticators[index]!, user);
      } catch (error) {
        rejection = reject(authenticators[index]!, error, rejection);
      }
      index += 1;
      const next = authenticators[index];
      if (next === undefined) return finish(request, rejection);
      pending = (async () => next.authenticate(request.credentials))();
    }
  };

  return (exchange) => {
    const credentials = credentialsOrReject(exchange, onRejected);
    let rejection: Rejection = 'none';
    for (let index = 0; index < authenticators.length; index++) {
      const authenticator = authenticators[index]!;
      try {
        const user = authenticator.authenticate(credentials);
        if (user instanceof Promise) {
          return continueAsync({ exchange, credentials }, { pending: user, index, rejection });
        }
        if (user !== undefined) return accept(authenticator, user);
      } catch (error) {
        rejection = reject(authenticator, error, rejection);
      }
    }
    return finish({ exchange, credentials }, rejection);
  };
}

function leaveHttp2({ httpVersion, connection }: Exchange): void {
  if (httpVersion === '2') connection.retire?.();
}

const hiddenToken =
  'the provided Authorization header contains extra space before the bearer token, and is ignored';

function rejectionFor(error: unknown, before: Rejection): Rejection {
  return error instanceof InvalidBearerToken && before !== 'failed' ? 'unknown' : 'failed';
}

function credentialsOrReject(
  exchange: Exchange,
  onRejected: Parameters<typeof createAuthentication>[0]['onRejected'],
): Credentials {
  try {
    return credentialsOf(exchange);
  } catch (error) {
    onRejected?.({ authenticator: 'websocket', error });
    throw new UnauthenticatedError('bad');
  }
}

/** The path as sent, so that an escaped spelling of an allowed path is not allowed. */
function pathOf({ url }: Exchange): string {
  return cut(url, '?')[0];
}

/** Counts a verdict on a token; authenticators return the same user value while they cache it. */
function countVerdict(tokens: TokenCacheMeter, user: UserInfo): void {
  if (authenticatedUsers.has(user)) tokens.observeLookup('hit', 0);
  else tokens.countMiss('ok');
}

const authenticatedUsers = new WeakMap<UserInfo, UserInfo>();

/**
 * Adds `system:authenticated`, except to the anonymous user. The result is cached per user value,
 * because authenticators return the same value for every request with a credential.
 */
function withAuthenticatedGroup(user: UserInfo): UserInfo {
  const cached = authenticatedUsers.get(user);
  if (cached !== undefined) return cached;
  const as = user.groups;
  const unchanged =
    user.name === anonymousUser.name ||
    as.includes(authenticatedGroup) ||
    as.includes('system:unauthenticated');
  const result = unchanged ? user : { ...user, groups: [...as, authenticatedGroup] };
  authenticatedUsers.set(user, result);
  return result;
}

/**
 * The credentials of an exchange: a token in the subprotocols of a WebSocket replaces the header
 * that browsers cannot set (AUTHN-3). Throws if the token is malformed, or if no other subprotocol
 * is offered for the answer of the handshake.
 */
function credentialsOf(exchange: Exchange): Credentials {
  if (exchange.header('authorization') !== undefined) return exchange;
  if (exchange.header('upgrade')?.toLowerCase() !== 'websocket') return exchange;
  const { names, tokens } = parseWebSocketProtocols(exchange.header('sec-websocket-protocol'));
  const [encoded, ...more] = tokens;
  if (encoded === undefined) return exchange;
  if (more.length > 0) throw new Error('multiple base64.bearer.authorization tokens specified');
  if (encoded === '') return exchange;
  const bytes = decodeBase64url(encoded);
  if (bytes === undefined) throw new Error('invalid base64.bearer.authorization token encoding');
  if (!isUtf8(bytes)) throw new Error('invalid base64.bearer.authorization token');
  if (names.length === 0) throw new Error('missing additional subprotocol');
  const authorization = `Bearer ${bytes.toString()}`;
  return {
    header: (name) => (name === 'authorization' ? authorization : exchange.header(name)),
    headerLines: () => exchange.headerLines(),
    connection: exchange.connection,
  };
}

/** The result of a token review. `error` is for the requester and never contains the token. */
interface TokenReviewResult {
  readonly verdict: TokenVerdict | undefined;
  readonly error: string;
}

/** Determines a token's user and audiences; an empty list means the server's own audiences. */
export type ReviewToken = (
  token: string,
  audiences: readonly string[],
) => Promise<TokenReviewResult>;

/**
 * Creates the token reviewer from the pipeline's authenticators (AUTHN-10). They are tried in order
 * until one succeeds, as for a request with only this token. Tokens of an authenticator without
 * audiences are for the server's own.
 */
export function createTokenReviewer(options: {
  readonly authenticators: readonly Authenticator[];
  readonly audiences: readonly string[];
  readonly tokens?: TokenCacheMeter | undefined;
}): ReviewToken {
  const { authenticators, tokens } = options;
  return async (token, requestedAudiences) => {
    const audiences = requestedAudiences.length === 0 ? options.audiences : requestedAudiences;
    const own = options.audiences.filter((audience) => audiences.includes(audience));
    // kube-apiserver asks for its own token first.
    const errors = [new InvalidBearerToken().message];
    let result: 'ok' | 'error' = 'ok';
    const credentials = credentialsOfToken(token);
    for (const authenticator of authenticators) {
      try {
        const verdict = await reviewWith(authenticator, { token, credentials, audiences, own });
        if (verdict === undefined) continue;
        if (tokens !== undefined) countVerdict(tokens, verdict.user);
        return { verdict: { ...verdict, user: withAuthenticatedGroup(verdict.user) }, error: '' };
      } catch (error) {
        errors.push(errorText(error));
        if (!(error instanceof InvalidBearerToken)) result = 'error';
      }
    }
    tokens?.countMiss(result);
    return { verdict: undefined, error: aggregateText(errors) };
  };
}

async function reviewWith(
  authenticator: Authenticator,
  request: {
    readonly token: string;
    readonly credentials: Credentials;
    readonly audiences: readonly string[];
    readonly own: readonly string[];
  },
): Promise<TokenVerdict | undefined> {
  const { token, credentials, audiences, own } = request;
  if (authenticator.reviewToken !== undefined) return authenticator.reviewToken(token, audiences);
  if (own.length === 0) return undefined;
  const user: UserInfo | undefined = await authenticator.authenticate(credentials);
  return user === undefined ? undefined : { user, audiences: own };
}

/** The credentials of a request whose only credential is a bearer token. */
function credentialsOfToken(token: string): Credentials {
  const value = `Bearer ${token}`;
  return {
    header: (name) => (name === 'authorization' ? value : undefined),
    headerLines: () => ['authorization', value],
    connection: { memo: new Map(), peerCertificates: () => [] },
  };
}

const lookupBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Counts verdicts on bearer tokens under kube-apiserver's metric names (OPS-1). */
export function createTokenCacheMeter(registry: MetricRegistry): TokenCacheMeter {
  const definition = (name: string, help: string) => ({
    name: `authentication_token_cache_${name}`,
    help,
    stability: 'ALPHA' as const,
    labels: ['status'],
  });
  const requests = registry.counter(
    definition('request_total', 'Lookups of bearer tokens, by whether the verdict was cached.'),
  );
  const durations = registry.histogram({
    ...definition('request_duration_seconds', 'Duration of lookups of bearer tokens, in seconds.'),
    buckets: lookupBuckets,
  });
  const fetches = registry.counter(
    definition('fetch_total', 'Verdicts on bearer tokens that were not cached, by result.'),
  );
  const active = registry.gauge(
    definition(
      'active_fetch_count',
      'Requests that call the token webhook, or that wait for another request to call it.',
    ),
  );
  const [inFlight, blocked] = [active.of('in_flight'), active.of('blocked')];
  const seriesOf = (from: 'hit' | 'miss') => ({
    requests: requests.of(from),
    durations: durations.of(from),
  });
  const series = { hit: seriesOf('hit'), miss: seriesOf('miss') };
  const observeLookup = (from: 'hit' | 'miss', tookMs: number) => {
    series[from].requests.add(1);
    series[from].durations.observe(tookMs / 1000);
  };
  return {
    observeLookup,
    countMiss(result) {
      observeLookup('miss', 0);
      fetches.of(result).add(1);
    },
    startFetch() {
      inFlight.add(1);
      return (result) => {
        inFlight.add(-1);
        fetches.of(result).add(1);
      };
    },
    startWait() {
      blocked.add(1);
      return () => blocked.add(-1);
    },
  };
}

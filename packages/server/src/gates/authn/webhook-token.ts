import { createHmac, randomBytes } from 'node:crypto';
import { listType, reviewStatusReader, structType, textType, truthType } from '@wheelhouse/codec';
import {
  type Clock,
  createExpiringCache,
  type Dialect,
  type JsonObject,
  type JsonValue,
  type MaybePromise,
  objectOf,
  stringsOf,
  supportedVersion,
  textOf,
  type UserInfo,
  type Webhook,
  webhookBody,
} from '@wheelhouse/machinery';
import type { Authenticator, TokenCacheMeter, TokenVerdict } from './contract.ts';
import { bearerToken, InvalidBearerToken } from './credentials.ts';

/** Maximum number of cached verdicts; they are bounded because clients can invent tokens. */
const verdictsMax = 16_384;

/** Versions of TokenReview that can be sent to a webhook. */
const tokenReviewVersions = ['v1', 'v1beta1'] as const;
const reviewVersion = (name: string) =>
  supportedVersion(name, { what: 'authentication webhook', versions: tokenReviewVersions });

interface Verdict {
  /** Undefined: an unknown token, or one for other audiences. */
  readonly verdict: TokenVerdict | undefined;
}

/**
 * Authenticates bearer tokens with a webhook's TokenReview (AUTHN-9). Verdicts are cached for
 * `ttlMs`, including negative ones. Failures of the webhook and errors that it reports are not
 * cached and reject the token. Concurrent requests with the same token share one call. Throws a
 * one-line error for an unsupported version.
 */
export function createWebhookTokenAuthenticator(options: {
  readonly webhook: Webhook;
  readonly version: string;
  readonly dialect: Dialect;
  /** The server's own audiences, one of which a request's token must be for. */
  readonly audiences: readonly string[];
  readonly ttlMs: number;
  readonly clock: Clock;
  readonly meter?: TokenCacheMeter | undefined;
  /** Receives failures of the webhook; the client receives a 401. */
  readonly onFailure?: (error: unknown) => void;
}): Authenticator {
  const { dialect, clock, ttlMs } = options;
  const webhook = reportingFailures(options.webhook, options.onFailure);
  const apiVersion = `${dialect.group('authentication')}/${reviewVersion(options.version)}`;
  const cache = createExpiringCache<Verdict>({ entriesMax: verdictsMax, clock });
  const pending = new Map<string, Promise<Verdict>>();
  const keyOf = verdictKeys();

  const callWebhook = async (token: string, audiences: readonly string[]): Promise<Verdict> => {
    const body = reviewBody({ apiVersion, token, audiences });
    const status = await webhook.call(body, (answer) => readStatus(answer, apiVersion));
    return { verdict: verdictOf(status, { requested: audiences, own: options.audiences }) };
  };
  const fetch = async (key: string, [token, audiences]: Parameters<typeof callWebhook>) => {
    const ended = options.meter?.startFetch();
    try {
      const verdict = await callWebhook(token, audiences);
      cache.set(key, verdict, ttlMs);
      ended?.('ok');
      return verdict;
    } catch (error) {
      ended?.('error');
      throw error;
    } finally {
      pending.delete(key);
    }
  };
  const fetchShared = async (key: string, request: Parameters<typeof callWebhook>) => {
    const startMs = clock.monotonic();
    const ongoing = pending.get(key);
    const call = ongoing ?? fetch(key, request);
    if (ongoing === undefined) pending.set(key, call);
    const unblocked = ongoing === undefined ? undefined : options.meter?.startWait();
    try {
      return await call;
    } finally {
      unblocked?.();
      options.meter?.observeLookup('miss', clock.monotonic() - startMs);
    }
  };
  const review = (...request: Parameters<typeof callWebhook>): MaybePromise<Verdict> => {
    const key = keyOf(...request);
    const cached = cache.get(key);
    if (cached === undefined) return fetchShared(key, request);
    options.meter?.observeLookup('hit', 0);
    return cached;
  };

  return {
    name: 'webhook-token',
    verifies: 'tokens',
    authenticate(exchange) {
      const token = bearerToken(exchange);
      if (token === undefined) return undefined;
      return Promise.resolve(review(token, options.audiences)).then(acceptedUser);
    },
    reviewToken: async (token, audiences) => (await review(token, audiences)).verdict,
  };
}

function reportingFailures(
  webhook: Webhook,
  onFailure: (error: unknown) => void = () => {},
): Webhook {
  return {
    async call(body, read) {
      try {
        return await webhook.call(body, read);
      } catch (error) {
        onFailure(error);
        throw error;
      }
    },
  };
}

function acceptedUser({ verdict }: Verdict): UserInfo {
  if (verdict === undefined) throw new InvalidBearerToken();
  return verdict.user;
}

/** Cache keys, which reveal nothing about the token and cannot be predicted. */
function verdictKeys(): (token: string, audiences: readonly string[]) => string {
  const secret = randomBytes(32);
  return (token, audiences) =>
    createHmac('sha256', secret)
      .update(JSON.stringify([token, audiences]))
      .digest('base64');
}

function reviewBody(review: {
  readonly apiVersion: string;
  readonly token: string;
  readonly audiences: readonly string[];
}): string {
  const { apiVersion, token, audiences } = review;
  return webhookBody({
    kind: 'TokenReview',
    apiVersion,
    metadata: { creationTimestamp: null },
    spec: { token, ...(audiences.length === 0 ? {} : { audiences: [...audiences] }) },
    status: { user: {} },
  });
}

const userType = structType('UserInfo', {
  username: textType,
  uid: textType,
  groups: listType(textType),
  extra: { type: 'object', additionalProperties: listType(textType) },
});
const readStatus = reviewStatusReader(
  'TokenReview',
  structType('TokenReviewStatus', {
    authenticated: truthType,
    user: userType,
    audiences: listType(textType),
    error: textType,
  }),
);

/** The verdict of a status; the audiences are checked first, as in kube-apiserver. */
function verdictOf(
  status: JsonObject,
  audiences: { readonly requested: readonly string[]; readonly own: readonly string[] },
): TokenVerdict | undefined {
  const { requested } = audiences;
  const accepted = stringsOf(status['audiences']);
  const validAudiences = accepted.length > 0 ? accepted : audiences.own;
  const shared = requested.filter((audience) => validAudiences.includes(audience));
  if (requested.length > 0 && shared.length === 0) return undefined;
  if (status['authenticated'] !== true) {
    const error = status['error'];
    if (typeof error === 'string' && error !== '') throw new Error(error);
    return undefined;
  }
  return { user: userOf(status['user']), audiences: shared };
}

function userOf(value: JsonValue | undefined): UserInfo {
  const userInfo = objectOf(value);
  const extra: Record<string, readonly string[]> = Object.create(null);
  const more = objectOf(userInfo['extra']);
  for (const name of Object.keys(more)) extra[name] = stringsOf(more[name]);
  const name = textOf(userInfo['username']);
  // A user without a name would still count as authenticated.
  if (name === '') throw new Error('the webhook authenticated a token without naming the user');
  return { name, uid: textOf(userInfo['uid']), groups: stringsOf(userInfo['groups']), extra };
}

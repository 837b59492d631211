import { aggregateText, errorText, type UserInfo } from '@wheelhouse/machinery';
import { countVerdict, withAuthenticatedGroup } from './authentication.ts';
import { InvalidBearerToken } from './bearer.ts';
import type { Authenticator, Credentials, TokenCacheMeter, TokenVerdict } from './contract.ts';

/** What a review of a token comes to. `error` is for whoever asked; it never holds the token. */
export interface TokenReviewResult {
  readonly verdict: TokenVerdict | undefined;
  readonly error: string;
}

/** Tells whose a token is and for which of the audiences; none given means the server's own. */
export type ReviewToken = (
  token: string,
  audiences: readonly string[],
) => Promise<TokenReviewResult>;

/**
 * Makes the reviewer over the authenticators of the pipeline (AUTHN-10). They are asked in order
 * until one succeeds, as for a request that shows the token and nothing else. One that knows nothing
 * of audiences speaks for the server's own only.
 */
export function createTokenReviewer(options: {
  readonly authenticators: readonly Authenticator[];
  readonly audiences: readonly string[];
  readonly tokens?: TokenCacheMeter | undefined;
}): ReviewToken {
  const { authenticators, tokens } = options;
  return async (token, requestedAudiences) => {
    const audiences = requestedAudiences.length === 0 ? options.audiences : requestedAudiences;
    const own = options.audiences.filter((one) => audiences.includes(one));
    const errors: string[] = [];
    let result: 'ok' | 'error' = 'ok';
    const credentials = credentialsOf(token);
    for (const authenticator of authenticators) {
      try {
        const verdict = await ask(authenticator, { token, credentials, audiences, own });
        if (verdict === undefined) continue;
        if (tokens !== undefined) countVerdict(tokens, verdict.user);
        return { verdict: { ...verdict, user: withAuthenticatedGroup(verdict.user) }, error: '' };
      } catch (error) {
        errors.push(errorText(error));
        if (!(error instanceof InvalidBearerToken)) result = 'error';
      }
    }
    tokens?.missed(result);
    return {
      verdict: undefined,
      error: errors.length === 0 ? 'invalid bearer token' : aggregateText(errors),
    };
  };
}

async function ask(
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

/** A request that has a bearer token and nothing else that tells who sent it. */
function credentialsOf(token: string): Credentials {
  const value = `Bearer ${token}`;
  return {
    header: (name) => (name === 'authorization' ? value : undefined),
    headerLines: () => ['authorization', value],
    connection: { memo: new Map(), peerCertificates: () => [] },
  };
}

import type { Connection, Exchange, MaybePromise, UserInfo } from '@wheelhouse/machinery';

/**
 * One way to tell who asks. `undefined`: no credential of this authenticator's kind; a thrown or
 * rejected error: there is one and it is bad (AUTHN-1: then the answer is 401, never anonymous,
 * unless another authenticator accepts it).
 */
export interface Authenticator {
  readonly name: string;
  /** For authenticators of bearer tokens, whose verdicts are counted. */
  readonly judges?: 'tokens';
  authenticate(exchange: Credentials): MaybePromise<UserInfo | undefined>;
  /**
   * For authenticators whose tokens name audiences: as `authenticate`, with the audiences to judge
   * by, of which the verdict names those the token is for. Absent: tokens are for this server.
   */
  reviewToken?(token: string, audiences: readonly string[]): MaybePromise<TokenVerdict | undefined>;
}

/** Counts verdicts on bearer tokens, and where they came from. */
export interface TokenCacheMeter {
  /** A token's verdict was remembered, or came after that time. */
  answered(from: 'hit' | 'miss', tookMs: number): void;
  /** A verdict had to be found and was there at once; `error`: what should find it has failed. */
  missed(result: 'ok' | 'error'): void;
  /** The webhook is asked; the function is called with how that ended. */
  fetching(): (result: 'ok' | 'error') => void;
  /** A request waits for the answer to another's question; the function is called at its end. */
  blocked(): () => void;
}

/** What of an exchange tells who sends it. */
export interface Credentials extends Pick<Exchange, 'header' | 'headerLines'> {
  readonly connection: Pick<Connection, 'memo' | 'peerCertificates'>;
}

/** Whose a token is, and for which of the audiences asked about. */
export interface TokenVerdict {
  readonly user: UserInfo;
  readonly audiences: readonly string[];
}

/** What a service account token can be bound to. */
export interface BoundObject {
  readonly resource: 'pods' | 'secrets' | 'nodes';
  readonly name: string;
  readonly uid: string;
  /** Where a pod is; without a uid when there is no such node. */
  readonly node?: { readonly name: string; readonly uid: string } | undefined;
}

/** Issues service account tokens (AUTHN-6). */
export interface TokenIssuer {
  /**
   * The token of a Secret: good as long as the Secret and the account are. Absent where another
   * process signs, which signs no tokens without an end.
   */
  issueLegacy?(request: {
    readonly namespace: string;
    readonly secretName: string;
    readonly serviceAccount: { readonly name: string; readonly uid: string };
  }): string;
  issue(request: {
    readonly namespace: string;
    readonly serviceAccount: { readonly name: string; readonly uid: string };
    readonly bound: BoundObject | undefined;
    /** Empty: the server's own. */
    readonly audiences: readonly string[];
    /** The server may give less. */
    readonly expirationSeconds: number;
  }): Promise<{
    readonly token: string;
    /** Names the token without giving it away. */
    readonly credentialId: string | undefined;
    readonly audiences: readonly string[];
    readonly expirationSeconds: number;
    /** Wall time, milliseconds since the epoch. */
    readonly expiresMs: number;
  }>;
}

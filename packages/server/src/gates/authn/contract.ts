import type { Connection, Exchange, MaybePromise, UserInfo } from '@wheelhouse/machinery';

/**
 * One way to authenticate a request. `undefined`: no credential of this authenticator's kind. A
 * thrown or rejected error: a bad credential (AUTHN-1: the answer is 401 and never anonymous,
 * unless another authenticator accepts the request).
 */
export interface Authenticator {
  readonly name: string;
  /** Set for authenticators of bearer tokens, whose results are counted. */
  readonly verifies?: 'tokens';
  authenticate(exchange: Credentials): MaybePromise<UserInfo | undefined>;
  /**
   * Reviews a token that names audiences; the verdict lists those of `audiences` that it is for.
   * Absent if tokens are for this server.
   */
  reviewToken?(token: string, audiences: readonly string[]): MaybePromise<TokenVerdict | undefined>;
}

/** Counts verdicts on bearer tokens by their source. */
export interface TokenCacheMeter {
  /** A verdict was cached, or took that many milliseconds. */
  answered(from: 'hit' | 'miss', tookMs: number): void;
  /** A verdict was not cached and was found without a webhook; `error`: an authenticator failed. */
  missed(result: 'ok' | 'error'): void;
  /** The webhook is called; call the result with the outcome. */
  fetching(): (result: 'ok' | 'error') => void;
  /** A request waits for another's webhook call; call the result when the wait ends. */
  blocked(): () => void;
}

/** The parts of an exchange that identify its sender. */
export interface Credentials extends Pick<Exchange, 'header' | 'headerLines'> {
  readonly connection: Pick<Connection, 'memo' | 'peerCertificates'>;
}

/** The user of a token, and the requested audiences that it is for. */
export interface TokenVerdict {
  readonly user: UserInfo;
  readonly audiences: readonly string[];
}

/** An object that a service account token is bound to. */
export interface BoundObject {
  readonly resource: 'pods' | 'secrets' | 'nodes';
  readonly name: string;
  readonly uid: string;
  /** The node of a pod; its uid is empty if the node does not exist. */
  readonly node?: { readonly name: string; readonly uid: string } | undefined;
}

/** Issues service account tokens (AUTHN-6). */
export interface TokenIssuer {
  /**
   * Issues the token of a Secret, valid as long as the Secret and the account exist. Absent with an
   * external signer, which only signs tokens that expire.
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
    /** The server may issue a shorter token. */
    readonly expirationSeconds: number;
  }): Promise<{
    readonly token: string;
    /** Identifies the token without revealing it. */
    readonly credentialId: string | undefined;
    readonly audiences: readonly string[];
    readonly expirationSeconds: number;
    /** Wall time, milliseconds since the epoch. */
    readonly expiresMs: number;
  }>;
}

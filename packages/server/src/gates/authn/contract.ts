import type { Connection, Exchange, MaybePromise, UserInfo } from '@wheelhouse/machinery';

/**
 * One way to authenticate a request. `authenticate` returns undefined if the request has no
 * credential of the authenticator's kind, and throws or rejects for a bad credential. AUTHN-1: the
 * answer is then 401 and never anonymous, unless another authenticator accepts the request.
 */
export interface Authenticator {
  readonly name: string;
  /** Set for authenticators of bearer tokens, whose results are counted. */
  readonly verifies?: 'tokens';
  authenticate(exchange: Credentials): MaybePromise<UserInfo | undefined>;
  /**
   * Verifies a token; the verdict lists those of `audiences` that the token is valid for. Absent if
   * all tokens are valid for this server's audiences only.
   */
  reviewToken?(token: string, audiences: readonly string[]): MaybePromise<TokenVerdict | undefined>;
}

/** Counts lookups of bearer tokens. */
export interface TokenCacheMeter {
  /** Records a lookup: a cache hit, or a miss that took this many milliseconds. */
  observeLookup(from: 'hit' | 'miss', tookMs: number): void;
  /** Counts a miss that needed no webhook; `error`: an authenticator failed. */
  countMiss(result: 'ok' | 'error'): void;
  /** Counts a webhook call in progress; the caller calls the result with its outcome. */
  startFetch(): (result: 'ok' | 'error') => void;
  /**
   * Counts a request that waits for another's webhook call; the caller calls the result when the
   * wait ends.
   */
  startWait(): () => void;
}

/** The parts of an exchange that identify its sender. */
export interface Credentials extends Pick<Exchange, 'header' | 'headerLines'> {
  readonly connection: Pick<Connection, 'memo' | 'peerCertificates'>;
}

/** The user of a token, and the requested audiences that it is valid for. */
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
  /** The server's own audiences: those of a token whose request names none. */
  readonly audiences: readonly string[];
  issue(request: {
    readonly namespace: string;
    readonly serviceAccount: { readonly name: string; readonly uid: string };
    readonly bound: BoundObject | undefined;
    readonly audiences: readonly string[];
    /** The server may issue a shorter token. */
    readonly expirationSeconds: number;
  }): Promise<{
    readonly token: string;
    /** Identifies the token without revealing it. */
    readonly credentialId: string | undefined;
    readonly expirationSeconds: number;
    /** Wall time, milliseconds since the epoch. */
    readonly expiresMs: number;
  }>;
}

/** The user that a client impersonates. */
export interface Impersonation {
  readonly user: string;
  readonly uid?: string | undefined;
  readonly groups: readonly string[];
  readonly extra?: ReadonlyMap<string, readonly string[]> | undefined;
}

/** Everything a client needs to connect to one API server as one user. */
export interface ClientConfig {
  /** Base URL with an optional path prefix, such as `https://127.0.0.1:6443`. */
  readonly server: string;
  readonly caPem?: string | undefined;
  readonly certificatePem?: string | undefined;
  readonly keyPem?: string | undefined;
  /** Returns the token. Called for every request, since a token file may change. */
  readonly token?: (() => string | undefined) | undefined;
  readonly basicAuth?: { readonly username: string; readonly password: string } | undefined;
  /** The source of credentials that may change: those of a plugin, or a certificate in files. */
  readonly credentials?: CredentialSource | undefined;
  readonly impersonate?: Impersonation | undefined;
  readonly insecureSkipTlsVerify?: boolean | undefined;
  readonly tlsServerName?: string | undefined;
  /**
   * URL of an HTTP or HTTPS proxy that tunnels every connection; may include a user and password.
   */
  readonly proxyUrl?: string | undefined;
  readonly userAgent?: string | undefined;
  /** `negotiated` shares one connection if the server supports HTTP/2; undefined uses HTTP/1.1. */
  readonly protocol?: 'negotiated' | undefined;
}

/** Credentials that a client presents: a token, a certificate with its key, or both. */
export interface Credential {
  readonly token?: string | undefined;
  readonly certificatePem?: string | undefined;
  readonly keyPem?: string | undefined;
}

/** Credentials that are fetched and renewed: those of an exec plugin, or a certificate in files. */
export interface CredentialSource {
  /** Resolves with the current credential; rejects with CredentialError if there is none. */
  current(): Promise<Credential>;
  /**
   * Called after the server rejected this credential with 401. Resolves with a newer one, or with
   * the same one if there is none. Never rejects, since the server's response is more informative.
   */
  renew(refused: Credential): Promise<Credential>;
  /** Calls `listener` when the certificate changes. Returns a function that removes it. */
  onCertificateChange(listener: () => void): () => void;
}

/** A failure to get a credential; the message is client-go's. */
export class CredentialError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'CredentialError';
  }
}

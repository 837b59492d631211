import type { CredentialSource } from '../credentials/credential.ts';

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
  /** The source of credentials if none is set. */
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

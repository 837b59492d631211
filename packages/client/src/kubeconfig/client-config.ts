import type { CredentialSource } from '../credentials/credential.ts';

/** Whom a client acts for, having the right to. */
export interface Impersonation {
  readonly user: string;
  readonly uid?: string | undefined;
  readonly groups: readonly string[];
  readonly extra?: ReadonlyMap<string, readonly string[]> | undefined;
}

/** Everything needed to talk to one API server as one user; made from a kubeconfig or by hand. */
export interface ClientConfig {
  /** Base URL, with an optional path prefix: `https://127.0.0.1:6443`. */
  readonly server: string;
  readonly caPem?: string | undefined;
  readonly certificatePem?: string | undefined;
  readonly keyPem?: string | undefined;
  /** Asked for every request, so that a token file may change under a running client. */
  readonly token?: (() => string | undefined) | undefined;
  readonly basicAuth?: { readonly username: string; readonly password: string } | undefined;
  /** Used when nothing above says who the client is. */
  readonly credentials?: CredentialSource | undefined;
  readonly impersonate?: Impersonation | undefined;
  readonly insecureSkipTlsVerify?: boolean | undefined;
  readonly tlsServerName?: string | undefined;
  /** An http or https proxy, asked with CONNECT for every connection; may hold a user's name. */
  readonly proxyUrl?: string | undefined;
  readonly userAgent?: string | undefined;
  /** `negotiated`: calls share one connection where the server speaks HTTP/2. HTTP/1.1 if absent. */
  readonly protocol?: 'negotiated' | undefined;
}

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
  readonly impersonate?: { readonly user: string; readonly groups: readonly string[] } | undefined;
  readonly insecureSkipTlsVerify?: boolean | undefined;
  readonly tlsServerName?: string | undefined;
  readonly userAgent?: string | undefined;
}

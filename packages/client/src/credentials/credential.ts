/** Credentials that a client presents: a token, a certificate with its key, or both. */
export interface Credential {
  readonly token?: string | undefined;
  readonly certificatePem?: string | undefined;
  readonly keyPem?: string | undefined;
}

/** Credentials that are fetched and renewed, such as those of an exec plugin. */
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

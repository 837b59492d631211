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
   * Called after the server refused this credential with 401. Resolves with a newer one, or with
   * the same one if there is none. Never rejects, since the response of the server says more.
   */
  renew(refused: Credential): Promise<Credential>;
  /** Called when the certificate changes. Returns a function that stops the notifications. */
  onCertificateChange(listener: () => void): () => void;
}

/** Fetching a credential failed; the message is worded like client-go. */
export class CredentialError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'CredentialError';
  }
}

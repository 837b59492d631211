/** What a client shows of itself; a token, a certificate with its key, or both. */
export interface Credential {
  readonly token?: string | undefined;
  readonly certificatePem?: string | undefined;
  readonly keyPem?: string | undefined;
}

/** Credentials that are fetched, and fetched again: those of an exec plugin. */
export interface CredentialSource {
  /** The credential to use now; rejects with CredentialError when there is none to be had. */
  current(): Promise<Credential>;
  /**
   * The server refused this one with 401: gives a newer one. Gives the same when there is none;
   * never rejects, since the server's own answer says more.
   */
  renew(refused: Credential): Promise<Credential>;
  /** Told when the certificate is another than before; returns how to stop listening. */
  onCertificateChange(listener: () => void): () => void;
}

/** No credential could be had; the message is in the words of upstream's client. */
export class CredentialError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'CredentialError';
  }
}

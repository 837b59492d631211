/** The address of a webhook: a URL, or a Service of this server. */
export type WebhookAddress = {
  /** PEM; the host's CAs when absent. */
  readonly caPem: string | undefined;
} & (
  | { readonly url: string; readonly service?: never }
  | {
      readonly service: {
        readonly namespace: string;
        readonly name: string;
        readonly path: string;
        readonly port: number;
      };
    }
);

/** Calls webhooks; the server provides the implementation. */
export interface WebhookPort {
  /**
   * Posts a JSON text and returns the body of the answer. Rejects with WebhookCallError if no
   * answer arrives in time, the status is not a success, or the answer is too long.
   */
  post(request: {
    readonly address: WebhookAddress;
    readonly body: string;
    readonly timeoutMs: number;
    /** Maximum response size in bytes; 8 MiB when absent. */
    readonly answerBytesMax?: number;
    /** Additional headers. */
    readonly headers?: Readonly<Record<string, string>>;
    /** The purpose of the call, for traces. */
    readonly purpose?: {
      readonly name: string;
      readonly attributes: Readonly<Record<string, string>>;
    };
    /** Cancels the call. */
    readonly signal: AbortSignal | undefined;
  }): Promise<Buffer>;
}

/** A failed call; the message, in kube-apiserver's wording, is sent to the client. */
export class WebhookCallError extends Error {
  /** The status for metrics; 400 if there was no answer. */
  readonly code: number;
  /** Whether the client disconnected, so that the webhook is not to blame. */
  readonly isCanceled: boolean;

  constructor(
    message: string,
    options: ErrorOptions & { readonly code?: number; readonly isCanceled?: boolean } = {},
  ) {
    super(message, options);
    this.name = 'WebhookCallError';
    this.code = options.code ?? 400;
    this.isCanceled = options.isCanceled ?? false;
  }
}

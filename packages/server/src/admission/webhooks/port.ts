/** Where a webhook is: a URL, or a Service of this server. */
export type WebhookAddress = {
  /** PEM; the authorities of the host when absent. */
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

/** Calls webhooks; made by `server/`, which knows how to reach them. */
export interface WebhookPort {
  /**
   * Posts a JSON text and gives the body of the answer. Rejects with WebhookCallError: where nobody
   * answers in time, the answer is no success, or it is too long.
   */
  post(request: {
    readonly address: WebhookAddress;
    readonly body: string;
    readonly timeoutMs: number;
    /** Longer answers are refused; 8 MiB when absent. */
    readonly answerBytesMax?: number;
    /** More headers. */
    readonly headers?: Readonly<Record<string, string>>;
    /** What the call is for, in traces. */
    readonly purpose?: {
      readonly name: string;
      readonly attributes: Readonly<Record<string, string>>;
    };
    /** Ends the call early. */
    readonly signal: AbortSignal | undefined;
  }): Promise<Buffer>;
}

/** A call that failed; the message is told to the client, in upstream's words. */
export class WebhookCallError extends Error {
  /** What metrics count: the status of the answer; 400 when there is none. */
  readonly code: number;
  /** Whether it was the client that left, so that nobody is to blame. */
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

import type { WaitingClient } from './exchange.ts';
import type { JsonObject } from './json.ts';

/** The outcome of a call to a webhook. */
export type WebhookOutcome = 'success' | 'timeout' | 'error' | 'canceled';

/** An external service that is called by posting a JSON object. */
export interface Webhook {
  /**
   * Posts `body`, a JSON text, and returns the result of `read` for the response; an exception in
   * `read` fails the call. Retries temporary failures while `client`, if present, is
   * waiting. Rejects only with WebhookError.
   */
  call<T>(body: string, read: (response: JsonObject) => T, client?: WaitingClient): Promise<T>;
}

/** A webhook could not be called, or its response is unusable. The message contains no address. */
export class WebhookError extends Error {
  readonly outcome: Exclude<WebhookOutcome, 'success'>;

  constructor(message: string, options: ErrorOptions & { outcome: WebhookError['outcome'] }) {
    super(message, options);
    this.name = 'WebhookError';
    this.outcome = options.outcome;
  }
}

const escapes: Readonly<Record<string, string>> = {
  '<': '\\u003c',
  '>': '\\u003e',
  '&': '\\u0026',
  '\u2028': '\\u2028',
  '\u2029': '\\u2029',
};

/** Returns the body of a review: the object as Go's encoder writes it, and a line feed. */
export function webhookBody(review: JsonObject): string {
  return `${goEscaped(JSON.stringify(review))}\n`;
}

/** Returns a JSON text with the escapes that Go's encoder adds for HTML. */
export function goEscaped(json: string): string {
  return json.replaceAll(/[<>&\u2028\u2029]/g, (character) => escapes[character] ?? character);
}

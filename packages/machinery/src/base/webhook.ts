import type { Waiting } from './exchange.ts';
import type { JsonObject } from './json.ts';

/** How one round trip to a webhook ended. */
export type WebhookOutcome = 'success' | 'timeout' | 'error' | 'canceled';

/** A service outside that is asked by posting a JSON object to it. */
export interface Webhook {
  /**
   * Posts `body`, a JSON text, and gives what `read` makes of the answer; what `read` throws counts
   * as a failed call. Tries again where the service says that it may pass, as long as `client` waits
   * where there is one. Rejects with WebhookError only.
   */
  call<T>(body: string, read: (answer: JsonObject) => T, client?: Waiting): Promise<T>;
}

/** A webhook could not be asked, or its answer cannot be used. The message names no address. */
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

/** A review as upstream posts it: what Go's encoder makes of the object, and a line's end. */
export function webhookBody(review: JsonObject): string {
  return `${goEscaped(JSON.stringify(review))}\n`;
}

/** A JSON text with the characters escaped that Go's encoder escapes for the sake of HTML. */
export function goEscaped(json: string): string {
  return json.replaceAll(/[<>&\u2028\u2029]/g, (found) => escapes[found] ?? found);
}

import { BodyAborted, BodyTooLarge, type Exchange } from '../base/exchange.ts';
import { internalError, StatusError, tooLarge } from '../meta/status.ts';
import { translateStoreError } from '../registry/registry.ts';
import type { EndpointContext } from './call.ts';
import { jsonOutput, type Output } from './output.ts';
import { sendFailure } from './respond.ts';

/**
 * Answers whatever went wrong as one Status. Something unforeseen is a 500 whose cause goes to the
 * log and not to the client.
 */
export async function answerFailure(failure: {
  readonly context: EndpointContext;
  readonly exchange: Exchange;
  readonly baseHeaders: Readonly<Record<string, string>>;
  readonly error: unknown;
  readonly output?: Output;
}): Promise<void> {
  const { context, exchange, baseHeaders } = failure;
  if (exchange.aborted || failure.error instanceof BodyAborted) return;
  const error = statusErrorOf(context, failure.error);
  try {
    await sendFailure({ exchange, baseHeaders, output: failure.output ?? jsonOutput }, error);
  } catch (cause) {
    context.logger.error('an answer could not be sent', { error: String(cause) });
  }
}

function statusErrorOf(context: EndpointContext, error: unknown): StatusError {
  if (error instanceof BodyTooLarge) return tooLarge(context.limits.bodyBytesMax);
  const translated = translateStoreError(error);
  if (translated instanceof StatusError) {
    if (translated.code >= 500 && translated.cause !== undefined) logCause(context, translated);
    return translated;
  }
  logCause(context, error);
  return internalError('an unexpected error on the server', error);
}

function logCause(context: EndpointContext, error: unknown): void {
  const cause = error instanceof StatusError ? error.cause : error;
  const text = cause instanceof Error ? (cause.stack ?? cause.message) : String(cause);
  context.logger.error('a request failed', { error: text });
}

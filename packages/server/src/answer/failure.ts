import { TooManyValues } from '@wheelhouse/codec';
import {
  AccessDenied,
  BodyAborted,
  BodyTooLarge,
  type BoundedTexts,
  type Exchange,
  internalError,
  jsonObject,
  MemoryShortage,
  StatusError,
  tooLarge,
  tooManyValues,
  type WholeResponse,
  WorkExceeded,
} from '@wheelhouse/machinery';
import type { EndpointContext } from '../endpoints/call.ts';
import type { AuditTrail } from '../gates/audit/trail.ts';
import { Overloaded } from '../gates/flowcontrol/contract.ts';
import { translateStoreError } from '../watchcache/store-errors.ts';
import { encodeValue } from './encodings.ts';
import { failureRendering, type Rendering } from './rendering.ts';
import { sendLine, warningHeaders } from './respond.ts';

/**
 * Answers any error with one Status and returns it. An unexpected error becomes a 500 whose cause
 * is logged and not sent to the client.
 */
export async function answerFailure(failure: {
  readonly context: EndpointContext;
  readonly exchange: Exchange;
  readonly baseHeaders: Readonly<Record<string, string>>;
  readonly error: unknown;
  readonly audit?: AuditTrail | undefined;
  readonly warnings?: BoundedTexts;
}): Promise<StatusError> {
  const { context, exchange, baseHeaders, audit, warnings } = failure;
  const auditId = baseHeaders['audit-id'];
  const error = statusErrorOf({ context, auditId, error: failure.error, audit });
  if (exchange.aborted) {
    audit?.setResponseStatus(error.status);
    return error;
  }
  if (error instanceof Overloaded) {
    // As plain text, like kube-apiserver; audit records only the code.
    const retryAfter = String(error.status.details?.retryAfterSeconds ?? 1);
    const headers = { 'retry-after': retryAfter };
    sendLine(failure, { status: error.code, text: error.message, headers });
    return error;
  }
  const respond = exchange.send.bind(exchange);
  await sendStatus({ context, exchange, baseHeaders, error, audit, warnings, respond });
  return error;
}

/** A Status to send, with the parts of the exchange that are needed to send it. */
interface OutgoingStatus {
  readonly context: EndpointContext;
  readonly exchange: Exchange;
  readonly baseHeaders: Readonly<Record<string, string>>;
  readonly error: StatusError;
  readonly audit: AuditTrail | undefined;
  readonly warnings: BoundedTexts | undefined;
  readonly respond: (response: WholeResponse) => void;
}

/** Sends a Status through `respond`, or plain text if it cannot be encoded. Never rejects. */
export async function sendStatus(outgoing: OutgoingStatus): Promise<void> {
  const { context, exchange, baseHeaders, error, audit, warnings, respond } = outgoing;
  try {
    const rendering = failureRendering(exchange, context.encodings);
    const answered = { exchange: { send: respond }, baseHeaders, rendering, audit, warnings };
    await sendFailure(answered, error);
  } catch (cause) {
    const auditId = baseHeaders['audit-id'];
    context.logger.error('cannot send an answer', { auditId, error: String(cause) });
    // Without any answer the client would wait until its own timeout.
    if (exchange.responseCode === undefined) sendBare(respond, baseHeaders);
  }
}

function sendBare(
  respond: OutgoingStatus['respond'],
  baseHeaders: Readonly<Record<string, string>>,
): void {
  const headers = { ...baseHeaders, 'content-type': 'text/plain; charset=utf-8' };
  respond({ status: 500, headers, body: Buffer.from('Internal Server Error\n') });
}

interface Failed {
  readonly context: EndpointContext;
  readonly auditId: string | undefined;
  readonly error: unknown;
  readonly audit?: AuditTrail | undefined;
}

function statusErrorOf(failed: Failed): StatusError {
  const { context, error } = failed;
  if (error instanceof BodyTooLarge) return tooLarge(context.limits.bodyBytesMax);
  if (error instanceof BodyAborted) return tooSlow();
  if (error instanceof WorkExceeded) return tooMuchWork(error);
  if (error instanceof MemoryShortage) return new Overloaded(1);
  if (error instanceof TooManyValues) return tooManyValues(error.max, error.what);
  const translated = translateStoreError(error);
  if (translated instanceof StatusError) {
    if (translated.code >= 500 && translated.cause !== undefined)
      logCause({ ...failed, error: translated });
    return translated;
  }
  logCause(failed);
  failed.audit?.panic(error);
  return internalError('an unexpected error on the server', error);
}

function logCause({ context, auditId, error }: Failed): void {
  const cause = error instanceof StatusError ? error.cause : error;
  const text = cause instanceof Error ? (cause.stack ?? cause.message) : String(cause);
  context.logger.error('a request failed', { auditId, error: text });
}

/** The request is well-formed, but costs more than its work budget (TRUST-2). */
function tooMuchWork({ message }: WorkExceeded): StatusError {
  return new StatusError({ code: 422, reason: 'Invalid', message });
}

/** The client is still connected but did not send its body in time. */
function tooSlow(): StatusError {
  const message = 'Timeout: the request body did not arrive in time';
  return new StatusError({ code: 408, reason: 'Timeout', message });
}

/** Answers with a Status of failure, and `Retry-After` if it states one (API-10, LIST-7). */
async function sendFailure(
  call: {
    readonly exchange: Pick<Exchange, 'send'>;
    readonly rendering: Rendering;
    readonly baseHeaders: Readonly<Record<string, string>>;
    readonly audit?: AuditTrail | undefined;
    /** Warnings from before the request failed. */
    readonly warnings?: BoundedTexts | undefined;
  },
  error: StatusError,
): Promise<void> {
  call.audit?.setResponseStatus(error.status);
  const body = await encodeValue(call.rendering, jsonObject(error.status));
  const warning = warningHeaders(call.warnings);
  const headers: Record<string, string | readonly string[]> = {
    ...call.baseHeaders,
    'content-type': call.rendering.encoding.mediaType,
    ...(warning === undefined ? {} : { warning }),
  };
  const retryAfter = error.status.details?.retryAfterSeconds;
  if (retryAfter !== undefined) headers['retry-after'] = String(retryAfter);
  if (error instanceof AccessDenied) headers['x-content-type-options'] = 'nosniff';
  call.exchange.send({ status: error.code, headers, body });
}

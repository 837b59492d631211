import {
  boundedList,
  listedBytesMax,
  omittedText,
  shortened,
  shownPathMax,
  shownTextMax,
} from './answer-bounds.ts';
import type { FieldError } from './field-error.ts';
import type { StatusReason } from './status-reasons.ts';
import type { GroupKind, GroupResource } from './types.ts';
import { aggregateText } from './wording.ts';

/**
 * The error catalogue: every failure the API can answer, its code, reason and wording, in one place
 * (API-10). Everything above `storage/` throws `StatusError`; `endpoints/` writes it.
 */

export interface StatusCause {
  readonly reason?: string;
  readonly message?: string;
  readonly field?: string;
}

export interface StatusDetails {
  readonly name?: string;
  readonly group?: string;
  readonly kind?: string;
  readonly uid?: string;
  readonly causes?: readonly StatusCause[];
  readonly retryAfterSeconds?: number;
}

/** A Status' list metadata: empty but for the token an expired list may go on with (LIST-3). */
export type StatusMetadata = { readonly continue?: string };

/** The body of every error response, and of deletions that answer without the object. */
export interface Status {
  readonly kind: 'Status';
  readonly apiVersion: 'v1';
  readonly metadata: StatusMetadata;
  readonly status: 'Success' | 'Failure';
  readonly message?: string;
  readonly reason?: string;
  readonly details?: StatusDetails;
  readonly code?: number;
}

/** A failure to be answered with a Status. `headers` go with the response (Retry-After). */
export class StatusError extends Error {
  readonly status: Status;

  constructor(options: {
    code: number;
    reason: StatusReason | '';
    message: string;
    details?: StatusDetails;
    metadata?: StatusMetadata;
    cause?: unknown;
  }) {
    const message = boundedMessage(options.message);
    super(message, { cause: options.cause });
    this.name = 'StatusError';
    this.status = {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: options.metadata ?? {},
      status: 'Failure',
      message,
      ...(options.reason === '' ? {} : { reason: options.reason }),
      ...(options.details === undefined ? {} : { details: options.details }),
      code: options.code,
    };
  }

  get code(): number {
    return this.status.code ?? 500;
  }

  /** The status' reason, empty when it has none. */
  get reason(): string {
    return this.status.reason ?? '';
  }
}

/** Bounds a message that shows what the client sent (TRUST-3). */
function boundedMessage(message: string): string {
  const isShort = message.length * 3 <= listedBytesMax;
  if (isShort || Buffer.byteLength(message) <= listedBytesMax) return message;
  return shortened(message, Math.floor(listedBytesMax / 3) - 40);
}

/** `pods`, or `deployments.apps`: how upstream names a resource in messages. */
export function qualifiedResource(gr: GroupResource): string {
  return gr.group === '' ? gr.resource : `${gr.resource}.${gr.group}`;
}

function qualifiedKind(gk: GroupKind): string {
  return gk.group === '' ? gk.kind : `${gk.kind}.${gk.group}`;
}

function resourceDetails(gr: GroupResource, name: string): StatusDetails {
  return {
    ...(name === '' ? {} : { name }),
    ...(gr.group === '' ? {} : { group: gr.group }),
    ...(gr.resource === '' ? {} : { kind: gr.resource }),
  };
}

/** 404 for a named object. */
export function notFound(gr: GroupResource, name: string): StatusError {
  return new StatusError({
    code: 404,
    reason: 'NotFound',
    message: `${qualifiedResource(gr)} ${JSON.stringify(name)} not found`,
    details: resourceDetails(gr, name),
  });
}

/** 404 for a path the server does not serve at all. */
export function noSuchPath(): StatusError {
  return new StatusError({
    code: 404,
    reason: 'NotFound',
    message: 'the server could not find the requested resource',
    details: {},
  });
}

export function alreadyExists(gr: GroupResource, name: string): StatusError {
  return new StatusError({
    code: 409,
    reason: 'AlreadyExists',
    message: `${qualifiedResource(gr)} ${JSON.stringify(name)} already exists`,
    details: resourceDetails(gr, name),
  });
}

/** 409 with upstream's frame around `why`. */
export function conflict(gr: GroupResource, name: string, why: string): StatusError {
  return new StatusError({
    code: 409,
    reason: 'Conflict',
    message: `Operation cannot be fulfilled on ${qualifiedResource(gr)} ${JSON.stringify(name)}: ${why}`,
    details: resourceDetails(gr, name),
  });
}

/** The `why` of a stale resourceVersion. */
export const modifiedMessage =
  'the object has been modified; please apply your changes to the latest version and try again';

/** A field error as an answer shows it: as a cause, and as a line of the message. */
interface ShownError {
  readonly cause: StatusCause;
  readonly line: string;
}

function shownError({ type, field: path, message: text }: FieldError): ShownError {
  const message = shortened(text, shownTextMax);
  if (path === '') return { cause: { reason: type, message }, line: message };
  const field = shortened(path, shownPathMax);
  return { cause: { reason: type, message, field }, line: `${field}: ${message}` };
}

/**
 * The first errors, in message and causes together no more text than an answer may list. Renders no
 * error behind them.
 */
function shownErrors(errors: readonly FieldError[]): {
  readonly shown: readonly ShownError[];
  readonly omitted: number;
} {
  const shown: ShownError[] = [];
  const { omitted } = boundedList(errors, (error) => {
    const one = shownError(error);
    shown.push(one);
    return one.line + one.line;
  });
  return { shown: shown.slice(0, errors.length - omitted), omitted };
}

/**
 * 422 with one cause per field error. Of more errors than an answer may list (TRUST-3) it has the
 * first as causes, and its message ends with the number of the others: `[a, b, and 20 more errors]`.
 */
export function invalidObject(
  gk: GroupKind,
  name: string,
  errors: readonly FieldError[],
): StatusError {
  const { shown, omitted } = shownErrors(errors);
  const lines = shown.map(({ line }) => line);
  if (omitted > 0) lines.push(omittedText(omitted, 'error'));
  return new StatusError({
    code: 422,
    reason: 'Invalid',
    message: `${qualifiedKind(gk)} ${JSON.stringify(name)} is invalid: ${aggregateText(lines)}`,
    details: {
      ...(name === '' ? {} : { name }),
      ...(gk.group === '' ? {} : { group: gk.group }),
      ...(gk.kind === '' ? {} : { kind: gk.kind }),
      causes: shown.map(({ cause }) => cause),
    },
  });
}

export function badRequest(message: string): StatusError {
  return new StatusError({ code: 400, reason: 'BadRequest', message });
}

/** 403; `message` is the whole text behind upstream's `… is forbidden: `. */
/** What authorization refuses, whose answer browsers are told to take for nothing but what it says. */
export class AccessDenied extends StatusError {}

export function forbidden(gr: GroupResource, name: string, why: string): StatusError {
  const resource = qualifiedResource(gr);
  const message =
    name === ''
      ? `${resource} is forbidden: ${why}`
      : `${resource} ${JSON.stringify(name)} is forbidden: ${why}`;
  return new StatusError({
    code: 403,
    reason: 'Forbidden',
    message: gr.resource === '' ? `forbidden: ${why}` : message,
    details: resourceDetails(gr, name),
  });
}

/** 405 for a method the path does not know (`the server does not allow this method …`). */
export function methodNotAllowedOnPath(): StatusError {
  return new StatusError({
    code: 405,
    reason: 'MethodNotAllowed',
    message: 'the server does not allow this method on the requested resource',
    details: {},
  });
}

/** 405 for a method that a kind's path takes and the kind does not. */
export function methodNotSupported(gr: GroupResource, action: string): StatusError {
  return new StatusError({
    code: 405,
    reason: 'MethodNotAllowed',
    message: `${action} is not supported on resources of kind ${JSON.stringify(qualifiedResource(gr))}`,
    details: resourceDetails(gr, ''),
  });
}

export function notAcceptable(served: readonly string[]): StatusError {
  return new StatusError({
    code: 406,
    reason: 'NotAcceptable',
    message: `only the following media types are accepted: ${served.join(', ')}`,
  });
}

/** 406 in the words of upstream's router, which looks at the types alone before any is negotiated. */
export function notRepresentable(representations: readonly string[]): StatusError {
  return new StatusError({
    code: 406,
    reason: 'NotAcceptable',
    message: `406: Not Acceptable\n\nAvailable representations: ${representations.join(', ')}`,
    details: {},
  });
}

export function unsupportedMediaType(accepted: readonly string[]): StatusError {
  return new StatusError({
    code: 415,
    reason: 'UnsupportedMediaType',
    message: `the body of the request was in an unknown format - accepted media types include: ${accepted.join(', ')}`,
  });
}

export function tooLarge(limitBytes: number): StatusError {
  return new StatusError({
    code: 413,
    reason: 'RequestEntityTooLarge',
    message: `Request entity too large: limit is ${limitBytes}`,
  });
}

/**
 * 413 for a body of more values than one may hold, however few bytes they take.
 * @param what there are too many of
 */
export function tooManyValues(limit: number, what = 'values'): StatusError {
  return new StatusError({
    code: 413,
    reason: 'RequestEntityTooLarge',
    message: `Request entity too large: limit is ${limit} ${what}`,
  });
}

/**
 * 410 for history that is no longer there.
 * @param continueToken goes on with the list at the newest state (LIST-3)
 */
export function expired(message: string, continueToken?: string): StatusError {
  const metadata = continueToken === undefined ? {} : { continue: continueToken };
  return new StatusError({ code: 410, reason: 'Expired', message, metadata });
}

/** 504 for a resource version the server has not reached (LIST-7). */
export function tooLargeResourceVersion(
  wanted: string,
  current: number,
  retryAfterSeconds: number,
): StatusError {
  return new StatusError({
    code: 504,
    reason: 'Timeout',
    message: `Timeout: Too large resource version: ${wanted}, current: ${current}`,
    details: {
      causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
      retryAfterSeconds,
    },
  });
}

/** 500; the cause is for the log, never for the client. */
export function internalError(message: string, cause?: unknown): StatusError {
  return new StatusError({
    code: 500,
    reason: 'InternalError',
    message: `Internal error occurred: ${message}`,
    details: { causes: [{ message }] },
    cause,
  });
}

export function serviceUnavailable(message: string): StatusError {
  return new StatusError({ code: 503, reason: 'ServiceUnavailable', message });
}

/**
 * 504: a request did not come to its end in its time. Upstream tells a write so, which may be stored
 * all the same, in other words than what was cut short on its way.
 */
export function timedOut(of: 'write' | 'request', cause?: unknown): StatusError {
  const message =
    of === 'write'
      ? 'Timeout: request did not complete within requested timeout - context deadline exceeded'
      : 'Timeout: request did not complete within the allotted timeout';
  return new StatusError({ code: 504, reason: 'Timeout', message, details: {}, cause });
}

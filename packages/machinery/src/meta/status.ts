import {
  boundedList,
  listedBytesMax,
  omittedText,
  shownPathMax,
  shownTextMax,
  truncateText,
} from './answer-bounds.ts';
import type { FieldError } from './field-error.ts';
import { goQuoted } from './go-values.ts';
import type { StatusReason } from './status-reasons.ts';
import type { GroupKind, GroupResource } from './types.ts';
import { aggregateText } from './wording.ts';

/**
 * The catalogue of errors: the code, reason, and wording of every failure of the API (API-10). Code
 * above the store throws `StatusError`; endpoints send it.
 */

/** A cause of a failure, such as a field error. */
interface StatusCause {
  readonly reason?: string;
  readonly message?: string;
  readonly field?: string;
}

/** The object of a failure, its causes, and when to retry. */
export interface StatusDetails {
  readonly name?: string;
  readonly group?: string;
  readonly kind?: string;
  readonly uid?: string;
  readonly causes?: readonly StatusCause[];
  readonly retryAfterSeconds?: number;
}

/**
 * The list metadata of a Status: empty, or the token with which an expired list can continue
 * (LIST-3).
 */
type StatusMetadata = { readonly continue?: string };

/** The body of error responses, and of deletions that do not return the object. */
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

/** A failure whose response is a Status. */
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
      ...(options.reason === '' ? {} : { reason: truncateText(options.reason, shownPathMax) }),
      ...(options.details === undefined ? {} : { details: boundedDetails(options.details) }),
      code: options.code,
    };
  }

  get code(): number {
    return this.status.code ?? 500;
  }

  /** The reason of the status; empty if it has none. */
  get reason(): string {
    return this.status.reason ?? '';
  }
}

/** Truncates a message, which may contain input of the client (TRUST-3). */
function boundedMessage(message: string): string {
  const isShort = message.length * 3 <= listedBytesMax;
  if (isShort || Buffer.byteLength(message) <= listedBytesMax) return message;
  return truncateText(message, Math.floor(listedBytesMax / 3) - 40);
}

const detailTexts = ['name', 'group', 'kind', 'uid'] as const;

/** Truncates texts and causes that a client or a webhook may have sent (TRUST-3). */
function boundedDetails(details: StatusDetails): StatusDetails {
  const { causes } = details;
  const bounded = causes === undefined ? details : { ...details, causes: boundedCauses(causes) };
  const long = detailTexts.filter((name) => (details[name]?.length ?? 0) > shownPathMax);
  if (long.length === 0) return bounded;
  const texts = long.map((name) => [name, truncateText(details[name] ?? '', shownPathMax)]);
  return { ...bounded, ...Object.fromEntries(texts) };
}

function boundedCauses(causes: readonly StatusCause[]): readonly StatusCause[] {
  const bounded: StatusCause[] = [];
  const { items } = boundedList(causes, (cause) => {
    const { message = '', reason = '', field = '' } = cause;
    const isShort = message.length <= shownTextMax && reason.length + field.length <= shownPathMax;
    const shown = isShort ? cause : truncatedCause(cause);
    bounded.push(shown);
    return `${shown.message}${shown.reason}${shown.field}`;
  });
  return bounded.slice(0, items.length);
}

const truncatedCause = ({ message, reason, field }: StatusCause): StatusCause => ({
  ...(reason === undefined ? {} : { reason: truncateText(reason, shownPathMax) }),
  ...(message === undefined ? {} : { message: truncateText(message, shownTextMax) }),
  ...(field === undefined ? {} : { field: truncateText(field, shownPathMax) }),
});

/** Returns the name of a resource in messages: `pods`, or `deployments.apps`. */
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
    message: `${qualifiedResource(gr)} ${goQuoted(name)} not found`,
    details: resourceDetails(gr, name),
  });
}

/** 404 for a path that the server does not serve. */
export function pathNotFound(): StatusError {
  return new StatusError({
    code: 404,
    reason: 'NotFound',
    message: 'the server could not find the requested resource',
    details: {},
  });
}

/** 409 for a create of an object whose name is taken. */
export function alreadyExists(gr: GroupResource, name: string): StatusError {
  return new StatusError({
    code: 409,
    reason: 'AlreadyExists',
    message: `${qualifiedResource(gr)} ${goQuoted(name)} already exists`,
    details: resourceDetails(gr, name),
  });
}

/** 409 with kube-apiserver's frame around `why`. */
export function conflict(gr: GroupResource, name: string, why: string): StatusError {
  return new StatusError({
    code: 409,
    reason: 'Conflict',
    message: `Operation cannot be fulfilled on ${qualifiedResource(gr)} ${goQuoted(name)}: ${why}`,
    details: resourceDetails(gr, name),
  });
}

/** The message of a conflict with a stale resourceVersion. */
export const modifiedMessage =
  'the object has been modified; please apply your changes to the latest version and try again';

/** A field error in a response: as a cause and as a line of the message. */
interface RenderedError {
  readonly cause: StatusCause;
  readonly line: string;
}

function renderError({ type, field: path, message: text }: FieldError): RenderedError {
  const message = truncateText(text, shownTextMax);
  if (path === '') return { cause: { reason: type, message }, line: message };
  const field = truncateText(path, shownPathMax);
  return { cause: { reason: type, message, field }, line: `${field}: ${message}` };
}

/** Renders the first errors, whose messages and causes fit into a response, and no others. */
function renderErrors(errors: readonly FieldError[]): {
  readonly shown: readonly RenderedError[];
  readonly omitted: number;
} {
  const shown: RenderedError[] = [];
  const { omitted } = boundedList(errors, (error) => {
    const rendered = renderError(error);
    shown.push(rendered);
    return rendered.line + rendered.line;
  });
  return { shown: shown.slice(0, errors.length - omitted), omitted };
}

/**
 * 422 with one cause per field error. If there are more errors than a response may list (TRUST-3),
 * the first become causes, and the message ends with the number of the others: `[a, b, and 20 more
 * errors]`.
 */
export function invalidObject(
  gk: GroupKind,
  name: string,
  errors: readonly FieldError[],
): StatusError {
  const { shown, omitted } = renderErrors(errors);
  const lines = shown.map(({ line }) => line);
  if (omitted > 0) lines.push(omittedText(omitted, 'error'));
  return new StatusError({
    code: 422,
    reason: 'Invalid',
    message: `${qualifiedKind(gk)} ${goQuoted(name)} is invalid: ${aggregateText(lines)}`,
    details: {
      ...(name === '' ? {} : { name }),
      ...(gk.group === '' ? {} : { group: gk.group }),
      ...(gk.kind === '' ? {} : { kind: gk.kind }),
      causes: shown.map(({ cause }) => cause),
    },
  });
}

/** 400. */
export function badRequest(message: string): StatusError {
  return new StatusError({ code: 400, reason: 'BadRequest', message });
}

/** A rejection by authorization. Its response forbids browsers to sniff the content type. */
export class AccessDenied extends StatusError {}

/** 403; `why` follows `… is forbidden: `. */
export function forbidden(gr: GroupResource, name: string, why: string): StatusError {
  const resource = qualifiedResource(gr);
  const message =
    name === ''
      ? `${resource} is forbidden: ${why}`
      : `${resource} ${goQuoted(name)} is forbidden: ${why}`;
  return new StatusError({
    code: 403,
    reason: 'Forbidden',
    message: gr.resource === '' ? `forbidden: ${why}` : message,
    details: resourceDetails(gr, name),
  });
}

/** 405 for a method that the path does not support (`the server does not allow this method …`). */
export function methodNotAllowedOnPath(): StatusError {
  return new StatusError({
    code: 405,
    reason: 'MethodNotAllowed',
    message: 'the server does not allow this method on the requested resource',
    details: {},
  });
}

/** 405 for a method that the path supports in general but the kind does not. */
export function methodNotSupported(gr: GroupResource, action: string): StatusError {
  return new StatusError({
    code: 405,
    reason: 'MethodNotAllowed',
    message: `${action} is not supported on resources of kind ${JSON.stringify(qualifiedResource(gr))}`,
    details: resourceDetails(gr, ''),
  });
}

/** 406 with the media types that the server supports. */
export function notAcceptable(served: readonly string[]): StatusError {
  return new StatusError({
    code: 406,
    reason: 'NotAcceptable',
    message: `only the following media types are accepted: ${served.join(', ')}`,
  });
}

/** 406 of kube-apiserver's router, which checks media types before negotiation. */
export function notRepresentable(representations: readonly string[]): StatusError {
  return new StatusError({
    code: 406,
    reason: 'NotAcceptable',
    message: `406: Not Acceptable\n\nAvailable representations: ${representations.join(', ')}`,
    details: {},
  });
}

/** 415 with the media types that the server accepts. */
export function unsupportedMediaType(accepted: readonly string[]): StatusError {
  return new StatusError({
    code: 415,
    reason: 'UnsupportedMediaType',
    message: `the body of the request was in an unknown format - accepted media types include: ${accepted.join(', ')}`,
  });
}

/** 413 for a body above the limit, bytes. */
export function tooLarge(limitBytes: number): StatusError {
  return new StatusError({
    code: 413,
    reason: 'RequestEntityTooLarge',
    message: `Request entity too large: limit is ${limitBytes}`,
  });
}

/**
 * 413 for a body with too many values, regardless of its size in bytes.
 * @param what plural noun for the values
 */
export function tooManyValues(limit: number, what: string): StatusError {
  return new StatusError({
    code: 413,
    reason: 'RequestEntityTooLarge',
    message: `Request entity too large: limit is ${limit} ${what}`,
  });
}

/**
 * 410 for history that has been compacted.
 * @param continueToken continues the list at the newest state (LIST-3)
 */
export function expired(message: string, continueToken?: string): StatusError {
  const metadata = continueToken === undefined ? {} : { continue: continueToken };
  return new StatusError({ code: 410, reason: 'Expired', message, metadata });
}

/** 504 for a resourceVersion that the server has not reached (LIST-7). */
export function tooLargeResourceVersion(
  requested: string,
  current: number,
  retryAfterSeconds: number,
): StatusError {
  return new StatusError({
    code: 504,
    reason: 'Timeout',
    message: `Timeout: Too large resource version: ${requested}, current: ${current}`,
    details: {
      causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
      retryAfterSeconds,
    },
  });
}

/** 500. The cause is logged and not sent to the client. */
export function internalError(message: string, cause?: unknown): StatusError {
  return new StatusError({
    code: 500,
    reason: 'InternalError',
    message: `Internal error occurred: ${message}`,
    details: { causes: [{ message }] },
    cause,
  });
}

/** 503. */
export function serviceUnavailable(message: string): StatusError {
  return new StatusError({ code: 503, reason: 'ServiceUnavailable', message });
}

/**
 * 504 for a request that timed out. The wording for a write, which may have been stored
 * nevertheless, differs from that for other requests.
 */
export function timedOut(of: 'write' | 'request', cause?: unknown): StatusError {
  const message =
    of === 'write'
      ? 'Timeout: request did not complete within requested timeout - context deadline exceeded'
      : 'Timeout: request did not complete within the allotted timeout';
  return new StatusError({ code: 504, reason: 'Timeout', message, details: {}, cause });
}

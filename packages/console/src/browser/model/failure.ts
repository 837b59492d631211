import { isObject, type JsonObject, type JsonValue, member } from '@wheelhouse/machinery/browser';

/** One cause of a rejected write, and its field. */
export interface FailureCause {
  /** `spec.replicas`; empty if the cause names no field. */
  readonly field: string;
  readonly reason: string;
  readonly message: string;
}

/** An unsuccessful response, with its Status if it has one. */
export class ApiFailure extends Error {
  /** HTTP status code. */
  readonly code: number;
  /** `NotFound`, `Conflict`, …; empty if the body is not a Status. */
  readonly reason: string;
  readonly causes: readonly FailureCause[];
  /** Delay before a retry, if the server requests one. */
  readonly retryAfterSeconds: number | undefined;

  constructor(of: {
    readonly code: number;
    readonly reason: string;
    readonly message: string;
    readonly causes?: readonly FailureCause[];
    readonly retryAfterSeconds?: number | undefined;
  }) {
    super(of.message);
    this.name = 'ApiFailure';
    this.code = of.code;
    this.reason = of.reason;
    this.causes = of.causes ?? [];
    this.retryAfterSeconds = of.retryAfterSeconds;
  }
}

/** The server is unreachable, or its response ended early. */
export class Unreachable extends Error {
  constructor(cause: unknown) {
    super('the server cannot be reached', { cause });
    this.name = 'Unreachable';
  }
}

/** Whether the same request may succeed later: the server is busy, failing, or unreachable. */
export function isTransient(error: unknown): boolean {
  if (!(error instanceof ApiFailure)) return true;
  const { code } = error;
  return code < 400 || code >= 500 || code === 429;
}

/** The failure for a Status. `code` is the HTTP status, for a body that is not a Status. */
export function failureOf(
  body: JsonValue | undefined,
  { code, retryAfter = null }: { readonly code: number; readonly retryAfter?: string | null },
): ApiFailure {
  const status = isObject(body) && body.kind === 'Status' ? body : {};
  const details = isObject(status.details) ? status.details : {};
  const causes = Array.isArray(details.causes) ? details.causes.filter(isObject) : [];
  const seconds = details.retryAfterSeconds ?? (retryAfter === null ? undefined : +retryAfter);
  return new ApiFailure({
    code: typeof status.code === 'number' ? status.code : code,
    reason: textOf(status, 'reason'),
    message: textOf(status, 'message') || `the server returned status ${code}`,
    causes: causes.map((cause) => ({
      field: textOf(cause, 'field'),
      reason: textOf(cause, 'reason'),
      message: textOf(cause, 'message'),
    })),
    retryAfterSeconds: typeof seconds === 'number' && seconds >= 0 ? seconds : undefined,
  });
}

/** The value of a string member; empty for other types. */
export function textOf(object: JsonObject, name: string): string {
  const value = member(object, name);
  return typeof value === 'string' ? value : '';
}

/** The value of an object member; an empty object for other types. */
export function objectOf(object: JsonObject, name: string): JsonObject {
  const value = member(object, name);
  return isObject(value) ? value : {};
}

/** The objects in a list member. */
export function objectsOf(object: JsonObject, name: string): JsonObject[] {
  const value = member(object, name);
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** The strings in a list member. */
export function textsOf(object: JsonObject, name: string): string[] {
  const value = member(object, name);
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}

/** The message to show for an error. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

import { isObject, type JsonObject, type JsonValue } from '@wheelhouse/machinery/browser';

/** One reason why a write was refused, and the field it is about. */
export interface FailureCause {
  /** `spec.replicas`; empty when it is about no field. */
  readonly field: string;
  readonly reason: string;
  readonly message: string;
}

/** The server answered with something other than success: its Status, as far as it sent one. */
export class ApiFailure extends Error {
  /** HTTP status code. */
  readonly code: number;
  /** `NotFound`, `Conflict`, …; empty when the answer was no Status. */
  readonly reason: string;
  readonly causes: readonly FailureCause[];
  /** How long to wait before asking again, where the server said so. */
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

/** The server could not be asked, or its answer ended before its time. */
export class Unreachable extends Error {
  constructor(cause: unknown) {
    super('the server cannot be reached', { cause });
    this.name = 'Unreachable';
  }
}

/** The failure that a Status tells of. `code` is what HTTP said, for a body that is no Status. */
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
    message: textOf(status, 'message') || `the server answered with status ${code}`,
    causes: causes.map((cause) => ({
      field: textOf(cause, 'field'),
      reason: textOf(cause, 'reason'),
      message: textOf(cause, 'message'),
    })),
    retryAfterSeconds: typeof seconds === 'number' && seconds >= 0 ? seconds : undefined,
  });
}

/** A member that is text; empty for any other. */
export function textOf(object: JsonObject, name: string): string {
  const value = Object.hasOwn(object, name) ? object[name] : undefined;
  return typeof value === 'string' ? value : '';
}

/** A member that is an object; an empty one for any other. */
export function objectOf(object: JsonObject, name: string): JsonObject {
  const value = Object.hasOwn(object, name) ? object[name] : undefined;
  return isObject(value) ? value : {};
}

/** The objects of a member that is a list. */
export function objectsOf(object: JsonObject, name: string): JsonObject[] {
  const value = Object.hasOwn(object, name) ? object[name] : undefined;
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** The texts of a member that is a list. */
export function textsOf(object: JsonObject, name: string): string[] {
  const value = Object.hasOwn(object, name) ? object[name] : undefined;
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}

/** What to show a person of something that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

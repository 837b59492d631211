import {
  badRequest,
  internalError,
  isObject,
  type JsonObject,
  type JsonValue,
  StatusError,
  type StatusReason,
} from '@wheelhouse/machinery';

/** The webhook could not be asked, or answered what cannot be used; what follows is its policy's. */
export class HookFailure extends Error {
  /** The status that stands for it in metrics. */
  readonly code: number;
  readonly isCanceled: boolean;

  constructor(
    name: string,
    options: { readonly why: string; readonly code: number; readonly isCanceled?: boolean },
  ) {
    super(`failed calling webhook ${JSON.stringify(name)}: ${options.why}`);
    this.code = options.code;
    this.isCanceled = options.isCanceled ?? false;
  }
}

/** 500 in upstream's frame, for a failure that refuses the request. */
export function failureError(failure: HookFailure): StatusError {
  return internalError(failure.message);
}

/** 400 for a dry run that a webhook would not know for one. */
export function dryRunRefused(name: string): StatusError {
  return badRequest(`admission webhook ${JSON.stringify(name)} does not support dry run`);
}

/**
 * What the client is told of a webhook's denial: the Status that the webhook gave, in upstream's
 * frame; it is a failure whatever the webhook said.
 */
export class HookDenial extends StatusError {
  constructor(name: string, result: JsonObject | undefined) {
    const deniedBy = `admission webhook ${JSON.stringify(name)} denied the request`;
    const status = result ?? {};
    const code = Number(status['code'] ?? 0);
    const reason = text(status['reason']);
    const why = text(status['message']) || reason;
    const { details } = status;
    super({
      code: code >= 400 && code <= 999 ? code : 400,
      reason: reason as StatusReason | '',
      message: why === '' ? `${deniedBy} without explanation` : `${deniedBy}: ${why}`,
      ...(isObject(details) ? { details } : {}),
    });
  }
}

const text = (value: JsonValue | undefined) => (typeof value === 'string' ? value : '');

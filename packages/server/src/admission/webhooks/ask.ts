import { JsonError } from '@wheelhouse/codec';
import {
  errorText,
  internalError,
  problemText,
  qualifiedName,
  StatusError,
} from '@wheelhouse/machinery';
import type { AdmissionTools } from '../tools.ts';
import { dryRunRefused, HookDenial, HookFailure } from './denial.ts';
import type { HookCall } from './metrics.ts';
import { WebhookCallError } from './port.ts';
import {
  type Review,
  readAnswer,
  reviewOf,
  reviewVersion,
  type Verdict,
  verdictOf,
} from './review.ts';
import type { Invocation } from './select.ts';

/** Where a hook is asked from. */
export interface Asking {
  readonly tools: AdmissionTools;
  readonly phase: 'mutating' | 'validating';
}

/**
 * Asks one hook, passing on its warnings and annotations. Throws HookFailure where it gives no usable
 * answer, and the StatusError of its denial.
 */
export async function askHook(invocation: Invocation, asking: Asking): Promise<Verdict> {
  const { hook, convertedCall } = invocation;
  const { context } = convertedCall.call;
  const { dialect } = asking.tools;
  if (context.dryRun && !hook.knowsDryRuns) throw dryRunRefused(hook.name);
  const version = reviewVersion(hook.reviewVersions);
  if (version === undefined) {
    const why = 'webhook does not accept known AdmissionReview versions (v1, v1beta1)';
    throw new HookFailure(hook.name, {
      why: `could not create admission objects: ${why}`,
      code: 400,
    });
  }
  const review = reviewOf(convertedCall, { version, dialect });
  const answer = await post(invocation, review, asking);
  let verdict: Verdict;
  try {
    verdict = verdictOf(answer, review, { phase: asking.phase, dialect });
  } catch (error) {
    const why = `received invalid webhook response: ${textOf(error)}`;
    throw new HookFailure(hook.name, { why, code: 503 });
  }
  for (const [name, value] of verdict.auditAnnotations) {
    const key = `${hook.name}/${name}`;
    // What cannot be a key is left out, as upstream.
    if (qualifiedName(key).length === 0) context.request?.annotate(key, value);
  }
  for (const text of verdict.warnings) context.warn(text);
  if (verdict.allowed) return verdict;
  throw new HookDenial(hook.name, verdict.result);
}

async function post(
  { hook, convertedCall }: Invocation,
  review: Review,
  { tools, phase }: Asking,
): Promise<ReturnType<typeof readAnswer>> {
  const { target, operation, context } = convertedCall.call;
  const { request } = context;
  const remainingMs = request?.remainingMs() ?? Number.POSITIVE_INFINITY;
  try {
    const bytes = await tools.webhooks.post({
      address: hook.address,
      body: review.body,
      timeoutMs: Math.max(1, Math.min(hook.timeoutMs, remainingMs)),
      purpose: {
        name: `Call ${phase} webhook`,
        attributes: {
          configuration: hook.configuration,
          webhook: hook.name,
          resource: `${target.def.group}/${target.version.version}, Resource=${target.def.resource}`,
          subresource: target.subresource,
          operation,
          UID: review.uid,
        },
      },
      signal: request?.left(),
    });
    return readAnswer(bytes);
  } catch (error) {
    const isCall = error instanceof WebhookCallError;
    throw new HookFailure(hook.name, {
      why: `failed to call webhook: ${textOf(error)}`,
      code: isCall ? error.code : 400,
      isCanceled: isCall && error.isCanceled,
    });
  }
}

function textOf(error: unknown): string {
  if (error instanceof JsonError) {
    return problemText({ code: 'no type', why: error.message });
  }
  return errorText(error);
}

/** What an outcome counts as; undefined outcome: the hook had nothing against it. */
export function measured(
  outcome: unknown,
  at: { readonly operation: string; readonly durationMs: number; readonly isIgnored: boolean },
): HookCall {
  const { operation, durationMs } = at;
  if (outcome === undefined) return { operation, durationMs, rejected: false, code: 200 };
  if (outcome instanceof HookFailure) {
    const { code, isCanceled } = outcome;
    const blamed = at.isIgnored || isCanceled ? {} : { error: 'calling_webhook_error' as const };
    return { operation, durationMs, rejected: !at.isIgnored, code, ...blamed };
  }
  const isDenial = outcome instanceof HookDenial;
  return {
    operation,
    durationMs,
    rejected: true,
    code: isDenial ? outcome.code : 0,
    error: isDenial ? 'no_error' : 'apiserver_internal_error',
  };
}

/** What was not foreseen, as the client is told of it. */
export function unforeseen(error: unknown): StatusError {
  return error instanceof StatusError ? error : internalError(textOf(error), error);
}

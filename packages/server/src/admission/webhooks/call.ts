import {
  badRequest,
  type Dialect,
  errorText,
  forbidden,
  internalError,
  isObject,
  type JsonObject,
  type MaybePromise,
  qualifiedName,
  StatusError,
  type StatusReason,
  textOf,
} from '@wheelhouse/machinery';
import type { AdmissionCall } from '../../registry/contract.ts';
import { groupResourceOf } from '../../registry/registry.ts';
import {
  compileConditions,
  compiledOnce,
  evaluateConditions,
  requestVariables,
} from '../cel/run.ts';
import {
  factsOf,
  kindFor,
  type RequestFacts,
  selectsNamespace,
  selectsObject,
} from '../matching/rules.ts';
import { convertTo, formByRules, type Served } from '../matching/versioned.ts';
import type { AdmissionTools } from '../tools.ts';
import type { Hook } from './hooks.ts';
import type { HookCall, HookMetrics } from './metrics.ts';
import { WebhookCallError } from './port.ts';
import {
  type ConvertedCall,
  type Review,
  readAnswer,
  requestFields,
  reviewOf,
  reviewVersion,
  type Verdict,
  verdictOf,
} from './review.ts';

/** The context of a call. */
export interface CallContext {
  readonly tools: AdmissionTools;
  readonly phase: 'mutating' | 'validating';
}

/**
 * Calls one hook, passing on its warnings and annotations. Throws HookFailure for a call without a
 * usable answer, and the StatusError of a denial.
 */
export async function callHook(invocation: Invocation, asking: CallContext): Promise<Verdict> {
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
    const why = `received invalid webhook response: ${errorText(error)}`;
    throw new HookFailure(hook.name, { why, code: 503 });
  }
  for (const [name, value] of verdict.auditAnnotations) {
    const key = `${hook.name}/${name}`;
    // Invalid keys are dropped, as in kube-apiserver.
    if (qualifiedName(key).length === 0) context.request?.annotate(key, value);
  }
  for (const text of verdict.warnings) context.warn(text);
  if (verdict.allowed) return verdict;
  throw new HookDenial(hook.name, verdict.result);
}

async function post(
  { hook, convertedCall }: Invocation,
  review: Review,
  { tools, phase }: CallContext,
): Promise<JsonObject> {
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
    const { version } = review;
    return await readAnswer(bytes, { version, dialect: tools.dialect, clock: tools.clock });
  } catch (error) {
    const isCall = error instanceof WebhookCallError;
    throw new HookFailure(hook.name, {
      why: `failed to call webhook: ${errorText(error)}`,
      code: isCall ? error.code : 400,
      isCanceled: isCall && error.isCanceled,
    });
  }
}

/** The metrics of an outcome; undefined means that the hook admitted the call. */
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

/**
 * The error by which a failed call rejects the request; undefined if the hook's failure policy
 * ignores it.
 */
export function rejectionOf(failure: unknown, hook: Hook): StatusError | undefined {
  if (!(failure instanceof HookFailure)) return unforeseen(failure);
  return hook.failurePolicy === 'Ignore' ? undefined : failureError(failure);
}

/**
 * Records in metrics, log, and audit log that a failed hook was skipped; nothing if the client
 * caused the failure by disconnecting.
 * @param at.key the audit annotation's phase and position, such as
 *   `failed-open.mutation` and `round_0_index_1`
 */
export function recordFailOpen(
  failure: unknown,
  {
    hook,
    call,
    tools,
    metrics,
    key: [phase, position],
  }: {
    readonly hook: Hook;
    readonly call: AdmissionCall;
    readonly tools: AdmissionTools;
    readonly metrics: HookMetrics;
    readonly key: readonly [phase: string, position: string];
  },
): void {
  if (failure instanceof HookFailure && failure.isCanceled) return;
  metrics.failedOpen(hook.name);
  tools.log('a webhook failed and was skipped', failure);
  const domain = `${phase}.webhook.${tools.dialect.group('admission')}`;
  call.context.request?.annotate(`${domain}/${position}`, hook.name);
}

/** The error that a client receives for an unexpected one. */
function unforeseen(error: unknown): StatusError {
  return error instanceof StatusError ? error : internalError(errorText(error), error);
}

/** The webhook could not be called or its answer is unusable; the failure policy decides. */
export class HookFailure extends Error {
  /** The status that metrics record. */
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

/** A 500 in kube-apiserver's format for a failure that rejects the request. */
function failureError(failure: HookFailure): StatusError {
  return internalError(failure.message);
}

/** A 400 for a dry run of a webhook that does not support dry runs. */
function dryRunRefused(name: string): StatusError {
  return badRequest(`admission webhook ${JSON.stringify(name)} does not support dry run`);
}

/**
 * The error for a webhook's denial: the Status from the webhook in kube-apiserver's frame, always a
 * failure.
 */
class HookDenial extends StatusError {
  constructor(name: string, result: JsonObject | undefined) {
    const deniedBy = `admission webhook ${JSON.stringify(name)} denied the request`;
    const status = result ?? {};
    const code = Number(status['code'] ?? 0);
    const reason = textOf(status['reason']);
    const why = textOf(status['message']) || reason;
    const { details } = status;
    super({
      code: code >= 400 && code <= 999 ? code : 400,
      reason: reason as StatusReason | '',
      message: why === '' ? `${deniedBy} without explanation` : `${deniedBy}: ${why}`,
      ...(isObject(details) ? { details } : {}),
    });
  }
}

/** A hook to call, and the admission call in the version that the hook's rules name. */
export interface Invocation {
  readonly hook: Hook;
  readonly convertedCall: ConvertedCall;
  /** How the object is served in the version that the hook's rules name. */
  readonly served: Served;
}

interface Selecting {
  readonly call: AdmissionCall;
  readonly tools: AdmissionTools;
  readonly metrics: HookMetrics;
  /** Conversions that hooks share because none of them changes the object, by served version. */
  readonly conversions?: Map<Served['version'], MaybePromise<ConvertedCall>>;
}

/**
 * The invocation of a hook by its rules, selectors, and conditions; undefined if it does not match.
 * Throws 403 if its conditions fail and its failure policy is Fail.
 */
export async function invocationOf(hook: Hook, at: Selecting): Promise<Invocation | undefined> {
  const { call, tools } = at;
  const facts = factsOf(call);
  const served = formByRules(hook.rules, hook.matchPolicy, { call, facts, tools });
  if (served === undefined || !selectsObject(hook.objectSelector, call)) return undefined;
  const { objects } = tools;
  if (!(await selectsNamespace(hook.namespaceSelector, { call, facts, objects }))) return undefined;
  const converted = at.conversions?.get(served.version) ?? askedOf(call, { facts, served, tools });
  at.conversions?.set(served.version, converted);
  const convertedCall = converted instanceof Promise ? await converted : converted;
  const invocation = { hook, convertedCall, served };
  if (hook.conditions.length === 0) return invocation;
  return (await meetsConditions(invocation, at)) ? invocation : undefined;
}

function askedOf(
  call: AdmissionCall,
  at: { facts: RequestFacts; served: Served; tools: AdmissionTools },
): MaybePromise<ConvertedCall> {
  const { facts, served, tools } = at;
  const { def, version } = served;
  const convert = (object: AdmissionCall['object']) => {
    try {
      return object === undefined ? undefined : convertTo(object, served, tools);
    } catch (error) {
      return Promise.reject(error);
    }
  };
  const withObjects = (
    object: ConvertedCall['object'],
    old: ConvertedCall['old'],
  ): ConvertedCall => ({
    call,
    facts,
    resource: { group: def.group, version: version.version, resource: def.resource },
    kind: kindFor(def, version, facts.subresource),
    object,
    old,
  });
  const [object, old] = [convert(call.object), convert(call.old)];
  if (!(object instanceof Promise) && !(old instanceof Promise)) return withObjects(object, old);
  return Promise.all([object, old]).then(
    (both) => withObjects(...both),
    (error: unknown) => {
      throw error instanceof StatusError ? error : internalError(errorText(error), error);
    },
  );
}

const conditionsFor = compiledOnce(({ conditions }: Hook) => compileConditions(conditions));

async function meetsConditions(
  { hook, convertedCall }: Invocation,
  { call, tools, metrics }: Selecting,
): Promise<boolean> {
  const startMs = tools.clock.monotonic();
  const costs = tools.isOn('StrictCostEnforcementForWebhooks') ? 'counted' : 'waived';
  const variables = requestVariables(inputsOf(convertedCall, tools.dialect), tools, { costs });
  const compilation = conditionsFor(hook, tools.clock);
  const conditions = compilation instanceof Promise ? await compilation : compilation;
  const result = await evaluateConditions(conditions, variables, tools);
  const { operation } = convertedCall.facts;
  const durationMs = tools.clock.monotonic() - startMs;
  metrics.conditions(hook.name, { operation, durationMs, failed: result.failed });
  if (result.failures === undefined) {
    if (!result.matches) metrics.excluded(hook.name, operation);
    return result.matches;
  }
  if (hook.failurePolicy === 'Ignore') {
    metrics.excluded(hook.name, operation);
    return false;
  }
  throw forbidden(groupResourceOf(call.target.def), call.name, result.failures);
}

function inputsOf(convertedCall: ConvertedCall, dialect: Dialect) {
  const { object, old, facts, call } = convertedCall;
  const request = requestFields(convertedCall, dialect);
  return { object, old, request, facts, user: call.context.user };
}

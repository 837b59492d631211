import { encodeJson } from '@wheelhouse/codec';
import {
  forbidden,
  type MetricRegistry,
  StatusError,
  type StatusReason,
} from '@wheelhouse/machinery';
import type { AdmissionCall } from '../../registry/contract.ts';
import { groupResourceOf } from '../../registry/registry.ts';
import { compiledOnce } from '../cel/run.ts';
import { factsOf } from '../matching/rules.ts';
import type { ReviewedRequest } from '../matching/versioned.ts';
import { type AdmissionTools, nameOf } from '../tools.ts';
import { type ConditionMetrics, conditionMetrics } from '../webhooks/metrics.ts';
import type { Binding, EvaluatePolicies, PolicyBasis } from './hooks.ts';
import {
  type Invocation,
  invocationsOf,
  isMisconfigured,
  type Misconfigured,
  PolicySubject,
  UnconvertibleError,
} from './invocations.ts';
import {
  compilePolicy,
  type Decision,
  evaluatePolicy,
  type PolicyErrorType,
  type PolicyResult,
} from './validation.ts';

/** The action taken for a validation. */
type Enforcement = 'allow' | 'deny' | 'audit' | 'warn';

/** Metrics of validating policies under kube-apiserver's names. */
interface PolicyMetrics {
  readonly conditions: ConditionMetrics;
  checked(check: {
    readonly policy: string;
    readonly binding: string;
    readonly error: PolicyErrorType;
    readonly action: Enforcement;
    readonly durationMs: number;
  }): void;
}

const buckets = [0.000_000_5, 0.001, 0.01, 0.1, 1];

/** Registers the metrics; call it once per registry. */
function policyMetrics(registry: MetricRegistry): PolicyMetrics {
  const labels = ['policy', 'policy_binding', 'error_type', 'enforcement_action'];
  const stability = 'BETA';
  const checks = registry.counter({
    name: 'apiserver_validating_admission_policy_check_total',
    help: 'Validation admission policy check total, labeled by policy and further identified by binding and enforcement action taken.',
    stability,
    labels,
  });
  const durations = registry.histogram({
    name: 'apiserver_validating_admission_policy_check_duration_seconds',
    help: 'Validation admission latency for individual validation expressions in seconds, labeled by policy and further including binding and enforcement action taken.',
    stability,
    labels,
    buckets,
  });
  return {
    conditions: conditionMetrics(registry),
    checked({ policy, binding, error, action, durationMs }) {
      checks.of(policy, binding, error, action).add(1);
      durations.of(policy, binding, error, action).observe(durationMs / 1000);
    },
  };
}

/** A denial that may be reported to the client. */
interface Denial {
  readonly policy: string;
  /** Undefined if the policy itself is unusable. */
  readonly binding: string | undefined;
  readonly message: string;
  readonly reason: StatusReason | '';
}

interface Run extends ReviewedRequest {
  readonly metrics: PolicyMetrics;
  readonly subject: PolicySubject;
  readonly denials: Denial[];
  /** Failures to record in the audit log. */
  readonly failures: object[];
}

const annotationBytesMax = 10 * 1024;
const failuresMax = 50;
const compiledFor = compiledOnce(compilePolicy);

/**
 * Evaluates every bound validating policy that matches the request, and reports the first denial to
 * the client.
 */
export function validatingEvaluator(tools: AdmissionTools): EvaluatePolicies {
  const metrics = policyMetrics(tools.metrics);
  return async (call, hooks) => {
    const reviewed = { call, facts: factsOf(call), tools };
    const subject = new PolicySubject(reviewed);
    const run: Run = { ...reviewed, metrics, subject, denials: [], failures: [] };
    const denyFor = ({ policy, binding }: Pick<Misconfigured, 'policy' | 'binding'>, why: string) =>
      run.denials.push({ policy: policy.name, binding: binding?.name, message: why, reason: '' });
    const annotations = new Map<string, Set<string>>();
    for (const step of await invocationsOf(hooks, reviewed)) {
      if (isMisconfigured(step)) {
        denyFor(step, step.message);
        continue;
      }
      try {
        await evaluateInvocation(step, run, annotations);
      } catch (error) {
        if (!(error instanceof UnconvertibleError)) throw error;
        if (step.policy.failurePolicy === 'Ignore') continue;
        const why = `failed to convert object version: ${error.message}`;
        denyFor(step, `failed to configure binding: ${why}`);
      }
    }
    for (const [key, values] of annotations) {
      call.context.request?.annotate(key, [...values].join(', '));
    }
    if (run.failures.length > 0) {
      const key = `validation.policy.${tools.dialect.group('admission')}/validation_failure`;
      const json = encodeJson(run.failures.slice(0, failuresMax) as never).toString('utf8');
      call.context.request?.annotate(key, json);
    }
    const [denial] = run.denials;
    if (denial !== undefined) throw refusalOf(denial, call);
  };
}

/** @param annotations values for the audit log, by full key */
async function evaluateInvocation(
  { policy, binding, form, params }: Invocation,
  run: Run,
  annotations: Map<string, Set<string>>,
): Promise<void> {
  const { clock } = run.tools;
  for (const param of params) {
    const inputs = await run.subject.variables(form, param);
    const compilation = compiledFor(policy, clock);
    const compiled = compilation instanceof Promise ? await compilation : compilation;
    const evaluation = { compiled, inputs, clock };
    const result = await evaluatePolicy(evaluation, heardBy(policy, run));
    enforce(result, { policy, binding, run });
    for (const { key, value } of result.annotations) {
      const whole = `${policy.name}/${key}`;
      annotations.set(whole, (annotations.get(whole) ?? new Set()).add(cut(value)));
    }
  }
}

const cut = (value: string) =>
  Buffer.byteLength(value) <= annotationBytesMax
    ? value
    : Buffer.from(value).subarray(0, annotationBytesMax).toString('utf8');

function heardBy({ name }: PolicyBasis, run: Run): Parameters<typeof evaluatePolicy>[1] {
  const labels = { name, kind: 'policy', type: 'validate' };
  const { operation } = run.facts;
  return {
    evaluated: (result) => run.metrics.conditions.evaluated(labels, { ...result, operation }),
    excluded: () => run.metrics.conditions.excluded(labels, operation),
  };
}

/** Takes the actions that a binding requires for a policy's decisions. */
function enforce(
  { decisions, failed }: PolicyResult,
  at: { readonly policy: PolicyBasis; readonly binding: Binding; readonly run: Run },
): void {
  decisions.forEach((decision, expressionIndex) => {
    if (decision.action === 'admit') {
      if (decision.error !== 'no_error') count(decision, 'allow', at);
      return;
    }
    for (const action of at.binding.actions)
      enforceOne(decision, { ...at, action, expressionIndex });
  });
  for (const decision of failed) deny(decision, at);
}

type Enforcing = Parameters<typeof enforce>[1];

function enforceOne(
  decision: Decision,
  at: Enforcing & { readonly action: string; readonly expressionIndex: number },
): void {
  const { policy, binding, run, action, expressionIndex } = at;
  const { message } = decision;
  if (action === 'Deny') deny(decision, at);
  else if (action === 'Audit') {
    run.failures.push({
      message,
      policy: policy.name,
      binding: binding.name,
      expressionIndex,
      validationActions: [...binding.actions],
    });
    count(decision, 'audit', at);
  } else if (action === 'Warn') {
    run.call.context.warn(
      `Validation failed for ValidatingAdmissionPolicy '${policy.name}' with binding ` +
        `'${binding.name}': ${message}`,
    );
    count(decision, 'warn', at);
  }
}

function deny(decision: Decision, at: Enforcing): void {
  const { message, reason } = decision;
  at.run.denials.push({ policy: at.policy.name, binding: at.binding.name, message, reason });
  count(decision, 'deny', at);
}

function count(
  { error, durationMs }: Decision,
  action: 'allow' | 'deny' | 'audit' | 'warn',
  { policy, binding, run }: Enforcing,
): void {
  const check = { policy: policy.name, binding: binding.name, error, action, durationMs };
  run.metrics.checked(check);
}

const codes: Readonly<Record<string, number>> = {
  Forbidden: 403,
  Unauthorized: 401,
  RequestEntityTooLarge: 413,
  Invalid: 422,
};

function refusalOf(denial: Denial, call: AdmissionCall): StatusError {
  const { policy, binding, message: why } = denial;
  const by = binding === undefined ? '' : ` with binding '${binding}'`;
  const message = `ValidatingAdmissionPolicy '${policy}'${by} denied request: ${why}`;
  const plain = forbidden(groupResourceOf(call.target.def), nameOf(call), message);
  const reason = denial.reason === '' ? 'Invalid' : denial.reason;
  return new StatusError({
    code: codes[reason] ?? 422,
    reason,
    message: plain.message,
    details: { ...plain.status.details, causes: [{ message }] },
  });
}

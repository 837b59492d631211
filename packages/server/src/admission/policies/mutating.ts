import {
  type ApiObject,
  type Counter,
  forbidden,
  jsonEqual,
  type MetricRegistry,
  StatusError,
} from '@wheelhouse/machinery';
import type { AdmissionCall } from '../../registry/contract.ts';
import { groupResourceOf } from '../../registry/registry.ts';
import { askConditions } from '../cel/conditions.ts';
import { factsOf, kindFor } from '../matching/facts.ts';
import type { Judging } from '../matching/form.ts';
import { convertTo } from '../matching/versioned.ts';
import { Reinvocable } from '../reinvocation.ts';
import { type AdmissionTools, nameOf } from '../tools.ts';
import { replaceContent } from '../webhooks/patched.ts';
import { MutationError } from './apply-configuration.ts';
import type { PolicyBasis } from './definition.ts';
import type { JudgeByPolicies } from './hooks.ts';
import { type Invocation, invocationsOf } from './invocations.ts';
import { type CompiledMutations, compileMutations, mutated } from './mutation.ts';
import { PolicySubject } from './subject.ts';
import { scopeOf } from './validation.ts';

/** Something that refuses the request. */
interface Refusal {
  readonly policy: string;
  readonly binding: string | undefined;
  readonly message: string;
  readonly reason: 'Invalid' | undefined;
}

interface Run extends Judging {
  readonly remembered: Reinvocable;
  readonly refusals: Refusal[];
  readonly checks: MutationMetrics;
}

type MutationMetrics = ReturnType<typeof mutationMetrics>;

const pluginName = 'MutatingAdmissionPolicy';
const compiled = new WeakMap<PolicyBasis, CompiledMutations>();

function compiledFor(policy: PolicyBasis): CompiledMutations {
  const cached = compiled.get(policy);
  if (cached !== undefined) return cached;
  const made = compileMutations(policy);
  compiled.set(policy, made);
  return made;
}

/** Changes objects by mutating policies, one after the other. */
export function mutatingJudge(tools: AdmissionTools): JudgeByPolicies {
  const checks = mutationMetrics(tools.metrics);
  return async (call, hooks) => {
    const judging = { call, facts: factsOf(call), tools };
    const { invocations, misconfigured } = await invocationsOf(hooks, judging);
    const remembered = Reinvocable.of(call, pluginName);
    const refusals: Refusal[] = misconfigured.map(({ policy, binding, message }) => ({
      policy: policy.name,
      binding: binding?.name,
      message,
      reason: undefined,
    }));
    const run: Run = { ...judging, remembered, refusals, checks };
    for (const invocation of invocations) await changeBy(invocation, run);
    remembered.leave(call.object);
    if (refusals.length > 0) throw refusalOf(refusals, call);
  };
}

async function changeBy(invocation: Invocation, run: Run): Promise<void> {
  const { policy, binding, params } = invocation;
  const mutations = compiledFor(policy);
  for (const param of params) {
    const { namespace = '', name = '' } = param?.metadata ?? {};
    const key = JSON.stringify([policy.name, binding.name, namespace, name]);
    if (!(await meetsConditions(invocation, param, run))) continue;
    if (!run.remembered.isDue(key)) continue;
    if (await changeWith(invocation, param, run)) run.remembered.objectChanged();
    if (mutations.isReinvocable) run.remembered.wasAsked(key);
  }
}

/** What expressions see now: an earlier change may have been made to the object. */
const variablesFor = ({ form }: Invocation, param: ApiObject | undefined, run: Run) =>
  new PolicySubject(run).variables(form, param);

async function meetsConditions(
  invocation: Invocation,
  param: ApiObject | undefined,
  run: Run,
): Promise<boolean> {
  const mutations = compiledFor(invocation.policy);
  if (mutations.conditions.length === 0) return true;
  const inputs = await variablesFor(invocation, param, run);
  const { variables, own } = scopeOf({ compiled: mutations, inputs });
  const result = await askConditions(mutations.conditions, variables, own);
  if (result.failures === undefined) return result.matches;
  refuse(invocation, run, result.failures);
  return false;
}

/** Applies all mutations of a policy. @returns whether the object changed */
async function changeWith(
  invocation: Invocation,
  param: ApiObject | undefined,
  run: Run,
): Promise<boolean> {
  const { policy, binding, form } = invocation;
  const { call, facts, tools } = run;
  const mutations = compiledFor(policy);
  let changed = false;
  for (const mutation of mutations.mutations) {
    if (call.object === undefined) return changed;
    const startMs = tools.clock.monotonic();
    const record = (error: string) =>
      run.checks(policy.name, binding.name, error, tools.clock.monotonic() - startMs);
    try {
      const inputs = await variablesFor(invocation, param, run);
      const object = await convertTo(call.object, form, tools.snapshot());
      const kind = kindFor(form.def, form.version, facts.subresource);
      const at = { compiled: mutations, inputs, object, served: form, kind };
      const result = await mutated(mutation, at);
      record('no_error');
      if (jsonEqual(result, object)) continue;
      replaceContent(call.object, await convertTo(result, call.target, tools.snapshot()));
      changed = true;
    } catch (error) {
      record('invalid_error');
      if (!(error instanceof MutationError)) throw error;
      refuse(invocation, run, error.message);
    }
  }
  return changed;
}

function refuse({ policy, binding }: Invocation, run: Run, message: string): void {
  if (policy.failurePolicy === 'Ignore') return;
  const reason = 'Invalid' as const;
  run.refusals.push({ policy: policy.name, binding: binding.name, message, reason });
}

/** Upstream's 403 of the first refusal, with the others as causes. */
function refusalOf(refusals: readonly Refusal[], call: AdmissionCall): StatusError {
  const messages = refusals.map(({ policy, binding, message }) =>
    binding === undefined
      ? `policy ${JSON.stringify(policy)} denied request: ${message}`
      : `policy '${policy}' with binding '${binding}' denied request: ${message}`,
  );
  const plain = forbidden(groupResourceOf(call.target.def), nameOf(call), '');
  return new StatusError({
    code: 403,
    reason: refusals[0]?.reason ?? 'Forbidden',
    message: messages[0] ?? '',
    details: { ...plain.status.details, causes: messages.map((message) => ({ message })) },
  });
}

function mutationMetrics(registry: MetricRegistry) {
  const labels = ['policy', 'policy_binding', 'error_type'];
  const checks = registry.counter({
    name: 'apiserver_mutating_admission_policy_check_total',
    help: 'Mutation admission policy check total, labeled by policy and further identified by binding.',
    stability: 'ALPHA',
    labels,
  });
  const durations = registry.histogram({
    name: 'apiserver_mutating_admission_policy_check_duration_seconds',
    help: 'Mutation admission latency for individual mutation expressions in seconds, labeled by policy and binding.',
    stability: 'ALPHA',
    labels,
    buckets: [0.000_000_5, 0.001, 0.01, 0.1, 1],
  });
  return (policy: string, binding: string, error: string, durationMs: number): void => {
    const counter: Counter = checks.of(policy, binding, error);
    counter.add(1);
    durations.of(policy, binding, error).observe(durationMs / 1000);
  };
}

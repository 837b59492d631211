import {
  type Dialect,
  errorText,
  forbidden,
  internalError,
  type MaybePromise,
  StatusError,
} from '@wheelhouse/machinery';
import type { AdmissionCall } from '../../registry/contract.ts';
import { groupResourceOf } from '../../registry/registry.ts';
import { askConditions, type CompiledCondition, compileConditions } from '../cel/conditions.ts';
import { requestVariables } from '../cel/run.ts';
import { factsOf, kindFor, type RequestFacts } from '../matching/facts.ts';
import { formByRules } from '../matching/form.ts';
import { selectsNamespace, selectsObject } from '../matching/selectors.ts';
import { convertTo, type Served } from '../matching/versioned.ts';
import type { AdmissionTools } from '../tools.ts';
import type { Hook } from './hooks.ts';
import type { HookMetrics } from './metrics.ts';
import { type Asked, requestFields } from './review.ts';

/** A hook to call, and the admission call in the version that the hook's rules name. */
export interface Invocation {
  readonly hook: Hook;
  readonly convertedCall: Asked;
  /** How the object is served in the version that the hook's rules name. */
  readonly served: Served;
}

interface Selecting {
  readonly call: AdmissionCall;
  readonly tools: AdmissionTools;
  readonly metrics: HookMetrics;
}

/**
 * The invocation of a hook by its rules, selectors and conditions; undefined when the call is not
 * its concern. Throws 403 where its conditions fail and its policy is to fail with them.
 */
export async function invocationOf(hook: Hook, at: Selecting): Promise<Invocation | undefined> {
  const { call, tools } = at;
  const facts = factsOf(call);
  const served = formByRules(hook.rules, hook.matchPolicy, { call, facts, tools });
  if (served === undefined || !selectsObject(hook.objectSelector, call)) return undefined;
  const { objects } = tools;
  if (!(await selectsNamespace(hook.namespaceSelector, { call, facts, objects }))) return undefined;
  const converted = askedOf(call, { facts, served, tools });
  const convertedCall = converted instanceof Promise ? await converted : converted;
  const invocation = { hook, convertedCall, served };
  if (hook.conditions.length === 0) return invocation;
  return (await meetsConditions(invocation, at)) ? invocation : undefined;
}

function askedOf(
  call: AdmissionCall,
  at: { facts: RequestFacts; served: Served; tools: AdmissionTools },
): MaybePromise<Asked> {
  const { facts, served, tools } = at;
  const { def, version } = served;
  const snapshot = tools.snapshot();
  const convert = (object: AdmissionCall['object']) =>
    object === undefined ? undefined : convertTo(object, served, snapshot);
  const withObjects = (object: Asked['object'], old: Asked['old']): Asked => ({
    call,
    facts,
    resource: { group: def.group, version: version.version, resource: def.resource },
    kind: kindFor(def, version, facts.subresource),
    object,
    old,
  });
  try {
    const [object, old] = [convert(call.object), convert(call.old)];
    if (!(object instanceof Promise) && !(old instanceof Promise)) return withObjects(object, old);
    return Promise.all([object, old]).then((both) => withObjects(...both));
  } catch (error) {
    if (error instanceof StatusError) throw error;
    throw internalError(errorText(error), error);
  }
}

const compiled = new WeakMap<Hook, readonly CompiledCondition[]>();

function conditionsFor(hook: Hook): readonly CompiledCondition[] {
  const cached = compiled.get(hook);
  if (cached !== undefined) return cached;
  const made = compileConditions(hook.conditions);
  compiled.set(hook, made);
  return made;
}

async function meetsConditions(
  { hook, convertedCall }: Invocation,
  { call, tools, metrics }: Selecting,
): Promise<boolean> {
  const startMs = tools.clock.monotonic();
  const costs = tools.isOn('StrictCostEnforcementForWebhooks') ? 'counted' : 'waived';
  const variables = requestVariables(inputsOf(convertedCall, tools.dialect), tools, { costs });
  const result = await askConditions(conditionsFor(hook), variables);
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

function inputsOf(convertedCall: Asked, dialect: Dialect) {
  const { object, old, facts, call } = convertedCall;
  const request = requestFields(convertedCall, dialect);
  return { object, old, request, facts, user: call.context.user };
}

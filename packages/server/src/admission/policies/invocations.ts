import { type ApiObject, StatusError } from '@wheelhouse/machinery';
import { formByRules, type Judging } from '../matching/form.ts';
import { selectsNamespace, selectsObject } from '../matching/selectors.ts';
import type { Served } from '../matching/versioned.ts';
import type { Binding, MatchResources, PolicyBasis } from './definition.ts';
import type { PolicyHook } from './hooks.ts';
import { ConfigurationError, paramsOf, servedParams } from './params.ts';

/**
 * The form in which a request matches: the served version that the rules name; undefined where it
 * does not match. Throws 404 when its namespace is gone.
 */
async function matchedForm(match: MatchResources, at: Judging): Promise<Served | undefined> {
  const { call, facts, tools } = at;
  if (!selectsObject(match.objectSelector, call)) return undefined;
  if (formByRules(match.excluded, match.matchPolicy, at) !== undefined) return undefined;
  const form =
    match.rules.length === 0 ? call.target : formByRules(match.rules, match.matchPolicy, at);
  if (form === undefined) return undefined;
  const { objects } = tools;
  const isSelected = await selectsNamespace(match.namespaceSelector, { call, facts, objects });
  return isSelected ? form : undefined;
}

/** A policy to evaluate for a request, through one of its bindings. */
export interface Invocation {
  readonly policy: PolicyBasis;
  readonly binding: Binding;
  /** How the object is served in the version that the policy's rules name. */
  readonly form: Served;
  /** Each is asked about by itself; undefined: there is none. */
  readonly params: readonly (ApiObject | undefined)[];
}

/** A policy or binding that cannot be used, and whose policy does not ignore that. */
export interface Misconfigured {
  readonly policy: PolicyBasis;
  readonly binding: Binding | undefined;
  readonly message: string;
}

/** The invocations that a request leads to, in the order of policies and bindings. */
export async function invocationsOf(
  hooks: readonly PolicyHook[],
  judging: Judging,
): Promise<{
  readonly invocations: readonly Invocation[];
  readonly misconfigured: readonly Misconfigured[];
}> {
  const misconfigured: Misconfigured[] = [];
  const attempt = async <T>(
    at: Pick<Misconfigured, 'policy' | 'binding'>,
    step: () => Promise<T>,
  ): Promise<T | undefined> => {
    try {
      return await step();
    } catch (error) {
      const isTheirs = error instanceof ConfigurationError || error instanceof StatusError;
      if (!isTheirs) throw error;
      const what = at.binding === undefined ? 'policy' : 'binding';
      const message = `failed to configure ${what}: ${error.message}`;
      if (at.policy.failurePolicy === 'Fail') misconfigured.push({ ...at, message });
      return undefined;
    }
  };
  const invocations: Invocation[] = [];
  for (const { policy, bindings } of hooks) {
    const form = await attempt({ policy, binding: undefined }, async () => {
      const matched = await matchedForm(policy.match, judging);
      const { paramKind } = policy;
      if (matched !== undefined && paramKind !== undefined) servedParams(paramKind, judging.tools);
      return matched;
    });
    if (form === undefined) continue;
    for (const binding of bindings) {
      const params = await attempt({ policy, binding }, () =>
        boundParams(policy, binding, judging),
      );
      if (params !== undefined) invocations.push({ policy, binding, form, params });
    }
  }
  return { invocations, misconfigured };
}

async function boundParams(
  policy: PolicyBasis,
  binding: Binding,
  judging: Judging,
): Promise<Invocation['params'] | undefined> {
  const { match } = binding;
  if (match !== undefined && (await matchedForm(match, judging)) === undefined) return undefined;
  const { facts, tools } = judging;
  return paramsOf(policy, binding, { namespace: facts.namespace, tools });
}

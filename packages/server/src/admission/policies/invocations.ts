import { type ApiObject, StatusError } from '@wheelhouse/machinery';
import type { Judging } from '../matching/form.ts';
import type { Served } from '../matching/versioned.ts';
import type { Binding, PolicyBasis } from './definition.ts';
import type { PolicyHook } from './hooks.ts';
import { matchedForm } from './match.ts';
import { ConfigurationError, paramsOf, servedParams } from './params.ts';

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

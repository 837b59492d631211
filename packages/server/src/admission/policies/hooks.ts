import type { Dialect } from '@wheelhouse/machinery';
import type { AdmissionCall } from '../../registry/contract.ts';
import { isExempt } from '../matching/facts.ts';
import type { AdmissionTools } from '../tools.ts';
import { type Followed, followed } from '../webhooks/followed.ts';
import { type Binding, bindingOf, type PolicyBasis, policyOf } from './definition.ts';

/** A policy and what puts it to use; a policy without bindings judges nothing. */
export interface PolicyHook {
  readonly policy: PolicyBasis;
  readonly bindings: readonly Binding[];
}

/** Judges a call by policies; throws what refuses it. */
export type JudgeByPolicies = (call: AdmissionCall, hooks: readonly PolicyHook[]) => Promise<void>;

/** Policies of one sort with their bindings, followed as they change. */
interface PolicySource {
  readonly policies: Followed<PolicyBasis>;
  readonly bindings: Followed<Binding>;
}

/**
 * A phase that judges by policies of one sort (ADM-3). They are followed from the first write on; what
 * judges by them is loaded with the first that is bound.
 */
export function judgingByPolicies(
  tools: AdmissionTools,
  sort: {
    readonly policies: string;
    readonly bindings: string;
    readonly load: () => Promise<JudgeByPolicies>;
  },
): (call: AdmissionCall) => Promise<void> | undefined {
  let source: PolicySource | undefined;
  let judge: Promise<JudgeByPolicies> | undefined;
  const hooks = hooksKeeper();
  const run = async (call: AdmissionCall, from: PolicySource): Promise<void> => {
    await Promise.all([from.policies.ready, from.bindings.ready]).catch((error: unknown) => {
      // The next call begins anew.
      if (source === from) source = undefined;
      throw error;
    });
    const current = hooks(from);
    if (current.length === 0) return;
    judge ??= sort.load();
    await (await judge)(call, current);
  };
  return (call) => {
    if (isExempt(call, tools.dialect) || isReview(call, tools.dialect)) return undefined;
    source ??= followedSource(tools, sort);
    const isReady = source.policies.isReady && source.bindings.isReady;
    if (isReady && hooks(source).length === 0) return undefined;
    return run(call, source);
  };
}

/** Questions who somebody is and what they may do, without which nothing works; by stems of groups. */
const reviews: ReadonlyMap<string, readonly string[]> = new Map([
  ['authentication', ['selfsubjectreviews', 'tokenreviews']],
  [
    'authorization',
    [
      'localsubjectaccessreviews',
      'selfsubjectaccessreviews',
      'selfsubjectrulesreviews',
      'subjectaccessreviews',
    ],
  ],
]);

/** Whether a call only asks something that no policy may refuse. */
function isReview({ target: { def } }: AdmissionCall, dialect: Dialect): boolean {
  if (!def.resource.endsWith('reviews')) return false;
  return [...reviews].some(
    ([stem, resources]) => def.group === dialect.group(stem) && resources.includes(def.resource),
  );
}

/** Joins policies with their bindings, anew only when either have changed. */
function hooksKeeper(): (source: PolicySource) => readonly PolicyHook[] {
  let policies: readonly PolicyBasis[] | undefined;
  let bindings: readonly Binding[] | undefined;
  let hooks: readonly PolicyHook[] = [];
  return (source) => {
    const now = { policies: source.policies.current(), bindings: source.bindings.current() };
    if (now.policies !== policies || now.bindings !== bindings) {
      ({ policies, bindings } = now);
      hooks = now.policies.flatMap((policy) => {
        const own = now.bindings.filter(({ policyName }) => policyName === policy.name);
        return own.length === 0 ? [] : [{ policy, bindings: own }];
      });
    }
    return hooks;
  };
}

function followedSource(
  tools: AdmissionTools,
  sort: { readonly policies: string; readonly bindings: string },
): PolicySource {
  const { caches } = tools;
  const defOf = (resource: string) => {
    const def = tools.builtin('admissionregistration', resource);
    if (def === undefined) throw new Error(`the catalogue has no ${resource}`);
    return def;
  };
  return {
    policies: followed({
      caches,
      def: defOf(sort.policies),
      read: (object) => [policyOf(object)],
    }),
    bindings: followed({
      caches,
      def: defOf(sort.bindings),
      read: (object) => [bindingOf(object)],
    }),
  };
}

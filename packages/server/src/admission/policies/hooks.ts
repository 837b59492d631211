import {
  type ApiObject,
  andThen,
  type Dialect,
  isObject,
  type JsonObject,
  type JsonValue,
  type LabelSelection,
  type MaybePromise,
  objectsOf,
  stringsOf,
  textOf,
} from '@wheelhouse/machinery';
import type { AdmissionCall } from '../../registry/contract.ts';
import { isExempt, type OperationRule, rulesOf, selectorOf } from '../matching/rules.ts';
import { type Followed, followed } from '../objects.ts';
import type { AdmissionTools } from '../tools.ts';
import { conditionsOf, type NamedExpression } from '../webhooks/hooks.ts';

/** A policy and its bindings; without bindings it has no effect. */
export interface PolicyHook {
  readonly policy: PolicyBasis;
  readonly bindings: readonly Binding[];
}

/** Evaluates policies for a call; throws the error that rejects it. */
export type EvaluatePolicies = (call: AdmissionCall, hooks: readonly PolicyHook[]) => Promise<void>;

/** The policies of one type with their bindings, kept current. */
interface PolicySource {
  readonly policies: Followed<PolicyBasis>;
  readonly bindings: Followed<Binding>;
}

/**
 * A phase that evaluates the policies of one type (ADM-3). Policies are followed from the first
 * write on; the evaluator is loaded with the first bound policy.
 */
export function policyPhase(
  tools: AdmissionTools,
  sort: {
    readonly policies: string;
    readonly bindings: string;
    readonly load: () => Promise<EvaluatePolicies>;
  },
): (call: AdmissionCall) => Promise<void> | undefined {
  let source: PolicySource | undefined;
  let evaluate: Promise<EvaluatePolicies> | undefined;
  const hooks = hooksKeeper();
  const run = async (call: AdmissionCall, from: PolicySource): Promise<void> => {
    await Promise.all([from.policies.ready, from.bindings.ready]).catch((error: unknown) => {
      // The next call starts over.
      if (source === from) source = undefined;
      from.policies.close();
      from.bindings.close();
      throw error;
    });
    const current = await hooks(from);
    if (current.length === 0) return;
    evaluate ??= sort.load();
    await (await evaluate)(call, current);
  };
  const { dialect } = tools;
  return (call) => {
    if (isExempt(call, { from: 'policies', dialect }) || isReview(call, dialect)) return undefined;
    source ??= followedSource(tools, sort);
    const isReady = source.policies.isReady && source.bindings.isReady;
    const current = isReady ? hooks(source) : source.policies.ready;
    if (!(current instanceof Promise) && current.length === 0) return undefined;
    return run(call, source);
  };
}

/** Reviews of users and their permissions, which must always work; by group stem. */
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

/** Whether a call is a review that no policy may reject. */
function isReview({ target: { def } }: AdmissionCall, dialect: Dialect): boolean {
  if (!def.resource.endsWith('reviews')) return false;
  return [...reviews].some(
    ([stem, resources]) => def.group === dialect.group(stem) && resources.includes(def.resource),
  );
}

/** Joins policies with their bindings, again only when either has changed. */
function hooksKeeper(): (source: PolicySource) => MaybePromise<readonly PolicyHook[]> {
  let policies: readonly PolicyBasis[] | undefined;
  let bindings: readonly Binding[] | undefined;
  let hooks: readonly PolicyHook[] = [];
  const join = (nowPolicies: readonly PolicyBasis[], nowBindings: readonly Binding[]) => {
    if (nowPolicies === policies && nowBindings === bindings) return hooks;
    [policies, bindings] = [nowPolicies, nowBindings];
    const byPolicy = new Map<string, Binding[]>();
    for (const binding of nowBindings) {
      const own = byPolicy.get(binding.policyName);
      if (own === undefined) byPolicy.set(binding.policyName, [binding]);
      else own.push(binding);
    }
    hooks = nowPolicies.flatMap((policy) => {
      const own = byPolicy.get(policy.name);
      return own === undefined ? [] : [{ policy, bindings: own }];
    });
    return hooks;
  };
  return (source) =>
    andThen(source.policies.current(), (currentPolicies) =>
      andThen(source.bindings.current(), (currentBindings) =>
        join(currentPolicies, currentBindings),
      ),
    );
}

/** Reads an object with one value in a step of its own. */
const reading = <T>(readOne: (object: ApiObject) => T) =>
  function* (object: ApiObject): Generator<void, readonly T[]> {
    yield;
    return [readOne(object)];
  };

function followedSource(
  tools: AdmissionTools,
  sort: { readonly policies: string; readonly bindings: string },
): PolicySource {
  const { caches, clock } = tools;
  const defOf = (resource: string) => {
    const def = tools.builtin('admissionregistration', resource);
    if (def === undefined) throw new Error(`the catalogue has no ${resource}`);
    return def;
  };
  return {
    policies: followed({ caches, clock, def: defOf(sort.policies), read: reading(policyOf) }),
    bindings: followed({ caches, clock, def: defOf(sort.bindings), read: reading(bindingOf) }),
  };
}

/** The match constraints of a policy or binding. */
export interface MatchResources {
  readonly rules: readonly OperationRule[];
  readonly excluded: readonly OperationRule[];
  readonly matchPolicy: 'Exact' | 'Equivalent';
  readonly namespaceSelector: LabelSelection;
  readonly objectSelector: LabelSelection;
}

/** The kind of a policy's parameters. */
export interface ParamKind {
  readonly apiVersion: string;
  readonly kind: string;
}

/** The common part of both policy types (ADM-3). */
export interface PolicyBasis {
  readonly name: string;
  readonly spec: JsonObject;
  readonly match: MatchResources;
  readonly paramKind: ParamKind | undefined;
  readonly failurePolicy: 'Ignore' | 'Fail';
  readonly conditions: readonly NamedExpression[];
  readonly variables: readonly NamedExpression[];
}

/** A binding of a policy. */
export interface Binding {
  readonly name: string;
  readonly policyName: string;
  /** Absent: only the policy's own rules apply. */
  readonly match: MatchResources | undefined;
  readonly paramRef: ParamRef | undefined;
  readonly actions: readonly string[];
}

/** The parameters that a binding selects. */
interface ParamRef {
  readonly name: string;
  readonly namespace: string;
  readonly selector: LabelSelection | undefined;
  readonly onNone: 'Allow' | 'Deny';
}

const specOf = (object: ApiObject): JsonObject => (isObject(object['spec']) ? object['spec'] : {});

/** Reads a policy of either type. */
function policyOf(object: ApiObject): PolicyBasis {
  const spec = specOf(object);
  const { paramKind } = spec;
  return {
    name: object.metadata.name ?? '',
    spec,
    match: matchOf(spec['matchConstraints']),
    paramKind: isObject(paramKind)
      ? { apiVersion: textOf(paramKind['apiVersion']), kind: textOf(paramKind['kind']) }
      : undefined,
    failurePolicy: spec['failurePolicy'] === 'Ignore' ? 'Ignore' : 'Fail',
    conditions: conditionsOf(spec['matchConditions']),
    variables: conditionsOf(spec['variables']),
  };
}

/** Reads a binding of either type. */
function bindingOf(object: ApiObject): Binding {
  const spec = specOf(object);
  const { matchResources, paramRef } = spec;
  return {
    name: object.metadata.name ?? '',
    policyName: textOf(spec['policyName']),
    match: isObject(matchResources) ? matchOf(matchResources) : undefined,
    paramRef: isObject(paramRef) ? paramRefOf(paramRef) : undefined,
    actions: stringsOf(spec['validationActions']),
  };
}

function paramRefOf(reference: JsonObject): ParamRef {
  const { selector } = reference;
  return {
    name: textOf(reference['name']),
    namespace: textOf(reference['namespace']),
    selector: isObject(selector) ? selectorOf(selector) : undefined,
    onNone: reference['parameterNotFoundAction'] === 'Deny' ? 'Deny' : 'Allow',
  };
}

function matchOf(value: JsonValue | undefined): MatchResources {
  const constraints = isObject(value) ? value : {};
  return {
    rules: rulesOf(constraints['resourceRules']),
    excluded: rulesOf(constraints['excludeResourceRules']),
    matchPolicy: constraints['matchPolicy'] === 'Exact' ? 'Exact' : 'Equivalent',
    namespaceSelector: selectorOf(constraints['namespaceSelector']),
    objectSelector: selectorOf(constraints['objectSelector']),
  };
}

/** The objects of a list in a spec. */
export const specObjects = (spec: JsonObject, name: string) => objectsOf(spec[name]);

import {
  type ApiObject,
  isObject,
  type JsonObject,
  type JsonValue,
  type LabelSelection,
} from '@wheelhouse/machinery';
import { type OperationRule, objectsOf, rulesOf, textsOf } from '../matching/rules.ts';
import { selectorOf } from '../matching/selectors.ts';
import { conditionsOf, type NamedExpression } from '../webhooks/hooks.ts';

/** What a policy or binding says of the requests it is about. */
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

/** What policies of both sorts have in common (ADM-3). */
export interface PolicyBasis {
  readonly name: string;
  readonly spec: JsonObject;
  readonly match: MatchResources;
  readonly paramKind: ParamKind | undefined;
  readonly failurePolicy: 'Ignore' | 'Fail';
  readonly conditions: readonly NamedExpression[];
  readonly variables: readonly NamedExpression[];
}

/** What puts a policy to use. */
export interface Binding {
  readonly name: string;
  readonly policyName: string;
  /** Absent: the policy's own rules decide alone. */
  readonly match: MatchResources | undefined;
  readonly paramRef: ParamRef | undefined;
  readonly actions: readonly string[];
}

/** Which parameters a binding means. */
export interface ParamRef {
  readonly name: string;
  readonly namespace: string;
  readonly selector: LabelSelection | undefined;
  readonly onNone: 'Allow' | 'Deny';
}

const text = (value: JsonValue | undefined) => (typeof value === 'string' ? value : '');
const specOf = (object: ApiObject): JsonObject => (isObject(object['spec']) ? object['spec'] : {});

/** Reads what a policy says, whichever sort it is of. */
export function policyOf(object: ApiObject): PolicyBasis {
  const spec = specOf(object);
  const { paramKind } = spec;
  return {
    name: object.metadata.name ?? '',
    spec,
    match: matchOf(spec['matchConstraints']),
    paramKind: isObject(paramKind)
      ? { apiVersion: text(paramKind['apiVersion']), kind: text(paramKind['kind']) }
      : undefined,
    failurePolicy: spec['failurePolicy'] === 'Ignore' ? 'Ignore' : 'Fail',
    conditions: conditionsOf(spec['matchConditions']),
    variables: conditionsOf(spec['variables']),
  };
}

/** Reads a binding, whichever sort it is of. */
export function bindingOf(object: ApiObject): Binding {
  const spec = specOf(object);
  const { matchResources, paramRef } = spec;
  return {
    name: object.metadata.name ?? '',
    policyName: text(spec['policyName']),
    match: isObject(matchResources) ? matchOf(matchResources) : undefined,
    paramRef: isObject(paramRef) ? paramRefOf(paramRef) : undefined,
    actions: textsOf(spec['validationActions']),
  };
}

function paramRefOf(reference: JsonObject): ParamRef {
  const { selector } = reference;
  return {
    name: text(reference['name']),
    namespace: text(reference['namespace']),
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

/** The objects of a list that a spec holds. */
export const specObjects = (spec: JsonObject, name: string) => objectsOf(spec[name]);

import {
  appendAll,
  cut,
  duplicate,
  type FieldError,
  invalid,
  invalidGo,
  type JsonObject,
  notSupported,
  pathSegment,
  required,
  ruleErrors,
  seenBefore,
  validateLabelSelector,
} from '@wheelhouse/machinery';
import { listAt } from '../cells.ts';
import type {
  MatchResources,
  NamedRuleWithOperations,
  RuleWithOperations,
} from '../gen/types/admissionregistration/v1.ts';
import type { Stored } from '../resource-def.ts';
import { flatMapSteps, goList, goStrings, validateStar } from '../rules/checks.ts';
import { fillAbsent, forEachSteps, objectAt, objectsAt } from '../rules/fill.ts';

/** The operations and resources that a webhook or policy matches. */

const operations = ['*', 'CONNECT', 'CREATE', 'DELETE', 'UPDATE'];
const scopes = ['*', 'Cluster', 'Namespaced'];

/** Validates a rule of a webhook or policy: its operations, groups, versions, and resources. */
export function* validateOperationRule(
  rule: Stored<RuleWithOperations | NamedRuleWithOperations>,
  path: string,
): Generator<void, FieldError[]> {
  const ruleOperations: readonly string[] = rule.operations ?? [];
  const field = `${path}.operations`;
  const errors = ruleOperations.length === 0 ? [required(field)] : [];
  if (ruleOperations.length > 1 && ruleOperations.includes('*')) {
    const shown = goList('admissionregistration.OperationType', ruleOperations);
    const detail = "if '*' is present, must not specify other operations";
    errors.push(invalidGo(field, () => shown, detail));
  }
  const unknown = yield* flatMapSteps(ruleOperations, (operation, index) =>
    operations.includes(operation)
      ? []
      : [notSupported(`${field}[${index}]`, operation, operations)],
  );
  const scope = rule.scope;
  const isSupported = scope === undefined || scopes.includes(String(scope));
  return [
    ...errors,
    ...unknown,
    ...validateNames(rule, `${path}.apiGroups`, 'API groups'),
    ...validateNames(rule, `${path}.apiVersions`, 'API versions'),
    ...(yield* flatMapSteps(rule.apiVersions ?? [], (version, index) =>
      version === '' ? [required(`${path}.apiVersions[${index}]`)] : [],
    )),
    ...(yield* validateResources(rule.resources ?? [], `${path}.resources`)),
    ...(isSupported ? [] : [notSupported(`${path}.scope`, scope, scopes)]),
  ];
}

function validateNames(
  rule: Stored<RuleWithOperations | NamedRuleWithOperations>,
  field: string,
  what: string,
): FieldError[] {
  const values = listAt(rule, field.slice(field.lastIndexOf('.') + 1)).map(String);
  return values.length === 0 ? [required(field)] : validateStar(values, field, what);
}

function* validateResources(
  resources: readonly string[],
  field: string,
): Generator<void, FieldError[]> {
  if (resources.length === 0) return [required(field)];
  const withAllSubresources = new Set<string>();
  const ofAllResources = new Set<string>();
  const errors = yield* flatMapSteps(resources, (text, index): FieldError[] => {
    const at = `${field}[${index}]`;
    if (text === '') return [required(at)];
    const [resource, part] = cut(text, '/');
    if (part === undefined) return [];
    const covered = [
      ...(withAllSubresources.has(resource) ? [`${resource}/*`] : []),
      ...(ofAllResources.has(part) ? [`*/${part}`] : []),
    ];
    if (part === '*') withAllSubresources.add(resource);
    if (resource === '*') ofAllResources.add(part);
    return covered.map((by) =>
      invalid(at, text, `if '${by}' is present, must not specify ${text}`),
    );
  });
  yield;
  return [...errors, ...validateStars(resources, field)];
}

function validateStars(resources: readonly string[], field: string): FieldError[] {
  const refuse = (detail: string) => invalidGo(field, () => goStrings(resources), detail);
  const errors: FieldError[] = [];
  if (resources.length > 1 && resources.includes('*/*')) {
    errors.push(refuse("if '*/*' is present, must not specify other resources"));
  }
  // The last resource without a subresource decides, as in kube-apiserver.
  const plain = resources.filter((text) => text !== '' && !text.includes('/'));
  if (plain.includes('*') && plain.at(-1) !== '*') {
    const detail = "if '*' is present, must not specify other resources without subresources";
    errors.push(refuse(detail));
  }
  return errors;
}

/** `MatchResources`: the objects that policies and their bindings match. */

const ruleLists = ['resourceRules', 'excludeResourceRules'];

/** Fills the defaults of a `MatchResources`, in steps (TRUST-2). */
export function* fillMatchResources(
  match: Stored<MatchResources> | undefined,
): Generator<void, void> {
  if (match === undefined) return;
  fillAbsent(match, { matchPolicy: 'Equivalent', namespaceSelector: {}, objectSelector: {} });
  for (const name of ruleLists) {
    yield* forEachSteps(objectsAt(match, name), (rule) => fillAbsent(rule, { scope: '*' }));
  }
}

/** Validates the `MatchResources` at a path. */
export function* validateMatchResources(
  match: Stored<MatchResources>,
  path: string,
): Generator<void, FieldError[]> {
  const policy = match.matchPolicy;
  const policies = ['Equivalent', 'Exact'];
  const errors: FieldError[] = [];
  if (policy === undefined) errors.push(required(`${path}.matchPolicy`));
  else if (!policies.includes(String(policy))) {
    errors.push(notSupported(`${path}.matchPolicy`, policy, policies));
  }
  for (const name of ['namespaceSelector', 'objectSelector'] as const) {
    const selector = match[name];
    if (selector === undefined) errors.push(required(`${path}.${name}`));
    appendAll(errors, validateLabelSelector(selector, `${path}.${name}`));
  }
  for (const list of ruleLists) {
    const ofList = yield* flatMapSteps(objectsAt(match, list), (rule, index) =>
      validateNamedRule(rule, `${path}.${list}[${index}]`),
    );
    appendAll(errors, ofList);
  }
  return errors;
}

function* validateNamedRule(
  rule: Stored<NamedRuleWithOperations>,
  path: string,
): Generator<void, FieldError[]> {
  const isRepeated = seenBefore();
  const errors = yield* flatMapSteps(rule.resourceNames ?? [], (name, index) => {
    const field = `${path}.resourceNames[${index}]`;
    return [
      ...ruleErrors(field, name, pathSegment),
      ...(isRepeated(name) ? [duplicate(field, name)] : []),
    ];
  });
  return [...errors, ...(yield* validateOperationRule(rule, path))];
}

/** The `MatchResources` member of a spec. */
export const matchOf = (object: JsonObject, name: string) => objectAt(object, 'spec', name);

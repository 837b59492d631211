import {
  appendAll,
  breaks,
  duplicate,
  type FieldError,
  type JsonObject,
  notSupported,
  pathSegment,
  repeats,
  required,
  validateLabelSelector,
} from '@wheelhouse/machinery';
import type {
  MatchResources,
  NamedRuleWithOperations,
} from '../gen/types/admissionregistration/v1.ts';
import { fillAbsent, objectAt, objectsAt } from '../rules/fill.ts';
import type { Stored } from '../stored.ts';
import { validateOperationRule } from './operation-rules.ts';

/** What policies and their bindings say of the objects they are about. */

const ruleLists = ['resourceRules', 'excludeResourceRules'];

/** Fills the defaults of a `MatchResources`. */
export function fillMatchResources(match: Stored<MatchResources> | undefined): void {
  if (match === undefined) return;
  fillAbsent(match, { matchPolicy: 'Equivalent', namespaceSelector: {}, objectSelector: {} });
  for (const name of ruleLists) {
    for (const rule of objectsAt(match, name)) fillAbsent(rule, { scope: '*' });
  }
}

/** Judges the `MatchResources` at a path. */
export function validateMatchResources(match: Stored<MatchResources>, path: string): FieldError[] {
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
  return [
    ...errors,
    ...ruleLists.flatMap((list) =>
      objectsAt(match, list).flatMap((rule, index) =>
        validateNamedRule(rule, `${path}.${list}[${index}]`),
      ),
    ),
  ];
}

function validateNamedRule(rule: Stored<NamedRuleWithOperations>, path: string): FieldError[] {
  const names = (rule.resourceNames ?? []).map(String);
  const isRepeated = repeats(names);
  const errors = names.flatMap((name, index) => {
    const field = `${path}.resourceNames[${index}]`;
    return [
      ...breaks(field, name, pathSegment),
      ...(isRepeated[index] === true ? [duplicate(field, name)] : []),
    ];
  });
  return [...errors, ...validateOperationRule(rule, path)];
}

/** The `MatchResources` member of a spec. */
export const matchOf = (object: JsonObject, name: string) => objectAt(object, 'spec', name);

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
import { at, listAt } from '../cells.ts';
import { fillAbsent, objectAt, objectsAt } from '../rules/fill.ts';
import { validateOperationRule } from './operation-rules.ts';

/** What policies and their bindings say of the objects they are about. */

const ruleLists = ['resourceRules', 'excludeResourceRules'];

/** Fills the defaults of a `MatchResources`. */
export function fillMatchResources(match: JsonObject | undefined): void {
  if (match === undefined) return;
  fillAbsent(match, { matchPolicy: 'Equivalent', namespaceSelector: {}, objectSelector: {} });
  for (const name of ruleLists) {
    for (const rule of objectsAt(match, name)) fillAbsent(rule, { scope: '*' });
  }
}

/** Judges the `MatchResources` at a path. */
export function validateMatchResources(match: JsonObject, path: string): FieldError[] {
  const policy = at(match, 'matchPolicy');
  const policies = ['Equivalent', 'Exact'];
  const errors: FieldError[] = [];
  if (policy === undefined) errors.push(required(`${path}.matchPolicy`));
  else if (!policies.includes(String(policy))) {
    errors.push(notSupported(`${path}.matchPolicy`, policy, policies));
  }
  for (const name of ['namespaceSelector', 'objectSelector']) {
    const selector = objectAt(match, name);
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

function validateNamedRule(rule: JsonObject, path: string): FieldError[] {
  const names = listAt(rule, 'resourceNames').map(String);
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

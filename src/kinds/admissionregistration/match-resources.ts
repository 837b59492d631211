import type { JsonObject } from '../../base/json.ts';
import { type FieldError, notSupported, required } from '../../meta/field-error.ts';
import { at, listAt, textAt } from '../cells.ts';
import { fill, objectAt, objectsAt } from '../fill.ts';

/** What policies and their bindings say of the objects they are about. */

const ruleLists = ['resourceRules', 'excludeResourceRules'];

/** Fills the defaults of a `MatchResources`. */
export function fillMatchResources(match: JsonObject | undefined): void {
  if (match === undefined) return;
  fill(match, { matchPolicy: 'Equivalent', namespaceSelector: {}, objectSelector: {} });
  for (const name of ruleLists) {
    for (const rule of objectsAt(match, name)) fill(rule, { scope: '*' });
  }
}

/** Judges the `MatchResources` at a path. */
export function validateMatchResources(match: JsonObject, path: string): FieldError[] {
  const errors: FieldError[] = [];
  for (const name of ['namespaceSelector', 'objectSelector', 'matchPolicy']) {
    if (at(match, name) === undefined) errors.push(required(`${path}.${name}`));
  }
  const policy = textAt(match, 'matchPolicy');
  const policies = ['Equivalent', 'Exact'];
  if (policy !== '' && !policies.includes(policy)) {
    errors.push(notSupported(`${path}.matchPolicy`, policy, policies));
  }
  for (const list of ruleLists) {
    objectsAt(match, list).forEach((rule, index) => {
      for (const name of ['operations', 'apiGroups', 'apiVersions', 'resources']) {
        if (listAt(rule, name).length > 0) continue;
        errors.push(required(`${path}.${list}[${index}].${name}`));
      }
    });
  }
  return errors;
}

/** The `MatchResources` member of a spec. */
export const matchOf = (object: JsonObject, name: string) => objectAt(object, 'spec', name);

import {
  type Dialect,
  duplicate,
  type FieldError,
  invalidGo,
  type JsonObject,
  notSupported,
  repeats,
  required,
} from '@wheelhouse/machinery';
import type { ValidatingAdmissionPolicyBindingSpec } from '../gen/types/admissionregistration/v1.ts';
import type { ResourceDef } from '../resource-def.ts';
import { goList } from '../rules/checks.ts';
import { ensure } from '../rules/fill.ts';
import type { Stored } from '../stored.ts';
import { bindingKind, validateBindingBasis } from './policy-binding.ts';

const actions = ['Audit', 'Deny', 'Warn'];

function validate(object: JsonObject): FieldError[] {
  return [...validateBindingBasis(object), ...validateActions(ensure(object, 'spec'))];
}

function validateActions(spec: Stored<ValidatingAdmissionPolicyBindingSpec>): FieldError[] {
  const specActions = (spec.validationActions ?? []).map(String);
  const field = 'spec.validationActions';
  if (specActions.length === 0)
    return [required(field, 'at least one validation action is required')];
  const isRepeated = repeats(specActions);
  const errors = specActions.flatMap((action, index): FieldError[] => {
    const path = `${field}[${index}]`;
    return [
      ...(actions.includes(action) ? [] : [notSupported(path, action, actions)]),
      ...(isRepeated[index] === true ? [duplicate(path, action)] : []),
    ];
  });
  if (specActions.includes('Deny') && specActions.includes('Warn')) {
    const detail =
      'must not contain both Deny and Warn (repeating the same validation failure information ' +
      'in the API response and headers serves no purpose)';
    const shown = goList('admissionregistration.ValidationAction', specActions);
    errors.push(invalidGo(field, () => shown, detail));
  }
  return errors;
}

/** ValidatingAdmissionPolicyBinding: where a policy holds, with which parameters. */
export function validatingAdmissionPolicyBinding(dialect: Dialect): ResourceDef {
  return bindingKind(dialect, {
    kind: 'ValidatingAdmissionPolicyBinding',
    resource: 'validatingadmissionpolicybindings',
    version: 'v1',
    validate,
    spec: { validationActions: ['Deny'] },
  });
}

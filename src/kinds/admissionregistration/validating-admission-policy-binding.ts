import type { JsonObject } from '../../base/json.ts';
import type { ResourceDef } from '../../catalogue/resource-def.ts';
import type { Dialect } from '../../dialect.ts';
import {
  duplicate,
  type FieldError,
  forbiddenField,
  notSupported,
  required,
} from '../../meta/field-error.ts';
import { type LabelSelector, validateLabelSelector } from '../../meta/label-selector.ts';
import { breaks, dnsSubdomain, pathSegment } from '../../meta/names.ts';
import { ageColumn, column, listAt, nameColumn, textAt } from '../cells.ts';
import { goList, invalidGo } from '../checks.ts';
import { defineKind } from '../define.ts';
import { ensure, objectAt } from '../fill.ts';
import { fillMatchResources, matchOf, validateMatchResources } from './match-resources.ts';

const actions = ['Audit', 'Deny', 'Warn'];

function validate(object: JsonObject): FieldError[] {
  return [...validateBindingBasis(object), ...validateActions(ensure(object, 'spec'))];
}

/** What is wrong with a binding of either sort, but for what it has done. */
export function validateBindingBasis(object: JsonObject): FieldError[] {
  const spec = ensure(object, 'spec');
  const policy = textAt(spec, 'policyName');
  const match = objectAt(spec, 'matchResources');
  return [
    ...(policy === ''
      ? [required('spec.policyName')]
      : breaks('spec.policyName', policy, dnsSubdomain)),
    ...validateParamRef(objectAt(spec, 'paramRef'), 'spec.paramRef'),
    ...(match === undefined ? [] : validateMatchResources(match, 'spec.matchResources')),
  ];
}

function validateParamRef(reference: JsonObject | undefined, path: string): FieldError[] {
  if (reference === undefined) return [];
  const name = textAt(reference, 'name');
  const selector = objectAt(reference, 'selector') as unknown as LabelSelector | undefined;
  const exclusive = 'name and selector are mutually exclusive';
  const errors = name === '' ? [] : breaks(`${path}.name`, name, pathSegment);
  if (name !== '' && selector !== undefined) {
    errors.push(forbiddenField(`${path}.name`, exclusive));
  }
  errors.push(...validateLabelSelector(selector, `${path}.selector`));
  if (name !== '' && selector !== undefined) {
    errors.push(forbiddenField(`${path}.selector`, exclusive));
  }
  if (name === '' && selector === undefined) {
    errors.push(required(path, 'one of name or selector must be specified'));
  }
  return [...errors, ...validateMissingAction(reference, `${path}.parameterNotFoundAction`)];
}

function validateMissingAction(reference: JsonObject, field: string): FieldError[] {
  const action = textAt(reference, 'parameterNotFoundAction');
  if (action === '') return [required(field)];
  const allowed = ['Deny', 'Allow'];
  return allowed.includes(action) ? [] : [notSupported(field, action, allowed)];
}

function validateActions(spec: JsonObject): FieldError[] {
  const given = listAt(spec, 'validationActions').map(String);
  const field = 'spec.validationActions';
  if (given.length === 0) return [required(field, 'at least one validation action is required')];
  const errors = given.flatMap((action, index): FieldError[] => {
    const path = `${field}[${index}]`;
    return [
      ...(actions.includes(action) ? [] : [notSupported(path, action, actions)]),
      ...(given.indexOf(action) < index ? [duplicate(path, action)] : []),
    ];
  });
  if (given.includes('Deny') && given.includes('Warn')) {
    const detail =
      'must not contain both Deny and Warn (repeating the same validation failure information ' +
      'in the API response and headers serves no purpose)';
    const shown = goList('admissionregistration.ValidationAction', given);
    errors.push(invalidGo(field, shown, detail));
  }
  return errors;
}

function paramCell(object: JsonObject): string {
  const ref = objectAt(object, 'spec', 'paramRef');
  if (ref === undefined) return '<unset>';
  const [name, namespace] = [textAt(ref, 'name'), textAt(ref, 'namespace')];
  if (name === '') return '<selector>';
  return namespace === '' ? name : `${namespace}/${name}`;
}

/** ValidatingAdmissionPolicyBinding: where a policy holds, with which parameters. */
export function validatingAdmissionPolicyBinding(dialect: Dialect): ResourceDef {
  return defineKind({
    dialect,
    facts: 'admissionregistration',
    kind: 'ValidatingAdmissionPolicyBinding',
    resource: 'validatingadmissionpolicybindings',
    scope: 'Cluster',
    categories: ['api-extensions'],
    generation: true,
    versions: [
      {
        version: 'v1',
        defaults: (object) => fillMatchResources(matchOf(object, 'matchResources')),
        columns: [
          nameColumn,
          column('PolicyName', (object) => textAt(object, 'spec', 'policyName'), {
            description: 'The policy.',
          }),
          column('ParamRef', paramCell, { description: 'The parameters.' }),
          ageColumn,
        ],
      },
    ],
    strategy: {
      validateName: dnsSubdomain,
      allowUnconditionalUpdate: false,
      validateCreate: (_, object) => validate(object),
      validateUpdate: (_, object) => validate(object),
    },
    example: () => ({
      apiVersion: `${dialect.group('admissionregistration')}/v1`,
      kind: 'ValidatingAdmissionPolicyBinding',
      metadata: { name: 'example' },
      spec: { policyName: 'example', validationActions: ['Deny'] },
    }),
  });
}

import type { JsonObject } from '../../base/json.ts';
import type { ResourceDef } from '../../catalogue/resource-def.ts';
import type { Dialect } from '../../dialect.ts';
import {
  duplicate,
  type FieldError,
  invalid,
  notSupported,
  required,
} from '../../meta/field-error.ts';
import { dnsSubdomain } from '../../meta/names.ts';
import { ageColumn, at, column, listAt, nameColumn, textAt } from '../cells.ts';
import { defineKind } from '../define.ts';
import { ensure, objectAt } from '../fill.ts';
import { fillMatchResources, matchOf, validateMatchResources } from './match-resources.ts';

const actions = ['Audit', 'Deny', 'Warn'];

function validate(object: JsonObject): FieldError[] {
  const spec = ensure(object, 'spec');
  const errors: FieldError[] = [];
  if (textAt(spec, 'policyName') === '') errors.push(required('spec.policyName'));
  const match = objectAt(spec, 'matchResources');
  if (match !== undefined) errors.push(...validateMatchResources(match, 'spec.matchResources'));
  return [...errors, ...validateParamRef(spec), ...validateActions(spec)];
}

function validateParamRef(spec: JsonObject): FieldError[] {
  const ref = objectAt(spec, 'paramRef');
  if (ref === undefined) return [];
  const field = 'spec.paramRef';
  const errors: FieldError[] = [];
  const isNamed = textAt(ref, 'name') !== '';
  const isSelected = at(ref, 'selector') !== undefined;
  if (isNamed === isSelected) {
    const detail = isNamed
      ? 'name and selector are mutually exclusive'
      : 'one of name or selector must be specified';
    errors.push(isNamed ? invalid(field, textAt(ref, 'name'), detail) : required(field, detail));
  }
  const action = textAt(ref, 'parameterNotFoundAction');
  const allowed = ['Allow', 'Deny'];
  if (action === '') errors.push(required(`${field}.parameterNotFoundAction`));
  else if (!allowed.includes(action)) {
    errors.push(notSupported(`${field}.parameterNotFoundAction`, action, allowed));
  }
  return errors;
}

function validateActions(spec: JsonObject): FieldError[] {
  const given = listAt(spec, 'validationActions');
  const field = 'spec.validationActions';
  if (given.length === 0) return [required(field)];
  const errors = given.flatMap((action, index): FieldError[] => {
    const path = `${field}[${index}]`;
    if (typeof action !== 'string' || !actions.includes(action)) {
      return [notSupported(path, action, actions)];
    }
    return given.indexOf(action) < index ? [duplicate(path, action)] : [];
  });
  if (given.includes('Deny') && given.includes('Warn')) {
    const detail =
      'must not contain both Deny and Warn (repeating the same validation failure information ' +
      'in the API response and headers serves no purpose)';
    errors.push(invalid(field, [...given], detail));
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

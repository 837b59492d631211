import type { JsonObject } from '../../base/json.ts';
import type { ResourceDef } from '../../catalogue/resource-def.ts';
import type { Dialect } from '../../dialect.ts';
import { type FieldError, invalid, notSupported, required } from '../../meta/field-error.ts';
import { dnsSubdomain } from '../../meta/names.ts';
import { ageColumn, column, listAt, nameColumn, textAt } from '../cells.ts';
import { defineKind } from '../define.ts';
import { ensure, fill, objectAt, objectsAt } from '../fill.ts';
import { fillMatchResources, matchOf, validateMatchResources } from './match-resources.ts';

const failurePolicies = ['Fail', 'Ignore'];
const reasons = ['Forbidden', 'Invalid', 'RequestEntityTooLarge', 'Unauthorized'];

function fillDefaults(object: JsonObject): void {
  fill(ensure(object, 'spec'), { failurePolicy: 'Fail' });
  fillMatchResources(matchOf(object, 'matchConstraints'));
}

function validate(object: JsonObject): FieldError[] {
  const spec = ensure(object, 'spec');
  const errors: FieldError[] = [];
  const failurePolicy = textAt(spec, 'failurePolicy');
  if (!failurePolicies.includes(failurePolicy)) {
    errors.push(notSupported('spec.failurePolicy', failurePolicy, failurePolicies));
  }
  const paramKind = objectAt(spec, 'paramKind');
  for (const name of paramKind === undefined ? [] : ['apiVersion', 'kind']) {
    if (textAt(paramKind, name) === '') errors.push(required(`spec.paramKind.${name}`));
  }
  const match = objectAt(spec, 'matchConstraints');
  if (match === undefined) errors.push(required('spec.matchConstraints'));
  else {
    errors.push(...validateMatchResources(match, 'spec.matchConstraints'));
    if (listAt(match, 'resourceRules').length === 0) {
      errors.push(required('spec.matchConstraints.resourceRules'));
    }
  }
  return [...errors, ...validateRules(spec)];
}

function validateRules(spec: JsonObject): FieldError[] {
  const errors: FieldError[] = [];
  const lists = ['validations', 'auditAnnotations'];
  if (lists.every((name) => listAt(spec, name).length === 0)) {
    const detail = 'validations or auditAnnotations must contain at least one item';
    errors.push(...lists.map((name) => required(`spec.${name}`, detail)));
  }
  objectsAt(spec, 'validations').forEach((rule, index) => {
    const path = `spec.validations[${index}]`;
    if (textAt(rule, 'expression').trim() === '') {
      errors.push(required(`${path}.expression`, 'expression is not specified'));
    }
    const message = textAt(rule, 'message');
    if (/[\n\r]/.test(message)) {
      errors.push(invalid(`${path}.message`, message, 'message must not contain line breaks'));
    }
    const reason = textAt(rule, 'reason');
    if (reason !== '' && !reasons.includes(reason)) {
      errors.push(notSupported(`${path}.reason`, reason, reasons));
    }
  });
  objectsAt(spec, 'auditAnnotations').forEach((annotation, index) => {
    const path = `spec.auditAnnotations[${index}]`;
    if (textAt(annotation, 'key') === '') errors.push(required(`${path}.key`));
    if (textAt(annotation, 'valueExpression').trim() === '') {
      errors.push(required(`${path}.valueExpression`, 'valueExpression is not specified'));
    }
  });
  return errors;
}

/** ValidatingAdmissionPolicy: expressions that may refuse what is written. */
export function validatingAdmissionPolicy(dialect: Dialect): ResourceDef {
  const rules = column('Validations', (object) => listAt(object, 'spec', 'validations').length, {
    type: 'integer',
    description: 'Number of validations.',
  });
  const paramKind = (object: JsonObject) => {
    const kind = objectAt(object, 'spec', 'paramKind');
    return kind === undefined ? '<unset>' : `${textAt(kind, 'apiVersion')}/${textAt(kind, 'kind')}`;
  };
  return defineKind({
    dialect,
    facts: 'admissionregistration',
    kind: 'ValidatingAdmissionPolicy',
    resource: 'validatingadmissionpolicies',
    scope: 'Cluster',
    categories: ['api-extensions'],
    generation: true,
    versions: [
      {
        version: 'v1',
        defaults: fillDefaults,
        columns: [
          nameColumn,
          rules,
          column('ParamKind', paramKind, { description: 'Kind of the parameters.' }),
          ageColumn,
        ],
      },
    ],
    strategy: {
      validateName: dnsSubdomain,
      hasStatus: true,
      allowUnconditionalUpdate: false,
      validateCreate: (_, object) => validate(object),
      validateUpdate: (context, object) =>
        context.subresource === 'status' ? [] : validate(object),
    },
    example: () => ({
      apiVersion: `${dialect.group('admissionregistration')}/v1`,
      kind: 'ValidatingAdmissionPolicy',
      metadata: { name: 'example' },
      spec: {
        matchConstraints: {
          resourceRules: [
            {
              apiGroups: ['apps'],
              apiVersions: ['v1'],
              operations: ['CREATE', 'UPDATE'],
              resources: ['deployments'],
            },
          ],
        },
        validations: [{ expression: 'object.spec.replicas <= 5' }],
      },
    }),
  });
}

import {
  type Dialect,
  dnsSubdomain,
  type FieldError,
  invalid,
  required,
} from '@wheelhouse/machinery';
import { ageColumn, column, listAt, nameColumn } from '../cells.ts';
import { defineKind } from '../define.ts';
import type { ValidatingAdmissionPolicy } from '../gen/types/admissionregistration/v1.ts';
import type { ResourceDef } from '../resource-def.ts';
import { flatMapSteps, validateConditions } from '../rules/checks.ts';
import { ensure, fillAbsent } from '../rules/fill.ts';
import type { Stored } from '../stored.ts';
import type { AdmissionKindOptions } from './expressions.ts';
import { fillMatchResources, matchOf } from './match-resources.ts';
import { paramKindColumn, validatePolicy } from './policy-rules.ts';

/** ValidatingAdmissionPolicy: expressions that may reject writes. */
export function validatingAdmissionPolicy(
  dialect: Dialect,
  options: AdmissionKindOptions = {},
): ResourceDef {
  const { checkExpression: check } = options;
  const rules = column('Validations', (object) => listAt(object, 'spec', 'validations').length, {
    type: 'integer',
    description: 'Number of validations.',
  });
  return defineKind<ValidatingAdmissionPolicy>({
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
        columns: [nameColumn, rules, paramKindColumn, ageColumn],
      },
    ],
    strategy: {
      extraMetadataChecks: { '': ['whole'] },
      validateName: dnsSubdomain,
      hasStatus: true,
      resetFields: { '': ['status'], status: ['metadata', 'spec'] },
      allowUnconditionalUpdate: false,
      validateCreate: (_, object) => validatePolicy(object, { check }),
      validateUpdate: (context, object, old) =>
        context.subresource === 'status'
          ? validateStatus(object)
          : validatePolicy(object, { check, old }),
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

function fillDefaults(object: Stored<ValidatingAdmissionPolicy>): void {
  fillAbsent(ensure(object, 'spec'), { failurePolicy: 'Fail' });
  fillMatchResources(matchOf(object, 'matchConstraints'));
}

function* validateStatus(object: Stored<ValidatingAdmissionPolicy>): Generator<void, FieldError[]> {
  return [
    ...(yield* validateTypeChecking(object)),
    ...(yield* validateConditions(object.status?.conditions ?? [], 'status.conditions')),
  ];
}

/** Validates the warnings about expression types in a policy's status. */
function validateTypeChecking(
  object: Stored<ValidatingAdmissionPolicy>,
): Generator<void, FieldError[]> {
  const path = 'status.typeChecking.expressionWarnings';
  const warnings = object.status?.typeChecking?.expressionWarnings ?? [];
  return flatMapSteps(warnings, (warning, index) => [
    ...((warning.warning ?? '') === '' ? [required(`${path}[${index}].warning`)] : []),
    ...validateFieldRef((warning.fieldRef ?? '').trim(), `${path}[${index}].fieldRef`),
  ]);
}

function validateFieldRef(ref: string, field: string): FieldError[] {
  if (ref === '') return [required(field)];
  const problem = pathProblem(ref);
  return problem === undefined ? [] : [invalid(field, ref, `invalid JSONPath: ${problem}`)];
}

/** What brackets may contain: an index, a slice, a quoted name, `*`, or a filter. */
const inBrackets = /^(?:-?\d*(?::-?\d*){0,2}(?:,-?\d+)*|'[^']*'|"[^"]*"|\*|\?\(.*\))$/s;

/** Returns kube-apiserver's error for an invalid path; undefined for a valid one. */
function pathProblem(path: string): string | undefined {
  for (let at = path.indexOf('['); at >= 0; at = path.indexOf('[', at)) {
    const end = path.indexOf(']', at);
    if (end < 0) return 'unterminated array';
    const content = path.slice(at + 1, end).trim();
    if (content === '' || !inBrackets.test(content)) return `invalid array index ${content}`;
    at = end;
  }
  return undefined;
}

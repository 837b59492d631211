import { type Dialect, dnsSubdomain } from '@wheelhouse/machinery';
import { ageColumn, column, listAt, nameColumn } from '../cells.ts';
import { defineKind } from '../define.ts';
import type { ValidatingAdmissionPolicy } from '../gen/types/admissionregistration/v1.ts';
import type { ResourceDef } from '../resource-def.ts';
import { validateConditions } from '../rules/conditions.ts';
import { ensure, fillAbsent } from '../rules/fill.ts';
import type { Stored } from '../stored.ts';
import type { AdmissionKindOptions } from './expressions.ts';
import { fillMatchResources, matchOf } from './match-resources.ts';
import { paramKindColumn, validatePolicy } from './policy-rules.ts';
import { validateTypeChecking } from './type-warnings.ts';

function fillDefaults(object: Stored<ValidatingAdmissionPolicy>): void {
  fillAbsent(ensure(object, 'spec'), { failurePolicy: 'Fail' });
  fillMatchResources(matchOf(object, 'matchConstraints'));
}

/** ValidatingAdmissionPolicy: expressions that may refuse what is written. */
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
      metadataTold: { '': ['whole'] },
      validateName: dnsSubdomain,
      hasStatus: true,
      resetFields: { '': ['status'], status: ['metadata', 'spec'] },
      allowUnconditionalUpdate: false,
      validateCreate: (_, object) => validatePolicy(object, { check }),
      validateUpdate: (context, object, old) =>
        context.subresource === 'status'
          ? [
              ...validateTypeChecking(object),
              ...validateConditions(object.status?.conditions ?? [], 'status.conditions'),
            ]
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

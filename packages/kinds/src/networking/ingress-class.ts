import {
  appendAll,
  type Dialect,
  dnsLabel,
  dnsSubdomain,
  domainPrefixedPath,
  type FieldError,
  forbiddenField,
  notSupported,
  required,
  ruleErrors,
  tooLong,
} from '@wheelhouse/machinery';
import { ageColumn, column, nameColumn } from '../cells.ts';
import { defineKind } from '../define.ts';
import type { IngressClass, IngressClassParametersReference } from '../gen/types/networking/v1.ts';
import type { ResourceDef } from '../resource-def.ts';
import { immutable } from '../rules/checks.ts';
import { fillAbsent } from '../rules/fill.ts';
import type { Stored } from '../stored.ts';
import { validateTypedReference } from './ingress.ts';

/** IngressClass: the controller that serves Ingresses of the class. */
export function ingressClass(dialect: Dialect): ResourceDef {
  return defineKind<IngressClass>({
    dialect,
    facts: 'networking',
    kind: 'IngressClass',
    resource: 'ingressclasses',
    scope: 'Cluster',
    versions: [
      {
        version: 'v1',
        defaults: (object) => fillAbsent(object.spec?.parameters, { scope: 'Cluster' }),
        columns: [
          nameColumn,
          column('Controller', (object) => object.spec?.controller ?? '', {
            description: 'Controller that implements the class.',
          }),
          column('Parameters', parameters, {
            description: 'Reference to further parameters of the class.',
          }),
          ageColumn,
        ],
      },
    ],
    generation: true,
    strategy: {
      extraMetadataChecks: { '': ['change', 'whole'] },
      validateName: dnsSubdomain,
      validateCreate: (_, object) => validate(object),
      validateUpdate: (_, object, old) => [
        ...immutable('spec.controller', object.spec?.controller ?? '', old.spec?.controller ?? ''),
        ...validate(object),
      ],
    },
    example: () => ({
      apiVersion: `${dialect.group('networking')}/v1`,
      kind: 'IngressClass',
      metadata: { name: 'example' },
      spec: { controller: 'example.com/ingress' },
    }),
  });
}

function parameters(object: Stored<IngressClass>): string {
  const kind = object.spec?.parameters?.kind ?? '';
  if (kind === '') return '<none>';
  const group = object.spec?.parameters?.apiGroup ?? '';
  return `${group === '' ? kind : `${kind}.${group}`}/${object.spec?.parameters?.name ?? ''}`;
}

const controllerBytesMax = 250;

function validate(object: Stored<IngressClass>): FieldError[] {
  const controller = object.spec?.controller ?? '';
  const field = 'spec.controller';
  const isLong = Buffer.byteLength(controller) > controllerBytesMax;
  return [
    ...(isLong ? [tooLong(field, controllerBytesMax)] : []),
    ...domainPrefixedPath(field, controller),
    ...validateParameters(object.spec?.parameters, 'spec.parameters'),
  ];
}

function validateParameters(
  parameters: Stored<IngressClassParametersReference> | undefined,
  path: string,
): FieldError[] {
  if (parameters === undefined) return [];
  const errors = validateTypedReference(parameters, path);
  const scope = parameters.scope;
  const namespace = parameters.namespace;
  const field = `${path}.namespace`;
  if (scope === undefined) errors.push(required(`${path}.scope`));
  else if (scope !== 'Cluster' && scope !== 'Namespace') {
    errors.push(notSupported(`${path}.scope`, scope, ['Cluster', 'Namespace']));
  } else if (scope === 'Cluster') {
    const detail = "`parameters.scope` is set to 'Cluster'";
    if (namespace !== undefined) errors.push(forbiddenField(field, detail));
  } else if (namespace === undefined) {
    errors.push(required(field, "`parameters.scope` is set to 'Namespace'"));
  } else appendAll(errors, ruleErrors(field, String(namespace), dnsLabel));
  return errors;
}

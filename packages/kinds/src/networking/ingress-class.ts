import {
  appendAll,
  breaks,
  type Dialect,
  dnsLabel,
  dnsSubdomain,
  domainPrefixedPath,
  type FieldError,
  forbiddenField,
  type JsonObject,
  notSupported,
  required,
  tooLong,
} from '@wheelhouse/machinery';
import { ageColumn, at, column, nameColumn, textAt } from '../cells.ts';
import { defineKind } from '../define.ts';
import type { ResourceDef } from '../resource-def.ts';
import { immutable } from '../rules/checks.ts';
import { fillAbsent, objectAt } from '../rules/fill.ts';
import { validateTypedReference } from './ingress-rules.ts';

const controllerBytesMax = 250;

function validate(object: JsonObject): FieldError[] {
  const controller = textAt(object, 'spec', 'controller');
  const field = 'spec.controller';
  const isLong = Buffer.byteLength(controller) > controllerBytesMax;
  return [
    ...(isLong ? [tooLong(field, controllerBytesMax)] : []),
    ...domainPrefixedPath(field, controller),
    ...validateParameters(objectAt(object, 'spec', 'parameters'), 'spec.parameters'),
  ];
}

function validateParameters(parameters: JsonObject | undefined, path: string): FieldError[] {
  if (parameters === undefined) return [];
  const errors = validateTypedReference(parameters, path);
  const scope = at(parameters, 'scope');
  const namespace = at(parameters, 'namespace');
  const field = `${path}.namespace`;
  if (scope === undefined) errors.push(required(`${path}.scope`));
  else if (scope !== 'Cluster' && scope !== 'Namespace') {
    errors.push(notSupported(`${path}.scope`, scope, ['Cluster', 'Namespace']));
  } else if (scope === 'Cluster') {
    const detail = "`parameters.scope` is set to 'Cluster'";
    if (namespace !== undefined) errors.push(forbiddenField(field, detail));
  } else if (namespace === undefined) {
    errors.push(required(field, "`parameters.scope` is set to 'Namespace'"));
  } else appendAll(errors, breaks(field, String(namespace), dnsLabel));
  return errors;
}

function parameters(object: JsonObject): string {
  const kind = textAt(object, 'spec', 'parameters', 'kind');
  if (kind === '') return '<none>';
  const group = textAt(object, 'spec', 'parameters', 'apiGroup');
  return `${group === '' ? kind : `${kind}.${group}`}/${textAt(object, 'spec', 'parameters', 'name')}`;
}

/** IngressClass: which controller serves which Ingresses. */
export function ingressClass(dialect: Dialect): ResourceDef {
  return defineKind({
    dialect,
    facts: 'networking',
    kind: 'IngressClass',
    resource: 'ingressclasses',
    scope: 'Cluster',
    versions: [
      {
        version: 'v1',
        defaults: (object) =>
          fillAbsent(objectAt(object, 'spec', 'parameters'), { scope: 'Cluster' }),
        columns: [
          nameColumn,
          column('Controller', (object) => textAt(object, 'spec', 'controller'), {
            description: 'Who serves it.',
          }),
          column('Parameters', parameters, { description: 'Its further settings.' }),
          ageColumn,
        ],
      },
    ],
    generation: true,
    strategy: {
      metadataTold: { '': ['change', 'whole'] },
      validateName: dnsSubdomain,
      validateCreate: (_, object) => validate(object),
      validateUpdate: (_, object, old) => [
        ...immutable(
          'spec.controller',
          textAt(object, 'spec', 'controller'),
          textAt(old, 'spec', 'controller'),
        ),
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

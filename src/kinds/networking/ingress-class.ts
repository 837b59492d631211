import type { JsonObject } from '../../base/json.ts';
import type { ResourceDef } from '../../catalogue/resource-def.ts';
import type { Dialect } from '../../dialect.ts';
import { type FieldError, invalid, required } from '../../meta/field-error.ts';
import { dnsSubdomain } from '../../meta/names.ts';
import { ageColumn, at, column, nameColumn, textAt } from '../cells.ts';
import { immutable } from '../checks.ts';
import { defineKind } from '../define.ts';
import { fill, objectAt } from '../fill.ts';

function validate(object: JsonObject): FieldError[] {
  const controller = textAt(object, 'spec', 'controller');
  if (controller === '') return [required('spec.controller')];
  const slash = controller.indexOf('/');
  if (slash <= 0 || slash === controller.length - 1) {
    const detail = 'must be a domain-prefixed path (such as "acme.io/foo")';
    return [invalid('spec.controller', controller, detail)];
  }
  const host = controller.slice(0, slash);
  return dnsSubdomain(host).map((message) => invalid('spec.controller', host, message));
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
        defaults: (object) => fill(objectAt(object, 'spec', 'parameters'), { scope: 'Cluster' }),
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
      validateName: dnsSubdomain,
      validateCreate: (_, object) => validate(object),
      validateUpdate: (_, object, old) => [
        ...validate(object),
        ...immutable(
          'spec.controller',
          at(object, 'spec', 'controller'),
          at(old, 'spec', 'controller'),
        ),
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

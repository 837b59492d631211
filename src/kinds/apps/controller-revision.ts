import type { JsonObject } from '../../base/json.ts';
import type { ResourceDef } from '../../catalogue/resource-def.ts';
import type { Dialect } from '../../dialect.ts';
import { type FieldError, required } from '../../meta/field-error.ts';
import { dnsSubdomain } from '../../meta/names.ts';
import { ageColumn, column, nameColumn } from '../cells.ts';
import { immutable } from '../checks.ts';
import { defineKind } from '../define.ts';
import { objectsAt } from '../fill.ts';
import { noneNegative } from '../pod/fields.ts';
import { countColumn } from './workload.ts';

function validate(object: JsonObject): FieldError[] {
  const data = object['data'];
  const missing =
    data === undefined || data === null ? [required('data', 'data is mandatory')] : [];
  return [...missing, ...noneNegative(object, '', 'revision')];
}

function controller(object: JsonObject): string {
  const owner = objectsAt(object, 'metadata', 'ownerReferences').find(
    (one) => one['controller'] === true,
  );
  if (owner === undefined) return '<none>';
  const [group = ''] = String(owner['apiVersion']).split('/');
  const kind = String(owner['kind']).toLowerCase();
  const qualified = String(owner['apiVersion']).includes('/') ? `${kind}.${group}` : kind;
  return `${qualified}/${String(owner['name'])}`;
}

/** ControllerRevision: a kept state of a controller's template. */
export function controllerRevision(dialect: Dialect): ResourceDef {
  return defineKind({
    dialect,
    facts: 'apps',
    kind: 'ControllerRevision',
    resource: 'controllerrevisions',
    scope: 'Namespaced',
    versions: [
      {
        version: 'v1',
        columns: [
          nameColumn,
          column('Controller', controller, { description: 'Whose state it is.' }),
          countColumn('Revision', ['revision'], 'Number of the state.'),
          ageColumn,
        ],
      },
    ],
    strategy: {
      validateName: dnsSubdomain,
      validateCreate: (_, object) => validate(object),
      validateUpdate: (_, object, old) => [
        ...validate(object),
        ...immutable('data', object['data'], old['data']),
      ],
    },
    example: () => ({
      apiVersion: 'apps/v1',
      kind: 'ControllerRevision',
      metadata: { name: 'example-1', namespace: 'default' },
      data: { spec: { template: {} } },
      revision: 1,
    }),
  });
}

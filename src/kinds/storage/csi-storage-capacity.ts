import type { ResourceDef } from '../../catalogue/resource-def.ts';
import type { Dialect } from '../../dialect.ts';
import { type FieldError, invalid } from '../../meta/field-error.ts';
import { type LabelSelector, validateLabelSelector } from '../../meta/label-selector.ts';
import { breaks, dnsSubdomain } from '../../meta/names.ts';
import { parseQuantity } from '../../meta/quantity.ts';
import type { ApiObject } from '../../meta/types.ts';
import { at, column, createdAtColumn, nameColumn, textAt } from '../cells.ts';
import { immutable } from '../checks.ts';
import { defineKind } from '../define.ts';
import { objectAt } from '../fill.ts';

function validate(object: ApiObject): FieldError[] {
  const className = textAt(object, 'storageClassName');
  const topology = objectAt(object, 'nodeTopology') as unknown as LabelSelector | undefined;
  return [
    ...validateLabelSelector(topology, 'nodeTopology'),
    ...breaks('storageClassName', className, dnsSubdomain),
    ...['capacity', 'maximumVolumeSize'].flatMap((name) => notNegativeQuantity(object, name)),
  ];
}

function notNegativeQuantity(object: ApiObject, field: string): FieldError[] {
  const value = at(object, field);
  const quantity = parseQuantity(String(value ?? '0'));
  if ('error' in quantity || quantity.nano >= 0n) return [];
  return [invalid(field, quantity.text, 'must be greater than or equal to 0')];
}

/** CSIStorageCapacity: how much a driver can still make of a class of storage somewhere. */
export function csiStorageCapacity(dialect: Dialect): ResourceDef {
  return defineKind({
    dialect,
    facts: 'storage',
    kind: 'CSIStorageCapacity',
    resource: 'csistoragecapacities',
    scope: 'Namespaced',
    versions: [
      {
        version: 'v1',
        columns: [
          nameColumn,
          column('StorageClassName', (object) => textAt(object, 'storageClassName'), {
            description: 'Class of storage.',
          }),
          column('Capacity', (object) => String(at(object, 'capacity') ?? '<unset>'), {
            description: 'What can still be made.',
          }),
          createdAtColumn,
        ],
      },
    ],
    strategy: {
      validateName: dnsSubdomain,
      validateCreate: (_, object) => validate(object),
      validateUpdate: (_, object, old) =>
        ['nodeTopology', 'storageClassName'].flatMap((field) =>
          immutable(field, object[field], old[field]),
        ),
    },
    example: () => ({
      apiVersion: `${dialect.group('storage')}/v1`,
      kind: 'CSIStorageCapacity',
      metadata: { name: 'example', namespace: 'default' },
      storageClassName: 'example',
      capacity: '10Gi',
    }),
  });
}

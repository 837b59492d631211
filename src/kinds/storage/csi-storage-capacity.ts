import type { ResourceDef } from '../../catalogue/resource-def.ts';
import type { Dialect } from '../../dialect.ts';
import { required } from '../../meta/field-error.ts';
import { dnsSubdomain } from '../../meta/names.ts';
import type { ApiObject } from '../../meta/types.ts';
import { at, column, createdAtColumn, nameColumn, textAt } from '../cells.ts';
import { immutable } from '../checks.ts';
import { defineKind } from '../define.ts';

/** CSIStorageCapacity: how much a driver can still make of a class of storage somewhere. */
export function csiStorageCapacity(dialect: Dialect): ResourceDef {
  const validate = (object: ApiObject) =>
    textAt(object, 'storageClassName') === '' ? [required('storageClassName')] : [];
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

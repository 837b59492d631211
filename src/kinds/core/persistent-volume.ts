import type { JsonObject } from '../../base/json.ts';
import type { ColumnDef, ResourceDef } from '../../catalogue/resource-def.ts';
import type { Dialect } from '../../dialect.ts';
import { dnsSubdomain } from '../../meta/names.ts';
import { ageColumn, at, column, listAt, nameColumn, textAt } from '../cells.ts';
import { defineKind } from '../define.ts';
import { ensure, fill, fillAmounts, objectAt } from '../fill.ts';
import { fillDrivers } from '../pod/defaults.ts';
import { validateVolume, validateVolumeUpdate } from './persistent-volume-rules.ts';
import { accessModesText, quantityText } from './volumes.ts';

function fillDefaults(object: JsonObject): void {
  const spec = ensure(object, 'spec');
  fill(spec, { persistentVolumeReclaimPolicy: 'Retain', volumeMode: 'Filesystem' });
  fill(ensure(object, 'status'), { phase: 'Pending' });
  fillDrivers(spec);
  fillAmounts(objectAt(spec, 'capacity'));
}

/** Classes of attributes are behind a gate that is off: a volume that has one keeps it. */
function dropAttributesClass(object: JsonObject, old?: JsonObject): void {
  const name = 'volumeAttributesClassName';
  if (at(old, 'spec', name) === undefined) delete objectAt(object, 'spec')?.[name];
}

function claim(object: JsonObject): string {
  const name = textAt(object, 'spec', 'claimRef', 'name');
  return name === '' ? '' : `${textAt(object, 'spec', 'claimRef', 'namespace')}/${name}`;
}

function phase(object: JsonObject): string {
  const deleting = at(object, 'metadata', 'deletionTimestamp') !== undefined;
  return deleting ? 'Terminating' : textAt(object, 'status', 'phase');
}

const specColumn = (name: string, member: string, description: string, empty = '') =>
  column(name, (object) => textAt(object, 'spec', member) || empty, { description });

const columns: readonly ColumnDef[] = [
  nameColumn,
  column('Capacity', (object) => quantityText(object, 'spec', 'capacity', 'storage'), {
    description: 'Size.',
  }),
  column('Access Modes', (object) => accessModesText(listAt(object, 'spec', 'accessModes')), {
    description: 'How it can be mounted.',
  }),
  specColumn(
    'Reclaim Policy',
    'persistentVolumeReclaimPolicy',
    'What becomes of it when released.',
  ),
  column('Status', phase, { description: 'Available, Bound, Released or Failed.' }),
  column('Claim', claim, { description: 'The claim it is bound to.' }),
  specColumn('StorageClass', 'storageClassName', 'Class of storage.'),
  specColumn(
    'VolumeAttributesClass',
    'volumeAttributesClassName',
    'Class of attributes.',
    '<unset>',
  ),
  column('Reason', (object) => textAt(object, 'status', 'reason'), {
    description: 'Why it is in its state.',
  }),
  ageColumn,
  column('VolumeMode', (object) => textAt(object, 'spec', 'volumeMode') || '<unset>', {
    priority: 1,
    description: 'Filesystem or Block.',
  }),
];

/** PersistentVolume: a piece of storage. */
export function persistentVolume(dialect: Dialect): ResourceDef {
  return defineKind({
    dialect,
    facts: 'core',
    kind: 'PersistentVolume',
    resource: 'persistentvolumes',
    scope: 'Cluster',
    shortNames: ['pv'],
    versions: [
      {
        version: 'v1',
        defaults: fillDefaults,
        columns,
      },
    ],
    strategy: {
      validateName: dnsSubdomain,
      hasStatus: true,
      prepareForCreate: (_, object) => {
        object['status'] = { phase: 'Pending' };
        dropAttributesClass(object);
      },
      prepareForUpdate: (_, object, old) => dropAttributesClass(object, old),
      validateCreate: (_, object) => validateVolume(object, dialect),
      validateUpdate: (context, object, old) =>
        context.subresource === 'status' ? [] : validateVolumeUpdate(object, old, dialect),
      deleteAnswers: 'object',
    },
    example: () => ({
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name: 'example' },
      spec: {
        capacity: { storage: '1Gi' },
        accessModes: ['ReadWriteOnce'],
        hostPath: { path: '/data' },
      },
    }),
  });
}

import { type Dialect, dnsSubdomain } from '@wheelhouse/machinery';
import { ageColumn, column, listAt, nameColumn, textAt } from '../../cells.ts';
import { defineKind } from '../../define.ts';
import { defaultFeatures, type Features } from '../../features/features.ts';
import type { PersistentVolumeClaim } from '../../gen/types/core/v1.ts';
import { fillResources } from '../../pod/defaults.ts';
import type { ColumnDef, ResourceDef } from '../../resource-def.ts';
import { ensure, fill, fillAbsent, roundAmounts } from '../../rules/fill.ts';
import type { Stored } from '../../stored.ts';
import {
  completeDataSources,
  normalizeDataSources,
  validateClaimSpec,
  validateClaimStatus,
  validateClaimUpdate,
} from './claim-rules.ts';
import {
  accessModesText,
  phaseText,
  quantityText,
  storageClassColumn,
  volumeClaimWarnings,
  volumeModeColumn,
} from './volumes.ts';

/** PersistentVolumeClaim: a request for storage. */
export function persistentVolumeClaim(
  dialect: Dialect,
  features: Features = defaultFeatures,
): ResourceDef {
  return defineKind<PersistentVolumeClaim>({
    dialect,
    features,
    facts: 'core',
    kind: 'PersistentVolumeClaim',
    resource: 'persistentvolumeclaims',
    scope: 'Namespaced',
    shortNames: ['pvc'],
    versions: [
      {
        version: 'v1',
        defaults: fillDefaults,
        columns: columnsOf(dialect),
      },
    ],
    storage: { complete: (object) => completeDataSources(object, features) },
    strategy: {
      extraMetadataChecks: { '': ['whole', 'change', 'whole'] },
      validateName: dnsSubdomain,
      hasStatus: true,
      prepareForCreate: (_, object) => {
        object.status = { phase: 'Pending' };
        normalizeDataSources(object, undefined, { dialect, features });
      },
      prepareForUpdate: (context, object, old) => {
        if (context.subresource !== '') return;
        normalizeDataSources(object, old, { dialect, features });
      },
      validateCreate: (_, object) => validateClaimSpec(ensure(object, 'spec'), 'spec'),
      validateUpdate: (context, object, old) =>
        context.subresource === 'status'
          ? validateClaimStatus(object, dialect)
          : validateClaimUpdate(object, old, { dialect, features }),
      warnings: (object) => volumeClaimWarnings(object, dialect),
      deleteAnswers: 'object',
    },
    example: () => ({
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: 'example', namespace: 'default' },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    }),
  });
}

function fillDefaults(object: Stored<PersistentVolumeClaim>): void {
  const [spec, status] = [ensure(object, 'spec'), ensure(object, 'status')];
  fillAbsent(spec, { volumeMode: 'Filesystem' });
  fill(status, { phase: 'Pending' });
  fillResources(spec.resources);
  roundAmounts(status.capacity);
}

const columnsOf = (dialect: Dialect): readonly ColumnDef<Stored<PersistentVolumeClaim>>[] => [
  nameColumn,
  column('Status', phaseText, { description: 'Pending, Bound or Lost.' }),
  column('Volume', (object) => textAt(object, 'spec', 'volumeName'), {
    description: 'Volume that the claim is bound to.',
  }),
  column(
    'Capacity',
    (object) => bound(object, quantityText(object, 'status', 'capacity', 'storage')),
    { description: 'Size of the volume.' },
  ),
  column(
    'Access Modes',
    (object) => bound(object, accessModesText(listAt(object, 'status', 'accessModes'))),
    { description: 'Access modes of the volume.' },
  ),
  storageClassColumn(dialect, 'Requested storage class.'),
  column(
    'VolumeAttributesClass',
    (object) => textAt(object, 'spec', 'volumeAttributesClassName') || '<unset>',
    { description: 'Requested volume attributes class.' },
  ),
  ageColumn,
  volumeModeColumn,
];

const bound = (object: Stored<PersistentVolumeClaim>, text: string) =>
  isBound(object) ? text : '';

const isBound = (object: Stored<PersistentVolumeClaim>) => (object.spec?.volumeName ?? '') !== '';

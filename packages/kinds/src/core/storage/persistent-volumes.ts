import { type Dialect, dnsSubdomain, formatTime } from '@wheelhouse/machinery';
import { ageColumn, column, listAt, nameColumn, textAt } from '../../cells.ts';
import { defineKind } from '../../define.ts';
import { defaultFeatures, type Features } from '../../features/features.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../../gen/types/core/v1.ts';
import { fillDrivers, fillResources } from '../../pod/defaults.ts';
import type { ColumnDef, ResourceDef, Stored } from '../../resource-def.ts';
import { ensure, fill, fillAbsent, roundAmounts } from '../../rules/fill.ts';
import {
  completeDataSources,
  normalizeDataSources,
  validateClaimSpec,
  validateClaimStatus,
  validateClaimUpdate,
} from './claim-rules.ts';
import { validateVolume, validateVolumeUpdate } from './persistent-volume-rules.ts';
import {
  accessModesText,
  phaseText,
  quantityText,
  storageClassColumn,
  volumeClaimWarnings,
  volumeModeColumn,
  volumeWarnings,
} from './volumes.ts';

/** PersistentVolume: a piece of storage in the cluster, which a claim can be bound to. */
export function persistentVolume(
  dialect: Dialect,
  features: Features = defaultFeatures,
): ResourceDef {
  return defineKind<PersistentVolume>({
    dialect,
    features,
    facts: 'core',
    kind: 'PersistentVolume',
    scope: 'Cluster',
    shortNames: ['pv'],
    versions: [{ version: 'v1', defaults: fillDefaults, columns: columnsOf(dialect) }],
    strategy: {
      extraMetadataChecks: { '': ['whole', 'whole'] },
      validateName: dnsSubdomain,
      hasStatus: true,
      prepareForCreate: ({ nowMs }, object) => {
        object.status = { phase: 'Pending', lastPhaseTransitionTime: formatTime(nowMs) };
      },
      prepareForUpdate: (context, object, old) => {
        if (context.subresource === 'status') setPhaseTime(object, old, context.nowMs);
      },
      validateCreate: (_, object) => validateVolume(object, dialect),
      validateUpdate: (context, object, old) =>
        context.subresource === 'status'
          ? []
          : validateVolumeUpdate(object, old, { dialect, features }),
      warnings: (object) => volumeWarnings(object, dialect),
      deleteAnswers: 'object',
    },
    example: () => ({
      spec: {
        capacity: { storage: '1Gi' },
        accessModes: ['ReadWriteOnce'],
        hostPath: { path: '/data' },
      },
    }),
  });
}

function fillDefaults(object: Stored<PersistentVolume>): void {
  const spec = ensure(object, 'spec');
  fill(spec, { persistentVolumeReclaimPolicy: 'Retain' });
  fillAbsent(spec, { volumeMode: 'Filesystem' });
  fill(ensure(object, 'status'), { phase: 'Pending' });
  fillDrivers(spec);
  roundAmounts(spec.capacity);
}

const columnsOf = (dialect: Dialect): readonly ColumnDef[] => [
  nameColumn,
  column('Capacity', (object) => quantityText(object, 'spec', 'capacity', 'storage'), {
    description: 'Size of the volume.',
  }),
  column('Access Modes', (object) => accessModesText(listAt(object, 'spec', 'accessModes')), {
    description: 'Access modes of the volume.',
  }),
  specColumn(
    'Reclaim Policy',
    'persistentVolumeReclaimPolicy',
    'Treatment of the volume after its claim is deleted.',
  ),
  column('Status', phaseText, { description: 'Available, Bound, Released or Failed.' }),
  column('Claim', claim, { description: 'Claim that the volume is bound to.' }),
  storageClassColumn(dialect, 'Storage class of the volume.'),
  specColumn(
    'VolumeAttributesClass',
    'volumeAttributesClassName',
    'Volume attributes class.',
    '<unset>',
  ),
  column('Reason', (object) => textAt(object, 'status', 'reason'), {
    description: 'Reason of the status.',
  }),
  ageColumn,
  volumeModeColumn,
];

const specColumn = (name: string, member: string, description: string, empty = '') =>
  column(name, (object) => textAt(object, 'spec', member) || empty, { description });

function claim(object: Stored<PersistentVolume>): string {
  const reference = object.spec?.claimRef;
  return reference === undefined ? '' : `${reference.namespace ?? ''}/${reference.name ?? ''}`;
}

/** Sets the time of a phase transition: the one that the client states, or else now. */
function setPhaseTime(
  object: Stored<PersistentVolume>,
  old: Stored<PersistentVolume>,
  nowMs: number,
): void {
  const name = 'lastPhaseTransitionTime';
  const status = ensure(object, 'status');
  const [transitionTime, before] = [status[name], old.status?.[name]];
  if ((status.phase ?? '') === (old.status?.phase ?? '')) {
    if (transitionTime === undefined && before !== undefined) status[name] = before;
  } else if (transitionTime === undefined || transitionTime === before)
    status[name] = formatTime(nowMs);
}

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
    scope: 'Namespaced',
    shortNames: ['pvc'],
    versions: [{ version: 'v1', defaults: fillClaim, columns: claimColumns(dialect) }],
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
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    }),
  });
}

function fillClaim(object: Stored<PersistentVolumeClaim>): void {
  const [spec, status] = [ensure(object, 'spec'), ensure(object, 'status')];
  fillAbsent(spec, { volumeMode: 'Filesystem' });
  fill(status, { phase: 'Pending' });
  fillResources(spec.resources);
  roundAmounts(status.capacity);
}

const claimColumns = (dialect: Dialect): readonly ColumnDef<Stored<PersistentVolumeClaim>>[] => [
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

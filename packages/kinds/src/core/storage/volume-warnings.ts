import type { Dialect } from '@wheelhouse/machinery';
import type {
  PersistentVolume,
  PersistentVolumeClaim,
  PersistentVolumeSpec,
} from '../../gen/types/core/v1.ts';
import { claimWarnings, nodeTermWarnings } from '../../pod/warnings.ts';
import { keyed } from '../../rules/checks.ts';
import { objectAt } from '../../rules/fill.ts';
import type { Stored } from '../../stored.ts';

/** Sources whose drivers have gone, in upstream's order, with how it writes their member. */
const deprecatedSources: readonly (readonly [member: string, shown: string, message: string])[] = [
  ['cephfs', 'cephfs', 'deprecated in v1.28, non-functional in v1.31+'],
  ['photonPersistentDisk', 'photonPersistentDisk', 'deprecated in v1.11, non-functional in v1.16+'],
  ['scaleIO', 'scaleIO', 'deprecated in v1.16, non-functional in v1.22+'],
  ['storageos', 'storageOS', 'deprecated in v1.22, non-functional in v1.25+'],
  ['glusterfs', 'glusterfs', 'deprecated in v1.25, non-functional in v1.26+'],
  ['rbd', 'rbd', 'deprecated in v1.28, non-functional in v1.31+'],
];

const useClassName = 'deprecated since v1.8; use "storageClassName" attribute instead';
const useMountOptions = 'deprecated since v1.31; use "mountOptions" attribute instead';
const recycleDeprecated =
  'The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic ' +
  'provisioning.';

function annotationWarning(
  object: Stored<PersistentVolume | PersistentVolumeClaim>,
  name: string,
  message: string,
): string[] {
  const annotations = object.metadata.annotations ?? {};
  const path = keyed('metadata.annotations', name);
  return Object.hasOwn(annotations, name) ? [`${path}: ${message}`] : [];
}

/** What is accepted of a PersistentVolume, but deprecated. */
export function volumeWarnings(object: Stored<PersistentVolume>, dialect: Dialect): string[] {
  const spec = object.spec ?? {};
  const terms = 'spec.nodeAffinity.required.nodeSelectorTerms';
  const recycles = (spec.persistentVolumeReclaimPolicy ?? '') === 'Recycle';
  return [
    ...annotationWarning(object, dialect.label('storage-class', 'volume.beta'), useClassName),
    ...annotationWarning(object, dialect.label('mount-options', 'volume.beta'), useMountOptions),
    ...(recycles ? [`spec.persistentVolumeReclaimPolicy: ${recycleDeprecated}`] : []),
    ...(spec.nodeAffinity?.required?.nodeSelectorTerms ?? []).flatMap((term, index) =>
      nodeTermWarnings(term, `${terms}[${index}]`, dialect),
    ),
    ...sourceWarnings(spec),
  ];
}

function sourceWarnings(spec: Stored<PersistentVolumeSpec>): string[] {
  return deprecatedSources
    .filter(([member]) => objectAt(spec, member) !== undefined)
    .map(([, shown, message]) => `spec.${shown}: ${message}`);
}

/** What is accepted of a PersistentVolumeClaim, but deprecated or hardly meant. */
export function volumeClaimWarnings(
  object: Stored<PersistentVolumeClaim>,
  dialect: Dialect,
): string[] {
  return [
    ...annotationWarning(object, dialect.label('storage-class', 'volume.beta'), useClassName),
    ...claimWarnings(object.spec, 'spec'),
  ];
}

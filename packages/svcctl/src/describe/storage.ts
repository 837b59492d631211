import { humanDuration, type JsonObject } from '@wheelhouse/machinery';
import { listAt, nameOf, namespaceOf, objectAt, textAt, textsAt } from '../objects.ts';
import { metadataLines } from './metadata.ts';
import { conditionRows, valueLines } from './pod-template.ts';
import type { RelatedDescriber } from './related.ts';

/** The short names of access modes, in kubectl's order. */
const shortModes = {
  ReadWriteOnce: 'RWO',
  ReadOnlyMany: 'ROX',
  ReadWriteMany: 'RWX',
  ReadWriteOncePod: 'RWOP',
} as const;

const describeClaim: RelatedDescriber = async (claim, { dialect, list, now }) => {
  const spec = objectAt(claim, 'spec');
  const deletion = textAt(claim, 'metadata', 'deletionTimestamp');
  const betaClass = dialect.label('storage-class', 'volume.beta');
  const annotations = objectAt(claim, 'metadata', 'annotations');
  const isBound = textAt(spec, 'volumeName') !== '';
  const modes = textsAt(claim, 'status', 'accessModes');
  const shown = Object.entries(shortModes).flatMap(([mode, short]) =>
    modes.includes(mode) ? [short] : [],
  );
  const status =
    deletion === ''
      ? textAt(claim, 'status', 'phase')
      : `Terminating (lasts ${humanDuration(now - Date.parse(deletion))})`;
  const capacity = textAt(claim, 'status', 'capacity', 'storage') || '0';
  return [
    `Name:\t${nameOf(claim)}`,
    `Namespace:\t${namespaceOf(claim)}`,
    `StorageClass:\t${textAt(annotations, betaClass) || textAt(spec, 'storageClassName')}`,
    `Status:\t${status}`,
    `Volume:\t${textAt(spec, 'volumeName')}`,
    ...metadataLines(claim),
    `Finalizers:\t[${textsAt(claim, 'metadata', 'finalizers').join(' ')}]`,
    `Capacity:\t${isBound ? capacity : ''}`,
    `Access Modes:\t${isBound ? shown.join(',') : ''}`,
    `VolumeMode:\t${textAt(spec, 'volumeMode')}`,
    ...sourceLines(objectAt(spec, 'dataSource')),
    ...valueLines('Used By', podsUsing(claim, await list('Pod'))),
    ...conditionLines(listAt(claim, 'status', 'conditions')),
  ];
};

function sourceLines(source: JsonObject): string[] {
  if (Object.keys(source).length === 0) return [];
  const group = source['apiGroup'];
  return [
    'DataSource:',
    ...(typeof group === 'string' ? [`  APIGroup:\t${group}`] : []),
    `  Kind:\t${textAt(source, 'kind')}`,
    `  Name:\t${textAt(source, 'name')}`,
  ];
}

/** The names of the Pods that mount a claim, once per volume, or that own it. */
function podsUsing(claim: JsonObject, pods: readonly JsonObject[]): string[] {
  const name = nameOf(claim);
  const owners = listAt(claim, 'metadata', 'ownerReferences')
    .filter((owner) => textAt(owner, 'kind') === 'Pod')
    .map((owner) => textAt(owner, 'uid'));
  return pods
    .flatMap((pod) => {
      const mounts = listAt(pod, 'spec', 'volumes').filter(
        (volume) => textAt(volume, 'persistentVolumeClaim', 'claimName') === name,
      );
      const isOwner = owners.includes(textAt(pod, 'metadata', 'uid'));
      if (mounts.length === 0) return isOwner ? [nameOf(pod)] : [];
      return mounts.map(() => nameOf(pod));
    })
    .sort();
}

function conditionLines(conditions: readonly JsonObject[]): string[] {
  if (conditions.length === 0) return [];
  return [
    'Conditions:',
    '  Type\tStatus\tLastProbeTime\tLastTransitionTime\tReason\tMessage',
    // The rules have the widths of kubectl, not those of the titles.
    '  ----\t------\t-----------------\t------------------\t------\t-------',
    ...conditionRows(conditions, 'lastProbeTime'),
  ];
}

/** The describer of claims to volumes. */
export const storageDescribers: Readonly<Record<string, RelatedDescriber>> = {
  PersistentVolumeClaim: describeClaim,
};

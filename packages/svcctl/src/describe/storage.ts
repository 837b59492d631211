import { type Dialect, humanDuration, isObject, type JsonObject } from '@wheelhouse/machinery';
import {
  listAt,
  nameOf,
  namespaceOf,
  objectAt,
  pairsText,
  textAt,
  textsAt,
  valueAt,
} from '../objects.ts';
import { metadataLines } from './metadata.ts';
import { conditionRows, longTime } from './pod-template.ts';
import type { RelatedDescriber } from './related.ts';
import { optional, valueLines } from './tabs.ts';
import { dataSourceLines, sourceLines } from './volumes.ts';

/** The short names of access modes, in kubectl's order. */
const shortModes = {
  ReadWriteOnce: 'RWO',
  ReadOnlyMany: 'ROX',
  ReadWriteMany: 'RWX',
  ReadWriteOncePod: 'RWOP',
} as const;

/** The short names of access modes: `RWO,RWX`. */
const modesText = (modes: readonly string[]): string =>
  Object.entries(shortModes)
    .flatMap(([mode, short]) => (modes.includes(mode) ? [short] : []))
    .join(',');

/** The phase of a claim or volume, or for how long it has been terminating. */
function statusText(object: JsonObject, now: number): string {
  const deletion = textAt(object, 'metadata', 'deletionTimestamp');
  if (deletion === '') return textAt(object, 'status', 'phase');
  return `Terminating (lasts ${humanDuration(now - Date.parse(deletion))})`;
}

/** The class of a claim or volume; an annotation of old versions takes precedence. */
function className(object: JsonObject, dialect: Dialect): string {
  const annotation = dialect.label('storage-class', 'volume.beta');
  return (
    textAt(object, 'metadata', 'annotations', annotation) ||
    textAt(object, 'spec', 'storageClassName')
  );
}

const finalizersText = (object: JsonObject): string =>
  `[${textsAt(object, 'metadata', 'finalizers').join(' ')}]`;

const describeClaim: RelatedDescriber = async (claim, { dialect, list, now }) => {
  const spec = objectAt(claim, 'spec');
  const isBound = textAt(spec, 'volumeName') !== '';
  const modes = modesText(textsAt(claim, 'status', 'accessModes'));
  const capacity = textAt(claim, 'status', 'capacity', 'storage') || '0';
  return [
    `Name:\t${nameOf(claim)}`,
    `Namespace:\t${namespaceOf(claim)}`,
    `StorageClass:\t${className(claim, dialect)}`,
    `Status:\t${statusText(claim, now)}`,
    `Volume:\t${textAt(spec, 'volumeName')}`,
    ...metadataLines(claim),
    `Finalizers:\t${finalizersText(claim)}`,
    `Capacity:\t${isBound ? capacity : ''}`,
    `Access Modes:\t${isBound ? modes : ''}`,
    `VolumeMode:\t${textAt(spec, 'volumeMode')}`,
    ...dataSourceLines(objectAt(spec, 'dataSource')),
    ...valueLines('Used By', podsUsing(claim, await list('Pod'))),
    ...conditionLines(listAt(claim, 'status', 'conditions')),
  ];
};

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

const describeVolume: RelatedDescriber = (volume, { dialect, now }) => {
  const spec = objectAt(volume, 'spec');
  const { claimRef } = spec;
  const claim = isObject(claimRef)
    ? `${textAt(claimRef, 'namespace')}/${textAt(claimRef, 'name')}`
    : '';
  const mode = textAt(spec, 'volumeMode');
  return [
    `Name:\t${nameOf(volume)}`,
    ...metadataLines(volume),
    `Finalizers:\t${finalizersText(volume)}`,
    `StorageClass:\t${className(volume, dialect)}`,
    `Status:\t${statusText(volume, now)}`,
    `Claim:\t${claim}`,
    `Reclaim Policy:\t${textAt(spec, 'persistentVolumeReclaimPolicy')}`,
    `Access Modes:\t${modesText(textsAt(spec, 'accessModes'))}`,
    ...(mode === '' ? [] : [`VolumeMode:\t${mode}`]),
    `Capacity:\t${textAt(spec, 'capacity', 'storage') || '0'}`,
    ...nodeAffinityLines(objectAt(spec, 'nodeAffinity')),
    `Message:\t${textAt(volume, 'status', 'message')}`,
    'Source:',
    ...sourceLines(spec, 'PersistentVolume'),
  ];
};

function nodeAffinityLines({ required }: JsonObject): string[] {
  if (!isObject(required)) return ['Node Affinity:\t<none>'];
  const terms = listAt(required, 'nodeSelectorTerms').map((term) =>
    listAt(term, 'matchExpressions').map((expression) => {
      const values = textsAt(expression, 'values');
      const operator = textAt(expression, 'operator').toLowerCase();
      const head = `${textAt(expression, 'key')} ${operator}`;
      return values.length === 0 ? head : `${head} [${values.join(', ')}]`;
    }),
  );
  if (terms.length === 0) return ['Node Affinity:\t', '  Required Terms:\t<none>'];
  return ['Node Affinity:\t', '  Required Terms:\t', ...termLines(terms, '    ')];
}

/** Numbered terms, each with its requirements in lines of their own. */
const termLines = (terms: readonly (readonly string[])[], indent: '  ' | '    '): string[] =>
  terms.flatMap((requirements, at) =>
    valueLines(`${indent}Term ${at}`, requirements).map((line, row) =>
      row === 0 ? line : `${indent}${line}`,
    ),
  );

const describeClass: RelatedDescriber = (object, { dialect }) => {
  const annotations = objectAt(object, 'metadata', 'annotations');
  const isDefault = ['storageclass', 'storageclass.beta'].some(
    (domain) => annotations[dialect.label('is-default-class', domain)] === 'true',
  );
  const expands = object['allowVolumeExpansion'];
  const options = textsAt(object, 'mountOptions');
  return [
    `Name:\t${nameOf(object)}`,
    `IsDefaultClass:\t${isDefault ? 'Yes' : 'No'}`,
    `Annotations:\t${pairsText(annotations)}`,
    `Provisioner:\t${textAt(object, 'provisioner')}`,
    `Parameters:\t${pairsText(objectAt(object, 'parameters'))}`,
    `AllowVolumeExpansion:\t${expands === undefined ? '<unset>' : expands ? 'True' : 'False'}`,
    ...(options.length === 0
      ? ['MountOptions:\t<none>']
      : ['MountOptions:', ...options.map((option) => `  ${option}`)]),
    ...optional('ReclaimPolicy', textAt(object, 'reclaimPolicy')),
    ...optional('VolumeBindingMode', textAt(object, 'volumeBindingMode')),
    ...topologyLines(listAt(object, 'allowedTopologies')),
  ];
};

function topologyLines(topologies: readonly JsonObject[]): string[] {
  if (topologies.length === 0) return [];
  const terms = topologies.map((term) =>
    listAt(term, 'matchLabelExpressions').map((expression) => {
      const values = textsAt(expression, 'values');
      return `${textAt(expression, 'key')} in${values.length === 0 ? '' : ` [${values.join(', ')}]`}`;
    }),
  );
  return ['AllowedTopologies:\t', ...termLines(terms, '  ')];
}

const describeAttributesClass: RelatedDescriber = (object) => [
  `Name:\t${nameOf(object)}`,
  `Annotations:\t${pairsText(objectAt(object, 'metadata', 'annotations'))}`,
  `DriverName:\t${textAt(object, 'driverName')}`,
  `Parameters:\t${pairsText(objectAt(object, 'parameters'))}`,
];

const describeDrivers: RelatedDescriber = (node) => {
  const drivers = listAt(node, 'spec', 'drivers').flatMap((driver) => {
    const count = valueAt(driver, 'allocatable', 'count');
    return [
      `    ${textAt(driver, 'name')}:`,
      `      Node ID:\t${textAt(driver, 'nodeID')}`,
      ...(count === undefined ? [] : ['      Allocatables:', `        Count:\t${String(count)}`]),
      ...(driver['topologyKeys'] === undefined
        ? []
        : [`      Topology Keys:\t[${textsAt(driver, 'topologyKeys').join(' ')}]`]),
    ];
  });
  return [
    `Name:\t${nameOf(node)}`,
    ...metadataLines(node),
    `CreationTimestamp:\t${longTime(textAt(node, 'metadata', 'creationTimestamp'))}`,
    'Spec:',
    ...(valueAt(node, 'spec', 'drivers') === null ? [] : ['  Drivers:', ...drivers]),
  ];
};

/** Describers of volumes, their claims, and their classes, by kind, with the stem of the group. */
export const storageDescribers: Readonly<Record<string, RelatedDescriber>> = {
  PersistentVolume: describeVolume,
  PersistentVolumeClaim: describeClaim,
  'storage/CSINode': describeDrivers,
  'storage/StorageClass': describeClass,
  'storage/VolumeAttributesClass': describeAttributesClass,
};

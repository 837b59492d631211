import { goPlain, isObject, type JsonObject, member } from '@wheelhouse/machinery';
import { listAt, objectAt, textAt, valueAt } from '../objects.ts';
import { annotationLengthMax, metadataLines, shortened } from './metadata.ts';

/** A member of a volume's source: its title, its path, and the text if it is missing. */
type Member = readonly [title: string, name: string, missing: string];

/** A type of volume: its title with an explanation, and its members. */
interface Source {
  readonly title: string;
  readonly members: readonly Member[];
  /** Members that only a PersistentVolume's source has, by the name of the member they follow. */
  readonly persistent?: Readonly<Record<string, readonly Member[]>>;
}

const fsType: Member = ['FSType', 'fsType', ''];
const readOnly: Member = ['ReadOnly', 'readOnly', 'false'];
const optional: Member = ['Optional', 'optional', 'false'];
const partition: Member = ['Partition', 'partition', '0'];
const secretRef: Member = ['SecretRef', 'secretRef', 'nil'];
const path: Member = ['Path', 'path', ''];
const volumeName: Member = ['VolumeName', 'volumeName', ''];
const volumeId: Member = ['VolumeID', 'volumeID', ''];

/** The types of volumes with kubectl's titles, by their members in a Pod or a PersistentVolume. */
const sources: Readonly<Record<string, Source>> = {
  hostPath: {
    title: 'HostPath (bare host directory volume)',
    members: [path, ['HostPathType', 'type', '<none>']],
  },
  emptyDir: {
    title: "EmptyDir (a temporary directory that shares a pod's lifetime)",
    members: [
      ['Medium', 'medium', ''],
      ['SizeLimit', 'sizeLimit', '<unset>'],
    ],
  },
  gcePersistentDisk: {
    title: 'GCEPersistentDisk (a Persistent Disk resource in Google Compute Engine)',
    members: [['PDName', 'pdName', ''], fsType, partition, readOnly],
  },
  awsElasticBlockStore: {
    title: 'AWSElasticBlockStore (a Persistent Disk resource in AWS)',
    members: [volumeId, fsType, partition, readOnly],
  },
  gitRepo: {
    title: 'GitRepo (a volume that is pulled from git when the pod is created)',
    members: [
      ['Repository', 'repository', ''],
      ['Revision', 'revision', ''],
    ],
  },
  secret: {
    title: 'Secret (a volume populated by a Secret)',
    members: [['SecretName', 'secretName', ''], optional],
  },
  configMap: {
    title: 'ConfigMap (a volume populated by a ConfigMap)',
    members: [['Name', 'name', ''], optional],
  },
  nfs: {
    title: 'NFS (an NFS mount that lasts the lifetime of a pod)',
    members: [['Server', 'server', ''], path, readOnly],
  },
  iscsi: {
    title:
      "ISCSI (an ISCSI Disk resource that is attached to a kubelet's host machine and then " +
      'exposed to the pod)',
    members: [
      ['TargetPortal', 'targetPortal', ''],
      ['IQN', 'iqn', ''],
      ['Lun', 'lun', '0'],
      ['ISCSIInterface', 'iscsiInterface', ''],
      fsType,
      readOnly,
      ['Portals', 'portals', '[]'],
      ['DiscoveryCHAPAuth', 'chapAuthDiscovery', 'false'],
      ['SessionCHAPAuth', 'chapAuthSession', 'false'],
      secretRef,
      ['InitiatorName', 'initiatorName', '<none>'],
    ],
  },
  glusterfs: {
    title: "Glusterfs (a Glusterfs mount on the host that shares a pod's lifetime)",
    members: [['EndpointsName', 'endpoints', ''], path, readOnly],
    persistent: { endpoints: [['EndpointsNamespace', 'endpointsNamespace', '<unset>']] },
  },
  persistentVolumeClaim: {
    title: 'PersistentVolumeClaim (a reference to a PersistentVolumeClaim in the same namespace)',
    members: [['ClaimName', 'claimName', ''], readOnly],
  },
  rbd: {
    title: "RBD (a Rados Block Device mount on the host that shares a pod's lifetime)",
    members: [
      ['CephMonitors', 'monitors', '[]'],
      ['RBDImage', 'image', ''],
      fsType,
      ['RBDPool', 'pool', ''],
      ['RadosUser', 'user', ''],
      ['Keyring', 'keyring', ''],
      secretRef,
      readOnly,
    ],
  },
  quobyte: {
    title: "Quobyte (a Quobyte mount on the host that shares a pod's lifetime)",
    members: [['Registry', 'registry', ''], ['Volume', 'volume', ''], readOnly],
  },
  azureDisk: {
    title: 'AzureDisk (an Azure Data Disk mount on the host and bind mount to the pod)',
    members: [
      ['DiskName', 'diskName', ''],
      ['DiskURI', 'diskURI', ''],
      ['Kind', 'kind', ''],
      fsType,
      ['CachingMode', 'cachingMode', ''],
      readOnly,
    ],
  },
  vsphereVolume: {
    title: 'vSphereVolume (a Persistent Disk resource in vSphere)',
    members: [
      ['VolumePath', 'volumePath', ''],
      fsType,
      ['StoragePolicyName', 'storagePolicyName', ''],
    ],
  },
  cinder: {
    title: 'Cinder (a Persistent Disk resource in OpenStack)',
    members: [volumeId, fsType, readOnly, secretRef],
  },
  photonPersistentDisk: {
    title: 'PhotonPersistentDisk (a Persistent Disk resource in photon platform)',
    members: [['PdID', 'pdID', ''], fsType],
  },
  portworxVolume: { title: 'PortworxVolume (a Portworx Volume resource)', members: [volumeId] },
  scaleIO: {
    title: 'ScaleIO (a persistent volume backed by a block device in ScaleIO)',
    members: [
      ['Gateway', 'gateway', ''],
      ['System', 'system', ''],
      ['Protection Domain', 'protectionDomain', ''],
      ['Storage Pool', 'storagePool', ''],
      ['Storage Mode', 'storageMode', ''],
      volumeName,
      fsType,
      readOnly,
    ],
    persistent: {
      volumeName: [
        ['SecretName', 'secretRef.name', ''],
        ['SecretNamespace', 'secretRef.namespace', ''],
      ],
    },
  },
  local: {
    title: 'LocalVolume (a persistent volume backed by local storage on a node)',
    members: [path],
  },
  cephfs: {
    title: "CephFS (a CephFS mount on the host that shares a pod's lifetime)",
    members: [
      ['Monitors', 'monitors', '[]'],
      path,
      ['User', 'user', ''],
      ['SecretFile', 'secretFile', ''],
      secretRef,
      readOnly,
    ],
  },
  storageos: {
    title: 'StorageOS (a StorageOS Persistent Disk resource)',
    members: [volumeName, ['VolumeNamespace', 'volumeNamespace', ''], fsType, readOnly],
  },
  fc: {
    title: 'FC (a Fibre Channel disk)',
    members: [['TargetWWNs', 'targetWWNs', ''], ['LUN', 'lun', '<none>'], fsType, readOnly],
  },
  azureFile: {
    title: 'AzureFile (an Azure File Service mount on the host and bind mount to the pod)',
    members: [['SecretName', 'secretName', ''], ['ShareName', 'shareName', ''], readOnly],
    persistent: { secretName: [['SecretNamespace', 'secretNamespace', '']] },
  },
  flexVolume: {
    title:
      'FlexVolume (a generic volume resource that is provisioned/attached using an exec based ' +
      'plugin)',
    members: [
      ['Driver', 'driver', ''],
      fsType,
      secretRef,
      readOnly,
      ['Options', 'options', 'map[]'],
    ],
  },
  flocker: {
    title: 'Flocker (a Flocker volume mounted by the Flocker agent)',
    members: [
      ['DatasetName', 'datasetName', ''],
      ['DatasetUUID', 'datasetUUID', ''],
    ],
  },
  csi: {
    title: 'CSI (a Container Storage Interface (CSI) volume source)',
    members: [['Driver', 'driver', ''], fsType, readOnly],
    persistent: { fsType: [['VolumeHandle', 'volumeHandle', '']] },
  },
  image: {
    title: 'Image (a container image or OCI artifact)',
    members: [
      ['Reference', 'reference', ''],
      ['PullPolicy', 'pullPolicy', ''],
    ],
  },
};

/** Describes volumes; the indent is that of a template or of a Pod. */
export function volumeBlock(list: readonly JsonObject[], indent: '' | '  '): string[] {
  if (list.length === 0) return [`${indent}Volumes:\t<none>`];
  const nameIndent = indent === '' ? '  ' : '   ';
  return [
    `${indent}Volumes:`,
    ...list.flatMap((volume) => [
      `${nameIndent}${textAt(volume, 'name')}:`,
      ...sourceLines(volume, 'Pod'),
    ]),
  ];
}

/**
 * Describes the source of a volume with an indent of four.
 * @param volume an item of a Pod's `volumes`, or the `spec` of a PersistentVolume
 */
export function sourceLines(volume: JsonObject, kind: VolumeKind): string[] {
  const types = Object.keys(volume);
  const composedType = types.find((key) => Object.hasOwn(composed, key));
  if (composedType !== undefined) return composed[composedType]!(objectAt(volume, composedType));
  const name = types.find((key) => Object.hasOwn(sources, key));
  if (name === undefined) return ['  <unknown>'];
  const values = objectAt(volume, name);
  const { title, members, persistent } = sources[name]!;
  const lines = members.flatMap((shown) => {
    const more = kind === 'Pod' ? [] : (persistent?.[shown[1]] ?? []);
    return [shown, ...more].map((one) => memberLine(one, values, kind));
  });
  const attributes = name === 'csi' ? attributeLines(objectAt(values, 'volumeAttributes')) : [];
  return [`    Type:\t${title}`, ...lines, ...attributes];
}

function memberLine([title, name, missing]: Member, values: JsonObject, kind: VolumeKind): string {
  const value = valueAt(values, ...name.split('.'));
  // kubectl has no colon after this title.
  const separator = name === 'iscsiInterface' ? '\t' : ':\t';
  if (name === 'targetWWNs' && Array.isArray(value)) return `    ${title}:\t${value.join(', ')}`;
  if (value === undefined || value === null) return `    ${title}${separator}${missing}`;
  const text =
    name === 'secretRef' && isObject(value) ? referenceText(value, kind) : goPlain(value);
  return `    ${title}${separator}${text}`;
}

/** The kind of object that a volume belongs to. */
type VolumeKind = 'Pod' | 'PersistentVolume';

function referenceText(reference: JsonObject, kind: VolumeKind): string {
  const name = `Name:${textAt(reference, 'name')},`;
  if (kind === 'Pod') return `&LocalObjectReference{${name}}`;
  return `&SecretReference{${name}Namespace:${textAt(reference, 'namespace')},}`;
}

function attributeLines(attributes: JsonObject): string[] {
  const lines = Object.keys(attributes)
    .sort()
    .map((key) => shortened(`${key}=${String(attributes[key])}`, annotationLengthMax));
  if (lines.length === 0) return ['    VolumeAttributes:\t<none>'];
  return lines.map((line, at) =>
    at === 0 ? `    VolumeAttributes:\t    ${line}` : `        \t    ${line}`,
  );
}

/** Describes the object from which a claim is filled, if any. */
export function dataSourceLines(source: JsonObject): string[] {
  if (Object.keys(source).length === 0) return [];
  const group = source['apiGroup'];
  return [
    'DataSource:',
    ...(typeof group === 'string' ? [`  APIGroup:\t${group}`] : []),
    `  Kind:\t${textAt(source, 'kind')}`,
    `  Name:\t${textAt(source, 'name')}`,
  ];
}

/** The types of volumes that consist of others, or of items. */
const composed: Readonly<Record<string, (values: JsonObject) => string[]>> = {
  projected: (values) => [
    '    Type:\tProjected (a volume that contains injected data from multiple sources)',
    ...listAt(values, 'sources').flatMap(projectionLines),
  ],
  downwardAPI: (values) => [
    '    Type:\tDownwardAPI (a volume populated by information about the pod)',
    '    Items:',
    ...listAt(values, 'items').flatMap((item) =>
      [textAt(item, 'fieldRef', 'fieldPath'), textAt(item, 'resourceFieldRef', 'resource')]
        .filter((from) => from !== '')
        .map((from) => `      ${from} -> ${textAt(item, 'path')}`),
    ),
  ],
  ephemeral: (values) => {
    const claim = objectAt(values, 'volumeClaimTemplate');
    const mode = textAt(claim, 'spec', 'volumeMode');
    const lines = [
      `StorageClass:\t${textAt(claim, 'spec', 'storageClassName')}`,
      'Volume:\t',
      // kubectl indents these values, too.
      ...metadataLines(claim).map((line) => line.replace('\t', '\t    ')),
      'Capacity:\t',
      'Access Modes:\t',
      ...(mode === '' ? [] : [`VolumeMode:\t${mode}`]),
      ...dataSourceLines(objectAt(claim, 'spec', 'dataSource')),
    ];
    return [
      '    Type:\tEphemeralVolume (an inline specification for a volume that gets created and ' +
        'deleted with the pod)',
      ...lines.map((line) => `    ${line}`),
    ];
  },
};

function projectionLines(source: JsonObject): string[] {
  const { secret, downwardAPI, configMap, serviceAccountToken } = source;
  const isOptional = (part: JsonObject) => goPlain(member(part, 'optional'));
  if (isObject(secret)) {
    return [
      `    SecretName:\t${textAt(secret, 'name')}`,
      `    SecretOptionalName:\t${isOptional(secret)}`,
    ];
  }
  if (isObject(downwardAPI)) return ['    DownwardAPI:\ttrue'];
  if (isObject(configMap)) {
    return [
      `    ConfigMapName:\t${textAt(configMap, 'name')}`,
      `    ConfigMapOptional:\t${isOptional(configMap)}`,
    ];
  }
  if (!isObject(serviceAccountToken)) return [];
  return [`    TokenExpirationSeconds:\t${String(serviceAccountToken['expirationSeconds'])}`];
}

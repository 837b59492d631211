import type { JsonObject } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { type Changes, changed, createErrors, plainPod } from '../../rules/rules.suite.ts';

const volume = 'spec.volumes[0]';
const mounts = 'spec.containers[0].volumeMounts';
const devices = 'spec.containers[0].volumeDevices';

const claimSpec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } };

/** A pod with one volume of a source, which no container mounts. */
const podWith = (source: JsonObject) =>
  changed(plainPod(), {
    'spec.serviceAccountName': 's',
    'spec.volumes': [{ name: 'v', ...source }],
  });

describe('each source', () => {
  const mode = 'must be a number between 0 and 0777 (octal), both inclusive';
  const rows: readonly (readonly [JsonObject, ...string[]])[] = [
    [{}],
    [
      { emptyDir: { sizeLimit: '-1' } },
      `${volume}.emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid resource quantity`,
    ],
    [{ hostPath: {} }, `${volume}.hostPath.path: Required value`],
    [
      { hostPath: { path: '/a/../b', type: 'Odd' } },
      `${volume}.hostPath.path: Invalid value: "/a/../b": must not contain '..'`,
      `${volume}.hostPath.type: Unsupported value: "Odd": supported values: "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"`,
    ],
    [
      { gitRepo: { directory: '/x' } },
      `${volume}.gitRepo.repository: Required value`,
      `${volume}.gitRepo.directory: Invalid value: "/x": must be a relative path`,
    ],
    [
      { gcePersistentDisk: { partition: 256 } },
      `${volume}.persistentDisk.pdName: Required value`,
      `${volume}.persistentDisk.partition: Invalid value: 256: must be between 1 and 255, inclusive`,
    ],
    [{ awsElasticBlockStore: {} }, `${volume}.awsElasticBlockStore.volumeID: Required value`],
    [
      { secret: { defaultMode: 512, items: [{ key: '', path: '../x' }] } },
      `${volume}.secret.secretName: Required value`,
      `${volume}.secret.defaultMode: Invalid value: 512: ${mode}`,
      `${volume}.secret.items[0].key: Required value`,
      `${volume}.secret.items[0].path: Invalid value: "../x": must not contain '..'`,
    ],
    [
      { configMap: { items: [{ key: 'k', path: '..x', mode: -1 }] } },
      `${volume}.configMap.name: Required value`,
      `${volume}.configMap.items[0].path: Invalid value: "..x": must not start with '..'`,
      `${volume}.configMap.items[0].mode: Invalid value: -1: ${mode}`,
    ],
    [
      { nfs: { path: 'x' } },
      `${volume}.nfs.server: Required value`,
      `${volume}.nfs.path: Invalid value: "x": must be an absolute path`,
    ],
    [
      { iscsi: { iqn: 'iqn.bad', lun: 256, chapAuthSession: true, initiatorName: 'x' } },
      `${volume}.iscsi.targetPortal: Required value`,
      `${volume}.iscsi.iqn: Invalid value: "iqn.bad": must be valid format`,
      `${volume}.iscsi.lun: Invalid value: 256: must be between 0 and 255, inclusive`,
      `${volume}.iscsi.secretRef: Required value`,
      `${volume}.iscsi.initiatorname: Invalid value: "x": must be valid format starting with iqn, eui, or naa`,
    ],
    [{ iscsi: { targetPortal: 'h', iqn: 'iqn.2001-04.com.example:storage', lun: 0 } }],
    [
      { glusterfs: {} },
      `${volume}.glusterfs.endpoints: Required value`,
      `${volume}.glusterfs.path: Required value`,
    ],
    [
      { flocker: {} },
      `${volume}.flocker: Required value: one of datasetName and datasetUUID is required`,
    ],
    [{ persistentVolumeClaim: {} }, `${volume}.persistentVolumeClaim.claimName: Required value`],
    [{ rbd: {} }, `${volume}.rbd.monitors: Required value`, `${volume}.rbd.image: Required value`],
    [
      { cinder: { secretRef: {} } },
      `${volume}.cinder.volumeID: Required value`,
      `${volume}.cinder.secretRef.name: Required value`,
    ],
    [{ cephfs: {} }, `${volume}.cephfs.monitors: Required value`],
    [
      { quobyte: { registry: 'host', volume: '' } },
      `${volume}.quobyte.registry: Invalid value: "host": must be a host:port pair or multiple pairs separated by commas`,
      `${volume}.quobyte.volume: Required value`,
    ],
    [
      { downwardAPI: { items: [{ path: 'a' }] } },
      `${volume}.downwardAPI: Required value: one of fieldRef and resourceFieldRef is required`,
    ],
    [
      { downwardAPI: { items: [{ path: 'a', fieldRef: { fieldPath: 'status.podIP' } }] } },
      `${volume}.downwardAPI.fieldRef.fieldPath: Unsupported value: "status.podIP": supported values: "metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"`,
    ],
    [
      { downwardAPI: { items: [{ path: 'a', resourceFieldRef: { resource: 'limits.cpu' } }] } },
      `${volume}.downwardAPI.resourceFieldRef.containerName: Required value`,
    ],
    [
      { fc: { targetWWNs: ['a'], wwids: ['b'] } },
      `${volume}.fc.targetWWNs: Invalid value: []string{"a"}: targetWWNs and wwids can not be specified simultaneously`,
      `${volume}.fc.lun: Required value: lun is required if targetWWNs is specified`,
    ],
    [
      { flexVolume: { options: { 'kubernetes.io/x': 'y' } } },
      `${volume}.flexVolume.driver: Required value`,
      `${volume}.flexVolume.options[kubernetes.io/x]: Invalid value: "kubernetes.io/x": kubernetes.io and k8s.io namespaces are reserved`,
    ],
    [
      { azureFile: {} },
      `${volume}.azureFile.secretName: Required value`,
      `${volume}.azureFile.shareName: Required value`,
    ],
    [
      { azureDisk: { diskName: 'd', diskURI: 'x', kind: 'Managed' } },
      `${volume}.azureDisk.diskURI: Unsupported value: "x": supported values: "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"`,
    ],
    [{ vsphereVolume: {} }, `${volume}.vsphereVolume.volumePath: Required value`],
    [{ photonPersistentDisk: {} }, `${volume}.photonPersistentDisk.pdID: Required value`],
    [{ portworxVolume: {} }, `${volume}.portworxVolume.volumeID: Required value`],
    [
      { scaleIO: {} },
      `${volume}.scaleIO.gateway: Required value`,
      `${volume}.scaleIO.system: Required value`,
      `${volume}.scaleIO.volumeName: Required value`,
    ],
    [
      { storageos: { volumeNamespace: 'a.b' } },
      `${volume}.storageos.volumeName: Required value`,
      `${volume}.storageos.volumeNamespace: Invalid value: "a.b": must not contain dots`,
    ],
    [
      { csi: { driver: 'd'.repeat(64), nodePublishSecretRef: {} } },
      `${volume}.csi.driver: Too long: may not be more than 63 bytes`,
      `${volume}.csi.nodePublishSecretRef.name: Required value`,
    ],
    [{ ephemeral: {} }, `${volume}.ephemeral.volumeClaimTemplate: Required value`],
    [
      { ephemeral: { volumeClaimTemplate: { spec: {} } } },
      `${volume}.ephemeral.volumeClaimTemplate.spec.accessModes: Required value: at least 1 access mode is required`,
      `${volume}.ephemeral.volumeClaimTemplate.spec.resources[storage]: Required value`,
    ],
    [
      { emptyDir: {}, cephfs: { monitors: ['m'] }, downwardAPI: {} },
      `${volume}.cephFS: Forbidden: may not specify more than 1 volume type`,
      `${volume}.downwarAPI: Forbidden: may not specify more than 1 volume type`,
    ],
  ];
  test.each(rows.map(([source, ...errors]) => [source, errors] as const))(
    '%j',
    (source, errors) => {
      expect(createErrors(podWith(source))).toEqual(errors);
    },
  );
});

describe('projected sources', () => {
  const path = `${volume}.projected`;
  const rows: readonly (readonly [sources: JsonObject[], ...errors: string[]])[] = [
    [[{ serviceAccountToken: { path: 't' } }, { secret: { name: 's' } }]],
    [
      [{ secret: {}, configMap: { name: 'c' } }],
      `${path}.sources[0].secret.name: Required value`,
      `${path}.sources[0]: Forbidden: may not specify more than 1 volume type per source`,
    ],
    [
      [{ serviceAccountToken: { path: '', expirationSeconds: 5 } }],
      `${path}.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 5: may not specify a duration less than 10 minutes`,
      `${path}.path: Required value`,
    ],
    [
      [
        { configMap: { name: 'c', items: [{ key: 'k', path: 'same' }] } },
        { secret: { name: 's', items: [{ key: 'k', path: 'same' }] } },
      ],
      `${path}: Invalid value: "s": conflicting duplicate paths`,
    ],
  ];
  test.each(rows.map(([sources, ...errors]) => [sources, errors] as const))(
    '%j',
    (sources, errors) => {
      expect(createErrors(podWith({ projected: { sources } }))).toEqual(errors);
    },
  );

  test('a service account token requires an account', () => {
    const pod = changed(
      podWith({ projected: { sources: [{ serviceAccountToken: { path: 't' } }] } }),
      { 'spec.serviceAccountName': undefined },
    );
    expect(createErrors(pod)).toEqual([
      `${path}.sources[0].serviceAccountToken: Forbidden: must not be specified when serviceAccountName is not set`,
    ]);
  });
});

describe('names and mounts', () => {
  type Row = readonly [changes: Changes, ...errors: string[]];
  const claim = { name: 'c', persistentVolumeClaim: { claimName: 'c' } };
  const base = changed(plainPod(), { 'spec.volumes': [{ name: 'v', emptyDir: {} }, claim] });
  const rows: readonly Row[] = [
    [{ [mounts]: [{ name: 'v', mountPath: '/v' }], [devices]: [{ name: 'c', devicePath: '/d' }] }],
    [
      { 'spec.volumes[1]': { name: 'v', emptyDir: {} } },
      'spec.volumes[1].name: Duplicate value: "v"',
    ],
    [{ 'spec.volumes[0].name': '' }, 'spec.volumes[0].name: Required value'],
    [
      { [mounts]: [{ name: 'x', mountPath: '' }] },
      `${mounts}[0].name: Not found: "x"`,
      `${mounts}[0].mountPath: Required value`,
    ],
    [
      {
        [mounts]: [
          { name: 'v', mountPath: '/v', subPath: '/x', subPathExpr: 'y' },
          { name: 'v', mountPath: '/v' },
        ],
      },
      `${mounts}.subPath: Invalid value: "/x": must be a relative path`,
      `${mounts}[0].subPathExpr: Invalid value: "y": subPathExpr and subPath are mutually exclusive`,
      `${mounts}[1].mountPath: Invalid value: "/v": must be unique`,
    ],
    [
      { [mounts]: [{ name: 'v', mountPath: '/v', mountPropagation: 'Bidirectional' }] },
      `${mounts}.mountPropagation: Forbidden: Bidirectional mount propagation is available only to privileged containers`,
    ],
    [
      {
        [mounts]: [
          {
            name: 'v',
            mountPath: '/v',
            mountPropagation: 'HostToContainer',
            recursiveReadOnly: 'Enabled',
          },
        ],
      },
      `${mounts}.recursiveReadOnly: Forbidden: may only be specified when readOnly is true`,
      `${mounts}.recursiveReadOnly: Forbidden: may only be specified when mountPropagation is None or not specified`,
    ],
    [
      { [devices]: [{ name: 'v', devicePath: '/a/../b' }] },
      `${devices}[0].name: Invalid value: "v": can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode`,
      `${devices}[0].devicePath: Invalid value: "/a/../b": can not contain backsteps ('..')`,
    ],
    [
      { [mounts]: [{ name: 'c', mountPath: '/c' }], [devices]: [{ name: 'c', devicePath: '/c' }] },
      `${mounts}[0].name: Invalid value: "c": must not already exist in volumeDevices`,
      `${mounts}[0].mountPath: Invalid value: "/c": must not already exist as a path in volumeDevices`,
      `${devices}[0].name: Invalid value: "c": must not already exist in volumeMounts`,
      `${devices}[0].devicePath: Invalid value: "/c": must not already exist as a path in volumeMounts`,
    ],
    [
      {
        'spec.volumes[0]': { name: 'e', ephemeral: { volumeClaimTemplate: { spec: claimSpec } } },
        'spec.volumes[1].persistentVolumeClaim.claimName': 'p-e',
      },
      'spec.volumes[1].persistentVolumeClaim.claimName: Invalid value: "p-e": must not reference a PVC that gets created for an ephemeral volume',
    ],
  ];
  test.each(rows.map(([changes, ...errors]) => [changes, errors] as const))(
    '%j',
    (changes, errors) => {
      expect(createErrors(changed(base, changes))).toEqual(errors);
    },
  );
});

/** The types of `storage/v1beta1`; made by scripts/facts/types.mjs, do not edit. */
import type { PersistentVolumeSpec, TopologySelectorTerm } from '../core/v1.ts';
import type { Embedded, LabelSelector, ListMeta, ObjectMeta, Quantity, Time } from '../meta/v1.ts';
export type StorageClass = {
  apiVersion: string;
  kind: 'StorageClass';
  metadata: ObjectMeta;
  provisioner: string;
  parameters?: { [name: string]: string };
  reclaimPolicy?: 'Delete' | 'Recycle' | 'Retain';
  mountOptions?: string[];
  allowVolumeExpansion?: boolean;
  volumeBindingMode?: string;
  allowedTopologies?: TopologySelectorTerm[];
};
export type StorageClassList = {
  apiVersion: string;
  kind: 'StorageClassList';
  metadata: ListMeta;
  items: Embedded<StorageClass>[];
};
export type VolumeAttachment = {
  apiVersion: string;
  kind: 'VolumeAttachment';
  metadata: ObjectMeta;
  spec: VolumeAttachmentSpec;
  status?: VolumeAttachmentStatus;
};
export type VolumeAttachmentList = {
  apiVersion: string;
  kind: 'VolumeAttachmentList';
  metadata: ListMeta;
  items: Embedded<VolumeAttachment>[];
};
export type VolumeAttachmentSpec = {
  attacher: string;
  source: VolumeAttachmentSource;
  nodeName: string;
};
export type VolumeAttachmentSource = {
  persistentVolumeName?: string;
  inlineVolumeSpec?: PersistentVolumeSpec;
};
export type VolumeAttachmentStatus = {
  attached: boolean;
  attachmentMetadata?: { [name: string]: string };
  attachError?: VolumeError;
  detachError?: VolumeError;
};
export type VolumeError = {
  time?: Time | null;
  message?: string;
};
export type CSIDriver = {
  apiVersion: string;
  kind: 'CSIDriver';
  metadata: ObjectMeta;
  spec: CSIDriverSpec;
};
export type CSIDriverList = {
  apiVersion: string;
  kind: 'CSIDriverList';
  metadata: ListMeta;
  items: Embedded<CSIDriver>[];
};
export type CSIDriverSpec = {
  attachRequired?: boolean;
  podInfoOnMount?: boolean;
  volumeLifecycleModes?: string[];
  storageCapacity?: boolean;
  fsGroupPolicy?: string;
  tokenRequests?: TokenRequest[];
  requiresRepublish?: boolean;
  seLinuxMount?: boolean;
};
export type TokenRequest = {
  audience: string;
  expirationSeconds?: number;
};
export type CSINode = {
  apiVersion: string;
  kind: 'CSINode';
  metadata: ObjectMeta;
  spec: CSINodeSpec;
};
export type CSINodeSpec = {
  drivers: CSINodeDriver[];
};
export type CSINodeDriver = {
  name: string;
  nodeID: string;
  topologyKeys?: string[] | null;
  allocatable?: VolumeNodeResources;
};
export type VolumeNodeResources = {
  count?: number;
};
export type CSINodeList = {
  apiVersion: string;
  kind: 'CSINodeList';
  metadata: ListMeta;
  items: Embedded<CSINode>[];
};
export type CSIStorageCapacity = {
  apiVersion: string;
  kind: 'CSIStorageCapacity';
  metadata: ObjectMeta;
  nodeTopology?: LabelSelector;
  storageClassName: string;
  capacity?: Quantity;
  maximumVolumeSize?: Quantity;
};
export type CSIStorageCapacityList = {
  apiVersion: string;
  kind: 'CSIStorageCapacityList';
  metadata: ListMeta;
  items: Embedded<CSIStorageCapacity>[];
};
export type VolumeAttributesClass = {
  apiVersion: string;
  kind: 'VolumeAttributesClass';
  metadata: ObjectMeta;
  driverName: string;
  parameters?: { [name: string]: string };
};
export type VolumeAttributesClassList = {
  apiVersion: string;
  kind: 'VolumeAttributesClassList';
  metadata: ListMeta;
  items: Embedded<VolumeAttributesClass>[];
};

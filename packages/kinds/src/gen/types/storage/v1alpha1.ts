/** The types of `storage/v1alpha1`; made by scripts/facts/types.mjs, do not edit. */
import type { PersistentVolumeSpec } from '../core/v1.ts';
import type { Embedded, LabelSelector, ListMeta, ObjectMeta, Quantity, Time } from '../meta/v1.ts';
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

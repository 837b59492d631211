/** The types of `apiserverinternal/v1alpha1`; made by scripts/facts/types.mjs, do not edit. */
import type { Embedded, ListMeta, ObjectMeta, Time } from '../meta/v1.ts';
export type StorageVersion = {
  apiVersion: string;
  kind: 'StorageVersion';
  metadata: ObjectMeta;
  spec: StorageVersionSpec;
  status: StorageVersionStatus;
};
export type StorageVersionSpec = {

};
export type StorageVersionStatus = {
  storageVersions?: ServerStorageVersion[];
  commonEncodingVersion?: string;
  conditions?: StorageVersionCondition[];
};
export type ServerStorageVersion = {
  apiServerID?: string;
  encodingVersion?: string;
  decodableVersions?: string[];
  servedVersions?: string[];
};
export type StorageVersionCondition = {
  type: string;
  status: string;
  observedGeneration?: number;
  lastTransitionTime?: Time | null;
  reason: string;
  message: string;
};
export type StorageVersionList = {
  apiVersion: string;
  kind: 'StorageVersionList';
  metadata: ListMeta;
  items: Embedded<StorageVersion>[];
};

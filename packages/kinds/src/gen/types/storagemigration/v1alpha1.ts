/** The types of `storagemigration/v1alpha1`; made by scripts/facts/types.mjs, do not edit. */
import type { Embedded, ListMeta, ObjectMeta, Time } from '../meta/v1.ts';
export type StorageVersionMigration = {
  apiVersion: string;
  kind: 'StorageVersionMigration';
  metadata: ObjectMeta;
  spec?: StorageVersionMigrationSpec;
  status?: StorageVersionMigrationStatus;
};
export type StorageVersionMigrationSpec = {
  resource: GroupVersionResource;
  continueToken?: string;
};
export type GroupVersionResource = {
  group?: string;
  version?: string;
  resource?: string;
};
export type MigrationCondition = {
  type: string;
  status: string;
  lastUpdateTime?: Time | null;
  reason?: string;
  message?: string;
};
export type StorageVersionMigrationStatus = {
  conditions?: MigrationCondition[];
  resourceVersion?: string;
};
export type StorageVersionMigrationList = {
  apiVersion: string;
  kind: 'StorageVersionMigrationList';
  metadata: ListMeta;
  items: Embedded<StorageVersionMigration>[];
};

/** Of earlier releases: the types of `apps/v1beta1`; made by scripts/facts/types.mjs, do not edit. */
import type { PersistentVolumeClaim, PodTemplateSpec } from '../core/v1.ts';
import type { Embedded, IntOrString, Json, LabelSelector, ListMeta, ObjectMeta, Time } from '../meta/v1.ts';
export type ScaleSpec = {
  replicas?: number;
};
export type ScaleStatus = {
  replicas: number;
  selector?: { [name: string]: string };
  targetSelector?: string;
};
export type Scale = {
  apiVersion: string;
  kind: 'Scale';
  metadata: ObjectMeta;
  spec?: ScaleSpec;
  status?: ScaleStatus;
};
export type StatefulSet = {
  apiVersion: string;
  kind: 'StatefulSet';
  metadata: ObjectMeta;
  spec?: StatefulSetSpec;
  status?: StatefulSetStatus;
};
export type StatefulSetUpdateStrategy = {
  type?: string;
  rollingUpdate?: RollingUpdateStatefulSetStrategy;
};
export type RollingUpdateStatefulSetStrategy = {
  partition?: number;
  maxUnavailable?: IntOrString;
};
export type StatefulSetPersistentVolumeClaimRetentionPolicy = {
  whenDeleted?: string;
  whenScaled?: string;
};
export type StatefulSetOrdinals = {
  start?: number;
};
export type StatefulSetSpec = {
  replicas?: number;
  selector?: LabelSelector;
  template: PodTemplateSpec;
  volumeClaimTemplates?: Embedded<PersistentVolumeClaim>[];
  serviceName: string;
  podManagementPolicy?: string;
  updateStrategy?: StatefulSetUpdateStrategy;
  revisionHistoryLimit?: number;
  minReadySeconds?: number;
  persistentVolumeClaimRetentionPolicy?: StatefulSetPersistentVolumeClaimRetentionPolicy;
  ordinals?: StatefulSetOrdinals;
};
export type StatefulSetStatus = {
  observedGeneration?: number;
  replicas: number;
  readyReplicas?: number;
  currentReplicas?: number;
  updatedReplicas?: number;
  currentRevision?: string;
  updateRevision?: string;
  collisionCount?: number;
  conditions?: StatefulSetCondition[];
  availableReplicas?: number;
};
export type StatefulSetCondition = {
  type: string;
  status: string;
  lastTransitionTime?: Time | null;
  reason?: string;
  message?: string;
};
export type StatefulSetList = {
  apiVersion: string;
  kind: 'StatefulSetList';
  metadata: ListMeta;
  items: Embedded<StatefulSet>[];
};
export type Deployment = {
  apiVersion: string;
  kind: 'Deployment';
  metadata: ObjectMeta;
  spec?: DeploymentSpec;
  status?: DeploymentStatus;
};
export type DeploymentSpec = {
  replicas?: number;
  selector?: LabelSelector;
  template: PodTemplateSpec;
  strategy?: DeploymentStrategy;
  minReadySeconds?: number;
  revisionHistoryLimit?: number;
  paused?: boolean;
  rollbackTo?: RollbackConfig;
  progressDeadlineSeconds?: number;
};
export type DeploymentRollback = {
  apiVersion: string;
  kind: 'DeploymentRollback';
  name: string;
  updatedAnnotations?: { [name: string]: string };
  rollbackTo: RollbackConfig;
};
export type RollbackConfig = {
  revision?: number;
};
export type DeploymentStrategy = {
  type?: string;
  rollingUpdate?: RollingUpdateDeployment;
};
export type RollingUpdateDeployment = {
  maxUnavailable?: IntOrString;
  maxSurge?: IntOrString;
};
export type DeploymentStatus = {
  observedGeneration?: number;
  replicas?: number;
  updatedReplicas?: number;
  readyReplicas?: number;
  availableReplicas?: number;
  unavailableReplicas?: number;
  conditions?: DeploymentCondition[];
  collisionCount?: number;
};
export type DeploymentCondition = {
  type: string;
  status: string;
  lastUpdateTime?: Time | null;
  lastTransitionTime?: Time | null;
  reason?: string;
  message?: string;
};
export type DeploymentList = {
  apiVersion: string;
  kind: 'DeploymentList';
  metadata: ListMeta;
  items: Embedded<Deployment>[];
};
export type ControllerRevision = {
  apiVersion: string;
  kind: 'ControllerRevision';
  metadata: ObjectMeta;
  data?: Json;
  revision: number;
};
export type ControllerRevisionList = {
  apiVersion: string;
  kind: 'ControllerRevisionList';
  metadata: ListMeta;
  items: Embedded<ControllerRevision>[];
};

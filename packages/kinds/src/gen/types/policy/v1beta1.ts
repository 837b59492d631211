/** Of earlier releases: the types of `policy/v1beta1`; made by scripts/facts/types.mjs, do not edit. */
import type { SELinuxOptions } from '../core/v1.ts';
import type { Condition, DeleteOptions, Embedded, IntOrString, LabelSelector, ListMeta, ObjectMeta, Time } from '../meta/v1.ts';
export type PodDisruptionBudgetSpec = {
  minAvailable?: IntOrString;
  selector?: LabelSelector;
  maxUnavailable?: IntOrString;
  unhealthyPodEvictionPolicy?: 'AlwaysAllow' | 'IfHealthyBudget';
};
export type PodDisruptionBudgetStatus = {
  observedGeneration?: number;
  disruptedPods?: { [name: string]: Time };
  disruptionsAllowed: number;
  currentHealthy: number;
  desiredHealthy: number;
  expectedPods: number;
  conditions?: Condition[];
};
export type PodDisruptionBudget = {
  apiVersion: string;
  kind: 'PodDisruptionBudget';
  metadata: ObjectMeta;
  spec?: PodDisruptionBudgetSpec;
  status?: PodDisruptionBudgetStatus;
};
export type PodDisruptionBudgetList = {
  apiVersion: string;
  kind: 'PodDisruptionBudgetList';
  metadata: ListMeta;
  items: Embedded<PodDisruptionBudget>[];
};
export type Eviction = {
  apiVersion: string;
  kind: 'Eviction';
  metadata: ObjectMeta;
  deleteOptions?: DeleteOptions;
};
export type PodSecurityPolicy = {
  apiVersion: string;
  kind: 'PodSecurityPolicy';
  metadata: ObjectMeta;
  spec?: PodSecurityPolicySpec;
};
export type PodSecurityPolicySpec = {
  privileged?: boolean;
  defaultAddCapabilities?: string[];
  requiredDropCapabilities?: string[];
  allowedCapabilities?: string[];
  volumes?: string[];
  hostNetwork?: boolean;
  hostPorts?: HostPortRange[];
  hostPID?: boolean;
  hostIPC?: boolean;
  seLinux: SELinuxStrategyOptions;
  runAsUser: RunAsUserStrategyOptions;
  runAsGroup?: RunAsGroupStrategyOptions;
  supplementalGroups: SupplementalGroupsStrategyOptions;
  fsGroup: FSGroupStrategyOptions;
  readOnlyRootFilesystem?: boolean;
  defaultAllowPrivilegeEscalation?: boolean;
  allowPrivilegeEscalation?: boolean;
  allowedHostPaths?: AllowedHostPath[];
  allowedFlexVolumes?: AllowedFlexVolume[];
  allowedCSIDrivers?: AllowedCSIDriver[];
  allowedUnsafeSysctls?: string[];
  forbiddenSysctls?: string[];
  allowedProcMountTypes?: string[];
  runtimeClass?: RuntimeClassStrategyOptions;
};
export type AllowedHostPath = {
  pathPrefix?: string;
  readOnly?: boolean;
};
export type AllowedFlexVolume = {
  driver: string;
};
export type AllowedCSIDriver = {
  name: string;
};
export type HostPortRange = {
  min: number;
  max: number;
};
export type SELinuxStrategyOptions = {
  rule: string;
  seLinuxOptions?: SELinuxOptions;
};
export type RunAsUserStrategyOptions = {
  rule: string;
  ranges?: IDRange[];
};
export type RunAsGroupStrategyOptions = {
  rule: string;
  ranges?: IDRange[];
};
export type IDRange = {
  min: number;
  max: number;
};
export type FSGroupStrategyOptions = {
  rule?: string;
  ranges?: IDRange[];
};
export type SupplementalGroupsStrategyOptions = {
  rule?: string;
  ranges?: IDRange[];
};
export type RuntimeClassStrategyOptions = {
  allowedRuntimeClassNames: string[];
  defaultRuntimeClassName?: string;
};
export type PodSecurityPolicyList = {
  apiVersion: string;
  kind: 'PodSecurityPolicyList';
  metadata: ListMeta;
  items: Embedded<PodSecurityPolicy>[];
};

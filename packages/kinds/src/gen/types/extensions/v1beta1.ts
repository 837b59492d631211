/** Of earlier releases: the types of `extensions/v1beta1`; made by scripts/facts/types.mjs, do not edit. */
import type { PodTemplateSpec, SELinuxOptions, TypedLocalObjectReference } from '../core/v1.ts';
import type { Embedded, IntOrString, LabelSelector, ListMeta, ObjectMeta, Time } from '../meta/v1.ts';
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
export type DaemonSetUpdateStrategy = {
  type?: string;
  rollingUpdate?: RollingUpdateDaemonSet;
};
export type RollingUpdateDaemonSet = {
  maxUnavailable?: IntOrString;
  maxSurge?: IntOrString;
};
export type DaemonSetSpec = {
  selector?: LabelSelector;
  template: PodTemplateSpec;
  updateStrategy?: DaemonSetUpdateStrategy;
  minReadySeconds?: number;
  templateGeneration?: number;
  revisionHistoryLimit?: number;
};
export type DaemonSetStatus = {
  currentNumberScheduled: number;
  numberMisscheduled: number;
  desiredNumberScheduled: number;
  numberReady: number;
  observedGeneration?: number;
  updatedNumberScheduled?: number;
  numberAvailable?: number;
  numberUnavailable?: number;
  collisionCount?: number;
  conditions?: DaemonSetCondition[];
};
export type DaemonSetCondition = {
  type: string;
  status: string;
  lastTransitionTime?: Time | null;
  reason?: string;
  message?: string;
};
export type DaemonSet = {
  apiVersion: string;
  kind: 'DaemonSet';
  metadata: ObjectMeta;
  spec?: DaemonSetSpec;
  status?: DaemonSetStatus;
};
export type DaemonSetList = {
  apiVersion: string;
  kind: 'DaemonSetList';
  metadata: ListMeta;
  items: Embedded<DaemonSet>[];
};
export type Ingress = {
  apiVersion: string;
  kind: 'Ingress';
  metadata: ObjectMeta;
  spec?: IngressSpec;
  status?: IngressStatus;
};
export type IngressList = {
  apiVersion: string;
  kind: 'IngressList';
  metadata: ListMeta;
  items: Embedded<Ingress>[];
};
export type IngressSpec = {
  ingressClassName?: string;
  backend?: IngressBackend;
  tls?: IngressTLS[];
  rules?: IngressRule[];
};
export type IngressTLS = {
  hosts?: string[];
  secretName?: string;
};
export type IngressStatus = {
  loadBalancer?: IngressLoadBalancerStatus;
};
export type IngressLoadBalancerStatus = {
  ingress?: IngressLoadBalancerIngress[];
};
export type IngressLoadBalancerIngress = {
  ip?: string;
  hostname?: string;
  ports?: IngressPortStatus[];
};
export type IngressPortStatus = {
  port: number;
  protocol: 'SCTP' | 'TCP' | 'UDP';
  error?: string;
};
export type IngressRule = {
  host?: string;
  http?: HTTPIngressRuleValue;
};
export type IngressRuleValue = {
  http?: HTTPIngressRuleValue;
};
export type HTTPIngressRuleValue = {
  paths: HTTPIngressPath[];
};
export type HTTPIngressPath = {
  path?: string;
  pathType?: string;
  backend: IngressBackend;
};
export type IngressBackend = {
  serviceName?: string;
  servicePort?: IntOrString;
  resource?: TypedLocalObjectReference;
};
export type ReplicaSet = {
  apiVersion: string;
  kind: 'ReplicaSet';
  metadata: ObjectMeta;
  spec?: ReplicaSetSpec;
  status?: ReplicaSetStatus;
};
export type ReplicaSetList = {
  apiVersion: string;
  kind: 'ReplicaSetList';
  metadata: ListMeta;
  items: Embedded<ReplicaSet>[];
};
export type ReplicaSetSpec = {
  replicas?: number;
  minReadySeconds?: number;
  selector?: LabelSelector;
  template?: PodTemplateSpec;
};
export type ReplicaSetStatus = {
  replicas: number;
  fullyLabeledReplicas?: number;
  readyReplicas?: number;
  availableReplicas?: number;
  observedGeneration?: number;
  conditions?: ReplicaSetCondition[];
};
export type ReplicaSetCondition = {
  type: string;
  status: string;
  lastTransitionTime?: Time | null;
  reason?: string;
  message?: string;
};
export type NetworkPolicy = {
  apiVersion: string;
  kind: 'NetworkPolicy';
  metadata: ObjectMeta;
  spec?: NetworkPolicySpec;
};
export type NetworkPolicySpec = {
  podSelector: LabelSelector;
  ingress?: NetworkPolicyIngressRule[];
  egress?: NetworkPolicyEgressRule[];
  policyTypes?: string[];
};
export type NetworkPolicyIngressRule = {
  ports?: NetworkPolicyPort[];
  from?: NetworkPolicyPeer[];
};
export type NetworkPolicyEgressRule = {
  ports?: NetworkPolicyPort[];
  to?: NetworkPolicyPeer[];
};
export type NetworkPolicyPort = {
  protocol?: 'SCTP' | 'TCP' | 'UDP';
  port?: IntOrString;
  endPort?: number;
};
export type IPBlock = {
  cidr: string;
  except?: string[];
};
export type NetworkPolicyPeer = {
  podSelector?: LabelSelector;
  namespaceSelector?: LabelSelector;
  ipBlock?: IPBlock;
};
export type NetworkPolicyList = {
  apiVersion: string;
  kind: 'NetworkPolicyList';
  metadata: ListMeta;
  items: Embedded<NetworkPolicy>[];
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

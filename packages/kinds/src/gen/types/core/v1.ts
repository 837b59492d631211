/** The types of `core/v1`; made by scripts/facts/types.mjs, do not edit. */
import type { Condition, Embedded, IntOrString, Json, LabelSelector, ListMeta, MicroTime, ObjectMeta, OwnerReference, Quantity, Time } from '../meta/v1.ts';
export type Volume = {
  name: string;
  hostPath?: HostPathVolumeSource;
  emptyDir?: EmptyDirVolumeSource;
  gcePersistentDisk?: GCEPersistentDiskVolumeSource;
  awsElasticBlockStore?: AWSElasticBlockStoreVolumeSource;
  gitRepo?: GitRepoVolumeSource;
  secret?: SecretVolumeSource;
  nfs?: NFSVolumeSource;
  iscsi?: ISCSIVolumeSource;
  glusterfs?: GlusterfsVolumeSource;
  persistentVolumeClaim?: PersistentVolumeClaimVolumeSource;
  rbd?: RBDVolumeSource;
  flexVolume?: FlexVolumeSource;
  cinder?: CinderVolumeSource;
  cephfs?: CephFSVolumeSource;
  flocker?: FlockerVolumeSource;
  downwardAPI?: DownwardAPIVolumeSource;
  fc?: FCVolumeSource;
  azureFile?: AzureFileVolumeSource;
  configMap?: ConfigMapVolumeSource;
  vsphereVolume?: VsphereVirtualDiskVolumeSource;
  quobyte?: QuobyteVolumeSource;
  azureDisk?: AzureDiskVolumeSource;
  photonPersistentDisk?: PhotonPersistentDiskVolumeSource;
  projected?: ProjectedVolumeSource;
  portworxVolume?: PortworxVolumeSource;
  scaleIO?: ScaleIOVolumeSource;
  storageos?: StorageOSVolumeSource;
  csi?: CSIVolumeSource;
  ephemeral?: EphemeralVolumeSource;
  image?: ImageVolumeSource;
};
export type VolumeSource = {
  hostPath?: HostPathVolumeSource;
  emptyDir?: EmptyDirVolumeSource;
  gcePersistentDisk?: GCEPersistentDiskVolumeSource;
  awsElasticBlockStore?: AWSElasticBlockStoreVolumeSource;
  gitRepo?: GitRepoVolumeSource;
  secret?: SecretVolumeSource;
  nfs?: NFSVolumeSource;
  iscsi?: ISCSIVolumeSource;
  glusterfs?: GlusterfsVolumeSource;
  persistentVolumeClaim?: PersistentVolumeClaimVolumeSource;
  rbd?: RBDVolumeSource;
  flexVolume?: FlexVolumeSource;
  cinder?: CinderVolumeSource;
  cephfs?: CephFSVolumeSource;
  flocker?: FlockerVolumeSource;
  downwardAPI?: DownwardAPIVolumeSource;
  fc?: FCVolumeSource;
  azureFile?: AzureFileVolumeSource;
  configMap?: ConfigMapVolumeSource;
  vsphereVolume?: VsphereVirtualDiskVolumeSource;
  quobyte?: QuobyteVolumeSource;
  azureDisk?: AzureDiskVolumeSource;
  photonPersistentDisk?: PhotonPersistentDiskVolumeSource;
  projected?: ProjectedVolumeSource;
  portworxVolume?: PortworxVolumeSource;
  scaleIO?: ScaleIOVolumeSource;
  storageos?: StorageOSVolumeSource;
  csi?: CSIVolumeSource;
  ephemeral?: EphemeralVolumeSource;
  image?: ImageVolumeSource;
};
export type PersistentVolumeClaimVolumeSource = {
  claimName: string;
  readOnly?: boolean;
};
export type PersistentVolumeSource = {
  gcePersistentDisk?: GCEPersistentDiskVolumeSource;
  awsElasticBlockStore?: AWSElasticBlockStoreVolumeSource;
  hostPath?: HostPathVolumeSource;
  glusterfs?: GlusterfsPersistentVolumeSource;
  nfs?: NFSVolumeSource;
  rbd?: RBDPersistentVolumeSource;
  iscsi?: ISCSIPersistentVolumeSource;
  cinder?: CinderPersistentVolumeSource;
  cephfs?: CephFSPersistentVolumeSource;
  fc?: FCVolumeSource;
  flocker?: FlockerVolumeSource;
  flexVolume?: FlexPersistentVolumeSource;
  azureFile?: AzureFilePersistentVolumeSource;
  vsphereVolume?: VsphereVirtualDiskVolumeSource;
  quobyte?: QuobyteVolumeSource;
  azureDisk?: AzureDiskVolumeSource;
  photonPersistentDisk?: PhotonPersistentDiskVolumeSource;
  portworxVolume?: PortworxVolumeSource;
  scaleIO?: ScaleIOPersistentVolumeSource;
  local?: LocalVolumeSource;
  storageos?: StorageOSPersistentVolumeSource;
  csi?: CSIPersistentVolumeSource;
};
export type PersistentVolume = {
  apiVersion: string;
  kind: 'PersistentVolume';
  metadata: ObjectMeta;
  spec?: PersistentVolumeSpec;
  status?: PersistentVolumeStatus;
};
export type PersistentVolumeSpec = {
  capacity?: { [name: string]: Quantity };
  gcePersistentDisk?: GCEPersistentDiskVolumeSource;
  awsElasticBlockStore?: AWSElasticBlockStoreVolumeSource;
  hostPath?: HostPathVolumeSource;
  glusterfs?: GlusterfsPersistentVolumeSource;
  nfs?: NFSVolumeSource;
  rbd?: RBDPersistentVolumeSource;
  iscsi?: ISCSIPersistentVolumeSource;
  cinder?: CinderPersistentVolumeSource;
  cephfs?: CephFSPersistentVolumeSource;
  fc?: FCVolumeSource;
  flocker?: FlockerVolumeSource;
  flexVolume?: FlexPersistentVolumeSource;
  azureFile?: AzureFilePersistentVolumeSource;
  vsphereVolume?: VsphereVirtualDiskVolumeSource;
  quobyte?: QuobyteVolumeSource;
  azureDisk?: AzureDiskVolumeSource;
  photonPersistentDisk?: PhotonPersistentDiskVolumeSource;
  portworxVolume?: PortworxVolumeSource;
  scaleIO?: ScaleIOPersistentVolumeSource;
  local?: LocalVolumeSource;
  storageos?: StorageOSPersistentVolumeSource;
  csi?: CSIPersistentVolumeSource;
  accessModes?: ('ReadOnlyMany' | 'ReadWriteMany' | 'ReadWriteOnce' | 'ReadWriteOncePod')[];
  claimRef?: Embedded<ObjectReference>;
  persistentVolumeReclaimPolicy?: 'Delete' | 'Recycle' | 'Retain';
  storageClassName?: string;
  mountOptions?: string[];
  volumeMode?: 'Block' | 'Filesystem';
  nodeAffinity?: VolumeNodeAffinity;
  volumeAttributesClassName?: string;
};
export type VolumeNodeAffinity = {
  required?: NodeSelector;
};
export type PersistentVolumeStatus = {
  phase?: 'Available' | 'Bound' | 'Failed' | 'Pending' | 'Released';
  message?: string;
  reason?: string;
  lastPhaseTransitionTime?: Time;
};
export type PersistentVolumeList = {
  apiVersion: string;
  kind: 'PersistentVolumeList';
  metadata: ListMeta;
  items: Embedded<PersistentVolume>[];
};
export type PersistentVolumeClaim = {
  apiVersion: string;
  kind: 'PersistentVolumeClaim';
  metadata: ObjectMeta;
  spec?: PersistentVolumeClaimSpec;
  status?: PersistentVolumeClaimStatus;
};
export type PersistentVolumeClaimList = {
  apiVersion: string;
  kind: 'PersistentVolumeClaimList';
  metadata: ListMeta;
  items: Embedded<PersistentVolumeClaim>[];
};
export type PersistentVolumeClaimSpec = {
  accessModes?: ('ReadOnlyMany' | 'ReadWriteMany' | 'ReadWriteOnce' | 'ReadWriteOncePod')[];
  selector?: LabelSelector;
  resources?: VolumeResourceRequirements;
  volumeName?: string;
  storageClassName?: string;
  volumeMode?: 'Block' | 'Filesystem';
  dataSource?: TypedLocalObjectReference;
  dataSourceRef?: TypedObjectReference;
  volumeAttributesClassName?: string;
};
export type TypedObjectReference = {
  apiGroup?: string;
  kind: string;
  name: string;
  namespace?: string;
};
export type ModifyVolumeStatus = {
  targetVolumeAttributesClassName?: string;
  status: 'InProgress' | 'Infeasible' | 'Pending';
};
export type PersistentVolumeClaimCondition = {
  type: string;
  status: string;
  lastProbeTime?: Time | null;
  lastTransitionTime?: Time | null;
  reason?: string;
  message?: string;
};
export type PersistentVolumeClaimStatus = {
  phase?: 'Bound' | 'Lost' | 'Pending';
  accessModes?: ('ReadOnlyMany' | 'ReadWriteMany' | 'ReadWriteOnce' | 'ReadWriteOncePod')[];
  capacity?: { [name: string]: Quantity };
  conditions?: PersistentVolumeClaimCondition[];
  allocatedResources?: { [name: string]: Quantity };
  allocatedResourceStatuses?: { [name: string]: 'ControllerResizeInProgress' | 'ControllerResizeInfeasible' | 'NodeResizeInProgress' | 'NodeResizeInfeasible' | 'NodeResizePending' };
  currentVolumeAttributesClassName?: string;
  modifyVolumeStatus?: ModifyVolumeStatus;
};
export type HostPathVolumeSource = {
  path: string;
  type?: '' | 'BlockDevice' | 'CharDevice' | 'Directory' | 'DirectoryOrCreate' | 'File' | 'FileOrCreate' | 'Socket';
};
export type EmptyDirVolumeSource = {
  medium?: string;
  sizeLimit?: Quantity;
};
export type GlusterfsVolumeSource = {
  endpoints: string;
  path: string;
  readOnly?: boolean;
};
export type GlusterfsPersistentVolumeSource = {
  endpoints: string;
  path: string;
  readOnly?: boolean;
  endpointsNamespace?: string;
};
export type RBDVolumeSource = {
  monitors: string[];
  image: string;
  fsType?: string;
  pool?: string;
  user?: string;
  keyring?: string;
  secretRef?: LocalObjectReference;
  readOnly?: boolean;
};
export type RBDPersistentVolumeSource = {
  monitors: string[];
  image: string;
  fsType?: string;
  pool?: string;
  user?: string;
  keyring?: string;
  secretRef?: SecretReference;
  readOnly?: boolean;
};
export type CinderVolumeSource = {
  volumeID: string;
  fsType?: string;
  readOnly?: boolean;
  secretRef?: LocalObjectReference;
};
export type CinderPersistentVolumeSource = {
  volumeID: string;
  fsType?: string;
  readOnly?: boolean;
  secretRef?: SecretReference;
};
export type CephFSVolumeSource = {
  monitors: string[];
  path?: string;
  user?: string;
  secretFile?: string;
  secretRef?: LocalObjectReference;
  readOnly?: boolean;
};
export type SecretReference = {
  name?: string;
  namespace?: string;
};
export type CephFSPersistentVolumeSource = {
  monitors: string[];
  path?: string;
  user?: string;
  secretFile?: string;
  secretRef?: SecretReference;
  readOnly?: boolean;
};
export type FlockerVolumeSource = {
  datasetName?: string;
  datasetUUID?: string;
};
export type GCEPersistentDiskVolumeSource = {
  pdName: string;
  fsType?: string;
  partition?: number;
  readOnly?: boolean;
};
export type QuobyteVolumeSource = {
  registry: string;
  volume: string;
  readOnly?: boolean;
  user?: string;
  group?: string;
  tenant?: string;
};
export type FlexPersistentVolumeSource = {
  driver: string;
  fsType?: string;
  secretRef?: SecretReference;
  readOnly?: boolean;
  options?: { [name: string]: string };
};
export type FlexVolumeSource = {
  driver: string;
  fsType?: string;
  secretRef?: LocalObjectReference;
  readOnly?: boolean;
  options?: { [name: string]: string };
};
export type AWSElasticBlockStoreVolumeSource = {
  volumeID: string;
  fsType?: string;
  partition?: number;
  readOnly?: boolean;
};
export type GitRepoVolumeSource = {
  repository: string;
  revision?: string;
  directory?: string;
};
export type SecretVolumeSource = {
  secretName?: string;
  items?: KeyToPath[];
  defaultMode?: number;
  optional?: boolean;
};
export type SecretProjection = {
  name?: string;
  items?: KeyToPath[];
  optional?: boolean;
};
export type NFSVolumeSource = {
  server: string;
  path: string;
  readOnly?: boolean;
};
export type ISCSIVolumeSource = {
  targetPortal: string;
  iqn: string;
  lun: number;
  iscsiInterface?: string;
  fsType?: string;
  readOnly?: boolean;
  portals?: string[];
  chapAuthDiscovery?: boolean;
  chapAuthSession?: boolean;
  secretRef?: LocalObjectReference;
  initiatorName?: string;
};
export type ISCSIPersistentVolumeSource = {
  targetPortal: string;
  iqn: string;
  lun: number;
  iscsiInterface?: string;
  fsType?: string;
  readOnly?: boolean;
  portals?: string[];
  chapAuthDiscovery?: boolean;
  chapAuthSession?: boolean;
  secretRef?: SecretReference;
  initiatorName?: string;
};
export type FCVolumeSource = {
  targetWWNs?: string[];
  lun?: number;
  fsType?: string;
  readOnly?: boolean;
  wwids?: string[];
};
export type AzureFileVolumeSource = {
  secretName: string;
  shareName: string;
  readOnly?: boolean;
};
export type AzureFilePersistentVolumeSource = {
  secretName: string;
  shareName: string;
  readOnly?: boolean;
  secretNamespace?: string;
};
export type VsphereVirtualDiskVolumeSource = {
  volumePath: string;
  fsType?: string;
  storagePolicyName?: string;
  storagePolicyID?: string;
};
export type PhotonPersistentDiskVolumeSource = {
  pdID: string;
  fsType?: string;
};
export type AzureDiskVolumeSource = {
  diskName: string;
  diskURI: string;
  cachingMode?: 'None' | 'ReadOnly' | 'ReadWrite';
  fsType?: string;
  readOnly?: boolean;
  kind?: 'Dedicated' | 'Managed' | 'Shared';
};
export type PortworxVolumeSource = {
  volumeID: string;
  fsType?: string;
  readOnly?: boolean;
};
export type ScaleIOVolumeSource = {
  gateway: string;
  system: string;
  secretRef: LocalObjectReference;
  sslEnabled?: boolean;
  protectionDomain?: string;
  storagePool?: string;
  storageMode?: string;
  volumeName?: string;
  fsType?: string;
  readOnly?: boolean;
};
export type ScaleIOPersistentVolumeSource = {
  gateway: string;
  system: string;
  secretRef: SecretReference;
  sslEnabled?: boolean;
  protectionDomain?: string;
  storagePool?: string;
  storageMode?: string;
  volumeName?: string;
  fsType?: string;
  readOnly?: boolean;
};
export type StorageOSVolumeSource = {
  volumeName?: string;
  volumeNamespace?: string;
  fsType?: string;
  readOnly?: boolean;
  secretRef?: LocalObjectReference;
};
export type StorageOSPersistentVolumeSource = {
  volumeName?: string;
  volumeNamespace?: string;
  fsType?: string;
  readOnly?: boolean;
  secretRef?: Embedded<ObjectReference>;
};
export type ConfigMapVolumeSource = {
  name?: string;
  items?: KeyToPath[];
  defaultMode?: number;
  optional?: boolean;
};
export type ConfigMapProjection = {
  name?: string;
  items?: KeyToPath[];
  optional?: boolean;
};
export type ServiceAccountTokenProjection = {
  audience?: string;
  expirationSeconds?: number;
  path: string;
};
export type ClusterTrustBundleProjection = {
  name?: string;
  signerName?: string;
  labelSelector?: LabelSelector;
  optional?: boolean;
  path: string;
};
export type ProjectedVolumeSource = {
  sources?: VolumeProjection[] | null;
  defaultMode?: number;
};
export type VolumeProjection = {
  secret?: SecretProjection;
  downwardAPI?: DownwardAPIProjection;
  configMap?: ConfigMapProjection;
  serviceAccountToken?: ServiceAccountTokenProjection;
  clusterTrustBundle?: ClusterTrustBundleProjection;
};
export type KeyToPath = {
  key: string;
  path: string;
  mode?: number;
};
export type LocalVolumeSource = {
  path: string;
  fsType?: string;
};
export type CSIPersistentVolumeSource = {
  driver: string;
  volumeHandle: string;
  readOnly?: boolean;
  fsType?: string;
  volumeAttributes?: { [name: string]: string };
  controllerPublishSecretRef?: SecretReference;
  nodeStageSecretRef?: SecretReference;
  nodePublishSecretRef?: SecretReference;
  controllerExpandSecretRef?: SecretReference;
  nodeExpandSecretRef?: SecretReference;
};
export type CSIVolumeSource = {
  driver: string;
  readOnly?: boolean;
  fsType?: string;
  volumeAttributes?: { [name: string]: string };
  nodePublishSecretRef?: LocalObjectReference;
};
export type EphemeralVolumeSource = {
  volumeClaimTemplate?: PersistentVolumeClaimTemplate;
};
export type PersistentVolumeClaimTemplate = {
  metadata?: ObjectMeta;
  spec: PersistentVolumeClaimSpec;
};
export type ContainerPort = {
  name?: string;
  hostPort?: number;
  containerPort: number;
  protocol?: 'SCTP' | 'TCP' | 'UDP';
  hostIP?: string;
};
export type VolumeMount = {
  name: string;
  readOnly?: boolean;
  recursiveReadOnly?: string;
  mountPath: string;
  subPath?: string;
  mountPropagation?: 'Bidirectional' | 'HostToContainer' | 'None';
  subPathExpr?: string;
};
export type VolumeDevice = {
  name: string;
  devicePath: string;
};
export type EnvVar = {
  name: string;
  value?: string;
  valueFrom?: EnvVarSource;
};
export type EnvVarSource = {
  fieldRef?: ObjectFieldSelector;
  resourceFieldRef?: ResourceFieldSelector;
  configMapKeyRef?: ConfigMapKeySelector;
  secretKeyRef?: SecretKeySelector;
};
export type ObjectFieldSelector = {
  apiVersion?: string;
  fieldPath: string;
};
export type ResourceFieldSelector = {
  containerName?: string;
  resource: string;
  divisor?: Quantity;
};
export type ConfigMapKeySelector = {
  name?: string;
  key: string;
  optional?: boolean;
};
export type SecretKeySelector = {
  name?: string;
  key: string;
  optional?: boolean;
};
export type EnvFromSource = {
  prefix?: string;
  configMapRef?: ConfigMapEnvSource;
  secretRef?: SecretEnvSource;
};
export type ConfigMapEnvSource = {
  name?: string;
  optional?: boolean;
};
export type SecretEnvSource = {
  name?: string;
  optional?: boolean;
};
export type HTTPHeader = {
  name: string;
  value: string;
};
export type HTTPGetAction = {
  path?: string;
  port: IntOrString;
  host?: string;
  scheme?: 'HTTP' | 'HTTPS';
  httpHeaders?: HTTPHeader[];
};
export type TCPSocketAction = {
  port: IntOrString;
  host?: string;
};
export type GRPCAction = {
  port: number;
  service?: string;
};
export type ExecAction = {
  command?: string[];
};
export type SleepAction = {
  seconds: number;
};
export type Probe = {
  exec?: ExecAction;
  httpGet?: HTTPGetAction;
  tcpSocket?: TCPSocketAction;
  grpc?: GRPCAction;
  initialDelaySeconds?: number;
  timeoutSeconds?: number;
  periodSeconds?: number;
  successThreshold?: number;
  failureThreshold?: number;
  terminationGracePeriodSeconds?: number;
};
export type ContainerResizePolicy = {
  resourceName: string;
  restartPolicy: string;
};
export type Capabilities = {
  add?: string[];
  drop?: string[];
};
export type ResourceRequirements = {
  limits?: { [name: string]: Quantity };
  requests?: { [name: string]: Quantity };
  claims?: ResourceClaim[];
};
export type VolumeResourceRequirements = {
  limits?: { [name: string]: Quantity };
  requests?: { [name: string]: Quantity };
};
export type ResourceClaim = {
  name: string;
  request?: string;
};
export type Container = {
  name: string;
  image?: string;
  command?: string[];
  args?: string[];
  workingDir?: string;
  ports?: ContainerPort[];
  envFrom?: EnvFromSource[];
  env?: EnvVar[];
  resources?: ResourceRequirements;
  resizePolicy?: ContainerResizePolicy[];
  restartPolicy?: string;
  volumeMounts?: VolumeMount[];
  volumeDevices?: VolumeDevice[];
  livenessProbe?: Probe;
  readinessProbe?: Probe;
  startupProbe?: Probe;
  lifecycle?: Lifecycle;
  terminationMessagePath?: string;
  terminationMessagePolicy?: 'FallbackToLogsOnError' | 'File';
  imagePullPolicy?: 'Always' | 'IfNotPresent' | 'Never';
  securityContext?: SecurityContext;
  stdin?: boolean;
  stdinOnce?: boolean;
  tty?: boolean;
};
export type ProbeHandler = {
  exec?: ExecAction;
  httpGet?: HTTPGetAction;
  tcpSocket?: TCPSocketAction;
  grpc?: GRPCAction;
};
export type LifecycleHandler = {
  exec?: ExecAction;
  httpGet?: HTTPGetAction;
  tcpSocket?: TCPSocketAction;
  sleep?: SleepAction;
};
export type Lifecycle = {
  postStart?: LifecycleHandler;
  preStop?: LifecycleHandler;
};
export type ContainerStateWaiting = {
  reason?: string;
  message?: string;
};
export type ContainerStateRunning = {
  startedAt?: Time | null;
};
export type ContainerStateTerminated = {
  exitCode: number;
  signal?: number;
  reason?: string;
  message?: string;
  startedAt?: Time | null;
  finishedAt?: Time | null;
  containerID?: string;
};
export type ContainerState = {
  waiting?: ContainerStateWaiting;
  running?: ContainerStateRunning;
  terminated?: ContainerStateTerminated;
};
export type ContainerStatus = {
  name: string;
  state?: ContainerState;
  lastState?: ContainerState;
  ready: boolean;
  restartCount: number;
  image: string;
  imageID: string;
  containerID?: string;
  started?: boolean;
  allocatedResources?: { [name: string]: Quantity };
  resources?: ResourceRequirements;
  volumeMounts?: VolumeMountStatus[];
  user?: ContainerUser;
  allocatedResourcesStatus?: ResourceStatus[];
};
export type ResourceStatus = {
  name: string;
  resources?: ResourceHealth[];
};
export type ResourceHealth = {
  resourceID: string;
  health?: string;
};
export type ContainerUser = {
  linux?: LinuxContainerUser;
};
export type LinuxContainerUser = {
  uid: number;
  gid: number;
  supplementalGroups?: number[];
};
export type PodCondition = {
  type: string;
  status: string;
  lastProbeTime?: Time | null;
  lastTransitionTime?: Time | null;
  reason?: string;
  message?: string;
};
export type VolumeMountStatus = {
  name: string;
  mountPath: string;
  readOnly?: boolean;
  recursiveReadOnly?: string;
};
export type NodeSelector = {
  nodeSelectorTerms: NodeSelectorTerm[];
};
export type NodeSelectorTerm = {
  matchExpressions?: NodeSelectorRequirement[];
  matchFields?: NodeSelectorRequirement[];
};
export type NodeSelectorRequirement = {
  key: string;
  operator: 'DoesNotExist' | 'Exists' | 'Gt' | 'In' | 'Lt' | 'NotIn';
  values?: string[];
};
export type TopologySelectorTerm = {
  matchLabelExpressions?: TopologySelectorLabelRequirement[];
};
export type TopologySelectorLabelRequirement = {
  key: string;
  values: string[];
};
export type Affinity = {
  nodeAffinity?: NodeAffinity;
  podAffinity?: PodAffinity;
  podAntiAffinity?: PodAntiAffinity;
};
export type PodAffinity = {
  requiredDuringSchedulingIgnoredDuringExecution?: PodAffinityTerm[];
  preferredDuringSchedulingIgnoredDuringExecution?: WeightedPodAffinityTerm[];
};
export type PodAntiAffinity = {
  requiredDuringSchedulingIgnoredDuringExecution?: PodAffinityTerm[];
  preferredDuringSchedulingIgnoredDuringExecution?: WeightedPodAffinityTerm[];
};
export type WeightedPodAffinityTerm = {
  weight: number;
  podAffinityTerm: PodAffinityTerm;
};
export type PodAffinityTerm = {
  labelSelector?: LabelSelector;
  namespaces?: string[];
  topologyKey: string;
  namespaceSelector?: LabelSelector;
  matchLabelKeys?: string[];
  mismatchLabelKeys?: string[];
};
export type NodeAffinity = {
  requiredDuringSchedulingIgnoredDuringExecution?: NodeSelector;
  preferredDuringSchedulingIgnoredDuringExecution?: PreferredSchedulingTerm[];
};
export type PreferredSchedulingTerm = {
  weight: number;
  preference: NodeSelectorTerm;
};
export type Taint = {
  key: string;
  value?: string;
  effect: 'NoExecute' | 'NoSchedule' | 'PreferNoSchedule';
  timeAdded?: Time;
};
export type Toleration = {
  key?: string;
  operator?: 'Equal' | 'Exists';
  value?: string;
  effect?: 'NoExecute' | 'NoSchedule' | 'PreferNoSchedule';
  tolerationSeconds?: number;
};
export type PodReadinessGate = {
  conditionType: string;
};
export type PodSpec = {
  volumes?: Volume[];
  initContainers?: Container[];
  containers: Container[];
  ephemeralContainers?: EphemeralContainer[];
  restartPolicy?: 'Always' | 'Never' | 'OnFailure';
  terminationGracePeriodSeconds?: number;
  activeDeadlineSeconds?: number;
  dnsPolicy?: 'ClusterFirst' | 'ClusterFirstWithHostNet' | 'Default' | 'None';
  nodeSelector?: { [name: string]: string };
  serviceAccountName?: string;
  serviceAccount?: string;
  automountServiceAccountToken?: boolean;
  nodeName?: string;
  hostNetwork?: boolean;
  hostPID?: boolean;
  hostIPC?: boolean;
  shareProcessNamespace?: boolean;
  securityContext?: PodSecurityContext;
  imagePullSecrets?: LocalObjectReference[];
  hostname?: string;
  subdomain?: string;
  affinity?: Affinity;
  schedulerName?: string;
  tolerations?: Toleration[];
  hostAliases?: HostAlias[];
  priorityClassName?: string;
  priority?: number;
  dnsConfig?: PodDNSConfig;
  readinessGates?: PodReadinessGate[];
  runtimeClassName?: string;
  enableServiceLinks?: boolean;
  preemptionPolicy?: 'Never' | 'PreemptLowerPriority';
  overhead?: { [name: string]: Quantity };
  topologySpreadConstraints?: TopologySpreadConstraint[];
  setHostnameAsFQDN?: boolean;
  os?: PodOS;
  hostUsers?: boolean;
  schedulingGates?: PodSchedulingGate[];
  resourceClaims?: PodResourceClaim[];
  resources?: ResourceRequirements;
};
export type PodResourceClaim = {
  name: string;
  resourceClaimName?: string;
  resourceClaimTemplateName?: string;
};
export type PodResourceClaimStatus = {
  name: string;
  resourceClaimName?: string;
};
export type PodOS = {
  name: string;
};
export type PodSchedulingGate = {
  name: string;
};
export type TopologySpreadConstraint = {
  maxSkew: number;
  topologyKey: string;
  whenUnsatisfiable: 'DoNotSchedule' | 'ScheduleAnyway';
  labelSelector?: LabelSelector;
  minDomains?: number;
  nodeAffinityPolicy?: 'Honor' | 'Ignore';
  nodeTaintsPolicy?: 'Honor' | 'Ignore';
  matchLabelKeys?: string[];
};
export type HostAlias = {
  ip: string;
  hostnames?: string[];
};
export type PodSecurityContext = {
  seLinuxOptions?: SELinuxOptions;
  windowsOptions?: WindowsSecurityContextOptions;
  runAsUser?: number;
  runAsGroup?: number;
  runAsNonRoot?: boolean;
  supplementalGroups?: number[];
  supplementalGroupsPolicy?: 'Merge' | 'Strict';
  fsGroup?: number;
  sysctls?: Sysctl[];
  fsGroupChangePolicy?: 'Always' | 'OnRootMismatch';
  seccompProfile?: SeccompProfile;
  appArmorProfile?: AppArmorProfile;
  seLinuxChangePolicy?: string;
};
export type SeccompProfile = {
  type: 'Localhost' | 'RuntimeDefault' | 'Unconfined';
  localhostProfile?: string;
};
export type AppArmorProfile = {
  type: 'Localhost' | 'RuntimeDefault' | 'Unconfined';
  localhostProfile?: string;
};
export type PodDNSConfig = {
  nameservers?: string[];
  searches?: string[];
  options?: PodDNSConfigOption[];
};
export type PodDNSConfigOption = {
  name?: string;
  value?: string;
};
export type PodIP = {
  ip: string;
};
export type HostIP = {
  ip: string;
};
export type EphemeralContainerCommon = {
  name: string;
  image?: string;
  command?: string[];
  args?: string[];
  workingDir?: string;
  ports?: ContainerPort[];
  envFrom?: EnvFromSource[];
  env?: EnvVar[];
  resources?: ResourceRequirements;
  resizePolicy?: ContainerResizePolicy[];
  restartPolicy?: string;
  volumeMounts?: VolumeMount[];
  volumeDevices?: VolumeDevice[];
  livenessProbe?: Probe;
  readinessProbe?: Probe;
  startupProbe?: Probe;
  lifecycle?: Lifecycle;
  terminationMessagePath?: string;
  terminationMessagePolicy?: 'FallbackToLogsOnError' | 'File';
  imagePullPolicy?: 'Always' | 'IfNotPresent' | 'Never';
  securityContext?: SecurityContext;
  stdin?: boolean;
  stdinOnce?: boolean;
  tty?: boolean;
};
export type EphemeralContainer = {
  name: string;
  image?: string;
  command?: string[];
  args?: string[];
  workingDir?: string;
  ports?: ContainerPort[];
  envFrom?: EnvFromSource[];
  env?: EnvVar[];
  resources?: ResourceRequirements;
  resizePolicy?: ContainerResizePolicy[];
  restartPolicy?: string;
  volumeMounts?: VolumeMount[];
  volumeDevices?: VolumeDevice[];
  livenessProbe?: Probe;
  readinessProbe?: Probe;
  startupProbe?: Probe;
  lifecycle?: Lifecycle;
  terminationMessagePath?: string;
  terminationMessagePolicy?: 'FallbackToLogsOnError' | 'File';
  imagePullPolicy?: 'Always' | 'IfNotPresent' | 'Never';
  securityContext?: SecurityContext;
  stdin?: boolean;
  stdinOnce?: boolean;
  tty?: boolean;
  targetContainerName?: string;
};
export type PodStatus = {
  phase?: 'Failed' | 'Pending' | 'Running' | 'Succeeded' | 'Unknown';
  conditions?: PodCondition[];
  message?: string;
  reason?: string;
  nominatedNodeName?: string;
  hostIP?: string;
  hostIPs?: HostIP[];
  podIP?: string;
  podIPs?: PodIP[];
  startTime?: Time;
  initContainerStatuses?: ContainerStatus[];
  containerStatuses?: ContainerStatus[];
  qosClass?: 'BestEffort' | 'Burstable' | 'Guaranteed';
  ephemeralContainerStatuses?: ContainerStatus[];
  resize?: string;
  resourceClaimStatuses?: PodResourceClaimStatus[];
};
export type PodStatusResult = {
  apiVersion: string;
  kind: 'PodStatusResult';
  metadata: ObjectMeta;
  status?: PodStatus;
};
export type Pod = {
  apiVersion: string;
  kind: 'Pod';
  metadata: ObjectMeta;
  spec?: PodSpec;
  status?: PodStatus;
};
export type PodList = {
  apiVersion: string;
  kind: 'PodList';
  metadata: ListMeta;
  items: Embedded<Pod>[];
};
export type PodTemplateSpec = {
  metadata?: ObjectMeta;
  spec?: PodSpec;
};
export type PodTemplate = {
  apiVersion: string;
  kind: 'PodTemplate';
  metadata: ObjectMeta;
  template?: PodTemplateSpec;
};
export type PodTemplateList = {
  apiVersion: string;
  kind: 'PodTemplateList';
  metadata: ListMeta;
  items: Embedded<PodTemplate>[];
};
export type ReplicationControllerSpec = {
  replicas?: number;
  minReadySeconds?: number;
  selector?: { [name: string]: string };
  template?: PodTemplateSpec;
};
export type ReplicationControllerStatus = {
  replicas: number;
  fullyLabeledReplicas?: number;
  readyReplicas?: number;
  availableReplicas?: number;
  observedGeneration?: number;
  conditions?: ReplicationControllerCondition[];
};
export type ReplicationControllerCondition = {
  type: string;
  status: string;
  lastTransitionTime?: Time | null;
  reason?: string;
  message?: string;
};
export type ReplicationController = {
  apiVersion: string;
  kind: 'ReplicationController';
  metadata: ObjectMeta;
  spec?: ReplicationControllerSpec;
  status?: ReplicationControllerStatus;
};
export type ReplicationControllerList = {
  apiVersion: string;
  kind: 'ReplicationControllerList';
  metadata: ListMeta;
  items: Embedded<ReplicationController>[];
};
export type SessionAffinityConfig = {
  clientIP?: ClientIPConfig;
};
export type ClientIPConfig = {
  timeoutSeconds?: number;
};
export type ServiceStatus = {
  loadBalancer?: LoadBalancerStatus;
  conditions?: Condition[];
};
export type LoadBalancerStatus = {
  ingress?: LoadBalancerIngress[];
};
export type LoadBalancerIngress = {
  ip?: string;
  hostname?: string;
  ipMode?: string;
  ports?: PortStatus[];
};
export type ServiceSpec = {
  ports?: ServicePort[];
  selector?: { [name: string]: string };
  clusterIP?: string;
  clusterIPs?: string[];
  type?: 'ClusterIP' | 'ExternalName' | 'LoadBalancer' | 'NodePort';
  externalIPs?: string[];
  sessionAffinity?: 'ClientIP' | 'None';
  loadBalancerIP?: string;
  loadBalancerSourceRanges?: string[];
  externalName?: string;
  externalTrafficPolicy?: 'Cluster' | 'Local';
  healthCheckNodePort?: number;
  publishNotReadyAddresses?: boolean;
  sessionAffinityConfig?: SessionAffinityConfig;
  ipFamilies?: ('' | 'IPv4' | 'IPv6')[];
  ipFamilyPolicy?: 'PreferDualStack' | 'RequireDualStack' | 'SingleStack';
  allocateLoadBalancerNodePorts?: boolean;
  loadBalancerClass?: string;
  internalTrafficPolicy?: 'Cluster' | 'Local';
  trafficDistribution?: string;
};
export type ServicePort = {
  name?: string;
  protocol?: 'SCTP' | 'TCP' | 'UDP';
  appProtocol?: string;
  port: number;
  targetPort?: IntOrString;
  nodePort?: number;
};
export type Service = {
  apiVersion: string;
  kind: 'Service';
  metadata: ObjectMeta;
  spec?: ServiceSpec;
  status?: ServiceStatus;
};
export type ServiceList = {
  apiVersion: string;
  kind: 'ServiceList';
  metadata: ListMeta;
  items: Embedded<Service>[];
};
export type ServiceAccount = {
  apiVersion: string;
  kind: 'ServiceAccount';
  metadata: ObjectMeta;
  secrets?: Embedded<ObjectReference>[];
  imagePullSecrets?: LocalObjectReference[];
  automountServiceAccountToken?: boolean;
};
export type ServiceAccountList = {
  apiVersion: string;
  kind: 'ServiceAccountList';
  metadata: ListMeta;
  items: Embedded<ServiceAccount>[];
};
export type Endpoints = {
  apiVersion: string;
  kind: 'Endpoints';
  metadata: ObjectMeta;
  subsets?: EndpointSubset[];
};
export type EndpointSubset = {
  addresses?: EndpointAddress[];
  notReadyAddresses?: EndpointAddress[];
  ports?: EndpointPort[];
};
export type EndpointAddress = {
  ip: string;
  hostname?: string;
  nodeName?: string;
  targetRef?: Embedded<ObjectReference>;
};
export type EndpointPort = {
  name?: string;
  port: number;
  protocol?: 'SCTP' | 'TCP' | 'UDP';
  appProtocol?: string;
};
export type EndpointsList = {
  apiVersion: string;
  kind: 'EndpointsList';
  metadata: ListMeta;
  items: Embedded<Endpoints>[];
};
export type NodeSpec = {
  podCIDR?: string;
  podCIDRs?: string[];
  providerID?: string;
  unschedulable?: boolean;
  taints?: Taint[];
  configSource?: NodeConfigSource;
  externalID?: string;
};
export type NodeConfigSource = {
  configMap?: ConfigMapNodeConfigSource;
};
export type ConfigMapNodeConfigSource = {
  namespace: string;
  name: string;
  uid?: string;
  resourceVersion?: string;
  kubeletConfigKey: string;
};
export type DaemonEndpoint = {
  Port: number;
};
export type NodeDaemonEndpoints = {
  kubeletEndpoint?: DaemonEndpoint;
};
export type NodeRuntimeHandlerFeatures = {
  recursiveReadOnlyMounts?: boolean;
  userNamespaces?: boolean;
};
export type NodeRuntimeHandler = {
  name?: string;
  features?: NodeRuntimeHandlerFeatures;
};
export type NodeFeatures = {
  supplementalGroupsPolicy?: boolean;
};
export type NodeSystemInfo = {
  machineID: string;
  systemUUID: string;
  bootID: string;
  kernelVersion: string;
  osImage: string;
  containerRuntimeVersion: string;
  kubeletVersion: string;
  kubeProxyVersion: string;
  operatingSystem: string;
  architecture: string;
};
export type NodeConfigStatus = {
  assigned?: NodeConfigSource;
  active?: NodeConfigSource;
  lastKnownGood?: NodeConfigSource;
  error?: string;
};
export type NodeStatus = {
  capacity?: { [name: string]: Quantity };
  allocatable?: { [name: string]: Quantity };
  phase?: 'Pending' | 'Running' | 'Terminated';
  conditions?: NodeCondition[];
  addresses?: NodeAddress[];
  daemonEndpoints?: NodeDaemonEndpoints;
  nodeInfo?: NodeSystemInfo;
  images?: ContainerImage[];
  volumesInUse?: string[];
  volumesAttached?: AttachedVolume[];
  config?: NodeConfigStatus;
  runtimeHandlers?: NodeRuntimeHandler[];
  features?: NodeFeatures;
};
export type AttachedVolume = {
  name: string;
  devicePath: string;
};
export type AvoidPods = {
  preferAvoidPods?: PreferAvoidPodsEntry[];
};
export type PreferAvoidPodsEntry = {
  podSignature: PodSignature;
  evictionTime?: Time | null;
  reason?: string;
  message?: string;
};
export type PodSignature = {
  podController?: OwnerReference;
};
export type ContainerImage = {
  names?: string[] | null;
  sizeBytes?: number;
};
export type NodeCondition = {
  type: string;
  status: string;
  lastHeartbeatTime?: Time | null;
  lastTransitionTime?: Time | null;
  reason?: string;
  message?: string;
};
export type NodeAddress = {
  type: string;
  address: string;
};
export type Node = {
  apiVersion: string;
  kind: 'Node';
  metadata: ObjectMeta;
  spec?: NodeSpec;
  status?: NodeStatus;
};
export type NodeList = {
  apiVersion: string;
  kind: 'NodeList';
  metadata: ListMeta;
  items: Embedded<Node>[];
};
export type NamespaceSpec = {
  finalizers?: string[];
};
export type NamespaceStatus = {
  phase?: 'Active' | 'Terminating';
  conditions?: NamespaceCondition[];
};
export type NamespaceCondition = {
  type: string;
  status: string;
  lastTransitionTime?: Time | null;
  reason?: string;
  message?: string;
};
export type Namespace = {
  apiVersion: string;
  kind: 'Namespace';
  metadata: ObjectMeta;
  spec?: NamespaceSpec;
  status?: NamespaceStatus;
};
export type NamespaceList = {
  apiVersion: string;
  kind: 'NamespaceList';
  metadata: ListMeta;
  items: Embedded<Namespace>[];
};
export type Binding = {
  apiVersion: string;
  kind: 'Binding';
  metadata: ObjectMeta;
  target: Embedded<ObjectReference>;
};
export type Preconditions = {
  uid?: string;
};
export type PodLogOptions = {
  apiVersion: string;
  kind: 'PodLogOptions';
  container?: string;
  follow?: boolean;
  previous?: boolean;
  sinceSeconds?: number;
  sinceTime?: Time;
  timestamps?: boolean;
  tailLines?: number;
  limitBytes?: number;
  insecureSkipTLSVerifyBackend?: boolean;
  stream?: string;
};
export type PodAttachOptions = {
  apiVersion: string;
  kind: 'PodAttachOptions';
  stdin?: boolean;
  stdout?: boolean;
  stderr?: boolean;
  tty?: boolean;
  container?: string;
};
export type PodExecOptions = {
  apiVersion: string;
  kind: 'PodExecOptions';
  stdin?: boolean;
  stdout?: boolean;
  stderr?: boolean;
  tty?: boolean;
  container?: string;
  command: string[];
};
export type PodPortForwardOptions = {
  apiVersion: string;
  kind: 'PodPortForwardOptions';
  ports?: number[];
};
export type PodProxyOptions = {
  apiVersion: string;
  kind: 'PodProxyOptions';
  path?: string;
};
export type NodeProxyOptions = {
  apiVersion: string;
  kind: 'NodeProxyOptions';
  path?: string;
};
export type ServiceProxyOptions = {
  apiVersion: string;
  kind: 'ServiceProxyOptions';
  path?: string;
};
export type ObjectReference = {
  kind: 'ObjectReference';
  namespace?: string;
  name?: string;
  uid?: string;
  apiVersion: string;
  resourceVersion?: string;
  fieldPath?: string;
};
export type LocalObjectReference = {
  name?: string;
};
export type TypedLocalObjectReference = {
  apiGroup?: string;
  kind: string;
  name: string;
};
export type SerializedReference = {
  apiVersion: string;
  kind: 'SerializedReference';
  reference?: Embedded<ObjectReference>;
};
export type EventSource = {
  component?: string;
  host?: string;
};
export type Event = {
  apiVersion: string;
  kind: 'Event';
  metadata: ObjectMeta;
  involvedObject: Embedded<ObjectReference>;
  reason?: string;
  message?: string;
  source?: EventSource;
  firstTimestamp?: Time | null;
  lastTimestamp?: Time | null;
  count?: number;
  type?: string;
  eventTime?: MicroTime | null;
  series?: EventSeries;
  action?: string;
  related?: Embedded<ObjectReference>;
  reportingComponent?: string;
  reportingInstance?: string;
};
export type EventSeries = {
  count?: number;
  lastObservedTime?: MicroTime | null;
};
export type EventList = {
  apiVersion: string;
  kind: 'EventList';
  metadata: ListMeta;
  items: Embedded<Event>[];
};
export type LimitRangeItem = {
  type: string;
  max?: { [name: string]: Quantity };
  min?: { [name: string]: Quantity };
  default?: { [name: string]: Quantity };
  defaultRequest?: { [name: string]: Quantity };
  maxLimitRequestRatio?: { [name: string]: Quantity };
};
export type LimitRangeSpec = {
  limits: LimitRangeItem[];
};
export type LimitRange = {
  apiVersion: string;
  kind: 'LimitRange';
  metadata: ObjectMeta;
  spec?: LimitRangeSpec;
};
export type LimitRangeList = {
  apiVersion: string;
  kind: 'LimitRangeList';
  metadata: ListMeta;
  items: Embedded<LimitRange>[];
};
export type ResourceQuotaSpec = {
  hard?: { [name: string]: Quantity };
  scopes?: ('BestEffort' | 'CrossNamespacePodAffinity' | 'NotBestEffort' | 'NotTerminating' | 'PriorityClass' | 'Terminating')[];
  scopeSelector?: ScopeSelector;
};
export type ScopeSelector = {
  matchExpressions?: ScopedResourceSelectorRequirement[];
};
export type ScopedResourceSelectorRequirement = {
  scopeName: 'BestEffort' | 'CrossNamespacePodAffinity' | 'NotBestEffort' | 'NotTerminating' | 'PriorityClass' | 'Terminating';
  operator: 'DoesNotExist' | 'Exists' | 'In' | 'NotIn';
  values?: string[];
};
export type ResourceQuotaStatus = {
  hard?: { [name: string]: Quantity };
  used?: { [name: string]: Quantity };
};
export type ResourceQuota = {
  apiVersion: string;
  kind: 'ResourceQuota';
  metadata: ObjectMeta;
  spec?: ResourceQuotaSpec;
  status?: ResourceQuotaStatus;
};
export type ResourceQuotaList = {
  apiVersion: string;
  kind: 'ResourceQuotaList';
  metadata: ListMeta;
  items: Embedded<ResourceQuota>[];
};
export type Secret = {
  apiVersion: string;
  kind: 'Secret';
  metadata: ObjectMeta;
  immutable?: boolean;
  data?: { [name: string]: string };
  stringData?: { [name: string]: string };
  type?: string;
};
export type SecretList = {
  apiVersion: string;
  kind: 'SecretList';
  metadata: ListMeta;
  items: Embedded<Secret>[];
};
export type ConfigMap = {
  apiVersion: string;
  kind: 'ConfigMap';
  metadata: ObjectMeta;
  immutable?: boolean;
  data?: { [name: string]: string };
  binaryData?: { [name: string]: string };
};
export type ConfigMapList = {
  apiVersion: string;
  kind: 'ConfigMapList';
  metadata: ListMeta;
  items: Embedded<ConfigMap>[];
};
export type ComponentCondition = {
  type: string;
  status: string;
  message?: string;
  error?: string;
};
export type ComponentStatus = {
  apiVersion: string;
  kind: 'ComponentStatus';
  metadata: ObjectMeta;
  conditions?: ComponentCondition[];
};
export type ComponentStatusList = {
  apiVersion: string;
  kind: 'ComponentStatusList';
  metadata: ListMeta;
  items: Embedded<ComponentStatus>[];
};
export type DownwardAPIVolumeSource = {
  items?: DownwardAPIVolumeFile[];
  defaultMode?: number;
};
export type DownwardAPIVolumeFile = {
  path: string;
  fieldRef?: ObjectFieldSelector;
  resourceFieldRef?: ResourceFieldSelector;
  mode?: number;
};
export type DownwardAPIProjection = {
  items?: DownwardAPIVolumeFile[];
};
export type SecurityContext = {
  capabilities?: Capabilities;
  privileged?: boolean;
  seLinuxOptions?: SELinuxOptions;
  windowsOptions?: WindowsSecurityContextOptions;
  runAsUser?: number;
  runAsGroup?: number;
  runAsNonRoot?: boolean;
  readOnlyRootFilesystem?: boolean;
  allowPrivilegeEscalation?: boolean;
  procMount?: 'Default' | 'Unmasked';
  seccompProfile?: SeccompProfile;
  appArmorProfile?: AppArmorProfile;
};
export type SELinuxOptions = {
  user?: string;
  role?: string;
  type?: string;
  level?: string;
};
export type WindowsSecurityContextOptions = {
  gmsaCredentialSpecName?: string;
  gmsaCredentialSpec?: string;
  runAsUserName?: string;
  hostProcess?: boolean;
};
export type RangeAllocation = {
  apiVersion: string;
  kind: 'RangeAllocation';
  metadata: ObjectMeta;
  range: string;
  data: string;
};
export type Sysctl = {
  name: string;
  value: string;
};
export type PortStatus = {
  port: number;
  protocol: 'SCTP' | 'TCP' | 'UDP';
  error?: string;
};
export type ImageVolumeSource = {
  reference?: string;
  pullPolicy?: 'Always' | 'IfNotPresent' | 'Never';
};
export type List = {
  apiVersion: string;
  kind: 'List';
  metadata: ListMeta;
  items: Json[];
};

import { currentMinor } from '../rules/life.ts';

/** The maturity of a feature. */
export type GateStage = 'ALPHA' | 'BETA' | 'GA' | 'DEPRECATED';

/** The state of a gate from one release until the next entry. */
export interface GateEntry {
  /** Minor version of the first release; 0 for gates that every release has. */
  readonly since: number;
  readonly stage: GateStage;
  readonly default: boolean;
  /** Whether the gate cannot be set to another value than its default. */
  readonly locked?: true;
}

const entryMaker =
  (entry: Omit<GateEntry, 'since'>) =>
  (since: number): GateEntry => ({ since, ...entry });

const alpha = entryMaker({ stage: 'ALPHA', default: false });
const alphaOn = entryMaker({ stage: 'ALPHA', default: true });
const beta = entryMaker({ stage: 'BETA', default: true });
const betaOff = entryMaker({ stage: 'BETA', default: false });
const stable = entryMaker({ stage: 'GA', default: true, locked: true });
/** Stable, but can still be disabled. */
const stableOpen = entryMaker({ stage: 'GA', default: true });
const deprecated = entryMaker({ stage: 'DEPRECATED', default: false });
const deprecatedOn = entryMaker({ stage: 'DEPRECATED', default: true });
const deprecatedLocked = entryMaker({ stage: 'DEPRECATED', default: false, locked: true });

/**
 * The gates of an API server of release 1.32 and their states by release (VER-5). `[alpha(8),
 * beta(9), stable(29)]` is off and settable since 1.8, on since 1.9, and locked since 1.29;
 * releases before 1.8 do not have the gate. The table includes gates of other components, because
 * all components often receive the same list.
 */
export const gateTable = {
  APIListChunking: [alpha(8), beta(9), stable(29)],
  APIResponseCompression: [alpha(8), beta(16)],
  APIServerIdentity: [alpha(20), beta(26)],
  APIServerTracing: [alpha(22), beta(27)],
  APIServingWithRoutine: [alpha(30)],
  AdmissionWebhookMatchConditions: [alpha(27), beta(28), stable(30)],
  AggregatedDiscoveryEndpoint: [alpha(26), beta(27), stable(30)],
  AllAlpha: [alpha(0)],
  AllBeta: [betaOff(0)],
  AllowDNSOnlyNodeCSR: [stableOpen(0), deprecated(31)],
  AllowInsecureKubeletCertificateSigningRequests: [stableOpen(0), deprecated(31)],
  AllowOverwriteTerminationGracePeriodSeconds: [stableOpen(0), deprecated(32)],
  AllowServiceLBStatusOnNonLB: [stableOpen(0), deprecated(29), deprecatedLocked(32)],
  AllowUnsafeMalformedObjectDeletion: [alpha(32)],
  AnonymousAuthConfigurableEndpoints: [alpha(31), beta(32)],
  AnyVolumeDataSource: [alpha(18), beta(24)],
  AppArmor: [beta(4), stable(31)],
  AppArmorFields: [beta(30), stable(31)],
  AuthorizeNodeWithSelectors: [alpha(31), beta(32)],
  AuthorizeWithSelectors: [alpha(31), beta(32)],
  BtreeWatchCache: [beta(32)],
  CBORServingAndStorage: [alpha(32)],
  CPUManager: [alpha(8), beta(10), stable(26)],
  CPUManagerPolicyAlphaOptions: [alpha(23)],
  CPUManagerPolicyBetaOptions: [beta(23)],
  CPUManagerPolicyOptions: [alpha(22), beta(23)],
  CRDValidationRatcheting: [alpha(28), beta(30)],
  CSIMigrationPortworx: [alpha(23), betaOff(25), beta(31)],
  CSIVolumeHealth: [alpha(21)],
  ClientsAllowCBOR: [alpha(0)],
  ClientsPreferCBOR: [alpha(0)],
  CloudControllerManagerWebhook: [alpha(27)],
  ClusterTrustBundle: [alpha(27)],
  ClusterTrustBundleProjection: [alpha(29)],
  ComponentFlagz: [alpha(32)],
  ComponentSLIs: [alpha(26), beta(27), stable(32)],
  ComponentStatusz: [alpha(32)],
  ConcurrentWatchObjectDecode: [betaOff(31)],
  ConsistentListFromCache: [alpha(28), beta(31)],
  ContainerCheckpoint: [alpha(25), beta(30)],
  ContextualLogging: [beta(0)],
  CoordinatedLeaderElection: [alpha(31)],
  CronJobsScheduledAnnotation: [beta(28), stable(32)],
  CrossNamespaceVolumeDataSource: [alpha(26)],
  CustomCPUCFSQuotaPeriod: [alpha(12)],
  CustomResourceFieldSelectors: [alpha(30), beta(31), stable(32)],
  DRAAdminAccess: [alpha(32)],
  DRAResourceClaimDeviceStatus: [alpha(32)],
  DevicePluginCDIDevices: [alpha(28), beta(29), stable(31)],
  DisableAllocatorDualWrite: [alpha(31)],
  DisableCloudProviders: [alpha(22), beta(29), stable(31)],
  DisableKubeletCloudCredentialProviders: [alpha(23), beta(29), stable(31)],
  DisableNodeKubeProxyVersion: [alpha(29), deprecated(31)],
  DynamicResourceAllocation: [alpha(26), betaOff(32)],
  EfficientWatchResumption: [alpha(20), beta(21), stable(24)],
  ElasticIndexedJob: [beta(27), stable(31)],
  EventedPLEG: [alpha(26)],
  ExecProbeTimeout: [stableOpen(20)],
  ExternalServiceAccountTokenSigner: [alpha(32)],
  GracefulNodeShutdown: [alpha(20), beta(21)],
  GracefulNodeShutdownBasedOnPodPriority: [alpha(23), beta(24)],
  HPAScaleToZero: [alpha(16)],
  HonorPVReclaimPolicy: [alpha(23), beta(31)],
  ImageMaximumGCAge: [alpha(29), beta(30)],
  ImageVolume: [alpha(31)],
  InPlacePodVerticalScaling: [alpha(27)],
  InPlacePodVerticalScalingAllocatedStatus: [alpha(32)],
  InPlacePodVerticalScalingExclusiveCPUs: [alpha(32)],
  InTreePluginPortworxUnregister: [alpha(23)],
  InformerResourceVersion: [alpha(0)],
  JobBackoffLimitPerIndex: [alpha(28), beta(29)],
  JobManagedBy: [alpha(30), beta(32)],
  JobPodFailurePolicy: [alpha(25), beta(26), stable(31)],
  JobPodReplacementPolicy: [alpha(28), beta(29)],
  JobSuccessPolicy: [alpha(30), beta(31)],
  KMSv1: [stableOpen(0), deprecatedOn(28), deprecated(29)],
  KubeProxyDrainingTerminatingNodes: [alpha(28), beta(30), stable(31)],
  KubeletCgroupDriverFromCRI: [alpha(28), beta(31)],
  KubeletCrashLoopBackOffMax: [alpha(32)],
  KubeletFineGrainedAuthz: [alpha(32)],
  KubeletInUserNamespace: [alpha(22)],
  KubeletPodResourcesDynamicResources: [alpha(27)],
  KubeletPodResourcesGet: [alpha(27)],
  KubeletRegistrationGetOnExistsOnly: [stableOpen(0), deprecated(32)],
  KubeletSeparateDiskGC: [alpha(29), beta(31)],
  KubeletTracing: [alpha(25), beta(27)],
  LoadBalancerIPMode: [alpha(29), beta(30), stable(32)],
  LocalStorageCapacityIsolationFSQuotaMonitoring: [alpha(15), betaOff(31)],
  LogarithmicScaleDown: [alpha(21), beta(22), stable(31)],
  LoggingAlphaOptions: [alpha(0)],
  LoggingBetaOptions: [beta(0)],
  MatchLabelKeysInPodAffinity: [alpha(29), beta(31)],
  MatchLabelKeysInPodTopologySpread: [alpha(25), beta(27)],
  MaxUnavailableStatefulSet: [alpha(24)],
  MemoryManager: [alpha(21), beta(22), stable(32)],
  MemoryQoS: [alpha(22)],
  MultiCIDRServiceAllocator: [alpha(27), betaOff(31)],
  MutatingAdmissionPolicy: [alpha(32)],
  NFTablesProxyMode: [alpha(29), beta(31)],
  NodeInclusionPolicyInPodTopologySpread: [alpha(25), beta(26)],
  NodeLogQuery: [alpha(27), betaOff(30)],
  NodeSwap: [alpha(22), betaOff(28), beta(30)],
  OpenAPIEnums: [alpha(23), beta(24)],
  OrderedNamespaceDeletion: [betaOff(30)],
  PDBUnhealthyPodEvictionPolicy: [alpha(26), beta(27), stable(31)],
  PersistentVolumeLastPhaseTransitionTime: [alpha(28), beta(29), stable(31)],
  PodAndContainerStatsFromCRI: [alpha(23)],
  PodDeletionCost: [alpha(21), beta(22)],
  PodDisruptionConditions: [alpha(25), beta(26), stable(31)],
  PodIndexLabel: [beta(28), stable(32)],
  PodLevelResources: [alpha(32)],
  PodLifecycleSleepAction: [alpha(29), beta(30)],
  PodLifecycleSleepActionAllowZero: [alpha(32)],
  PodLogsQuerySplitStreams: [alpha(32)],
  PodReadyToStartContainersCondition: [alpha(28), beta(29)],
  PodSchedulingReadiness: [alpha(26), beta(27), stable(30)],
  PortForwardWebsockets: [alpha(30), beta(31)],
  ProcMountType: [alpha(12), betaOff(31)],
  QOSReserved: [alpha(11)],
  RecoverVolumeExpansionFailure: [alpha(23), beta(32)],
  RecursiveReadOnlyMounts: [alpha(30), beta(31)],
  RelaxedDNSSearchValidation: [alpha(32)],
  RelaxedEnvironmentVariableValidation: [alpha(30), beta(32)],
  ReloadKubeletServerCertificateFile: [beta(31)],
  RemainingItemCount: [alpha(15), beta(16), stable(29)],
  RemoteRequestHeaderUID: [alpha(32)],
  ResilientWatchCacheInitialization: [beta(31)],
  ResourceHealthStatus: [alpha(31)],
  RetryGenerateName: [alpha(30), beta(31), stable(32)],
  RotateKubeletServerCertificate: [alpha(7), beta(12)],
  RuntimeClassInImageCriApi: [alpha(29)],
  SELinuxChangePolicy: [alpha(32)],
  SELinuxMount: [alpha(30)],
  SELinuxMountReadWriteOncePod: [alpha(25), betaOff(27), beta(28)],
  SchedulerAsyncPreemption: [alpha(32)],
  SchedulerQueueingHints: [betaOff(28), beta(32)],
  SeparateCacheWatchRPC: [beta(28)],
  SeparateTaintEvictionController: [beta(29)],
  ServiceAccountNodeAudienceRestriction: [betaOff(32)],
  ServiceAccountTokenJTI: [alpha(29), beta(30), stable(32)],
  ServiceAccountTokenNodeBinding: [alpha(29), beta(31)],
  ServiceAccountTokenNodeBindingValidation: [alpha(29), beta(30), stable(32)],
  ServiceAccountTokenPodNodeInfo: [alpha(29), beta(30), stable(32)],
  ServiceTrafficDistribution: [alpha(30), beta(31)],
  SidecarContainers: [alpha(28), beta(29)],
  SizeMemoryBackedVolumes: [alpha(20), beta(22), stable(32)],
  StatefulSetAutoDeletePVC: [alpha(23), beta(27), stable(32)],
  StatefulSetStartOrdinal: [alpha(26), beta(27), stable(31)],
  StorageNamespaceIndex: [beta(30)],
  StorageVersionAPI: [alpha(20)],
  StorageVersionHash: [alpha(14), beta(15)],
  StorageVersionMigrator: [alpha(30)],
  StreamingCollectionEncodingToJSON: [betaOff(32)],
  StreamingCollectionEncodingToProtobuf: [betaOff(32)],
  StrictCostEnforcementForVAP: [betaOff(30), stable(32)],
  StrictCostEnforcementForWebhooks: [betaOff(30), stable(32)],
  StructuredAuthenticationConfiguration: [alpha(29), beta(30)],
  StructuredAuthorizationConfiguration: [alpha(29), beta(30), stable(32)],
  SupplementalGroupsPolicy: [alpha(31)],
  SystemdWatchdog: [beta(32)],
  TopologyAwareHints: [alpha(21), betaOff(23), beta(24)],
  TopologyManagerPolicyAlphaOptions: [alpha(26)],
  TopologyManagerPolicyBetaOptions: [betaOff(26), beta(28)],
  TopologyManagerPolicyOptions: [alpha(26), beta(28), stableOpen(32)],
  TranslateStreamCloseWebsocketRequests: [alpha(29), beta(30)],
  UnauthenticatedHTTP2DOSMitigation: [betaOff(25), beta(29)],
  UnknownVersionInteroperabilityProxy: [alpha(28)],
  UserNamespacesPodSecurityStandards: [alpha(29)],
  UserNamespacesSupport: [alpha(25), betaOff(30)],
  VolumeAttributesClass: [alpha(29), betaOff(31)],
  VolumeCapacityPriority: [alpha(21)],
  WatchBookmark: [alpha(15), beta(16), stable(17)],
  WatchCacheInitializationPostStartHook: [betaOff(31)],
  WatchFromStorageWithoutResourceVersion: [betaOff(27)],
  WatchList: [alpha(27), beta(32)],
  WatchListClient: [betaOff(0)],
  WinDSR: [alpha(14)],
  WinOverlay: [alpha(14), beta(20)],
  WindowsCPUAndMemoryAffinity: [alpha(32)],
  WindowsGracefulNodeShutdown: [alpha(32)],
  WindowsHostNetwork: [alphaOn(26)],
} as const satisfies Readonly<Record<string, readonly [GateEntry, ...GateEntry[]]>>;

/** The name of a feature gate. */
export type GateName = keyof typeof gateTable;

/** The enabled features. */
export interface Features {
  enabled(name: GateName): boolean;
}

/** The features of the current release with all gates at their defaults. */
export const defaultFeatures: Features = {
  enabled(name) {
    const history: readonly GateEntry[] = gateTable[name];
    return history.findLast(({ since }) => since <= currentMinor)?.default ?? false;
  },
};

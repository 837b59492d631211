import type { GateName } from '@wheelhouse/kinds';

/** Why a gate changes nothing here: what `--help` says of it. */
export type Idle = 'of other components' | 'always on' | 'always off';

const names = (text: string) => text.split(/\s+/).filter((name) => name !== '') as GateName[];

/** Gates that kubelets, schedulers, proxies, controllers, and clients act by. */
const ofOthers = names(`
  AllowDNSOnlyNodeCSR CPUManager CPUManagerPolicyAlphaOptions CPUManagerPolicyBetaOptions
  CPUManagerPolicyOptions CSIMigrationPortworx CSIVolumeHealth ClientsAllowCBOR ClientsPreferCBOR
  CloudControllerManagerWebhook ContainerCheckpoint CronJobsScheduledAnnotation
  CustomCPUCFSQuotaPeriod DevicePluginCDIDevices DisableCloudProviders
  DisableKubeletCloudCredentialProviders DisableNodeKubeProxyVersion EventedPLEG ExecProbeTimeout
  GracefulNodeShutdown GracefulNodeShutdownBasedOnPodPriority HonorPVReclaimPolicy
  ImageMaximumGCAge InPlacePodVerticalScalingExclusiveCPUs InTreePluginPortworxUnregister
  InformerResourceVersion KubeProxyDrainingTerminatingNodes KubeletCgroupDriverFromCRI
  KubeletCrashLoopBackOffMax KubeletInUserNamespace KubeletPodResourcesDynamicResources
  KubeletPodResourcesGet KubeletRegistrationGetOnExistsOnly KubeletSeparateDiskGC KubeletTracing
  LocalStorageCapacityIsolationFSQuotaMonitoring LogarithmicScaleDown MemoryManager MemoryQoS
  NFTablesProxyMode NodeLogQuery NodeSwap PodAndContainerStatsFromCRI PodIndexLabel
  PodReadyToStartContainersCondition QOSReserved ReloadKubeletServerCertificateFile
  RotateKubeletServerCertificate RuntimeClassInImageCriApi SchedulerAsyncPreemption
  SchedulerQueueingHints SeparateTaintEvictionController SizeMemoryBackedVolumes SystemdWatchdog
  TopologyManagerPolicyAlphaOptions TopologyManagerPolicyBetaOptions TopologyManagerPolicyOptions
  VolumeCapacityPriority WatchListClient WinDSR WinOverlay WindowsCPUAndMemoryAffinity
  WindowsGracefulNodeShutdown WindowsHostNetwork
`);

/** What this server does whatever the gate says. */
const alwaysOn = names(`
  APIListChunking AdmissionWebhookMatchConditions AggregatedDiscoveryEndpoint
  AllowOverwriteTerminationGracePeriodSeconds AppArmor AppArmorFields BtreeWatchCache
  ConsistentListFromCache EfficientWatchResumption ElasticIndexedJob JobPodFailurePolicy
  PDBUnhealthyPodEvictionPolicy PersistentVolumeLastPhaseTransitionTime PodDisruptionConditions
  PodSchedulingReadiness PortForwardWebsockets RemainingItemCount ResilientWatchCacheInitialization
  RetryGenerateName SeparateCacheWatchRPC StorageNamespaceIndex
  TranslateStreamCloseWebsocketRequests WatchBookmark
`);

/** What this server never does. */
const alwaysOff = names(`
  APIServerTracing APIServingWithRoutine ConcurrentWatchObjectDecode ContextualLogging
  InPlacePodVerticalScalingAllocatedStatus LoggingAlphaOptions LoggingBetaOptions
  PodLogsQuerySplitStreams ResourceHealthStatus UnauthenticatedHTTP2DOSMitigation
  UnknownVersionInteroperabilityProxy UserNamespacesPodSecurityStandards
  WatchCacheInitializationPostStartHook WatchFromStorageWithoutResourceVersion
`);

const idle: ReadonlyMap<string, Idle> = new Map<string, Idle>([
  ...ofOthers.map((name) => [name, 'of other components'] as const),
  ...alwaysOn.map((name) => [name, 'always on'] as const),
  ...alwaysOff.map((name) => [name, 'always off'] as const),
]);

/** Why a gate changes nothing in this server; undefined for one that does. */
export const idleReason = (name: string): Idle | undefined => idle.get(name);

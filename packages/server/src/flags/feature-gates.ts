import {
  currentMinor,
  type Features,
  type GateEntry,
  type GateName,
  type GateStage,
  gateTable,
  releaseName,
} from '@wheelhouse/kinds';
import { booleanFlag, cut, errorText } from '@wheelhouse/machinery';
import { FlagError } from './flags.ts';

/** Why a gate has no effect here, as `--help` reports it. */
type Idle = 'of other components' | 'always on' | 'always off';

const names = (text: string) => text.split(/\s+/).filter((name) => name !== '') as GateName[];

/** Gates of kubelets, schedulers, proxies, controllers, and clients. */
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

/** Behavior that this server has whether the gate is on or off. */
const alwaysOn = names(`
  APIListChunking AdmissionWebhookMatchConditions AggregatedDiscoveryEndpoint
  AllowOverwriteTerminationGracePeriodSeconds AppArmor AppArmorFields BtreeWatchCache
  ComponentSLIs
  EfficientWatchResumption ElasticIndexedJob JobPodFailurePolicy
  PDBUnhealthyPodEvictionPolicy PersistentVolumeLastPhaseTransitionTime PodDisruptionConditions
  PodSchedulingReadiness RemainingItemCount ResilientWatchCacheInitialization
  SeparateCacheWatchRPC StorageNamespaceIndex
  StreamingCollectionEncodingToJSON StreamingCollectionEncodingToProtobuf
  WatchBookmark
`);

/** Behavior this server does not have. */
const alwaysOff = names(`
  APIServingWithRoutine ConcurrentWatchObjectDecode ContextualLogging
  LoggingBetaOptions PortForwardWebsockets
  TranslateStreamCloseWebsocketRequests
  UnknownVersionInteroperabilityProxy WatchCacheInitializationPostStartHook
  WatchFromStorageWithoutResourceVersion
`);

const idle: ReadonlyMap<string, Idle> = new Map<string, Idle>([
  ...ofOthers.map((name) => [name, 'of other components'] as const),
  ...alwaysOn.map((name) => [name, 'always on'] as const),
  ...alwaysOff.map((name) => [name, 'always off'] as const),
]);

/** Why a gate has no effect in this server; undefined for one that has. */
export const idleReason = (name: string): Idle | undefined => idle.get(name);

/** The state of all feature gates. */
export interface FeatureGates extends Features {
  /** Every gate in order of names, for metrics. */
  all(): readonly { readonly name: string; readonly stage: GateStage; readonly on: boolean }[];
}

const wholeStages = new Set(['AllAlpha', 'AllBeta']);

/** The gates without any settings. */
export const defaultGates: FeatureGates = gatesOf(entriesAt(currentMinor), new Map());

/** The state of each gate in a release, sorted by name, without gates that were added later. */
function entriesAt(minor: number): ReadonlyMap<string, GateEntry> {
  return new Map(
    Object.entries(gateTable).flatMap(([name, history]: [string, readonly GateEntry[]]) => {
      const entry = history.findLast(({ since }) => since <= minor);
      return entry === undefined ? [] : [[name, entry] as const];
    }),
  );
}

/**
 * Parses `Gate=true` and `Gate=false` as `--feature-gates` spells them; the last setting of a gate
 * wins, and `kube:Gate=true` names this component explicitly. Stages, defaults, and locks are those
 * of the emulated release (VER-2). Returns warnings for deprecated gates. Throws FlagError in
 * kube-apiserver's wording for a gate that is unknown, removed, or newer than that release, for a
 * value that is not a boolean, and for a locked gate set to anything but its default.
 */
export function readFeatureGates(
  pairs: readonly string[],
  { emulatedMinor = currentMinor }: { readonly emulatedMinor?: number | undefined } = {},
): { readonly gates: FeatureGates; readonly warnings: readonly string[] } {
  const entries = entriesAt(emulatedMinor);
  const set = new Map<string, boolean>();
  const settings = pairs
    .flatMap((text) => text.split(','))
    .map((pair) => pair.trim())
    .filter((pair) => pair !== '');
  const isNamed = (pair: string) => pair.startsWith(`${component}:`);
  if (settings.some(isNamed) && settings.some((pair) => !pair.includes(':'))) {
    throw new FlagError(
      'set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use',
    );
  }
  for (const pair of settings) {
    const { name, value } = settingOf(pair);
    const entry = entries.get(name);
    if (entry === undefined) {
      const release = releaseName(emulatedMinor);
      const reason = `feature is PreAlpha at emulated version ${release}`;
      throw new FlagError(`cannot set feature gate ${name} to ${value}, ${reason}`);
    }
    if (entry.locked && value !== entry.default) {
      const reason = `feature is locked to ${entry.default}`;
      throw new FlagError(`cannot set feature gate ${name} to ${value}, ${reason}`);
    }
    set.set(name, value);
  }
  const warnings = [...set].flatMap(([name, value]) =>
    warningOf({ name, value, stage: entries.get(name)?.stage }),
  );
  const areDefault = set.size === 0 && emulatedMinor === currentMinor;
  return { gates: areDefault ? defaultGates : gatesOf(entries, set), warnings };
}

function settingOf(pair: string): { name: string; value: boolean } {
  const [key, value] = cut(pair, '=');
  const name = withoutComponent(key.trim());
  if (value === undefined) throw new FlagError(`missing bool value for ${name}`);
  if (!Object.hasOwn(gateTable, name)) throw new FlagError(`unrecognized feature gate: ${name}`);
  return { name, value: booleanOf(name, value.trim()) };
}

/** The component that a gate may name explicitly. */
const component = 'kube';

function withoutComponent(name: string): string {
  const [named, gate] = cut(name, ':');
  if (gate === undefined) return name;
  if (named !== component) throw new FlagError(`component not registered: ${named}`);
  return gate;
}

function booleanOf(name: string, text: string): boolean {
  try {
    return booleanFlag(text);
  } catch (error) {
    throw new FlagError(`invalid value of ${name}=${text}, err: ${errorText(error)}`);
  }
}

function warningOf(setting: {
  readonly name: string;
  readonly value: boolean;
  readonly stage: GateStage | undefined;
}): readonly string[] {
  const { name, value, stage } = setting;
  const end = 'It will be removed in a future release.';
  if (stage === 'DEPRECATED') return [`Setting deprecated feature gate ${name}=${value}. ${end}`];
  if (stage === 'GA') return [`Setting GA feature gate ${name}=${value}. ${end}`];
  const idle = idleReason(name);
  if (idle !== (value ? 'always off' : 'always on')) return [];
  return [`Setting feature gate ${name}=${value} has no effect: in this server it is ${idle}.`];
}

/** Applies `AllAlpha` and `AllBeta` to the gates of their stage that are not set individually. */
function gatesOf(
  entries: ReadonlyMap<string, GateEntry>,
  set: ReadonlyMap<string, boolean>,
): FeatureGates {
  const ofStage: Partial<Record<GateStage, boolean | undefined>> = {
    ALPHA: set.get('AllAlpha'),
    BETA: set.get('AllBeta'),
  };
  const all = [...entries].map(([name, { stage, default: initial }]) => ({
    name,
    stage,
    on: set.get(name) ?? (wholeStages.has(name) ? undefined : ofStage[stage]) ?? initial,
  }));
  const on = new Set(all.filter((gate) => gate.on).map(({ name }) => name));
  return { enabled: (name) => on.has(name), all: () => all };
}

/** One line for each gate that may still be set, as `--help` shows them (VER-7). */
export function describeGates(): readonly string[] {
  return [...entriesAt(currentMinor)]
    .filter(([, { stage }]) => stage !== 'GA')
    .map(([name, entry]) => {
      const idle = idleReason(name);
      const note = idle === undefined ? '' : `; no effect: ${idle}`;
      return `${name}=true|false (${entry.stage} - default=${entry.default}${note})`;
    });
}

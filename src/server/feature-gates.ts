import { FlagError, parseBoolean } from './flags.ts';

/** How far a feature has come; a GA gate that is locked says nothing any more. */
export type GateStage = 'ALPHA' | 'BETA' | 'GA' | 'DEPRECATED';

interface GateDefinition {
  readonly stage: GateStage;
  readonly default: boolean;
  /** Cannot be set to anything but its default. */
  readonly locked?: true;
  /** The server behaves differently by it; others are told in the help to have no effect here. */
  readonly acts?: true;
}

const alpha = { stage: 'ALPHA', default: false } as const;
const beta = { stage: 'BETA', default: true } as const;
const betaOff = { stage: 'BETA', default: false } as const;
const ga = { stage: 'GA', default: true, locked: true } as const;
const deprecated = { stage: 'DEPRECATED', default: false } as const;

/** The gates of release 1.32 that concern an API server, with its stages and defaults (VER-5). */
const gateTable = {
  APIListChunking: ga,
  APIResponseCompression: { ...beta, acts: true },
  APIServerIdentity: beta,
  APIServerTracing: beta,
  APIServingWithRoutine: alpha,
  AdmissionWebhookMatchConditions: ga,
  AggregatedDiscoveryEndpoint: ga,
  AllAlpha: { ...alpha, acts: true },
  AllBeta: { ...betaOff, acts: true },
  AllowInsecureKubeletCertificateSigningRequests: deprecated,
  AllowUnsafeMalformedObjectDeletion: { ...alpha, acts: true },
  AnonymousAuthConfigurableEndpoints: { ...beta, acts: true },
  AnyVolumeDataSource: beta,
  AuthorizeNodeWithSelectors: { ...beta, acts: true },
  AuthorizeWithSelectors: { ...beta, acts: true },
  BtreeWatchCache: beta,
  CBORServingAndStorage: { ...alpha, acts: true },
  CRDValidationRatcheting: beta,
  ClusterTrustBundle: alpha,
  ConcurrentWatchObjectDecode: betaOff,
  ConsistentListFromCache: beta,
  CoordinatedLeaderElection: alpha,
  CustomResourceFieldSelectors: ga,
  DynamicResourceAllocation: betaOff,
  EfficientWatchResumption: ga,
  ElasticIndexedJob: ga,
  JobManagedBy: beta,
  KMSv1: deprecated,
  MutatingAdmissionPolicy: { ...alpha, acts: true },
  OpenAPIEnums: beta,
  RemainingItemCount: ga,
  RemoteRequestHeaderUID: alpha,
  ResilientWatchCacheInitialization: beta,
  RetryGenerateName: ga,
  SeparateCacheWatchRPC: beta,
  StorageVersionAPI: alpha,
  StorageVersionHash: beta,
  StrictCostEnforcementForVAP: ga,
  StrictCostEnforcementForWebhooks: ga,
  StructuredAuthenticationConfiguration: { ...beta, acts: true },
  StructuredAuthorizationConfiguration: ga,
  UnauthenticatedHTTP2DOSMitigation: beta,
  WatchBookmark: ga,
  WatchCacheInitializationPostStartHook: betaOff,
  WatchFromStorageWithoutResourceVersion: betaOff,
  WatchList: beta,
} as const satisfies Readonly<Record<string, GateDefinition>>;

export type GateName = keyof typeof gateTable;

/** Which features are on. */
export interface FeatureGates {
  enabled(name: GateName): boolean;
  /** Every gate, in order of names, for metrics. */
  all(): readonly { readonly name: string; readonly stage: GateStage; readonly on: boolean }[];
}

const definitions: ReadonlyMap<string, GateDefinition> = new Map(Object.entries(gateTable));

const wholeStages = new Set(['AllAlpha', 'AllBeta']);

/** Gates as they are when nobody sets any. */
export const defaultGates: FeatureGates = gatesOf(new Map());

/**
 * Reads `Gate=true` and `Gate=false` as `--feature-gates` has them; the later of two settings wins.
 * A gate of one's own component may be written `kube:Gate=true`. Gives warnings for gates that are
 * on their way out. Throws FlagError in upstream's words for a gate that is unknown or removed, for
 * a value that is no boolean, and for a locked gate set to anything but its default.
 */
export function readFeatureGates(pairs: readonly string[]): {
  readonly gates: FeatureGates;
  readonly warnings: readonly string[];
} {
  const set = new Map<string, boolean>();
  for (const pair of pairs) {
    const { name, value } = settingOf(pair.trim());
    set.set(name, value);
  }
  return { gates: gatesOf(set), warnings: [...set].flatMap(warningOf) };
}

function settingOf(pair: string): { name: string; value: boolean } {
  const equals = pair.indexOf('=');
  const name = withoutComponent((equals < 0 ? pair : pair.slice(0, equals)).trim());
  if (equals < 0) throw new FlagError(`missing bool value for ${name}`);
  const definition = definitions.get(name);
  if (definition === undefined) throw new FlagError(`unrecognized feature gate: ${name}`);
  const value = booleanOf(name, pair.slice(equals + 1).trim());
  if (definition.locked && value !== definition.default) {
    throw new FlagError(
      `cannot set feature gate ${name} to ${value}, feature is locked to ${definition.default}`,
    );
  }
  return { name, value };
}

function withoutComponent(name: string): string {
  const colon = name.indexOf(':');
  if (colon < 0) return name;
  const component = name.slice(0, colon);
  if (component !== 'kube') throw new FlagError(`component not registered: ${component}`);
  return name.slice(colon + 1);
}

function booleanOf(name: string, text: string): boolean {
  try {
    return parseBoolean(text);
  } catch {
    const reason = `strconv.ParseBool: parsing ${JSON.stringify(text)}: invalid syntax`;
    throw new FlagError(`invalid value of ${name}=${text}, err: ${reason}`);
  }
}

function warningOf([name, value]: readonly [string, boolean]): readonly string[] {
  const stage = definitions.get(name)?.stage;
  const end = 'It will be removed in a future release.';
  if (stage === 'DEPRECATED') return [`Setting deprecated feature gate ${name}=${value}. ${end}`];
  return stage === 'GA' ? [`Setting GA feature gate ${name}=${value}. ${end}`] : [];
}

/** `AllAlpha` and `AllBeta` speak for the gates of their stage that are not set themselves. */
function gatesOf(set: ReadonlyMap<string, boolean>): FeatureGates {
  const ofStage: Partial<Record<GateStage, boolean | undefined>> = {
    ALPHA: set.get('AllAlpha'),
    BETA: set.get('AllBeta'),
  };
  const all = [...definitions].map(([name, { stage, default: initial }]) => ({
    name,
    stage,
    on: set.get(name) ?? (wholeStages.has(name) ? undefined : ofStage[stage]) ?? initial,
  }));
  const on = new Set(all.filter((gate) => gate.on).map(({ name }) => name));
  return { enabled: (name) => on.has(name), all: () => all };
}

/** A line for each gate that may still be set, as `--help` shows them (VER-7). */
export function describeGates(): readonly string[] {
  return [...definitions]
    .filter(([, { stage }]) => stage !== 'GA')
    .map(([name, definition]) => {
      const note = definition.acts ? '' : '; no effect in this server';
      return `${name}=true|false (${definition.stage} - default=${definition.default}${note})`;
    });
}

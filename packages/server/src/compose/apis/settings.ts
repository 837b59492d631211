import {
  type AdmissionKindOptions,
  currentMinor,
  type Features,
  type GateName,
  isKnownGroup,
  isKnownGroupVersion,
  loadOlderReleases,
  type Removal,
  type ResourceDef,
  releaseName,
  type VersionDef,
  versionNamed,
} from '@wheelhouse/kinds';
import {
  apiVersionOf,
  booleanFlag,
  cut,
  type Dialect,
  type DialectName,
  dialectNames,
  errorText,
} from '@wheelhouse/machinery';
import { describeGates, type FeatureGates, readFeatureGates } from '../../flags/feature-gates.ts';
import {
  type FlagDefinition,
  FlagError,
  type FlagValues,
  flagsIn,
  oneOf,
} from '../../flags/flags.ts';
import type { Feature } from '../feature.ts';

/** The content of `--runtime-config`: keys as written, each on or off. */
export type RuntimeConfig = ReadonlyMap<string, boolean>;

const gaVersion = /^v\d+$/;
const betaVersion = /^v\d+beta\d+$/;

/** Keys that cover many versions, the weakest first. */
const wholeKeys: ReadonlyMap<string, (version: string) => boolean> = new Map([
  ['api/all', () => true],
  ['api/ga', (version: string) => gaVersion.test(version)],
  ['api/beta', (version: string) => betaVersion.test(version)],
  ['api/alpha', (version: string) => /^v\d+alpha\d+$/.test(version)],
]);
const legacyKey = 'api/legacy';

/** Descriptions of the keys for `--help`. */
const runtimeConfigChoices: readonly string[] = [
  'v1=true|false the core group',
  '<group>/<version>=true|false one version of a group (apps/v1)',
  '<group>/<version>/<resource>=true|false one resource of it (apps/v1/deployments)',
  'api/all=true|false all versions',
  'api/ga=true|false all versions of the form v[0-9]+',
  'api/beta=true|false all versions of the form v[0-9]+beta[0-9]+',
  'api/alpha=true|false all versions of the form v[0-9]+alpha[0-9]+',
  'api/legacy is deprecated and has no effect',
];

/**
 * Parses the pairs of `--runtime-config`. Throws FlagError in kube-apiserver's wording for keys and
 * values that are invalid regardless of the served kinds.
 */
function readRuntimeConfig(pairs: ReadonlyMap<string, string>): {
  readonly config: RuntimeConfig;
  readonly warnings: readonly string[];
} {
  const config = new Map<string, boolean>();
  const warnings: string[] = [];
  for (const [key, text] of pairs) {
    const value = switchOf(key, text);
    if (key === legacyKey)
      warnings.push(`runtime-config ${legacyKey} is deprecated, without effect`);
    else config.set(checkedKey(key), value);
  }
  if (config.size === 1 && config.get('api/all') === false) {
    throw new FlagError('invalid key with only api/all=false');
  }
  return { config, warnings };
}

/**
 * Throws FlagError, as kube-apiserver does, if `--runtime-config` disables the objects of priority
 * and fairness. Of the keys that cover them, the most specific one decides.
 */
function checkFlowControlServed(config: RuntimeConfig, dialect: Dialect): void {
  const version = `${dialect.group('flowcontrol.apiserver')}/v1`;
  const decisive = [version, 'api/ga', 'api/all'].find((key) => config.has(key));
  if (decisive === undefined || config.get(decisive) === true) return;
  throw new FlagError(
    `--runtime-config=${decisive}=false conflicts with --enable-priority-and-fairness=true`,
  );
}

function switchOf(key: string, text: string): boolean {
  if (text === '') return true;
  try {
    return booleanFlag(text);
  } catch (error) {
    if (wholeKeys.has(key)) throw new FlagError(`invalid value ${key}=${text}`);
    throw new FlagError(`invalid value of ${key}: ${text}, err: ${errorText(error)}`);
  }
}

/** The core group's version may be written `/v1`, `v1`, or `api/v1`, with or without a resource. */
function checkedKey(key: string): string {
  const full = key.replace(/^(?:api\/)?(?=v1(?:\/|$))/, '/');
  if (wholeKeys.has(full)) return full;
  const [, version = '', resource, ...rest] = full.split('/');
  if (version === '' || resource === '' || rest.length > 0) {
    throw new FlagError(`runtime-config invalid key ${key}`);
  }
  if (resource !== undefined && resource.toLowerCase() !== resource) {
    const rule = 'group/version/resource and resource is always lowercase plural';
    throw new FlagError(`invalid key ${key}: ${rule}, not ${JSON.stringify(resource)}`);
  }
  return full;
}

/**
 * The kinds with the versions that `config` enables marked as served (VER-1). Versions that the
 * release removed stay removed, and a kind whose gate is off is not served (VER-5). Throws
 * FlagError for unknown groups and versions.
 */
export function configuredKinds(
  defs: readonly ResourceDef[],
  { config, dialect, gates }: Configuration & { readonly gates: FeatureGates },
): readonly ResourceDef[] {
  checkNames(defs, { config, dialect });
  return defs.map((def) => {
    const isGated = def.gate !== undefined && !gates.enabled(def.gate);
    const versions = def.versions.map((version) => {
      const served = version.served && !isGated && isOn(config, { def, version });
      return served === version.served ? version : unserved(version);
    });
    return versions.every((version, index) => version === def.versions[index])
      ? def
      : { ...def, versions };
  });
}

interface Configuration {
  readonly config: RuntimeConfig;
  readonly dialect: Dialect;
}

function checkNames(defs: readonly ResourceDef[], { config, dialect }: Configuration): void {
  const keys = [...config.keys()].filter((key) => !wholeKeys.has(key));
  const named = keys.map((key) => key.split('/') as [string, string]);
  const own = (group: string, version?: string): boolean =>
    defs.some((def) =>
      version === undefined
        ? def.group === group
        : versionNamed(def, apiVersionOf({ group, version })) !== undefined,
    );
  const unknown = named
    .map(([group]) => group)
    .filter((group) => !own(group) && !isKnownGroup(dialect, group));
  if (unknown.length > 0) throw new FlagError(`unknown api groups ${unknown.join(',')}`);
  for (const [group, version] of named) {
    if (!own(group, version) && !isKnownGroupVersion(dialect, { group, version })) {
      const text = group === '' ? version : `${group}/${version}`;
      throw new FlagError(`group version ${text} that has not been registered`);
    }
  }
}

/**
 * The key of a resource overrides that of its version, which overrides the keys for many versions.
 */
function isOn(
  config: RuntimeConfig,
  { def, version }: { readonly def: ResourceDef; readonly version: VersionDef },
): boolean {
  const key = `${def.group}/${version.version}`;
  const own = config.get(`${key}/${def.resource}`) ?? config.get(key);
  if (own !== undefined) return own;
  let isServed = isOnByDefault(version);
  for (const [whole, matches] of wholeKeys) {
    if (matches(version.version)) isServed = config.get(whole) ?? isServed;
  }
  return isServed;
}

/** Stable versions, and beta versions from before release 1.22. */
function isOnByDefault({ version, introduced, isOnByDefault: isOn }: VersionDef): boolean {
  if (isOn === true || gaVersion.test(version)) return true;
  return betaVersion.test(version) && Number(introduced?.split('.')[1] ?? 22) < 22;
}

/** A copy that does not access the lazily built schema. */
function unserved(version: VersionDef): VersionDef {
  const properties = Object.getOwnPropertyDescriptors(version);
  return Object.defineProperties({} as VersionDef, {
    ...properties,
    served: { value: false, enumerable: true },
  });
}

/** The component that the flag means when it names none; there is no other. */
const component = 'kube';

/** The last release that served what release 1.16 removed. */
const oldestMinor = 15;

const oldest = releaseName(oldestMinor);
const newest = releaseName(currentMinor);

/** Features that use kinds which are not served by default. */
const previewFeatures: readonly GateName[] = ['MultiCIDRServiceAllocator'];

/** The choices in the form that kube-apiserver's help has. */
const emulationChoices: readonly string[] = [
  `${component}=${oldest}..${newest} (default=${newest})`,
];

/**
 * The minor number of the release that `--emulated-version` names, as `1.21` or `kube=1.21`;
 * undefined when it names none. Throws FlagError in kube-apiserver's wording.
 */
function readEmulatedVersion(items: readonly string[]): number | undefined {
  let found: { readonly text: string; readonly minor: number } | undefined;
  for (const item of items) {
    const [first, second] = cut(item, '=');
    const name = second === undefined ? component : first.trim();
    const text = (second ?? first).trim();
    if (name !== component) throw new FlagError(`component not registered: ${name}`);
    const minor = minorOf(text);
    if (found !== undefined) {
      const both = `${component}=${found.text} and ${component}=${text}`;
      throw new FlagError(`duplicate version flag, ${both}`);
    }
    found = { text, minor };
  }
  if (found === undefined) return undefined;
  if (found.minor < oldestMinor || found.minor > currentMinor) {
    throw new FlagError(
      `emulation version ${releaseName(found.minor)} is not between [${oldest}, ${newest}.0]`,
    );
  }
  return found.minor;
}

function minorOf(text: string): number {
  const match = /^v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?$/.exec(text);
  if (match === null) throw new FlagError(`could not parse ${JSON.stringify(text)} as version`);
  const [, major, minor, patch = '0'] = match;
  if (Number(patch) !== 0) throw new FlagError(`patch version not allowed, got: ${text}`);
  if (major === '1') return Number(minor);
  throw new FlagError(
    `emulation version ${major}.${minor} is not between [${oldest}, ${newest}.0]`,
  );
}

/**
 * The kinds as the emulated release serves them (VER-2), with those that `--runtime-config` may
 * enable (VER-1). The tables of other releases are loaded only if one of the two needs them.
 */
export async function emulatedKinds(
  defs: readonly ResourceDef[],
  options: {
    readonly minor: number | undefined;
    readonly dialect: Dialect;
    readonly config: RuntimeConfig;
    readonly admission?: AdmissionKindOptions;
    readonly features: Features;
    readonly removal?: Removal | undefined;
  },
): Promise<readonly ResourceDef[]> {
  const { minor = currentMinor, dialect, config, admission = {}, features } = options;
  const { removal = 'at once' } = options;
  // The kinds of an enabled feature exist whether or not they are served.
  const isAsked =
    [...config.values()].includes(true) || previewFeatures.some((name) => features.enabled(name));
  if (minor === currentMinor && !isAsked && removal === 'at once') return defs;
  const { kindsOfRelease } = await loadOlderReleases();
  return kindsOfRelease(defs, { dialect, minor, admission, features, removal });
}

/** Which APIs are served, and in which release's form. */
export interface ApiSettings {
  readonly dialect: DialectName;
  /** The defaults when absent. */
  readonly featureGates?: FeatureGates;
  /** Which built-in versions and resources are served (VER-1); the defaults when absent. */
  readonly runtimeConfig?: RuntimeConfig;
  /** Minor number of the release whose APIs are served (VER-2); the current one when absent. */
  readonly emulatedMinor?: number;
  /** Whether APIs that the release removes are still served; they are not when absent. */
  readonly removal?: Removal;
  /** Privileged containers; allowed when absent. */
  readonly privilegedContainers?: 'allowed' | 'refused';
  readonly compressResponses: boolean;
  /** CBOR requests and responses (gate CBORServingAndStorage); off when absent. */
  readonly cborServed?: boolean;
}

/** Flags that select the served APIs. */
const apiFlags = flagsIn('Generic', {
  'feature-gates': {
    after: 'shutdown-watch-termination-grace-period',
    type: 'each',
    help: 'Pairs Gate=true or Gate=false that switch features. Known gates:',
    choices: describeGates(),
  },
  'runtime-config': {
    type: 'map',
    help: 'Pairs key=true or key=false that switch built-in APIs on and off; a key alone means true. Alpha versions, and beta versions added since release 1.22, are off by default. The keys:',
    choices: runtimeConfigChoices,
  },
  'emulated-version': {
    type: 'list',
    help: 'The release whose APIs are served, as 1.21 or kube=1.21, including versions removed since and excluding later ones; releases older than kube-apiserver can emulate are available for old manifests and clients. The current release when empty:',
    choices: emulationChoices,
  },
  dialect: {
    after: 'show-hidden-metrics-for-version',
    type: 'string',
    default: 'svc',
    stage: 'own',
    help: 'The vendor label of groups, labels, and system namespaces: svc, or kubernetes for unmodified Kubernetes clients.',
  },
  'allow-privileged': {
    group: 'Misc',
    after: 'kubelet-timeout',
    type: 'bool',
    help: 'Allow privileged containers, and host processes on Windows.',
  },
  'peer-ca-file': {
    group: 'Misc',
    after: 'tracing-config-file',
    type: 'string',
    only: 'requests are never proxied to servers of other releases',
    help: 'CA bundle for servers of other releases; requests are never proxied to them.',
  },
  'peer-advertise-ip': {
    group: 'Misc',
    type: 'string',
    only: 'servers of other releases never proxy requests to this one',
    help: 'Address at which servers of other releases reach this one; they never proxy requests to it.',
  },
  'peer-advertise-port': {
    group: 'Misc',
    type: 'string',
    only: 'servers of other releases never proxy requests to this one',
    help: 'The port of --peer-advertise-ip.',
  },
});

type Values = FlagValues<typeof apiFlags>;

/** The dialect, which the settings of other features depend on. Throws FlagError. */
export const readDialect = (values: Values): DialectName =>
  oneOf({ flag: 'dialect', value: values.dialect, allowed: dialectNames });

/** The gates, which the settings of other features depend on, and warnings. Throws FlagError. */
export const readGates = (values: Values): ReturnType<typeof readFeatureGates> =>
  readFeatureGates(values['feature-gates'], {
    emulatedMinor: readEmulatedVersion(values['emulated-version']),
  });

const removalVariable = 'KUBE_APISERVER_SERVE_REMOVED_APIS_FOR_ONE_RELEASE';

/**
 * Parses what kube-apiserver reads from its environment. Throws FlagError for a text that is not a
 * boolean.
 */
function removalOf(text: string | undefined): Removal {
  if (text === undefined) return 'at once';
  try {
    return booleanFlag(text) ? 'one release later' : 'at once';
  } catch (error) {
    throw new FlagError(`${removalVariable}: ${errorText(error)}`);
  }
}

type FlowControlFlag = {
  readonly 'enable-priority-and-fairness': FlagDefinition & { readonly type: 'bool' };
};

/** The groups, versions, and features of the API. */
export const apiFeature: Feature<typeof apiFlags, ApiSettings, FlowControlFlag> = {
  flags: apiFlags,
  settings(values, { dialect, gates, warn }) {
    const emulatedMinor = readEmulatedVersion(values['emulated-version']);
    const apis = readRuntimeConfig(values['runtime-config']);
    if (values['enable-priority-and-fairness']) checkFlowControlServed(apis.config, dialect);
    for (const warning of apis.warnings) warn(warning);
    return {
      dialect: readDialect(values),
      featureGates: gates,
      runtimeConfig: apis.config,
      ...(emulatedMinor === undefined ? {} : { emulatedMinor }),
      removal: removalOf(process.env[removalVariable]),
      privilegedContainers: values['allow-privileged'] ? 'allowed' : 'refused',
      compressResponses: gates.enabled('APIResponseCompression'),
      cborServed: gates.enabled('CBORServingAndStorage'),
    };
  },
};

import {
  isKnownGroup,
  isKnownGroupVersion,
  type ResourceDef,
  type VersionDef,
} from '@wheelhouse/kinds';
import { type Dialect, problemText } from '@wheelhouse/machinery';
import { FlagError, parseBoolean } from '../flags/flags.ts';
import type { FeatureGates } from './feature-gates.ts';

/** What `--runtime-config` says: keys as written, each on or off. */
export type RuntimeConfig = ReadonlyMap<string, boolean>;

const gaVersion = /^v\d+$/;
const betaVersion = /^v\d+beta\d+$/;

/** Keys that speak for many versions, the weakest first. */
const wholeKeys: ReadonlyMap<string, (version: string) => boolean> = new Map([
  ['api/all', () => true],
  ['api/ga', (version: string) => gaVersion.test(version)],
  ['api/beta', (version: string) => betaVersion.test(version)],
  ['api/alpha', (version: string) => /^v\d+alpha\d+$/.test(version)],
]);
const legacyKey = 'api/legacy';

/** The keys for `--help`. */
export const runtimeConfigChoices: readonly string[] = [
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
 * Reads the pairs of `--runtime-config`. Throws FlagError, in upstream's words, for a key or value
 * that cannot be meant, whatever kinds there are.
 */
export function readRuntimeConfig(pairs: ReadonlyMap<string, string>): {
  readonly config: RuntimeConfig;
  readonly warnings: readonly string[];
} {
  const config = new Map<string, boolean>();
  const warnings: string[] = [];
  for (const [key, text] of pairs) {
    const value = booleanOf(key, text);
    if (key === legacyKey)
      warnings.push(`runtime-config ${legacyKey} is deprecated, without effect`);
    else config.set(checkedKey(key), value);
  }
  if (config.size === 1 && config.get('api/all') === false) {
    throw new FlagError('invalid key with only api/all=false');
  }
  return { config, warnings };
}

function booleanOf(key: string, text: string): boolean {
  if (text === '') return true;
  try {
    return parseBoolean(text);
  } catch {
    if (wholeKeys.has(key)) throw new FlagError(`invalid value ${key}=${text}`);
    const reason = problemText({ code: 'number', parser: 'ParseBool', text, problem: 'syntax' });
    throw new FlagError(`invalid value of ${key}: ${text}, err: ${reason}`);
  }
}

/** The core group may be written `v1` and `/v1`, as in lists of API versions. */
function checkedKey(key: string): string {
  const full = /^v\d+[a-z0-9]*$/.test(key) ? `/${key}` : key;
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
 * The kinds with the versions that `config` leaves on marked as served (VER-1); what a release has
 * removed stays removed, and a kind whose gate is off is not served (VER-5). Throws FlagError for
 * groups and versions that nobody knows.
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
    defs.some(
      (def) =>
        def.group === group &&
        (version === undefined || def.versions.some((one) => one.version === version)),
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

/** A resource's own key is stronger than its version's, that one than the keys for many. */
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

/** Stable versions, and beta ones from before release 1.22. */
function isOnByDefault({ version, introduced, isOnByDefault: isOn }: VersionDef): boolean {
  if (isOn === true || gaVersion.test(version)) return true;
  return betaVersion.test(version) && Number(introduced?.split('.')[1] ?? 22) < 22;
}

/** A copy that keeps the schema unread: reading it makes it. */
function unserved(version: VersionDef): VersionDef {
  const properties = Object.getOwnPropertyDescriptors(version);
  return Object.defineProperties({} as VersionDef, {
    ...properties,
    served: { value: false, enumerable: true },
  });
}

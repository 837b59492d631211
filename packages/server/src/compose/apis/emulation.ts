import {
  type AdmissionKindOptions,
  currentMinor,
  type Features,
  type GateName,
  loadOlderReleases,
  type Removal,
  type ResourceDef,
  releaseName,
} from '@wheelhouse/kinds';
import type { Dialect } from '@wheelhouse/machinery';
import { FlagError } from '../flags/flags.ts';
import type { RuntimeConfig } from './runtime-config.ts';

/** The component that the flag speaks of when it names none, and the only one there is. */
const component = 'kube';

/** The last release to serve what release 1.16 removed. */
const oldestMinor = 15;

const oldest = releaseName(oldestMinor);
const newest = releaseName(currentMinor);

/** Features that work with kinds which are not served by default. */
const previewFeatures: readonly GateName[] = ['MultiCIDRServiceAllocator'];

/** For `--help`, in upstream's form. */
export const emulationChoices: readonly string[] = [
  `${component}=${oldest}..${newest} (default=${newest})`,
];

/**
 * The minor number of the release that `--emulated-version` names, as `1.21` or `kube=1.21`;
 * undefined when it names none. Throws FlagError in upstream's words.
 */
export function readEmulatedVersion(items: readonly string[]): number | undefined {
  let found: { readonly text: string; readonly minor: number } | undefined;
  for (const item of items) {
    const equals = item.indexOf('=');
    const name = equals < 0 ? component : item.slice(0, equals).trim();
    const text = item.slice(equals + 1).trim();
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
 * The kinds as the emulated release served them (VER-2), with those that `--runtime-config` may
 * switch on (VER-1). Those tables are read only when one or the other is asked for.
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
  // What a feature works with is there, served or not.
  const isAsked =
    [...config.values()].includes(true) || previewFeatures.some((name) => features.enabled(name));
  if (minor === currentMinor && !isAsked && removal === 'at once') return defs;
  const { kindsOfRelease } = await loadOlderReleases();
  return kindsOfRelease(defs, { dialect, minor, admission, features, removal });
}

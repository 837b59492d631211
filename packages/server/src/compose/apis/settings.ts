import type { Removal } from '@wheelhouse/kinds';
import { booleanOf, type DialectName, dialectNames, problemText } from '@wheelhouse/machinery';
import type { Feature } from '../feature.ts';
import { FlagError, type FlagTable, type FlagValues, oneOf } from '../flags/flags.ts';
import { emulationChoices, readEmulatedVersion } from './emulation.ts';
import { describeGates, type FeatureGates, readFeatureGates } from './feature-gates.ts';
import { type RuntimeConfig, readRuntimeConfig, runtimeConfigChoices } from './runtime-config.ts';

/** Which APIs are served, and in which release's way. */
export interface ApiSettings {
  readonly dialect: DialectName;
  /** The defaults when absent. */
  readonly featureGates?: FeatureGates;
  /** Which built-in versions and resources are served (VER-1); the usual ones when absent. */
  readonly runtimeConfig?: RuntimeConfig;
  /** Minor number of the release whose APIs are served (VER-2); this one's when absent. */
  readonly emulatedMinor?: number;
  /** Whether APIs that the release removes are still served; not when absent. */
  readonly removal?: Removal;
  /** Containers that may do everything on their node; allowed when absent. */
  readonly privilegedContainers?: 'allowed' | 'refused';
  readonly compressResponses: boolean;
  /** CBOR bodies and answers (gate CBORServingAndStorage); off when absent. */
  readonly cborServed?: boolean;
}

/** Flags of the APIs that are served. */
export const apiFlags = {
  'feature-gates': {
    group: 'Generic',
    after: 'shutdown-watch-termination-grace-period',
    type: 'list',
    default: '',
    help: 'Pairs Gate=true or Gate=false that switch features. Known are:',
    choices: describeGates(),
  },
  'runtime-config': {
    group: 'Generic',
    type: 'map',
    default: '',
    help: 'Pairs key=true or key=false that switch built-in APIs on and off; a key alone is true. Alpha versions, and beta versions newer than release 1.22, are off unless they are switched on. The keys:',
    choices: runtimeConfigChoices,
  },
  'emulated-version': {
    group: 'Generic',
    type: 'list',
    default: '',
    help: 'The release whose APIs are served, as 1.21 or kube=1.21: with the versions removed since, and without those that came later. Older releases than upstream can emulate are there for their manifests and clients. This one when empty:',
    choices: emulationChoices,
  },
  dialect: {
    group: 'Generic',
    after: 'show-hidden-metrics-for-version',
    type: 'string',
    default: 'svc',
    stage: 'own',
    help: "The vendor label of groups, labels and system namespaces: svc, or kubernetes for unmodified clients of upstream's API.",
  },
  'allow-privileged': {
    group: 'Misc',
    after: 'kubelet-timeout',
    type: 'bool',
    default: 'false',
    help: 'Let pods have privileged containers, and on Windows processes of the host.',
  },
  'peer-ca-file': {
    group: 'Misc',
    after: 'tracing-config-file',
    type: 'string',
    default: '',
    only: 'requests are not passed on to other servers of another release',
    help: 'Authorities of other servers that are newer or older. Requests are not passed on to those.',
  },
  'peer-advertise-ip': {
    group: 'Misc',
    type: 'string',
    default: '',
    only: 'servers of another release do not pass requests on to this one',
    help: 'Where servers that are newer or older reach this one. They do not pass requests on.',
  },
  'peer-advertise-port': {
    group: 'Misc',
    type: 'string',
    default: '',
    only: 'servers of another release do not pass requests on to this one',
    help: 'The port of --peer-advertise-ip.',
  },
} as const satisfies FlagTable;

type Values = FlagValues<typeof apiFlags>;

/** The dialect, on which the settings of other features depend. Throws FlagError. */
export const readDialect = (values: Values): DialectName =>
  oneOf({ flag: 'dialect', value: values.dialect, allowed: dialectNames });

/** The gates, on which the settings of other features depend, and warnings. Throws FlagError. */
export const readGates = (values: Values): ReturnType<typeof readFeatureGates> =>
  readFeatureGates(values['feature-gates'], {
    emulatedMinor: readEmulatedVersion(values['emulated-version']),
  });

const removalVariable = 'KUBE_APISERVER_SERVE_REMOVED_APIS_FOR_ONE_RELEASE';

/** What the reference reads from its environment. Throws FlagError for a text that is no boolean. */
function removalOf(text: string | undefined): Removal {
  if (text === undefined) return 'at once';
  const value = booleanOf(text);
  if (value !== undefined) return value ? 'one release later' : 'at once';
  const why = problemText({ code: 'number', parser: 'ParseBool', text, problem: 'syntax' });
  throw new FlagError(`${removalVariable}: ${why}`);
}

/** The groups, versions, and features of the API. */
export const apiFeature: Feature<typeof apiFlags, ApiSettings> = {
  flags: apiFlags,
  settings(values, { gates, warn }) {
    const emulatedMinor = readEmulatedVersion(values['emulated-version']);
    const apis = readRuntimeConfig(values['runtime-config']);
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

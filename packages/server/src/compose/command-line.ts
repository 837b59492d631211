import { join } from 'node:path';
import { dialectOf } from '@wheelhouse/machinery';
import { printGoDuration } from '@wheelhouse/schema';
import type { NamedFile } from '../flags/flag-files.ts';
import {
  checkPairs,
  type FlagDefinition,
  type FlagTable,
  type FlagValues,
  joinFlagTables,
  parseFlags,
} from '../flags/flags.ts';
import { admissionFeature } from './admission/settings.ts';
import { aggregationFeature } from './aggregation/settings.ts';
import { apiFeature, readDialect, readGates } from './apis/settings.ts';
import { auditFeature } from './audit/settings.ts';
import { authenticationFeature } from './authentication/settings.ts';
import { authorizationFeature } from './authorization/settings.ts';
import type { FeatureSettings, ServerConfig } from './config.ts';
import { consoleFeature } from './console.ts';
import { controllerFeature } from './controllers/settings.ts';
import type { CommandLine } from './feature.ts';
import { healthFeature } from './health/settings.ts';
import { limitFeature } from './limits/settings.ts';
import { nodeFeature } from './nodes/settings.ts';
import { type LogSettings, logFeature, metricFeature } from './observability/settings.ts';
import { serviceAccountFeature } from './service-accounts/settings.ts';
import { serviceNetworkFeature } from './service-network/settings.ts';
import { servingFeature } from './serving/settings.ts';
import { encryptionFeature, storageFeature } from './storage/settings.ts';

/** All features that users configure. `settingsOf` converts the flags of each to settings. */
const features = [
  servingFeature,
  limitFeature,
  healthFeature,
  apiFeature,
  metricFeature,
  logFeature,
  consoleFeature,
  serviceNetworkFeature,
  nodeFeature,
  storageFeature,
  encryptionFeature,
  controllerFeature,
  authenticationFeature,
  serviceAccountFeature,
  authorizationFeature,
  admissionFeature,
  aggregationFeature,
  auditFeature,
] as const;

/** The groups of flags in the order of `--help`. */
const flagGroups = [
  'Secure serving',
  'Generic',
  'Metrics',
  'Storage',
  'Leader election',
  'Authentication',
  'Controllers',
  'Admission',
  'Authorization',
  'Aggregation',
  'Auditing',
  'Misc',
  'Logs',
];

type Intersection<Union> = (Union extends unknown ? (member: Union) => void : never) extends (
  all: infer All,
) => void
  ? All
  : never;

type ServerFlags = Intersection<(typeof features)[number]['flags']>;

type Values = FlagValues<ServerFlags>;

/**
 * Every flag of `wheelhouse serve` with its default and help, in the order of `--help`; names and
 * defaults are kube-apiserver's where it has the flag. A flag exists only if the server acts on it:
 * an accepted flag without effect would mislead. A flag whose effect has no counterpart in this
 * process (`only`) accepts the value that describes what the server does anyway, so that manifests
 * of kube-apiserver start; any other value stops the start with an explanation.
 */
export const serverFlags = joinFlagTables(
  features.map(({ flags }) => flags),
  flagGroups,
) as ServerFlags & FlagTable;

/** The validated command line: the server's configuration without its host ports. */
export interface ServerOptions extends LogSettings {
  readonly config: Omit<ServerConfig, 'clock' | 'logger'>;
  readonly dataDir: string;
  /** Path of the administrator's kubeconfig. */
  readonly adminKubeconfig: string;
  /** The files that flags name, for `checkFiles`. */
  readonly files: readonly NamedFile[];
  /** Messages for the log about deprecated or ineffective flags (VER-5, VER-7). */
  readonly warnings: readonly string[];
}

type OptionsOutcome =
  | { readonly kind: 'options'; readonly options: ServerOptions }
  | { readonly kind: 'help' }
  | { readonly kind: 'version'; readonly form: 'line' | 'raw' };

/** Parses the arguments after `serve`. Throws a one-line FlagError for invalid arguments. */
export function readOptions(args: readonly string[]): OptionsOutcome {
  const parsed = parseFlags<ServerFlags & FlagTable>(serverFlags, args);
  if (parsed.help) return { kind: 'help' };
  if (parsed.version !== undefined) return { kind: 'version', form: parsed.version };
  const { specifiedFlags } = parsed;
  const values = withDataDirectory(parsed.values, specifiedFlags);
  checkPairs(serverFlags, values);
  const { gates, warnings } = readGates(values);
  const messages: string[] = [...parsed.warnings, ...warnings];
  const dialect = dialectOf(readDialect(values));
  const warn = (message: string) => void messages.push(message);
  const line: CommandLine = { dialect, gates, specifiedFlags, warn };
  const config = { ...settingsOf(values, line), flags: shownFlags(values) };
  const options: ServerOptions = {
    ...logFeature.settings(values, line),
    config: Object.freeze(config),
    dataDir: values['data-dir'],
    adminKubeconfig: values['admin-kubeconfig'] || join(values['data-dir'], 'admin.kubeconfig'),
    files: filesOf(values),
    warnings: messages,
  };
  return { kind: 'options', options: Object.freeze(options) };
}

/** Converts the flags of each feature to its settings. */
function settingsOf(values: Values, line: CommandLine): FeatureSettings {
  return {
    ...apiFeature.settings(values, line),
    ...servingFeature.settings(values, line),
    ...limitFeature.settings(values, line),
    ...healthFeature.settings(values, line),
    ...metricFeature.settings(values, line),
    ...consoleFeature.settings(values, line),
    ...serviceNetworkFeature.settings(values, line),
    ...nodeFeature.settings(values, line),
    ...storageFeature.settings(values, line),
    ...encryptionFeature.settings(values, line),
    ...controllerFeature.settings(values, line),
    ...authenticationFeature.settings(values, line),
    ...serviceAccountFeature.settings(values, line),
    ...authorizationFeature.settings(values, line),
    ...admissionFeature.settings(values, line),
    ...aggregationFeature.settings(values, line),
    ...auditFeature.settings(values, line),
  };
}

/** The content of `/flagz`: every flag with its value as a command line spells it. */
function shownFlags(values: Values): ReadonlyMap<string, string> {
  return new Map(
    Object.entries(values).map(([name, value]) => [name, shownValue(name, value)] as const),
  );
}

function shownValue(name: string, value: Values[keyof Values]): string {
  const type = (serverFlags as FlagTable)[name]?.type;
  if (value instanceof Map) return [...value].map(([key, text]) => `${key}=${text}`).join(',');
  if (Array.isArray(value)) return `[${value.join(',')}]`;
  return type === 'duration'
    ? printGoDuration(BigInt(Math.round(Number(value) * 1e6)))
    : String(value);
}

/**
 * The values with the data directory below the certificate directory, if the store is etcd and no
 * flag names a data directory: a command line of kube-apiserver names only etcd and a certificate
 * directory, and the server must not write elsewhere (PLANE-1).
 */
function withDataDirectory(values: Values, specifiedFlags: ReadonlySet<string>): Values {
  const usesEtcd = specifiedFlags.has('etcd-servers') || values['storage-backend'] === 'etcd3';
  if (specifiedFlags.has('data-dir') || !usesEtcd || values['cert-dir'] === '') return values;
  return { ...values, 'data-dir': join(values['cert-dir'], values['data-dir']) };
}

/** The files that flags with `file` name, and those named within values. */
function filesOf(values: Values): readonly NamedFile[] {
  const pathsOf = (flag: string): readonly string[] => {
    const value = values[flag as keyof Values] as string | readonly string[];
    return (typeof value === 'string' ? [value] : value).filter((path) => path !== '');
  };
  const named = Object.entries<FlagDefinition>(serverFlags).flatMap(([flag, definition]) => {
    const { file: content, keyOf } = definition;
    if (content === undefined) return [];
    const [certificate] = keyOf === undefined ? [] : pathsOf(keyOf);
    const pair =
      certificate === undefined ? {} : { keyOf: { path: certificate, name: `--${keyOf}` } };
    return pathsOf(flag).map((path) => ({ flag, path, content, ...pair }));
  });
  return [...named, ...(servingFeature.files?.(values) ?? [])];
}

import { isIP } from 'node:net';
import { join } from 'node:path';
import { readServiceRanges, type ServiceRangeTexts } from '@wheelhouse/kinds';
import { dialectNames, dialectOf } from '@wheelhouse/machinery';
import { admissionOptions } from '../admission/admission-flags.ts';
import { aggregationOptions } from '../aggregation/aggregation-flags.ts';
import { auditOptions } from '../audit/audit-flags.ts';
import { identityOptions } from '../authentication/identity-flags.ts';
import { oidcOptions } from '../authentication/oidc-flags.ts';
import { tokenOptions } from '../authentication/token-flags.ts';
import { webhookTokenOptions } from '../authentication/webhook-token-flags.ts';
import { authorizationOptions } from '../authorization/authorization-flags.ts';
import { leaderElectionOptions } from '../controllers/leader-election-flags.ts';
import { apiRelease } from '../health/version.ts';
import type { LogFormat } from '../process/logging.ts';
import { metricOptions } from '../process/metric-flags.ts';
import { consoleDirectory } from '../serving/console.ts';
import { servingFiles, servingFlags, servingOptions } from '../serving/serving-flags.ts';
import { trafficOptions } from '../serving/traffic-flags.ts';
import { storeDirectory } from '../storage/data-directory.ts';
import { encryptionOptions } from '../storage/encryption-flags.ts';
import { etcdOptions, storedBuiltinsOf } from '../storage/etcd-flags.ts';
import { clusterOptions } from './cluster-flags.ts';
import type { ServerConfig } from './config.ts';
import { readEmulatedVersion } from './emulation.ts';
import { type FeatureGates, readFeatureGates } from './feature-gates.ts';
import type { NamedFile } from './flag-files.ts';
import { type FlagDefinition, FlagError, type FlagValues, parseFlags } from './flags.ts';
import { serverFlags } from './flags-table.ts';
import { inheritedOptions } from './inherited-flags.ts';
import { checkObsoleteFlags } from './obsolete-flags.ts';
import { readRuntimeConfig } from './runtime-config.ts';

/** Whoever polls a server that starts gets its first answers before controllers take the loop. */
const controllersPauseMs = 50;

/** What the command line asks for, checked: the server's configuration but for its host ports. */
export interface ServerOptions {
  readonly config: Omit<ServerConfig, 'clock' | 'logger'>;
  readonly dataDir: string;
  /** Where the administrator's kubeconfig is written. */
  readonly adminKubeconfig: string;
  readonly verbosity: number;
  readonly logFormat: LogFormat;
  /** The files that flags name, for `checkFiles`. */
  readonly files: readonly NamedFile[];
  /** What the user should know of the flags given (VER-5, VER-7), for the log. */
  readonly warnings: readonly string[];
}

export type OptionsOutcome =
  | { readonly kind: 'options'; readonly options: ServerOptions }
  | { readonly kind: 'help' }
  | { readonly kind: 'version'; readonly form: 'line' | 'raw' };

/** Options from the arguments behind `serve`. Throws FlagError, one line, for what is wrong. */
export function readOptions(args: readonly string[]): OptionsOutcome {
  const parsed = parseFlags(serverFlags, args);
  if (parsed.help) return { kind: 'help' };
  if (parsed.version !== undefined) return { kind: 'version', form: parsed.version };
  const { specifiedFlags } = parsed;
  const values = placed(parsed.values, specifiedFlags);
  checkNumbers(values);
  checkContradictions(values, specifiedFlags);
  const emulatedMinor = readEmulatedVersion(values['emulated-version']);
  const features = readFeatureGates(values['feature-gates'], { emulatedMinor });
  checkUidHeaders(values, features.gates);
  checkNodeBinding(features.gates);
  const apis = readRuntimeConfig(values['runtime-config']);
  const structured = features.gates.enabled('StructuredAuthenticationConfiguration');
  const oidc = oidcOptions(values, { specifiedFlags, structured });
  const tokens = tokenOptions(values, features.gates);
  const flagged = configOf(values, { specifiedFlags, gates: features.gates });
  const options: ServerOptions = {
    config: Object.freeze({
      ...flagged,
      serviceAccounts: { ...flagged.serviceAccounts, ...tokens.accounts },
      admission: admissionOptions(values, specifiedFlags),
      ...encryptionOptions(values),
      ...aggregationOptions(values),
      ...metricOptions(values),
      ...auditOptions(values, { specifiedFlags, dialect: values.dialect }),
      authentication: { ...flagged.authentication, ...oidc },
      featureGates: features.gates,
      flags: shownFlags(values),
      runtimeConfig: apis.config,
      ...(emulatedMinor === undefined ? {} : { emulatedMinor }),
      ...(values['web-console'] ? { console: { directory: consoleDirectory() } } : {}),
      hiddenMetrics: hiddenMetricsOf(values['show-hidden-metrics-for-version']),
      compressResponses: features.gates.enabled('APIResponseCompression'),
      cborServed: features.gates.enabled('CBORServingAndStorage'),
    }),
    dataDir: values['data-dir'],
    adminKubeconfig: values['admin-kubeconfig'] || join(values['data-dir'], 'admin.kubeconfig'),
    verbosity: values.v,
    logFormat: inheritedOptions(values, specifiedFlags).logFormat,
    files: [...filesOf(values), ...servingFiles(flagged.listen.secure ?? { http2: 'on' })],
    warnings: [...parsed.warnings, ...features.warnings, ...apis.warnings, ...tokens.warnings],
  };
  return { kind: 'options', options: Object.freeze(options) };
}

type Values = FlagValues<typeof serverFlags>;

/** What `/flagz` shows: every flag with its value, in the form of a command line. */
function shownFlags(values: Values): ReadonlyMap<string, string> {
  return new Map(
    Object.entries(values).map(([name, value]) => [name, shownValue(name, value)] as const),
  );
}

function shownValue(name: string, value: Values[keyof Values]): string {
  const { type } = (serverFlags as Readonly<Record<string, FlagDefinition>>)[name] ?? {};
  if (value instanceof Map) return [...value].map(([key, text]) => `${key}=${text}`).join(',');
  if (Array.isArray(value)) return `[${value.join(',')}]`;
  return type === 'duration' ? `${Number(value) / 1000}s` : String(value);
}

/**
 * The values with the place of the data: with upstream's flags alone, which name etcd and a directory
 * for certificates, nothing is written anywhere else (PLANE-1).
 */
function placed(values: Values, specifiedFlags: ReadonlySet<string>): Values {
  const isElsewhere = specifiedFlags.has('etcd-servers') || values['storage-backend'] === 'etcd3';
  if (specifiedFlags.has('data-dir') || !isElsewhere || values['cert-dir'] === '') return values;
  return { ...values, 'data-dir': join(values['cert-dir'], values['data-dir']) };
}

function filesOf(values: Values): readonly NamedFile[] {
  return Object.entries<FlagDefinition>(serverFlags).flatMap(([flag, { file: content }]) => {
    if (content === undefined) return [];
    const value = values[flag as keyof Values] as string | readonly string[];
    const paths = typeof value === 'string' ? [value] : value;
    return paths.filter((path) => path !== '').map((path) => ({ flag, path, content }));
  });
}

function checkNodeBinding(gates: FeatureGates): void {
  const [binding, validation] = [
    'ServiceAccountTokenNodeBinding',
    'ServiceAccountTokenNodeBindingValidation',
  ] as const;
  if (!gates.enabled(binding) || gates.enabled(validation)) return;
  throw new FlagError(
    `the "${binding}" feature gate can only be enabled if the "${validation}" feature gate is also enabled`,
  );
}

function checkUidHeaders(values: Values, gates: FeatureGates): void {
  const isGiven = values['requestheader-uid-headers'].length > 0;
  if (!isGiven || gates.enabled('RemoteRequestHeaderUID')) return;
  throw new FlagError(
    '--requestheader-uid-headers requires the "RemoteRequestHeaderUID" feature to be enabled',
  );
}

function configOf(
  values: Values,
  {
    specifiedFlags,
    gates,
  }: { readonly specifiedFlags: ReadonlySet<string>; readonly gates: FeatureGates },
): Omit<ServerOptions['config'], 'compressResponses' | 'cborServed'> {
  const advertised = values['advertise-address'];
  const authorization = authorizationOptions(values, { specifiedFlags, gates });
  const identity = identityOptions(values);
  checkObsoleteFlags(values);
  const { collectionWorkersMax, storageWaitMs, freshReads } = inheritedOptions(
    values,
    specifiedFlags,
  );
  const serviceRanges = serviceRangesOf(values, gates);
  return {
    ...identity,
    dialect: oneOf({ flag: 'dialect', value: values.dialect, allowed: dialectNames }),
    listen: listenOf(values, specifiedFlags),
    ...(advertised === '' ? {} : { advertiseAddress: advertised }),
    ...storeOf(values, specifiedFlags),
    compactionIntervalMs: values['etcd-compaction-interval'],
    eventTtlMs: values['event-ttl'],
    privilegedContainers: values['allow-privileged'] ? 'allowed' : 'refused',
    serviceRanges,
    ...clusterOptions(values, serviceRanges),
    authentication: {
      // Everybody may do everything only once they have said who they are, as upstream.
      anonymous:
        values['anonymous-auth'] && !authorization.authorizationModes.includes('AlwaysAllow'),
      ...(values['token-auth-file'] === '' ? {} : { tokenFile: values['token-auth-file'] }),
      ...(values['client-ca-file'] === '' ? {} : { clientCaFile: values['client-ca-file'] }),
      ...identity.authentication,
      ...webhookTokenOptions(values),
    },
    ...authorization,
    limits: { ...limitsOf(values), collectionWorkersMax },
    ...(storageWaitMs === undefined ? {} : { storageWaitMs }),
    ...(freshReads === undefined ? {} : { freshReads }),
    ...(values['enable-priority-and-fairness']
      ? {}
      : { flowControl: { type: 'max-in-flight' } as const }),
    livezGracePeriodMs: values['livez-grace-period'],
    controllersPauseMs,
    shutdownDelayMs: values['shutdown-delay-duration'],
    traffic: trafficOptions(values, {
      http2: values['disable-http2-serving'] ? 'off' : 'on',
    }),
  };
}

function listenOf(values: Values, specifiedFlags: ReadonlySet<string>): ServerConfig['listen'] {
  if (values['plain-http-port'] >= 0) {
    return { host: '127.0.0.1', port: values['plain-http-port'], tls: 'plaintext' };
  }
  const certFile = values['tls-cert-file'];
  const tls =
    certFile === ''
      ? { certDir: values['cert-dir'] || join(values['data-dir'], 'certificates') }
      : { certFile, keyFile: values['tls-private-key-file'] };
  const hasServingFlags = Object.keys(servingFlags).some((flag) => specifiedFlags.has(flag));
  return {
    host: values['bind-address'],
    port: values['secure-port'],
    tls,
    ...(hasServingFlags ? { secure: servingOptions(values) } : {}),
  };
}

function storeOf(
  values: Values,
  specifiedFlags: ReadonlySet<string>,
): Pick<ServerConfig, 'store' | 'storedBuiltins' | 'leaderElection'> {
  const flag = 'storage-backend';
  const allowed = ['embedded', 'memory', 'etcd3'] as const;
  const type = oneOf({ flag, value: values[flag], allowed });
  const etcd = etcdOptions(values, specifiedFlags);
  const dialect = oneOf({ flag: 'dialect', value: values.dialect, allowed: dialectNames });
  const stored = storedBuiltinsOf(values, dialectOf(dialect));
  const leaderElection = leaderElectionOptions(values, {
    specifiedFlags,
    isShared: etcd !== undefined,
  });
  if (etcd !== undefined) {
    return {
      store: { type: 'etcd', ...etcd },
      ...stored,
      ...(leaderElection === undefined ? {} : { leaderElection }),
    };
  }
  if (type === 'memory') return { store: { type }, ...stored };
  const directory = storeDirectory(values['data-dir']);
  const quotaBytes = values['quota-backend-bytes'];
  const quota = quotaBytes > 0 && { quotaBytes };
  return { store: { type: 'embedded', directory, ...quota }, ...stored };
}

function limitsOf(values: Values): ServerConfig['limits'] {
  const streams = values['http2-max-streams-per-connection'];
  const memoryMb = values['memory-budget-mb'];
  const connectionsMax = values['max-connections'];
  const orUnlimited = (limit: number): number => (limit === 0 ? Number.POSITIVE_INFINITY : limit);
  return {
    bodyBytesMax: values['max-request-body-bytes'],
    requestTimeoutMs: values['request-timeout'],
    minRequestTimeoutMs: values['min-request-timeout'] * 1000,
    readsInFlightMax: orUnlimited(values['max-requests-inflight']),
    writesInFlightMax: orUnlimited(values['max-mutating-requests-inflight']),
    ...(streams === 0 ? {} : { streamsPerConnectionMax: streams }),
    ...(memoryMb === 0 ? {} : { memoryBytes: memoryMb * 1024 * 1024 }),
    ...(connectionsMax === 0 ? {} : { connectionsMax }),
  };
}

function serviceRangesOf(values: Values, gates: FeatureGates): ServiceRangeTexts {
  const isUnlimited =
    gates.enabled('MultiCIDRServiceAllocator') && gates.enabled('DisableAllocatorDualWrite');
  const texts: ServiceRangeTexts = {
    ...(isUnlimited ? { sizes: 'any' } : {}),
    clusterIps: values['service-cluster-ip-range'],
    nodePorts: values['service-node-port-range'],
  };
  const ranges = readServiceRanges(texts);
  if ('error' in ranges) throw new FlagError(ranges.error);
  return texts;
}

function oneOf<Value extends string>(options: {
  flag: string;
  value: string;
  allowed: readonly Value[];
}): Value {
  const { flag, value, allowed } = options;
  const found = allowed.find((candidate) => candidate === value);
  if (found !== undefined) return found;
  throw new FlagError(`--${flag} ${JSON.stringify(value)} is not one of ${allowed.join(', ')}`);
}

/** Only the release before this one has metrics that may be shown again (VER-6). */
function hiddenMetricsOf(release: string): 'hidden' | 'shown' {
  const previous = `${apiRelease.major}.${Number(apiRelease.minor) - 1}`;
  if (release === '') return 'hidden';
  if (release === previous) return 'shown';
  throw new FlagError(
    `--show-hidden-metrics-for-version must be omitted or have the value '${previous}'. Only the previous minor version is allowed`,
  );
}

const portMax = 65_535;

function checkNumbers(values: Values): void {
  if (values['secure-port'] < 0 || values['secure-port'] > portMax) {
    const port = values['secure-port'];
    throw new FlagError(`--secure-port ${port} must be between 0 and 65535, inclusive`);
  }
  if (values['plain-http-port'] < -1 || values['plain-http-port'] > portMax) {
    const port = values['plain-http-port'];
    throw new FlagError(`--plain-http-port ${port} must be between -1 and 65535, inclusive`);
  }
  const notNegative = [
    'max-requests-inflight',
    'max-mutating-requests-inflight',
    'min-request-timeout',
    'http2-max-streams-per-connection',
    'memory-budget-mb',
    'max-connections',
    'livez-grace-period',
    'shutdown-delay-duration',
    'etcd-compaction-interval',
    'quota-backend-bytes',
    'event-ttl',
    'v',
  ] as const;
  for (const name of notNegative) {
    if (values[name] < 0) throw new FlagError(`--${name} can not be negative value`);
  }
  for (const name of ['request-timeout', 'max-request-body-bytes'] as const) {
    if (values[name] <= 0) throw new FlagError(`--${name} must be greater than 0`);
  }
}

function checkContradictions(values: Values, specifiedFlags: ReadonlySet<string>): void {
  if ((values['tls-cert-file'] === '') !== (values['tls-private-key-file'] === '')) {
    throw new FlagError('--tls-cert-file and --tls-private-key-file must be given together');
  }
  const secureOnly = [
    'secure-port',
    'bind-address',
    'cert-dir',
    'tls-cert-file',
    'client-ca-file',
    ...Object.keys(servingFlags),
  ];
  const clash = secureOnly.find((name) => specifiedFlags.has(name));
  if (values['plain-http-port'] >= 0 && clash !== undefined) {
    throw new FlagError(`--plain-http-port serves no HTTPS, so --${clash} contradicts it`);
  }
  const inFlight = [values['max-requests-inflight'], values['max-mutating-requests-inflight']];
  if (values['enable-priority-and-fairness'] && inFlight.every((limit) => limit === 0)) {
    throw new FlagError(
      '--max-requests-inflight=0 and --max-mutating-requests-inflight=0 leave no seats: they must add up to something positive with --enable-priority-and-fairness',
    );
  }
  for (const name of ['bind-address', 'advertise-address'] as const) {
    if (values[name] !== '' && isIP(values[name]) === 0) {
      throw new FlagError(`--${name} ${JSON.stringify(values[name])} is not an IP address`);
    }
  }
}

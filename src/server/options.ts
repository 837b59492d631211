import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { type DialectName, dialectNames } from '../dialect.ts';
import { FlagError, type FlagValues, parseBoolean, parseFlags } from './flags.ts';
import { serverFlags } from './flags-table.ts';

export type AuthorizationMode = 'AlwaysAllow' | 'AlwaysDeny' | 'RBAC';
export type StorageBackend = 'embedded' | 'memory';

/** What the server is to do, checked and frozen. Times are milliseconds, sizes bytes. */
export interface ServerOptions {
  readonly dialect: DialectName;
  readonly bindAddress: string;
  readonly securePort: number;
  /** Plain HTTP on loopback; undefined is off. */
  readonly insecurePort: number | undefined;
  /** PEM files given by the user; undefined: made by the server in `certDir`. */
  readonly tlsFiles: { readonly certificate: string; readonly key: string } | undefined;
  readonly certDir: string;
  /** Every name and address a self-made certificate is for, but for the host's own name. */
  readonly servingHosts: readonly string[];
  readonly externalHostname: string;
  readonly streamsPerConnectionMax: number | undefined;
  readonly requestTimeoutMs: number;
  readonly minWatchTimeoutMs: number;
  /** 0 is no limit. */
  readonly requestsInFlightMax: number;
  readonly mutatingRequestsInFlightMax: number;
  readonly requestBodyBytesMax: number;
  readonly livezGracePeriodMs: number;
  readonly shutdownDelayMs: number;
  readonly featureGates: ReadonlyMap<string, boolean>;
  readonly runtimeConfig: ReadonlyMap<string, boolean>;
  readonly dataDir: string;
  readonly storageBackend: StorageBackend;
  /** History kept; 0 keeps all. */
  readonly historyRetentionMs: number;
  readonly eventTtlMs: number;
  readonly watchCache: boolean;
  readonly watchCacheEventsMin: number;
  readonly anonymousAuth: boolean;
  readonly clientCaFile: string | undefined;
  readonly tokenAuthFile: string | undefined;
  readonly serviceAccounts: {
    readonly issuers: readonly string[];
    readonly keyFiles: readonly string[];
    readonly signingKeyFile: string | undefined;
    readonly lookup: boolean;
    readonly audiences: readonly string[];
  };
  readonly authorizationModes: readonly AuthorizationMode[];
  readonly adminKubeconfig: string;
  readonly verbosity: number;
}

export type OptionsOutcome =
  | { readonly kind: 'options'; readonly options: ServerOptions }
  | { readonly kind: 'help' }
  | { readonly kind: 'version' };

/** Options from the arguments behind `serve`. Throws FlagError, one line, for what is wrong. */
export function readOptions(args: readonly string[]): OptionsOutcome {
  const parsed = parseFlags(serverFlags, args);
  if (parsed.help) return { kind: 'help' };
  if (parsed.version) return { kind: 'version' };
  const { values, given } = parsed;
  checkNumbers(values);
  checkContradictions(values, given);
  return { kind: 'options', options: Object.freeze(optionsOf(values)) };
}

/** The options a library or test starts from: every flag at its default but those in `flags`. */
export function defaultOptions(flags: readonly string[] = []): ServerOptions {
  const outcome = readOptions(flags);
  if (outcome.kind !== 'options') throw new FlagError('neither help nor version start a server');
  return outcome.options;
}

type Values = FlagValues<typeof serverFlags>;

function optionsOf(values: Values): ServerOptions {
  const dataDir = values['data-dir'];
  const optional = (text: string): string | undefined => (text === '' ? undefined : text);
  const certificate = values['tls-cert-file'];
  return {
    dialect: oneOf({ flag: 'dialect', value: values.dialect, allowed: dialectNames }),
    bindAddress: values['bind-address'],
    securePort: values['secure-port'],
    insecurePort: values['insecure-port'] === 0 ? undefined : values['insecure-port'],
    tlsFiles: certificate === '' ? undefined : { certificate, key: values['tls-private-key-file'] },
    certDir: optional(values['cert-dir']) ?? join(dataDir, 'certificates'),
    servingHosts: servingHosts(values),
    externalHostname: values['external-hostname'],
    streamsPerConnectionMax: values['http2-max-streams-per-connection'] || undefined,
    requestTimeoutMs: values['request-timeout'],
    minWatchTimeoutMs: values['min-request-timeout'] * 1000,
    requestsInFlightMax: values['max-requests-inflight'],
    mutatingRequestsInFlightMax: values['max-mutating-requests-inflight'],
    requestBodyBytesMax: values['max-request-body-bytes'],
    livezGracePeriodMs: values['livez-grace-period'],
    shutdownDelayMs: values['shutdown-delay-duration'],
    featureGates: booleans('feature-gates', values['feature-gates']),
    runtimeConfig: booleans('runtime-config', values['runtime-config']),
    dataDir,
    storageBackend: storageBackendOf(values),
    historyRetentionMs: values['etcd-compaction-interval'],
    eventTtlMs: values['event-ttl'],
    watchCache: values['watch-cache'],
    watchCacheEventsMin: values['default-watch-cache-size'],
    anonymousAuth: values['anonymous-auth'],
    clientCaFile: optional(values['client-ca-file']),
    tokenAuthFile: optional(values['token-auth-file']),
    serviceAccounts: Object.freeze({
      issuers: values['service-account-issuer'],
      keyFiles: values['service-account-key-file'],
      signingKeyFile: optional(values['service-account-signing-key-file']),
      lookup: values['service-account-lookup'],
      audiences: values['api-audiences'],
    }),
    authorizationModes: authorizationModes(values['authorization-mode']),
    adminKubeconfig: optional(values['admin-kubeconfig']) ?? join(dataDir, 'admin.kubeconfig'),
    verbosity: values.v,
  };
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

const backends: readonly StorageBackend[] = ['embedded', 'memory'];

function storageBackendOf(values: Values): StorageBackend {
  return oneOf({ flag: 'storage-backend', value: values['storage-backend'], allowed: backends });
}

const modes: readonly AuthorizationMode[] = ['AlwaysAllow', 'AlwaysDeny', 'RBAC'];

function authorizationModes(given: readonly string[]): readonly AuthorizationMode[] {
  if (given.length === 0) throw new FlagError('at least one authorization-mode must be passed');
  if (new Set(given).size !== given.length) {
    throw new FlagError(`--authorization-mode ${given.join(',')} names a mode more than once`);
  }
  const checked = given.map((value) =>
    oneOf({ flag: 'authorization-mode', value, allowed: modes }),
  );
  return Object.freeze(checked);
}

function booleans(flag: string, pairs: ReadonlyMap<string, string>): ReadonlyMap<string, boolean> {
  const entries = [...pairs].map(([name, text]): [string, boolean] => {
    try {
      return [name, parseBoolean(text)];
    } catch {
      throw new FlagError(`invalid value of ${name}=${text} in --${flag}, expected true or false`);
    }
  });
  return new Map(entries);
}

const unspecified = new Set(['0.0.0.0', '::', '']);

function servingHosts(values: Values): readonly string[] {
  const named = [
    values['bind-address'],
    values['advertise-address'],
    values['external-hostname'],
  ].filter((host) => !unspecified.has(host));
  return Object.freeze([...new Set(['localhost', '127.0.0.1', '::1', ...named])]);
}

const portMax = 65_535;

function checkNumbers(values: Values): void {
  for (const name of ['secure-port', 'insecure-port'] as const) {
    if (values[name] < 0 || values[name] > portMax) {
      throw new FlagError(`--${name} ${values[name]} must be between 0 and 65535, inclusive`);
    }
  }
  const notNegative = [
    'max-requests-inflight',
    'max-mutating-requests-inflight',
    'min-request-timeout',
    'http2-max-streams-per-connection',
    'default-watch-cache-size',
    'livez-grace-period',
    'shutdown-delay-duration',
    'etcd-compaction-interval',
    'v',
  ] as const;
  for (const name of notNegative) {
    if (values[name] < 0) throw new FlagError(`--${name} can not be negative value`);
  }
  for (const name of ['request-timeout', 'event-ttl', 'max-request-body-bytes'] as const) {
    if (values[name] <= 0) throw new FlagError(`--${name} must be greater than 0`);
  }
}

function checkContradictions(values: Values, given: ReadonlySet<string>): void {
  if ((values['tls-cert-file'] === '') !== (values['tls-private-key-file'] === '')) {
    throw new FlagError('--tls-cert-file and --tls-private-key-file must be given together');
  }
  if (values['tls-cert-file'] !== '' && given.has('cert-dir')) {
    throw new FlagError('--cert-dir has no use when --tls-cert-file is given');
  }
  if (values['insecure-port'] !== 0 && values['insecure-port'] === values['secure-port']) {
    throw new FlagError('--insecure-port and --secure-port must differ');
  }
  for (const name of ['bind-address', 'advertise-address'] as const) {
    if (values[name] !== '' && isIP(values[name]) === 0) {
      throw new FlagError(`--${name} ${JSON.stringify(values[name])} is not an IP address`);
    }
  }
}

/** Reads a file named by a flag; a FlagError tells which flag named what cannot be read. */
export function readFlagFile(flag: string, path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new FlagError(`--${flag}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

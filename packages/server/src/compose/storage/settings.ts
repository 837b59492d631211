import { type Dialect, errorText } from '@wheelhouse/machinery';
import { addressOf } from '@wheelhouse/store';
import { storeDirectory } from '../../files/data-directory.ts';
import { FlagError, type FlagValues, flagsIn, oneOf } from '../../flags/flags.ts';
import type { Feature } from '../feature.ts';

/** Settings of encryption at rest (STORE-3). */
export interface EncryptionSettings {
  /** No encryption when absent. */
  readonly encryption?: {
    /** Path of an EncryptionConfiguration. */
    readonly file: string;
    readonly reload: 'automatic' | 'off';
  };
}

/** Flags of encryption at rest. */
const encryptionFlags = flagsIn('Storage', {
  'encryption-provider-config': {
    after: 'storage-media-type',
    type: 'string',
    file: 'any',
    help: 'EncryptionConfiguration file: which resources are encrypted in the store, and how.',
  },
  'encryption-provider-config-automatic-reload': {
    type: 'bool',
    help: 'Reload --encryption-provider-config when it changes, so that keys rotate without a restart.',
  },
});

/** Encryption at rest. */
export const encryptionFeature: Feature<typeof encryptionFlags, EncryptionSettings> = {
  flags: encryptionFlags,
  settings(values) {
    const file = values['encryption-provider-config'];
    const isFollowed = values['encryption-provider-config-automatic-reload'];
    if (file !== '') return { encryption: { file, reload: isFollowed ? 'automatic' : 'off' } };
    if (!isFollowed) return {};
    throw new FlagError(
      '--encryption-provider-config-automatic-reload must be set with --encryption-provider-config',
    );
  },
};

/** An etcd that stores objects (STORE-2). Certificates and keys are PEM files. */
export interface EtcdSettings {
  /** URLs of the members. */
  readonly servers: readonly string[];
  /** Resources that are stored in another etcd. */
  readonly overrides?: readonly {
    readonly group: string;
    readonly resource: string;
    readonly servers: readonly string[];
  }[];
  /** Prefix of all keys, such as `/registry`. */
  readonly prefix: string;
  readonly caFile?: string;
  readonly certFile?: string;
  readonly keyFile?: string;
  readonly healthcheckTimeoutMs: number;
  readonly readycheckTimeoutMs: number;
  /** Maximum age of the metric of stored objects; 0 disables it. */
  readonly countMetricMs: number;
  /** Maximum age of the metric of etcd's size; 0 disables it. */
  readonly sizeMetricMs: number;
  /** How long Events share a lease. */
  readonly leaseReuseMs: number;
}

/** Where objects are stored, and for how long. Times are in milliseconds. */
export interface StorageSettings {
  readonly store:
    | { readonly type: 'memory' }
    | {
        readonly type: 'embedded';
        readonly directory: string;
        /** Size above which the store refuses writes; no quota when absent. */
        readonly quotaBytes?: number;
      }
    | ({ readonly type: 'etcd' } & EtcdSettings);
  /**
   * Encoding of built-in kinds in new writes; protobuf in etcd and JSON elsewhere when absent. Both
   * encodings are readable.
   */
  readonly storedBuiltins?: 'json' | 'protobuf';
  readonly compactionIntervalMs: number;
  /** Time to keep Events after their last write (EVENT-3); 0 keeps them forever. */
  readonly eventTtlMs: number;
  /**
   * Whether reads of a resource (`resource[.group]`) may use possibly stale cached objects. By
   * default, only those of events never do.
   */
  readonly freshReads?: 'all' | ReadonlyMap<string, 'fresh' | 'cached'>;
}

/** Flags of etcd, which require `--etcd-servers`. */
const etcdFlags = flagsIn('Storage', {
  'etcd-servers-overrides': {
    type: 'list',
    help: 'Built-in resources stored in a separate etcd: group/resource#servers, with servers separated by semicolons, as /events#http://a:2379;http://b:2379.',
  },
  'etcd-prefix': { type: 'string', default: '/registry', help: 'Prefix of all keys in etcd.' },
  'etcd-cafile': {
    type: 'string',
    file: 'certificates',
    help: "CA bundle for etcd's certificate; the host's CAs when empty.",
  },
  'etcd-certfile': {
    type: 'string',
    file: 'certificates',
    help: 'File with the client certificate for etcd.',
  },
  'etcd-keyfile': {
    type: 'string',
    file: 'private key',
    keyOf: 'etcd-certfile',
    help: 'File with the private key of --etcd-certfile.',
  },
  'etcd-healthcheck-timeout': {
    type: 'duration',
    default: '2s',
    help: 'Timeout of the etcd health check.',
  },
  'etcd-readycheck-timeout': {
    type: 'duration',
    default: '2s',
    help: 'Timeout of the etcd readiness check.',
  },
  'etcd-count-metric-poll-period': {
    type: 'duration',
    default: '1m0s',
    help: 'Maximum age of the metric of stored objects; 0 disables it.',
  },
  'etcd-db-metric-poll-interval': {
    type: 'duration',
    default: '30s',
    help: 'Maximum age of the metric of the size of etcd; 0 disables it.',
  },
  'lease-reuse-duration-seconds': {
    type: 'int',
    default: '60',
    help: 'Maximum time for which Events share one etcd lease.',
  },
});

/** Flags of the store and of its caches. */
const storageFlags = flagsIn('Storage', {
  'data-dir': {
    type: 'string',
    default: './wheelhouse-data',
    stage: 'own',
    help: 'Directory of the embedded store and of generated certificates and keys; created if absent. With --etcd-servers it must not contain a store, and is within --cert-dir if only that flag is given.',
  },
  'storage-backend': {
    type: 'string',
    default: 'embedded',
    stage: 'own',
    help: 'Where objects are stored: embedded (on disk, in --data-dir), memory (lost at exit), or etcd3, which is the default with --etcd-servers.',
  },
  'quota-backend-bytes': {
    type: 'int',
    range: 'not negative',
    stage: 'own',
    help: 'Size in bytes, including history, above which the embedded store refuses writes with 503, except those that free space, and fails /readyz; 0 means no quota. The store always leaves a twentieth of its disk free, at most 64 MiB.',
  },
  'etcd-compaction-interval': {
    type: 'duration',
    range: 'not negative',
    default: '5m0s',
    help: 'How much history to keep for watches and consistent lists; 0 keeps all.',
  },
  'event-ttl': {
    type: 'duration',
    range: 'not negative',
    default: '1h0m0s',
    help: 'How long to keep Events after their last write; 0 keeps them forever.',
  },
  'etcd-servers': {
    type: 'list',
    help: 'URLs of the members of an etcd (v3) that stores the objects, as https://host:2379 or unix:///path/to/socket; several servers may share it.',
  },
  ...etcdFlags,
  'storage-media-type': {
    type: 'string',
    help: "Media type of stored objects of built-in kinds: application/json or the dialect's protobuf; protobuf in etcd and JSON elsewhere when empty. Objects in another encoding stay readable and are converted by their next update.",
  },
  'enable-garbage-collector': {
    after: 'delete-collection-workers',
    type: 'bool',
    default: 'true',
    only: 'deletions always honor their propagation policy',
    help: 'Honor the propagation policy of deletions; always on. --controllers selects whether the collector runs.',
  },
  'watch-cache': {
    type: 'bool',
    default: 'true',
    help: 'Answer reads at resourceVersion 0 from the watch cache without waiting; otherwise they wait until the cache is up to date. All reads use the cache either way.',
  },
  'watch-cache-sizes': {
    type: 'list',
    help: 'Items resource[.group]#size. A size of 0, the default for events, means --watch-cache=false for that resource; other sizes have no effect.',
  },
  'default-watch-cache-size': {
    type: 'int',
    default: '100',
    deprecated:
      'watch caches are sized automatically and this flag will be removed in a future version',
    help: 'Size of watch caches; without effect, since they grow as needed.',
  },
});

/** The store: in memory, on disk, or in etcd. */
export const storageFeature: Feature<typeof storageFlags, StorageSettings> = {
  flags: storageFlags,
  settings(values, { specifiedFlags, dialect }) {
    const fresh = freshReadsOf(values);
    return {
      store: storeOf(values, specifiedFlags),
      ...storedBuiltinsOf(values, dialect),
      compactionIntervalMs: values['etcd-compaction-interval'],
      eventTtlMs: values['event-ttl'],
      ...(fresh === undefined ? {} : { freshReads: fresh }),
    };
  },
};

function storeOf(values: Values, specifiedFlags: ReadonlySet<string>): StorageSettings['store'] {
  const flag = 'storage-backend';
  const allowed = ['embedded', 'memory', 'etcd3'] as const;
  const type = oneOf({ flag, value: values[flag], allowed });
  const etcd = etcdSettings(values, specifiedFlags);
  if ((etcd !== undefined || type === 'memory') && specifiedFlags.has('quota-backend-bytes')) {
    throw new FlagError('--quota-backend-bytes has no effect without --storage-backend=embedded');
  }
  if (etcd !== undefined) return { type: 'etcd', ...etcd };
  if (type === 'memory') return { type };
  const directory = storeDirectory(values['data-dir']);
  const quotaBytes = values['quota-backend-bytes'];
  return { type: 'embedded', directory, ...(quotaBytes > 0 && { quotaBytes }) };
}

function freshReadsOf(values: Values): StorageSettings['freshReads'] {
  const items = values['watch-cache-sizes'];
  const reads = new Map<string, 'fresh' | 'cached'>(
    items.map((item) => [item.split('#')[0] ?? '', cacheSize(item) === 0 ? 'fresh' : 'cached']),
  );
  if (!values['watch-cache']) return 'all';
  return reads.size === 0 ? undefined : reads;
}

/** The size in an item `resource[.group]#size`. Throws FlagError for an invalid item. */
function cacheSize(item: string): number {
  const parts = item.split('#');
  const [, size = ''] = parts;
  if (parts.length !== 2) throw new FlagError(`invalid value of watch cache size: ${item}`);
  if (!/^[+-]?\d+$/.test(size)) throw new FlagError(`invalid size of watch cache size: ${item}`);
  if (Number(size) < 0) throw new FlagError(`watch cache size cannot be negative: ${item}`);
  return Number(size);
}

type Values = FlagValues<typeof storageFlags>;

/**
 * The encoding that `--storage-media-type` names; undefined when not given. Throws FlagError for
 * another media type.
 */
function storedBuiltinsOf(
  { 'storage-media-type': mediaType }: Values,
  { protobufMediaType }: Dialect,
): Pick<StorageSettings, 'storedBuiltins'> {
  if (mediaType === '') return {};
  if (mediaType === 'application/json') return { storedBuiltins: 'json' };
  if (mediaType === protobufMediaType) return { storedBuiltins: 'protobuf' };
  throw new FlagError(
    `--storage-media-type ${JSON.stringify(mediaType)} invalid, allowed values: ` +
      `application/json, ${protobufMediaType}`,
  );
}

/**
 * The etcd settings from the flags; undefined without etcd. Throws FlagError for contradictions.
 */
function etcdSettings(
  values: Values,
  specifiedFlags: ReadonlySet<string>,
): EtcdSettings | undefined {
  const servers = values['etcd-servers'];
  const backend = specifiedFlags.has('storage-backend') ? values['storage-backend'] : undefined;
  if (servers.length === 0) {
    if (backend === 'etcd3') throw new FlagError('--etcd-servers must be specified');
    const idle = Object.keys(etcdFlags).find((name) => specifiedFlags.has(name));
    if (idle !== undefined) throw new FlagError(`--${idle} has no effect without --etcd-servers`);
    return undefined;
  }
  if (backend !== undefined && backend !== 'etcd3') {
    throw new FlagError(`--storage-backend=${backend} contradicts --etcd-servers`);
  }
  checkValues(values);
  const files = {
    ...fileOf('caFile', values['etcd-cafile']),
    ...fileOf('certFile', values['etcd-certfile']),
    ...fileOf('keyFile', values['etcd-keyfile']),
  };
  const overrides = values['etcd-servers-overrides'].map((text) => readOverride(text));
  const addresses = [...servers, ...overrides.flatMap((override) => override.servers)];
  checkServers(addresses, { hasCertificates: Object.keys(files).length > 0 });
  return {
    servers,
    ...(overrides.length === 0 ? {} : { overrides }),
    prefix: normalPrefix(values['etcd-prefix']),
    ...files,
    healthcheckTimeoutMs: values['etcd-healthcheck-timeout'],
    readycheckTimeoutMs: values['etcd-readycheck-timeout'],
    countMetricMs: values['etcd-count-metric-poll-period'],
    sizeMetricMs: values['etcd-db-metric-poll-interval'],
    leaseReuseMs: values['lease-reuse-duration-seconds'] * 1000,
  };
}

function fileOf<Name extends string>(name: Name, path: string): { [Key in Name]?: string } {
  return (path === '' ? {} : { [name]: path }) as { [Key in Name]?: string };
}

function checkValues(values: Values): void {
  for (const name of ['etcd-count-metric-poll-period', 'etcd-db-metric-poll-interval'] as const) {
    if (values[name] < 0) throw new FlagError(`--${name} can not be negative value`);
  }
  for (const name of [
    'etcd-healthcheck-timeout',
    'etcd-readycheck-timeout',
    'lease-reuse-duration-seconds',
  ] as const) {
    if (values[name] <= 0) throw new FlagError(`--${name} must be greater than 0`);
  }
}

function checkServers(
  servers: readonly string[],
  options: { readonly hasCertificates: boolean },
): void {
  for (const server of servers) {
    try {
      addressOf(server, options);
    } catch (error) {
      throw new FlagError(errorText(error));
    }
  }
}

/** `group/resource#server;server`. */
function readOverride(text: string): NonNullable<EtcdSettings['overrides']>[number] {
  const [path = '', list, ...rest] = text.split('#');
  const [group, resource, ...deeper] = path.split('/');
  const servers = list?.split(';') ?? [];
  const isWhole = rest.length === 0 && deeper.length === 0 && !servers.includes('');
  if (group === undefined || !resource || servers.length === 0 || !isWhole) {
    throw new FlagError(
      `--etcd-servers-overrides invalid, must be of format: group/resource#servers, where servers are URLs, semicolon separated, got: ${text}`,
    );
  }
  return { group, resource, servers };
}

/** Adds the leading slash and removes trailing ones, as kube-apiserver does. */
function normalPrefix(prefix: string): string {
  const steps = prefix.split('/').filter((step) => step !== '');
  return steps.length === 0 ? '' : `/${steps.join('/')}`;
}

import { type Dialect, errorText } from '@wheelhouse/machinery';
import { addressOf } from '@wheelhouse/store';
import type { Feature } from '../feature.ts';
import { FlagError, type FlagTable, type FlagValues, oneOf } from '../flags/flags.ts';
import { storeDirectory } from './data-directory.ts';

/** An etcd that objects are kept in (STORE-2). Certificates and keys are PEM files. */
export interface EtcdSettings {
  /** URLs of its members. */
  readonly servers: readonly string[];
  /** Resources that are kept elsewhere. */
  readonly overrides?: readonly {
    readonly group: string;
    readonly resource: string;
    readonly servers: readonly string[];
  }[];
  /** What all keys begin with: `/registry`. */
  readonly prefix: string;
  readonly caFile?: string;
  readonly certFile?: string;
  readonly keyFile?: string;
  readonly healthcheckTimeoutMs: number;
  readonly readycheckTimeoutMs: number;
  /** How old the metric of stored objects may be; 0 leaves it out. */
  readonly countMetricMs: number;
  /** The same for the metric of etcd's size. */
  readonly sizeMetricMs: number;
  /** For how long Events share a lease. */
  readonly leaseReuseMs: number;
}

/** Where objects are kept, and for how long. Times in milliseconds. */
export interface StorageSettings {
  readonly store:
    | { readonly type: 'memory' }
    | {
        readonly type: 'embedded';
        readonly directory: string;
        /** Above which the store takes no more; no quota when absent. */
        readonly quotaBytes?: number;
      }
    | ({ readonly type: 'etcd' } & EtcdSettings);
  /**
   * How objects of built-in kinds are stored from now on; absent: protobuf in etcd, else JSON.
   * What is stored otherwise is read all the same.
   */
  readonly storedBuiltins?: 'json' | 'protobuf';
  readonly compactionIntervalMs: number;
  /** How long Events are kept after their last write (EVENT-3); 0 is for ever. */
  readonly eventTtlMs: number;
  /** Resources (`resource[.group]`) whose reads never take what is cached as it is; none when absent. */
  readonly freshReads?: 'all' | readonly string[];
}

/** Flags about etcd, which have no use without `--etcd-servers`. */
const etcdFlags = {
  'etcd-servers-overrides': {
    group: 'Storage',
    type: 'list',
    default: '',
    help: 'Built-in resources that have an etcd of their own: group/resource#servers, the servers with semicolons between them, as /events#http://a:2379;http://b:2379.',
  },
  'etcd-prefix': {
    group: 'Storage',
    type: 'string',
    default: '/registry',
    help: 'What all keys in etcd begin with.',
  },
  'etcd-cafile': {
    group: 'Storage',
    type: 'string',
    file: 'certificates',
    default: '',
    help: 'File of CAs that etcd is to have its certificate from. The authorities of the host when empty.',
  },
  'etcd-certfile': {
    group: 'Storage',
    type: 'string',
    file: 'certificates',
    default: '',
    help: 'File with the client certificate shown to etcd.',
  },
  'etcd-keyfile': {
    group: 'Storage',
    type: 'string',
    file: 'private key',
    keyOf: 'etcd-certfile',
    default: '',
    help: 'File with the private key of --etcd-certfile.',
  },
  'etcd-healthcheck-timeout': {
    group: 'Storage',
    type: 'duration',
    default: '2s',
    help: 'How long etcd may take to answer the health check.',
  },
  'etcd-readycheck-timeout': {
    group: 'Storage',
    type: 'duration',
    default: '2s',
    help: 'How long etcd may take to answer the readiness check.',
  },
  'etcd-count-metric-poll-period': {
    group: 'Storage',
    type: 'duration',
    default: '1m0s',
    help: 'How old the metric of stored objects may be. 0 leaves it out.',
  },
  'etcd-db-metric-poll-interval': {
    group: 'Storage',
    type: 'duration',
    default: '30s',
    help: 'How old the metric of the size of etcd may be. 0 leaves it out.',
  },
  'lease-reuse-duration-seconds': {
    group: 'Storage',
    type: 'int',
    default: '60',
    help: 'For how long at most Events are given the same lease of etcd.',
  },
} as const satisfies FlagTable;

/** Flags of the store and of the caches in front of it. */
export const storageFlags = {
  'data-dir': {
    group: 'Storage',
    type: 'string',
    default: './wheelhouse-data',
    stage: 'own',
    help: 'Directory of the embedded store, the self-made certificates and keys. Made when absent. With --etcd-servers it must not be one that has a store, and is within --cert-dir when only that is given.',
  },
  'storage-backend': {
    group: 'Storage',
    type: 'string',
    default: 'embedded',
    stage: 'own',
    help: 'Where objects are kept: embedded (on disk, in --data-dir), memory (gone at exit) or etcd3. The last one when --etcd-servers is given.',
  },
  'quota-backend-bytes': {
    group: 'Storage',
    type: 'int',
    range: 'not negative',
    default: '0',
    stage: 'own',
    help: 'Bytes of objects and their history above which the embedded store takes no more: writes that do not make room are refused with 503 and /readyz fails until there is room again. 0 is no quota; the store always keeps a twentieth of its disk free, 64 MiB at most.',
  },
  'etcd-compaction-interval': {
    group: 'Storage',
    type: 'duration',
    range: 'not negative',
    default: '5m0s',
    help: 'How much history is kept for watches and consistent lists. 0 keeps all.',
  },
  'event-ttl': {
    group: 'Storage',
    type: 'duration',
    range: 'not negative',
    default: '1h0m0s',
    help: 'How long Events are kept after their last write. 0 keeps them.',
  },
  'etcd-servers': {
    group: 'Storage',
    type: 'list',
    default: '',
    help: 'URLs of the members of an etcd (v3), as https://host:2379: objects are kept there, and several servers may share it.',
  },
  ...etcdFlags,
  'storage-media-type': {
    group: 'Storage',
    type: 'string',
    default: '',
    help: "The media type in which objects of built-in kinds are stored: application/json or the dialect's protobuf. Protobuf in etcd and JSON elsewhere when empty. Objects stored in another one are read, and rewritten when they are next updated.",
  },
  'enable-garbage-collector': {
    group: 'Storage',
    after: 'delete-collection-workers',
    type: 'bool',
    default: 'true',
    only: 'deletions always do what they are asked for with dependents',
    help: 'Deletions do what they are asked for with dependents. It cannot be turned off; --controllers says whether the collector runs.',
  },
  'watch-cache': {
    group: 'Storage',
    type: 'bool',
    default: 'true',
    help: 'Let reads that name a resourceVersion of 0 be answered from the watch cache as it is. Without it they wait until the cache is as new as the store; everything is read from it all the same.',
  },
  'watch-cache-sizes': {
    group: 'Storage',
    type: 'list',
    default: '',
    help: 'Items resource[.group]#size. Watch caches have the size they need; 0 means for one resource what --watch-cache=false means for all.',
  },
  'default-watch-cache-size': {
    group: 'Storage',
    type: 'int',
    default: '100',
    deprecated:
      'watch caches are sized automatically and this flag will be removed in a future version',
    help: 'Size of watch caches, which have the size they need.',
  },
} as const satisfies FlagTable;

/** The store: in memory, on disk, or etcd. */
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
  if (etcd !== undefined) return { type: 'etcd', ...etcd };
  if (type === 'memory') return { type };
  const directory = storeDirectory(values['data-dir']);
  const quotaBytes = values['quota-backend-bytes'];
  return { type: 'embedded', directory, ...(quotaBytes > 0 && { quotaBytes }) };
}

function freshReadsOf(values: Values): StorageSettings['freshReads'] {
  const uncached = values['watch-cache-sizes'].filter((item) => cacheSize(item) === 0);
  if (!values['watch-cache']) return 'all';
  return uncached.length === 0 ? undefined : uncached.map((item) => item.split('#')[0] ?? '');
}

/** The size of an item `resource[.group]#size`. Throws FlagError for what is none. */
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
 * The encoding that `--storage-media-type` names; nothing where it is not given. Throws FlagError for
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
 * The etcd that the flags ask for; undefined when they ask for none. Throws FlagError for what
 * contradicts itself.
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
    if (idle !== undefined) throw new FlagError(`--${idle} has no use without --etcd-servers`);
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
  const addresses = [...servers, ...overrides.flatMap((one) => one.servers)];
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

/** One slash ahead and none behind, as upstream makes it. */
function normalPrefix(prefix: string): string {
  const steps = prefix.split('/').filter((step) => step !== '');
  return steps.length === 0 ? '' : `/${steps.join('/')}`;
}

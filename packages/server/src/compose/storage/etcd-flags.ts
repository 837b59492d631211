import type { Dialect } from '@wheelhouse/machinery';
import { addressOf } from '@wheelhouse/store';
import type { EtcdSettings, ServerConfig } from '../flags/config.ts';
import { FlagError, type FlagTable, type FlagValues } from '../flags/flags.ts';

/** Flags about etcd as the store, part of `serverFlags`. */
export const etcdFlags = {
  'etcd-servers': {
    group: 'Storage',
    type: 'list',
    default: '',
    help: 'URLs of the members of an etcd (v3), as https://host:2379: objects are kept there, and several servers may share it.',
  },
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
  'storage-media-type': {
    group: 'Storage',
    type: 'string',
    default: '',
    help: "The media type in which objects of built-in kinds are stored: application/json or the dialect's protobuf. Protobuf in etcd and JSON elsewhere when empty. Objects stored in another one are read, and rewritten when they are next updated.",
  },
} as const satisfies FlagTable;

type Values = FlagValues<typeof etcdFlags>;

const needServers = [
  'etcd-servers-overrides',
  'etcd-prefix',
  'etcd-cafile',
  'etcd-certfile',
  'etcd-keyfile',
  'etcd-healthcheck-timeout',
  'etcd-readycheck-timeout',
  'etcd-count-metric-poll-period',
  'etcd-db-metric-poll-interval',
  'lease-reuse-duration-seconds',
] as const;

/**
 * The encoding that `--storage-media-type` names; nothing where it is not given. Throws FlagError for
 * another media type.
 */
export function storedBuiltinsOf(
  { 'storage-media-type': mediaType }: Values,
  { protobufMediaType }: Dialect,
): Pick<ServerConfig, 'storedBuiltins'> {
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
export function etcdOptions(
  values: Values & { readonly 'storage-backend': string },
  specifiedFlags: ReadonlySet<string>,
): EtcdSettings | undefined {
  const servers = values['etcd-servers'];
  const backend = specifiedFlags.has('storage-backend') ? values['storage-backend'] : undefined;
  if (servers.length === 0) {
    if (backend === 'etcd3') throw new FlagError('--etcd-servers must be specified');
    const idle = needServers.find((name) => specifiedFlags.has(name));
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
  if ((values['etcd-certfile'] === '') !== (values['etcd-keyfile'] === '')) {
    throw new FlagError('--etcd-certfile and --etcd-keyfile must be given together');
  }
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
      throw new FlagError(error instanceof Error ? error.message : String(error));
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

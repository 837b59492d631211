import type { LogFormat } from '../process/logging.ts';
import { FlagError, type FlagTable, type FlagValues } from './flags.ts';

/**
 * Flags of upstream's that say how its process does what this one does in one way, part of
 * `serverFlags`: those with `only` can be given what is done anyway, and nothing else.
 */
export const inheritedFlags = {
  'delete-collection-workers': {
    group: 'Storage',
    type: 'int',
    default: '16',
    help: 'Objects that one request to delete a collection deletes at a time.',
  },
  'enable-garbage-collector': {
    group: 'Storage',
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
  'storage-initialization-timeout': {
    group: 'Generic',
    type: 'duration',
    default: '1m0s',
    help: 'When given: how long the start waits for the caches that every request needs, before readiness does without them.',
  },
  profiling: {
    group: 'Misc',
    type: 'bool',
    default: 'false',
    only: 'this process has no profiles to show at /debug/pprof/',
    help: 'Upstream’s profiles of its runtime at /debug/pprof/. There are none here.',
  },
  'contention-profiling': {
    group: 'Misc',
    type: 'bool',
    default: 'false',
    only: 'this process has no profiles to show',
    help: 'Upstream’s profiles of waiting for locks. There are none here.',
  },
  'debug-socket-path': {
    group: 'Misc',
    type: 'string',
    default: '',
    only: 'this process has no profiles to show',
    help: 'A socket for upstream’s profiles. There are none here.',
  },
  'max-connection-bytes-per-sec': {
    group: 'Misc',
    type: 'int',
    default: '0',
    only: 'there are no streams into containers that could be slowed down',
    help: 'Bound on the streams into containers, of which this control plane has none.',
  },
  'egress-selector-config-file': {
    group: 'Misc',
    type: 'string',
    default: '',
    only: 'connections go out directly, not through a proxy',
    help: 'Proxies for connections that the server makes. They go out directly.',
  },
  'tracing-config-file': {
    group: 'Misc',
    type: 'string',
    default: '',
    only: 'this server records no traces',
    help: 'Where traces of requests are sent. This server records none.',
  },
  'permit-address-sharing': {
    group: 'Secure serving',
    type: 'bool',
    default: 'false',
    help: 'Listen although connections of an earlier server linger on the port. So it is either way: the runtime always asks for SO_REUSEADDR.',
  },
  'permit-port-sharing': {
    group: 'Secure serving',
    type: 'bool',
    default: 'false',
    only: 'this runtime cannot share a port (SO_REUSEPORT)',
    help: 'Upstream’s listening of several servers on one port, which this runtime does not have.',
  },
  'peer-ca-file': {
    group: 'Misc',
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
  'logging-format': {
    group: 'Logs',
    type: 'string',
    default: 'json',
    help: 'How lines of the log are written: json, an object each, or text, which is upstream’s default.',
  },
  'log-flush-frequency': {
    group: 'Logs',
    type: 'duration',
    default: '5s',
    help: 'How long a line of the log may wait before it is written. None waits: each is written at once.',
  },
  'log-text-info-buffer-size': {
    group: 'Logs',
    type: 'string',
    stage: 'alpha',
    default: '0',
    only: 'lines of the log are written at once',
    help: 'Bytes of the log that may wait. None do.',
  },
  'log-text-split-stream': {
    group: 'Logs',
    type: 'bool',
    stage: 'alpha',
    default: 'false',
    only: 'the log goes to the standard error alone',
    help: 'Whether errors go elsewhere than the rest of the log. All go to the standard error.',
  },
  vmodule: {
    group: 'Logs',
    type: 'list',
    default: '',
    only: 'the log knows no source files, use -v',
    help: 'Verbosity by source files, which this log does not know.',
  },
} as const satisfies FlagTable;

type Values = FlagValues<typeof inheritedFlags>;

/** Options from the flags. Throws FlagError for sizes and counts out of range. */
export function inheritedOptions(
  values: Values,
  specifiedFlags: ReadonlySet<string>,
): {
  readonly collectionWorkersMax: number;
  readonly storageWaitMs?: number;
  /** The resources whose reads always wait for the store. */
  readonly freshReads?: 'all' | readonly string[];
  readonly logFormat: LogFormat;
} {
  const uncached = values['watch-cache-sizes'].filter((item) => cacheSize(item) === 0);
  const workers = values['delete-collection-workers'];
  const format = values['logging-format'];
  if (format !== 'json' && format !== 'text') {
    throw new FlagError(`format: Invalid value: ${JSON.stringify(format)}: Unsupported log format`);
  }
  if (workers < 1) throw new FlagError('--delete-collection-workers must be greater than 0');
  const waitMs = values['storage-initialization-timeout'];
  if (waitMs < 0) throw new FlagError('--storage-initialization-timeout can not be negative value');
  return {
    logFormat: format,
    collectionWorkersMax: workers,
    ...(values['watch-cache'] ? {} : { freshReads: 'all' }),
    ...(values['watch-cache'] && uncached.length > 0
      ? { freshReads: uncached.map((item) => item.split('#')[0] ?? '') }
      : {}),
    ...(specifiedFlags.has('storage-initialization-timeout') ? { storageWaitMs: waitMs } : {}),
  };
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

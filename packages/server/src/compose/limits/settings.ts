import { FlagError, type FlagValues, flagsIn } from '../../flags/flags.ts';
import type { Feature } from '../feature.ts';

/** Limits on single requests and on all of them together. Times are in milliseconds. */
export interface LimitSettings {
  readonly limits: {
    readonly bodyBytesMax: number;
    readonly requestTimeoutMs: number;
    readonly minRequestTimeoutMs: number;
    readonly readsInFlightMax: number;
    readonly writesInFlightMax: number;
    readonly streamsPerConnectionMax?: number;
    /**
     * Bytes that clients may make the server hold (TRUST-4); derived from the heap limit when
     * absent.
     */
    readonly memoryBytes?: number;
    /**
     * Maximum number of open connections (TRUST-4); derived from the limit on open files when
     * absent.
     */
    readonly connectionsMax?: number;
    /** Concurrent deletions of one request that deletes a collection. */
    readonly collectionWorkersMax?: number;
  };
  /**
   * Flow control (OPS-3); priority and fairness when absent. `ignored` objects are neither created
   * nor read, and the defaults apply.
   */
  readonly flowControl?:
    | { readonly type: 'max-in-flight' }
    | { readonly type: 'priority-and-fairness'; readonly objects: 'followed' | 'ignored' };
}

/** Flags of limits on requests and clients. */
const limitFlags = flagsIn('Generic', {
  'request-timeout': {
    type: 'duration',
    range: 'positive',
    default: '1m0s',
    help: 'Time limit of requests other than watches and streams; clients may lower it with ?timeout. A request that exceeds it is answered 504 and stores nothing afterwards.',
  },
  'min-request-timeout': {
    type: 'int',
    range: 'not negative',
    default: '1800',
    help: 'Minimum seconds that a watch stays open, unless its client requests less; the server picks a random value above it to spread load.',
  },
  'max-requests-inflight': {
    type: 'int',
    range: 'not negative',
    default: '400',
    help: 'Added to --max-mutating-requests-inflight, the number of seats of the server. Without priority and fairness, the limit on non-mutating requests in flight, above which requests are answered 429; 0 means no limit.',
  },
  'max-mutating-requests-inflight': {
    type: 'int',
    range: 'not negative',
    default: '200',
    help: 'Added to --max-requests-inflight, the number of seats of the server. Without priority and fairness, the limit on mutating requests in flight, above which requests are answered 429; 0 means no limit.',
  },
  'enable-priority-and-fairness': {
    type: 'bool',
    default: 'true',
    help: 'Use FlowSchemas and PriorityLevelConfigurations to decide which requests run, wait, or are answered 429 under load; otherwise only the numbers of reads and writes in flight are limited.',
  },
  'max-request-body-bytes': {
    type: 'int',
    range: 'positive',
    default: '3145728',
    stage: 'own',
    help: 'Maximum size of a request body in bytes; a larger one is answered 413.',
  },
  'memory-budget-mb': {
    type: 'int',
    range: 'not negative',
    stage: 'own',
    help: 'Limit in MiB on the memory that clients make the server hold: connections, requests in flight, watches, selectors, and unread answers. Near it, clients above their share are answered 429; above it, the heaviest are disconnected. 0 derives it from the limits of the heap and the host.',
  },
  'max-connections': {
    type: 'int',
    range: 'not negative',
    stage: 'own',
    help: 'Maximum number of open connections; at the limit, a new connection replaces an idle one. 0 derives it from the limit on open files, less a reserve for the store.',
  },
  'http2-max-streams-per-connection': {
    group: 'Secure serving',
    after: 'disable-http2-serving',
    type: 'int',
    range: 'not negative',
    help: 'Maximum number of concurrent HTTP/2 streams per connection; 0 means 1000.',
  },
  'delete-collection-workers': {
    group: 'Storage',
    after: 'encryption-provider-config-automatic-reload',
    type: 'int',
    range: 'positive',
    default: '16',
    help: 'Number of objects that a request to delete a collection deletes concurrently.',
  },
  'max-connection-bytes-per-sec': {
    group: 'Misc',
    after: 'debug-socket-path',
    type: 'int',
    only: 'the speed of streams into containers is not limited',
    help: 'Limit on the bytes per second of a stream into a container; streams are not limited here.',
  },
});

type Values = FlagValues<typeof limitFlags>;

/** Limits on requests and clients, and flow control. */
export const limitFeature: Feature<typeof limitFlags, LimitSettings> = {
  flags: limitFlags,
  settings(values) {
    const hasFlowControl = values['enable-priority-and-fairness'];
    const inFlight = [values['max-requests-inflight'], values['max-mutating-requests-inflight']];
    if (hasFlowControl && inFlight.every((limit) => limit === 0)) {
      throw new FlagError(
        '--max-requests-inflight=0 and --max-mutating-requests-inflight=0 leave no seats: they must add up to something positive with --enable-priority-and-fairness',
      );
    }
    return {
      limits: limitsOf(values),
      ...(hasFlowControl ? {} : { flowControl: { type: 'max-in-flight' } as const }),
    };
  },
};

function limitsOf(values: Values): LimitSettings['limits'] {
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
    collectionWorkersMax: values['delete-collection-workers'],
  };
}

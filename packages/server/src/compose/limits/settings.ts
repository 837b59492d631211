import type { Feature } from '../feature.ts';
import { FlagError, type FlagTable, type FlagValues } from '../flags/flags.ts';

/** What one request may take, and what all of them may. Times in milliseconds. */
export interface LimitSettings {
  readonly limits: {
    readonly bodyBytesMax: number;
    readonly requestTimeoutMs: number;
    readonly minRequestTimeoutMs: number;
    readonly readsInFlightMax: number;
    readonly writesInFlightMax: number;
    readonly streamsPerConnectionMax?: number;
    /** What clients may make the server hold, bytes (TRUST-4); by the heap's limit when absent. */
    readonly memoryBytes?: number;
    /** Open connections (TRUST-4); by the limit on open files when absent. */
    readonly connectionsMax?: number;
    /** Deletions of one request that run at a time. */
    readonly collectionWorkersMax?: number;
  };
  /**
   * Who runs when not all can (OPS-3); priority and fairness when absent. `ignored` objects are
   * neither made nor read: the defaults rule, as on a server of which nobody has changed them.
   */
  readonly flowControl?:
    | { readonly type: 'max-in-flight' }
    | { readonly type: 'priority-and-fairness'; readonly objects: 'followed' | 'ignored' };
}

/** Flags of what requests and clients may take. */
export const limitFlags = {
  'request-timeout': {
    group: 'Generic',
    type: 'duration',
    range: 'positive',
    default: '1m0s',
    help: 'How long a request may take that is no watch and no other stream; a client may ask for less by ?timeout. It is then answered 504, and nothing is stored for it any more.',
  },
  'min-request-timeout': {
    group: 'Generic',
    type: 'int',
    range: 'not negative',
    default: '1800',
    help: 'Seconds a watch is kept open at least, unless it asks for less; a random value above it spreads load.',
  },
  'max-requests-inflight': {
    group: 'Generic',
    type: 'int',
    range: 'not negative',
    default: '400',
    help: "The server's seats are this and --max-mutating-requests-inflight together. Without priority and fairness: limit on non-mutating requests in flight, more are answered 429; 0 is no limit.",
  },
  'max-mutating-requests-inflight': {
    group: 'Generic',
    type: 'int',
    range: 'not negative',
    default: '200',
    help: "The server's seats are this and --max-requests-inflight together. Without priority and fairness: limit on mutating requests in flight, more are answered 429; 0 is no limit.",
  },
  'enable-priority-and-fairness': {
    group: 'Generic',
    type: 'bool',
    default: 'true',
    help: 'Let FlowSchemas and PriorityLevelConfigurations say who runs, who waits and who is answered 429 when not all requests can run. Otherwise reads and writes are counted, and that is all.',
  },
  'max-request-body-bytes': {
    group: 'Generic',
    type: 'int',
    range: 'positive',
    default: '3145728',
    stage: 'own',
    help: 'Limit on the size of a request body; a larger one is answered 413.',
  },
  'memory-budget-mb': {
    group: 'Generic',
    type: 'int',
    range: 'not negative',
    default: '0',
    stage: 'own',
    help: 'Limit in MiB on what clients make the server hold: connections, requests in flight, watches, selectors and answers that are not read. Near it, clients that hold more than their share are answered 429; above it, the heaviest are cut off. 0 derives it from the limits of the heap and of the host.',
  },
  'max-connections': {
    group: 'Generic',
    type: 'int',
    range: 'not negative',
    default: '0',
    stage: 'own',
    help: 'Limit on open connections. At it, a new one takes the place of an idle one. 0 derives it from the limit on open files, of which some are kept for the store.',
  },
  'http2-max-streams-per-connection': {
    group: 'Secure serving',
    after: 'disable-http2-serving',
    type: 'int',
    range: 'not negative',
    default: '0',
    help: 'Limit on concurrent HTTP/2 streams of one connection. 0 leaves it to the server (1000).',
  },
  'delete-collection-workers': {
    group: 'Storage',
    after: 'encryption-provider-config-automatic-reload',
    type: 'int',
    range: 'positive',
    default: '16',
    help: 'Objects that one request to delete a collection deletes at a time.',
  },
  'max-connection-bytes-per-sec': {
    group: 'Misc',
    after: 'debug-socket-path',
    type: 'int',
    default: '0',
    only: 'streams into containers have no bound on their speed',
    help: 'Limit on the bytes per second of a stream into a container. Streams have none here.',
  },
} as const satisfies FlagTable;

type Values = FlagValues<typeof limitFlags>;

/** Limits on requests and clients, and flow control, which shares what there is. */
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

import type { Clock, UserInfo } from '@wheelhouse/machinery';
import { dealHand, flowHash } from './classifier.ts';
import type { FlowInfo, FlowRequest } from './contract.ts';
import { Overloaded } from './contract.ts';
import type { FlowSeries } from './flow-metrics.ts';
import { QueueSet } from './queue-set.ts';
import { type Flow, Seat, type WorkEstimate } from './seat.ts';

/** Creates a generator of pseudorandom numbers below a bound, reproducible from the seed. */
export function randomOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((state / 2_147_483_648) * below);
  };
}

/** A series that discards its samples. */
export const discardedSeries: FlowSeries = {
  observeEstimate: () => {},
  begin: () => {},
  end: () => {},
  release: () => {},
  enqueue: () => {},
  changeWaiting: () => {},
  reject: () => {},
  countNoAccommodation: () => {},
  observeWatches: () => {},
};

/** Creates a user with these groups. */
export function userOf(name: string, groups: readonly string[] = []): UserInfo {
  return { name, uid: '', groups, extra: {} };
}

/** The attributes of a GET of a ConfigMap, with changes. */
export function infoOf(more: Partial<FlowInfo> = {}): FlowInfo {
  return {
    verb: 'get',
    path: '/api/v1/namespaces/n/configmaps/a',
    isResourceRequest: true,
    group: '',
    version: 'v1',
    namespace: 'n',
    resource: 'configmaps',
    subresource: '',
    name: 'a',
    query: new URLSearchParams(),
    ...more,
  };
}

/** A request whose client can disconnect. */
export function requestOf(
  user: UserInfo,
  info: FlowInfo = infoOf(),
): FlowRequest & { abort(): void } {
  const callbacks: (() => void)[] = [];
  const exchange = {
    aborted: false,
    onAbort: (callback: () => void) => void callbacks.push(callback),
  };
  return {
    user,
    info,
    exchange,
    abort() {
      exchange.aborted = true;
      for (const callback of callbacks) callback();
    },
  };
}

/** A small deck. */
export const queuing = { queues: 8, handSize: 2, queueLengthLimit: 50 };

/** A flow of a flow schema, identified by its name. */
export function flowOf(name: string, deck: { queues: number; handSize: number } = queuing): Flow {
  return {
    distinguisher: name,
    hand: dealHand(flowHash('schema', name), deck),
    series: discardedSeries,
    flowClass: {
      flowSchema: 'schema',
      flowSchemaUid: '',
      priorityLevel: 'level',
      priorityLevelUid: '',
    },
  };
}

/** Creates a set of queues, and a function that creates seats for it. */
export function queueSetOf(clock: Clock, waitLimitMs = 15_000) {
  const rejection = () => new Overloaded(1);
  const set = new QueueSet({ clock, rejection, waitLimitMs: () => waitLimitMs });
  const oneSeat: WorkEstimate = { initialSeats: 1, finalSeats: 0, lingerMs: 0 };
  const seatOf = (flow: Flow, work: WorkEstimate = oneSeat) =>
    new Seat(requestOf(userOf(flow.distinguisher)), flow, set, work);
  return { set, seatOf };
}

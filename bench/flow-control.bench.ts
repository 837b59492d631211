import { defaultFlowObjects } from '@wheelhouse/kinds';
import { createMetricRegistry, dialectOf, systemClock } from '@wheelhouse/machinery';
import {
  createFlowMetrics,
  FairFlowControl,
  type FlowRequest,
  limitInFlight,
  readLevel,
  readSchema,
  WatchCounts,
} from '@wheelhouse/server/testing';

/**
 * Measures the time that a request with an available seat spends in flow control, entering and
 * leaving, compared to the plain limit on requests in flight. Prints medians in nanoseconds. Run:
 * `npx tsx --conditions=source bench/flow-control.bench.ts`.
 */
const defaults = defaultFlowObjects(dialectOf('svc'));
const fair = new FairFlowControl({
  clock: systemClock,
  seatsTotal: 600,
  requestTimeoutMs: 60_000,
  defaults: {
    levels: defaults.levels.flatMap((object) => readLevel(object) ?? []),
    schemas: defaults.schemas.map(readSchema),
  },
  countObjects: () => 100,
  watches: new WatchCounts(),
  seriesOf: createFlowMetrics(createMetricRegistry({ release: '1.32', hidden: 'hidden' })).seriesOf,
});
const plain = limitInFlight({ readOnlyMax: 400, mutatingMax: 200 });

const query = new URLSearchParams();
const exchange = { aborted: false, onAbort: () => {} };

function requestsOf(name: string, groups: readonly string[], verb: string): FlowRequest[] {
  const user = { name, uid: '', groups, extra: {} };
  return Array.from({ length: 64 }, (_, index) => ({
    user,
    exchange,
    info: {
      verb,
      path: `/api/v1/namespaces/default/configmaps/c${index}`,
      isResourceRequest: true,
      group: '',
      version: 'v1',
      namespace: 'default',
      resource: 'configmaps',
      subresource: '',
      name: verb === 'list' ? '' : `c${index}`,
      query,
    },
  }));
}

/** @param atOnce number of concurrent requests, as on a busy server */
function median(
  gate: Pick<FairFlowControl, 'enter'>,
  requests: readonly FlowRequest[],
  atOnce: number,
) {
  const samples: number[] = [];
  for (let round = 0; round < 400; round++) {
    const start = performance.now();
    for (let batch = 0; batch < 512 / atOnce; batch++) {
      const places = [];
      for (let at = 0; at < atOnce; at++) {
        places.push(gate.enter(requests[at % requests.length] as FlowRequest));
      }
      for (const place of places) if (!(place instanceof Promise)) place.release();
    }
    samples.push(((performance.now() - start) * 1e6) / 512);
  }
  return Math.round(samples.sort((left, right) => left - right)[samples.length / 2] ?? 0);
}

const everybody = ['system:authenticated'];
const rows: readonly (readonly [string, FlowRequest[]])[] = [
  ['administrator, GET', requestsOf('admin', ['system:masters', ...everybody], 'get')],
  ['user, GET', requestsOf('alice', everybody, 'get')],
  ['user, PUT', requestsOf('alice', everybody, 'update')],
  ['user, LIST', requestsOf('alice', everybody, 'list')],
  ['node, GET', requestsOf('system:node:n', ['system:nodes', ...everybody], 'get')],
];
for (const [name, requests] of rows) {
  for (const atOnce of [1, 16]) {
    const [plainNs, fairNs] = [median(plain, requests, atOnce), median(fair, requests, atOnce)];
    console.log(`${name}, ${atOnce} at once: fair ${fairNs} ns, plain limit ${plainNs} ns`);
  }
}
fair.close();

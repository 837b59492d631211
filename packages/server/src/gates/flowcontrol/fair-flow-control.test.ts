import { defaultFlowObjects } from '@wheelhouse/kinds';
import { createMetricRegistry, dialectOf } from '@wheelhouse/machinery';
import { FakeClock } from '@wheelhouse/machinery/testing';
import { describe, expect, test } from 'vitest';
import type { FlowInfo, GrantedSeat } from './contract.ts';
import { FairFlowControl, WatchCounts } from './fair-flow-control.ts';
import { createFlowMetrics } from './flow-metrics.ts';
import { readLevel, readSchema } from './settings.ts';
import { discardedSeries, infoOf, requestOf, userOf } from './testing.ts';

const objects = defaultFlowObjects(dialectOf('svc'));
const defaults = {
  levels: objects.levels.flatMap((object) => readLevel(object) ?? []),
  schemas: objects.schemas.map(readSchema),
};

function fairOf(seatsTotal: number) {
  const clock = new FakeClock();
  const registry = createMetricRegistry({ release: '1.32', hidden: 'hidden' });
  const fair = new FairFlowControl({
    clock,
    seatsTotal,
    requestTimeoutMs: 60_000,
    defaults,
    countObjects: () => undefined,
    watches: new WatchCounts(),
    seriesOf: createFlowMetrics(registry).seriesOf,
  });
  const currentOf = (level: string) => fair.levels.of(level)?.current ?? Number.NaN;
  return { clock, fair, currentOf, registry };
}

const authenticatedGroup = 'system:authenticated';

/** The level and schema of a user's request. */
function classOf(user: string, groups: readonly string[], info: Partial<FlowInfo> = {}): string {
  const { fair, registry } = fairOf(600);
  const place = fair.enter(requestOf(userOf(user, groups), infoOf(info)));
  fair.close();
  expect(place).not.toBeInstanceOf(Promise);
  const line = registry
    .render()
    .split('\n')
    .find((sample) => sample.startsWith('apiserver_flowcontrol_dispatched_requests_total{'));
  const [, schema, level] = /flow_schema="([^"]+)",priority_level="([^"]+)"/.exec(line ?? '') ?? [];
  return `${level} by ${schema}`;
}

describe('OPS-3: the default level of a request', () => {
  const lease = { group: 'coordination.svc.io', resource: 'leases' };
  const probe = { isResourceRequest: false, path: '/readyz' };
  test.each<[string, readonly string[], Partial<FlowInfo>, string]>([
    ['root', ['system:masters', authenticatedGroup], {}, 'exempt by exempt'],
    ['alice', [authenticatedGroup], probe, 'exempt by probes'],
    ['system:anonymous', ['system:unauthenticated'], probe, 'exempt by probes'],
    [
      'system:kube-controller-manager',
      [authenticatedGroup],
      { ...lease, verb: 'update' },
      'leader-election by system-leader-election',
    ],
    [
      'system:kube-controller-manager',
      [authenticatedGroup],
      { ...lease, verb: 'delete' },
      'workload-high by kube-controller-manager',
    ],
    ['system:kube-scheduler', [authenticatedGroup], {}, 'workload-high by kube-scheduler'],
    ['system:node:n', ['system:nodes', authenticatedGroup], lease, 'node-high by system-node-high'],
    ['system:node:n', ['system:nodes', authenticatedGroup], {}, 'system by system-nodes'],
    [
      'system:serviceaccount:svc-system:a',
      ['system:serviceaccounts', authenticatedGroup],
      { resource: 'configmaps', verb: 'get' },
      'leader-election by workload-leader-election',
    ],
    [
      'system:serviceaccount:svc-system:a',
      ['system:serviceaccounts', authenticatedGroup],
      { resource: 'pods' },
      'workload-high by svc-system-service-accounts',
    ],
    [
      'system:serviceaccount:ns:a',
      ['system:serviceaccounts', authenticatedGroup],
      {},
      'workload-low by service-accounts',
    ],
    ['alice', [authenticatedGroup], {}, 'global-default by global-default'],
    ['system:anonymous', ['system:unauthenticated'], {}, 'global-default by global-default'],
    ['stranger', [], {}, 'catch-all by catch-all'],
  ])('OPS-3: %s of %j, %j', (user, groups, info, expected) => {
    expect(classOf(user, groups, info)).toBe(expected);
  });
});

describe('OPS-3: flow distinguishers', () => {
  const flowsOf = (level: string, requests: readonly (readonly [string, Partial<FlowInfo>])[]) => {
    const { fair } = fairOf(600);
    const groups = ['system:serviceaccounts', authenticatedGroup];
    for (const [user, info] of requests) {
      void fair.enter(requestOf(userOf(user, groups), infoOf(info)));
    }
    const set = fair.levels.of(level)?.set;
    const found = Array.from(set?.executing ?? [], ({ flow }) => flow.distinguisher);
    fair.close();
    return found;
  };

  test('OPS-3: by namespace, for any user', () => {
    const [scheduler, account] = ['system:kube-scheduler', 'system:serviceaccount:svc-system:a'];
    expect(
      flowsOf('workload-high', [
        [scheduler, { namespace: 'a' }],
        [scheduler, { namespace: 'b' }],
        [account, { namespace: 'a', resource: 'pods' }],
        [scheduler, { namespace: '' }],
      ]),
    ).toEqual(['a', 'b', 'a', '']);
  });

  test('OPS-3: by user, in any namespace', () => {
    const [accountA, accountB] = ['system:serviceaccount:ns:a', 'system:serviceaccount:ns:b'];
    expect(
      flowsOf('workload-low', [
        [accountA, { namespace: 'a' }],
        [accountA, { namespace: 'b' }],
        [accountB, { namespace: 'a' }],
      ]),
    ).toEqual([accountA, accountA, accountB]);
  });

  test('OPS-3: none at a level without queues', () => {
    expect(flowsOf('exempt', [['a', { isResourceRequest: false, path: '/livez' }]])).toEqual(['']);
  });
});

describe('OPS-3: seats follow shares and demand', () => {
  test('OPS-3: each level has its share of the server’s seats and lends part of it', () => {
    const { fair } = fairOf(600);
    const numbers = Object.fromEntries(
      Array.from(fair.levels.all(), ({ name, nominal, lower, upper, seatsMax }) => [
        name,
        [nominal, lower, upper, seatsMax],
      ]),
    );
    expect(numbers).toEqual({
      exempt: [0, 0, 600, undefined],
      system: [74, 50, 674, 12],
      'node-high': [98, 73, 698, 15],
      'leader-election': [25, 25, 625, 4],
      'workload-high': [98, 49, 698, 15],
      'workload-low': [245, 24, 845, 37],
      'global-default': [49, 24, 649, 8],
      'catch-all': [13, 13, 613, undefined],
    });
    fair.close();
  });

  test('OPS-3: a busy level borrows idle seats and returns them', async () => {
    const { clock, fair, currentOf } = fairOf(600);
    const alice = userOf('alice', [authenticatedGroup]);
    const before = currentOf('global-default');
    const places: GrantedSeat[] = [];
    const take = (place: GrantedSeat | Promise<GrantedSeat>) => {
      if (place instanceof Promise)
        place.then(
          (seat) => places.push(seat),
          () => {},
        );
      else places.push(place);
    };
    for (let sent = 0; sent < 300; sent += 1) take(fair.enter(requestOf(alice)));
    expect(places).toHaveLength(before);
    clock.advance(10_000);
    await Promise.resolve();
    const after = currentOf('global-default');
    expect(after).toBeGreaterThan(before);
    // No level keeps less than the seats that it does not lend.
    for (const { current, lower } of fair.levels.all())
      expect(current).toBeGreaterThanOrEqual(lower);
    const allocated = Array.from(fair.levels.all()).reduce((sum, { current }) => sum + current, 0);
    expect(Math.abs(allocated - 602)).toBeLessThanOrEqual(4);
    await Promise.resolve();
    expect(places).toHaveLength(Math.min(300, after));
    for (let round = 0; round < 10 && places.length > 0; round += 1) {
      for (const place of places.splice(0)) place.release();
      await new Promise((resolve) => setImmediate(resolve));
    }
    // After ten idle minutes, another user sends requests.
    clock.advance(600_000);
    const node = userOf('system:node:n', ['system:nodes', authenticatedGroup]);
    take(fair.enter(requestOf(node)));
    expect(currentOf('global-default')).toBeLessThan(after);
    fair.close();
  });

  test('OPS-3: an idle server has no timer', () => {
    let timers = 0;
    class CountingClock extends FakeClock {
      override after(delayMs: number, task: () => void) {
        timers += 1;
        const timer = super.after(delayMs, () => {
          timers -= 1;
          task();
        });
        return timer;
      }
    }
    const clock = new CountingClock();
    const fair = new FairFlowControl({
      clock,
      seatsTotal: 600,
      requestTimeoutMs: 60_000,
      defaults,
      countObjects: () => undefined,
      watches: new WatchCounts(),
      seriesOf: () => discardedSeries,
    });
    expect(timers).toBe(0);
    const place = fair.enter(requestOf(userOf('alice', [authenticatedGroup])));
    expect(timers).toBe(1);
    if (!(place instanceof Promise)) place.release();
    clock.advance(60_000);
    expect(timers).toBe(0);
  });

  test('OPS-3: a new configuration applies to the next request and clears caches', () => {
    const { fair } = fairOf(600);
    const alice = userOf('alice', [authenticatedGroup]);
    const uidOf = () => {
      const place = fair.enter(requestOf(alice));
      if (place instanceof Promise) throw new Error('no seat was free');
      place.release();
      return place.flowClass?.flowSchemaUid;
    };
    expect(uidOf()).toBe('');
    const [schema] = defaults.schemas.filter(({ name }) => name === 'global-default');
    if (schema === undefined) throw new Error('no default');
    fair.configure({ levels: [], schemas: [{ ...schema, uid: 'u1' }] });
    expect(uidOf()).toBe('u1');
    const own = { ...schema, name: 'own', uid: 'u2', precedence: 3, level: 'system' };
    fair.configure({ levels: [], schemas: [own] });
    expect(uidOf()).toBe('u2');
    fair.configure({ levels: [], schemas: [{ ...own, level: 'nowhere' }] });
    expect(uidOf()).toBe('');
    fair.close();
  });
});

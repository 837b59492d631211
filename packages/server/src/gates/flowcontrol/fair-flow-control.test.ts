import { defaultFlowObjects } from '@wheelhouse/kinds';
import { createMetricRegistry, dialectOf } from '@wheelhouse/machinery';
import { FakeClock } from '@wheelhouse/machinery/testing';
import { describe, expect, test } from 'vitest';
import type { FlowInfo, GrantedSeat } from './contract.ts';
import {
  createWorkEstimator,
  FairFlowControl,
  RetryAfter,
  WatchCounts,
} from './fair-flow-control.ts';
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

/**
 * Rejects `perSecond` requests in each of the seconds, and returns the last Retry-After of each
 * second.
 */
function advisedSeconds(
  retryAfter: RetryAfter,
  clock: FakeClock,
  seconds: number,
  perSecond: number,
): number[] {
  return Array.from({ length: seconds }, () => {
    let last = 0;
    for (let refused = 0; refused < perSecond; refused += 1)
      last = retryAfter.countRejection('level');
    clock.advance(1000);
    return last;
  });
}

test('OPS-3: Retry-After grows while rejections continue', () => {
  const clock = new FakeClock();
  const retryAfter = new RetryAfter(clock);
  expect(advisedSeconds(retryAfter, clock, 1, 50)).toEqual([1]);
  const later = advisedSeconds(retryAfter, clock, 70, 50);
  expect(later[0]).toBe(2);
  expect(later.every((advised, at) => at === 0 || advised >= (later[at - 1] ?? 0))).toBe(true);
  expect(later.at(-1)).toBe(32);
});

test('OPS-3: Retry-After decreases by a second at a time afterwards', () => {
  const clock = new FakeClock();
  const retryAfter = new RetryAfter(clock);
  advisedSeconds(retryAfter, clock, 5, 50);
  const high = retryAfter.countRejection('level');
  expect(high).toBeGreaterThan(1);
  clock.advance(60_000);
  expect(retryAfter.countRejection('level')).toBe(high - 1);
  clock.advance(60_000);
  expect(retryAfter.countRejection('level')).toBe(Math.max(1, high - 2));
});

test('OPS-3: Retry-After stays at one second for occasional rejections, at each level', () => {
  const clock = new FakeClock();
  const retryAfter = new RetryAfter(clock);
  expect(advisedSeconds(retryAfter, clock, 20, 2)).toEqual(Array.from({ length: 20 }, () => 1));
  advisedSeconds(retryAfter, clock, 5, 50);
  expect(retryAfter.countRejection('other')).toBe(1);
  retryAfter.retain(new Set(['other']));
  expect(retryAfter.countRejection('level')).toBe(1);
});

const query = (text: string) => ({ query: new URLSearchParams(text) });
const list = { verb: 'list', name: '' };

function estimateOf(
  info: Partial<FlowInfo>,
  options: { stored?: number; watches?: WatchCounts; seatsMax?: number } = {},
) {
  const estimate = createWorkEstimator({
    watches: options.watches ?? new WatchCounts(),
    countObjects: () => options.stored,
  });
  return estimate(infoOf(info), discardedSeries, options.seatsMax);
}

describe('OPS-3: the cost of a request', () => {
  test.each<[string, Partial<FlowInfo>, { stored?: number; seatsMax?: number }, number]>([
    ['a get', {}, { stored: 5000 }, 1],
    ['no resource', { isResourceRequest: false, verb: 'list' }, { stored: 5000 }, 1],
    ['a short list', list, { stored: 99 }, 1],
    ['a list by its objects', list, { stored: 301 }, 4],
    ['a long list', list, { stored: 5000 }, 10],
    ['a list at a level with few seats', list, { stored: 5000, seatsMax: 3 }, 3],
    ['a list of one name', { verb: 'list', name: 'a' }, { stored: 5000 }, 1],
    ['a list of an unknown number of objects', list, {}, 1],
    ['a page', { ...list, ...query('limit=50') }, { stored: 5000 }, 1],
    ['a large page', { ...list, ...query('limit=150') }, { stored: 5000 }, 3],
    [
      'a page with a selector',
      { ...list, ...query('limit=50&labelSelector=a') },
      { stored: 300 },
      4,
    ],
    [
      'a page from the cache',
      { ...list, ...query('limit=50&resourceVersion=0') },
      { stored: 500 },
      5,
    ],
    ['a continued page', { ...list, ...query('limit=50&continue=x') }, { stored: 5000 }, 1],
    [
      'a list at an exact resourceVersion',
      { ...list, ...query('resourceVersion=5&resourceVersionMatch=Exact') },
      { stored: 300 },
      6,
    ],
    ['a watch with initial objects', { verb: 'watch', name: '' }, { stored: 500 }, 5],
    [
      'a watch from a resourceVersion',
      { verb: 'watch', name: '', ...query('resourceVersion=7') },
      { stored: 500 },
      1,
    ],
    [
      'a watch with sendInitialEvents',
      { verb: 'watch', name: '', ...query('resourceVersion=7&sendInitialEvents=true') },
      { stored: 500 },
      5,
    ],
  ])('OPS-3: %s', (_, info, options, expected) => {
    expect(estimateOf(info, options)).toEqual({
      initialSeats: expected,
      finalSeats: 0,
      lingerMs: 0,
    });
  });

  test('OPS-3: a write is charged for the watches that receive it', () => {
    const watches = new WatchCounts();
    const ends = Array.from({ length: 45 }, () =>
      watches.add(infoOf({ verb: 'watch', name: '', namespace: '' })),
    );
    const write = { verb: 'update' };
    expect(estimateOf(write, { watches })).toEqual({ initialSeats: 1, finalSeats: 5, lingerMs: 5 });
    // The same amount of work with fewer seats and more time.
    expect(estimateOf(write, { watches, seatsMax: 2 })).toEqual({
      initialSeats: 1,
      finalSeats: 2,
      lingerMs: 12.5,
    });
    const token = { verb: 'create', resource: 'serviceaccounts', subresource: 'token' };
    expect(estimateOf(token, { watches })).toMatchObject({ finalSeats: 0 });
    expect(estimateOf({ verb: 'get' }, { watches })).toMatchObject({ finalSeats: 0 });
    for (const end of ends.slice(9)) end();
    expect(estimateOf(write, { watches })).toMatchObject({ finalSeats: 0 });
  });

  test('OPS-3: watches are counted by their scope, and their end is counted once', () => {
    const watches = new WatchCounts();
    const watch = (more: Partial<FlowInfo>) => watches.add(infoOf({ verb: 'watch', ...more }));
    watch({ namespace: '', name: '' });
    watch({ namespace: 'n', name: '' });
    const end = watch({ namespace: 'n', name: 'a' });
    watch({ namespace: 'm', name: 'a' });
    watch({ resource: 'secrets', namespace: '', name: '' });
    watch({ group: 'apps', namespace: '', name: '' });
    expect(watches.countFor(infoOf())).toBe(3);
    expect(watches.countFor(infoOf({ name: '' }))).toBe(2);
    end();
    end();
    expect(watches.countFor(infoOf())).toBe(2);
    expect(watches.countFor(infoOf({ resource: 'none' }))).toBe(0);
    const pods = { resource: 'pods', namespace: '', name: '' };
    watch({ ...pods, ...query('fieldSelector=spec.nodeName%3Dn1') });
    watch({ ...pods, ...query('fieldSelector=spec.nodeName%3D') });
    watch({ ...pods, ...query('fieldSelector=status.phase%3DRunning') });
    expect(watches.countFor(infoOf({ resource: 'pods' }))).toBe(2);
  });
});

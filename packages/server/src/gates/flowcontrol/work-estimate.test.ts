import { describe, expect, test } from 'vitest';
import type { FlowInfo } from './contract.ts';
import { createWorkEstimator, WatchCounts } from './fair-flow-control.ts';
import { discardedSeries, infoOf } from './testing.ts';

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
    expect(estimateOf(write, { watches })).toEqual({
      initialSeats: 1,
      finalSeats: 5,
      lingerMs: 5,
    });
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

import { expect, test } from 'vitest';
import { randomOf } from './host.ts';
import {
  emptyOrderedMap,
  MapOwner,
  type OrderedMap,
  orderedMapDelete,
  orderedMapGet,
  orderedMapOf,
  orderedMapRank,
  orderedMapSet,
  orderedMapValues,
} from './ordered-map.ts';

const seed = Number(process.env.SEED ?? 20260721);

test(`behaves like a sorted array, and old maps never change (seed ${seed})`, () => {
  const { fraction: random } = randomOf(seed);
  const model = new Map<string, number>();
  let map: OrderedMap<number> = emptyOrderedMap();
  const kept: { map: OrderedMap<number>; expected: number[] }[] = [];
  for (let step = 0; step < 12_000; step++) {
    const key = `k${Math.floor(random() * 2500)}`;
    const growing = Math.floor(step / 3000) % 2 === 0;
    if (random() < (growing ? 0.75 : 0.2)) {
      map = orderedMapSet(map, key, step);
      model.set(key, step);
    } else {
      map = orderedMapDelete(map, key);
      model.delete(key);
    }
    expect(map.size).toBe(model.size);
    if (step % 500 === 0) kept.push({ map, expected: sortedValues(model) });
    if (step % 100 === 0) checkReads(map, model, random);
  }
  for (const { map: old, expected } of kept) expect([...orderedMapValues(old)]).toEqual(expected);
});

test(`an owner changes nodes in place, and snapshots never change (seed ${seed})`, () => {
  const { fraction: random } = randomOf(seed);
  const model = new Map<string, number>();
  let map: OrderedMap<number> = emptyOrderedMap();
  let owner: MapOwner | undefined;
  const kept: { map: OrderedMap<number>; expected: number[] }[] = [];
  for (let step = 0; step < 24_000; step++) {
    const key = `k${Math.floor(random() * 2500)}`;
    const growing = Math.floor(step / 3000) % 2 === 0;
    if (random() < 0.99) owner ??= new MapOwner();
    if (random() < (growing ? 0.75 : 0.2)) {
      map = orderedMapSet(map, key, step, owner);
      model.set(key, step);
    } else {
      map = orderedMapDelete(map, key, owner);
      model.delete(key);
    }
    expect(map.size).toBe(model.size);
    if (random() < 0.01) {
      owner = undefined;
      kept.push({ map, expected: sortedValues(model) });
    }
    if (step % 100 === 0) checkReads(map, model, random);
  }
  for (const { map: old, expected } of kept) expect([...orderedMapValues(old)]).toEqual(expected);
});

test('an owner copies each node once between snapshots', () => {
  const pairs = Array.from({ length: 48 }, (_, at) => [String(at + 100), at] as const);
  const before = orderedMapOf(pairs);
  const owner = new MapOwner();
  const first = orderedMapSet(before, '100', -1, owner);
  const { root } = first;
  expect(root).not.toBe(before.root);
  const second = orderedMapDelete(orderedMapSet(first, '1005', -2, owner), '147', owner);
  expect(second.root).toBe(root);
  expect([...orderedMapValues(second)].slice(0, 3)).toEqual([-1, -2, 1]);
  expect([...orderedMapValues(before)]).toEqual(pairs.map(([, value]) => value));
});

function sortedValues(model: ReadonlyMap<string, number>): number[] {
  const keys = [...model.keys()].sort();
  return keys.map((key) => model.get(key) as number);
}

function checkReads(
  map: OrderedMap<number>,
  model: ReadonlyMap<string, number>,
  random: () => number,
): void {
  const key = `k${Math.floor(random() * 2500)}`;
  const keys = [...model.keys()].sort();
  expect(orderedMapGet(map, key)).toBe(model.get(key));
  expect(orderedMapRank(map, key)).toBe(keys.filter((candidate) => candidate < key).length);
  const from = Math.floor(random() * keys.length);
  const to = from + Math.floor(random() * 200);
  expect([...orderedMapValues(map, { from, to })]).toEqual(sortedValues(model).slice(from, to));
}

test('can be built from sorted pairs', () => {
  const pairs = Array.from({ length: 5000 }, (_, i) => [String(i).padStart(5, '0'), i] as const);
  const map = orderedMapOf(pairs);
  expect([...orderedMapValues(map)]).toEqual(pairs.map(([, value]) => value));
  expect(orderedMapGet(map, '04321')).toBe(4321);
  expect(() => orderedMapOf([pairs[1]!, pairs[0]!])).toThrow('order');
});

test('empties completely', () => {
  let map = orderedMapOf(Array.from({ length: 300 }, (_, i) => [String(i + 100), i] as const));
  for (let i = 0; i < 300; i++) map = orderedMapDelete(map, String(i + 100));
  expect(map.size).toBe(0);
  expect(map.root).toBeUndefined();
  expect(orderedMapRank(map, '5')).toBe(0);
});

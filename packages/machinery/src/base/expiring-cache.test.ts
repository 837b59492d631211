import { expect, test } from 'vitest';
import { FakeClock } from '../testing.ts';
import { createExpiringCache, memoized, sharedPromise } from './expiring-cache.ts';

test('a value is cached until it expires', () => {
  const clock = new FakeClock();
  const cache = createExpiringCache<string>({ entriesMax: 10, clock });
  cache.set('a', 'one', 1000);
  cache.set('none', 'never', 0);
  clock.advance(999);
  expect(cache.get('a')).toBe('one');
  expect(cache.get('none')).toBeUndefined();
  clock.advance(1);
  expect(cache.get('a')).toBeUndefined();
  expect(cache.size).toBe(0);
});

test('the least recently used value is evicted', () => {
  const cache = createExpiringCache<number>({ entriesMax: 3, clock: new FakeClock() });
  for (const [index, key] of ['a', 'b', 'c'].entries()) cache.set(key, index, 1000);
  cache.get('a');
  cache.set('d', 3, 1000);
  expect(['a', 'b', 'c', 'd'].map((key) => cache.get(key))).toEqual([0, undefined, 2, 3]);
  for (let index = 0; index < 100; index += 1) cache.set(`junk${index}`, index, 1000);
  expect(cache.size).toBe(3);
});

test('a promise is shared unless it rejects', async () => {
  const promises = new Map<string, Promise<number>>();
  let made = 0;
  const make = async () => {
    made += 1;
    if (made === 1) throw new Error('failed');
    return made;
  };
  const first = sharedPromise(promises, 'a', make);
  expect(sharedPromise(promises, 'a', make)).toBe(first);
  await expect(first).rejects.toThrow('failed');
  expect(await sharedPromise(promises, 'a', make)).toBe(2);
  expect(await sharedPromise(promises, 'a', make)).toBe(2);
});

test('a function of texts is memoized within bounds', () => {
  const made: string[] = [];
  const lengthOf = memoized(
    (text) => {
      made.push(text);
      return text.length;
    },
    { countMax: 2, lengthMax: 3 },
  );
  expect(['a', 'a', 'long', 'long', 'b', 'a'].map(lengthOf)).toEqual([1, 1, 4, 4, 1, 1]);
  expect(made).toEqual(['a', 'long', 'long', 'b']);
  expect(['c', 'a'].map(lengthOf)).toEqual([1, 1]);
  expect(made.slice(4)).toEqual(['c', 'a']);
});

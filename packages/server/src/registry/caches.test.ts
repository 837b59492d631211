import { FakeClock } from '@wheelhouse/machinery/testing';
import { StoreError } from '@wheelhouse/store';
import { expect, test } from 'vitest';
import type { EntryChange, ResourceCache } from '../watchcache/contract.ts';
import type { Entry } from '../watchcache/entry.ts';
import { follow, followBeside } from './caches.ts';

function deferred<T>() {
  let resolve: (value: T) => void = () => {};
  let reject: (error: unknown) => void = () => {};
  const promise = new Promise<T>((yes, no) => {
    [resolve, reject] = [yes, no];
  });
  return { promise, resolve, reject };
}

/** A cache that becomes ready and lists when the test chooses. */
function slowCache() {
  const listeners = new Set<(change: EntryChange) => void>();
  const ready = deferred<void>();
  const listed = deferred<readonly Entry[]>();
  const subscribe = (listener: (change: EntryChange) => void) => {
    listeners.add(listener);
    return { close: () => listeners.delete(listener) };
  };
  return {
    cache: {
      ready: () => ready.promise,
      subscribe,
      list: async () => {
        const entries = await listed.promise;
        return { entries: () => entries };
      },
    } as unknown as ResourceCache,
    ready,
    listed,
    listeners,
    change: (previous: Entry | undefined, current: Entry | undefined) => {
      for (const listener of listeners) listener({ previous, current, revision: 1 });
    },
  };
}

const entry = (key: string, revision: number) => ({ key, revision }) as Entry;
const recorder = () => {
  const lines: string[] = [];
  const version = (state: Entry | undefined) => state?.revision ?? '-';
  const onEntry = (key: string, current: Entry | undefined, previous: Entry | undefined) =>
    void lines.push(`${key} ${version(previous)}>${version(current)}`);
  return { lines, onEntry };
};

test('a change during the list wins over it, removals too', async () => {
  const { cache, ready, listed, change } = slowCache();
  const { lines, onEntry } = recorder();
  const following = follow(cache, onEntry);
  change(entry('a', 1), undefined);
  ready.resolve();
  change(entry('b', 2), entry('b', 5));
  listed.resolve([entry('a', 1), entry('b', 2), entry('c', 3)]);
  const { close } = await following;
  expect(lines).toEqual(['a 1>-', 'b 2>5', 'c ->3']);
  change(undefined, entry('a', 7));
  expect(lines.at(-1)).toBe('a ->7');
  close();
  change(entry('a', 7), entry('a', 8));
  expect(lines).toHaveLength(4);
});

test('a follower that does not wait is not notified once it is closed', async () => {
  const { cache, ready, listed, listeners, change } = slowCache();
  const { lines, onEntry } = recorder();
  const failures: unknown[] = [];
  const following = followBeside(cache, { onEntry, failed: (error) => failures.push(error) });
  change(undefined, entry('a', 1));
  following.close();
  change(undefined, entry('b', 2));
  ready.resolve();
  listed.resolve([entry('c', 3)]);
  await expect.poll(() => listeners.size).toBe(0);
  expect(lines).toEqual(['a ->1']);
  expect(failures).toEqual([]);
});

test('a follower that does not wait learns of an unlistable cache, unless it is closed', async () => {
  const failures: unknown[] = [];
  const failed = (error: unknown) => failures.push(error);
  const error = new StoreError({ code: 'unavailable', message: 'no store' });
  for (const isClosed of [true, false]) {
    const { cache, ready } = slowCache();
    const following = followBeside(cache, { onEntry: () => {}, failed });
    if (isClosed) following.close();
    ready.reject(error);
  }
  await expect.poll(() => failures).toEqual([error]);
});

test('a follower whose list fails leaves no subscription behind', async () => {
  const { cache, ready, listed, listeners } = slowCache();
  const following = follow(cache, () => {});
  expect(listeners.size).toBe(1);
  ready.resolve();
  listed.reject(new Error('one object is damaged'));
  await expect(following).rejects.toThrow('one object is damaged');
  expect(listeners.size).toBe(0);
});

test('a follower lists again after a failure, and misses no change meanwhile', async () => {
  const { cache, ready, listed, change } = slowCache();
  const { lines, onEntry } = recorder();
  const clock = new FakeClock();
  const failures: unknown[] = [];
  let attempts = 0;
  const list: ResourceCache['list'] = (request) => {
    attempts += 1;
    if (attempts === 1) throw new Error('the store fails');
    return cache.list(request);
  };
  const isListed = deferred<void>();
  followBeside(
    { ...cache, list },
    {
      onEntry,
      listed: isListed.resolve,
      failed: (error) => failures.push(error),
      retrying: clock,
    },
  );
  ready.resolve();
  await expect.poll(() => failures).toEqual([new Error('the store fails')]);
  change(entry('a', 1), entry('a', 2));
  listed.resolve([entry('a', 1), entry('b', 1)]);
  await expect
    .poll(() => {
      clock.advance(1_000);
      return attempts;
    })
    .toBe(2);
  await isListed.promise;
  expect(lines).toEqual(['a 1>2', 'b ->1']);
});

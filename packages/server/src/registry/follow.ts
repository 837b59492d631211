import type { ResourceCache } from '../watchcache/contract.ts';
import type { Entry } from '../watchcache/entry.ts';

type Tell = (key: string, current: Entry | undefined, previous: Entry | undefined) => void;

/**
 * Calls `tell` with every object of a cache as it is now, and then with each later change, in
 * order; a removed one is undefined, as is the one before a new one. Resolves when the present ones
 * have been told. Changes that come meanwhile win over the list, so none is lost.
 * @param options.unreadable lets the follower begin although stored objects cannot be read: only for
 * kinds whose objects grant something, as those that are left out grant nothing, and for those that
 * the server must not depend on
 */
export async function follow(
  cache: ResourceCache,
  tell: Tell,
  options: { readonly unreadable?: 'left-out' } = {},
): Promise<{ close(): void }> {
  let changed: Set<string> | undefined = new Set();
  const subscription = cache.subscribe((change) => {
    const key = change.current?.key ?? change.previous?.key;
    if (key === undefined) return;
    changed?.add(key);
    tell(key, change.current, change.previous);
  });
  await cache.ready();
  const list = await cache.list({
    namespace: '',
    resourceVersion: '0',
    resourceVersionMatch: undefined,
    limit: undefined,
    continueToken: undefined,
    filter: undefined,
    ...options,
  });
  for (const entry of list.entries()) {
    if (!changed.has(entry.key)) tell(entry.key, entry, undefined);
  }
  changed = undefined;
  return { close: () => subscription.close() };
}

/**
 * Follows a cache without waiting until the present objects have been told: `listed` is called then,
 * and `failed` with the error of a cache that could not be listed. Nothing is called after `close`.
 */
export function followBeside(
  cache: ResourceCache,
  options: {
    readonly tell: Tell;
    readonly listed?: () => void;
    readonly failed?: (error: unknown) => void;
  },
): { close(): void } {
  let isClosed = false;
  const following = follow(cache, (key, current, previous) => {
    if (!isClosed) options.tell(key, current, previous);
  });
  following.then(
    () => {
      if (!isClosed) options.listed?.();
    },
    (error: unknown) => {
      if (!isClosed) options.failed?.(error);
    },
  );
  return {
    close() {
      isClosed = true;
      // Not waited for: with its store away a cache may never be ready.
      following.then(
        (one) => one.close(),
        () => {},
      );
    },
  };
}

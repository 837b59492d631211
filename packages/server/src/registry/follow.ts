import type { ResourceCache } from '../watchcache/contract.ts';
import type { Entry } from '../watchcache/entry.ts';

type Tell = (key: string, current: Entry | undefined, previous: Entry | undefined) => void;

/**
 * Calls `tell` with every current object of a cache and then with each later change, in order. A
 * removed object and the predecessor of a new one are undefined. Resolves when all current objects
 * have been reported. Changes during the listing take precedence over it, so none is lost.
 * @param options.unreadable starts although some stored objects cannot be read; only for kinds
 *   whose
 *   objects grant something (missing ones grant nothing) or on which the server must not depend
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
 * Follows a cache without waiting for its current objects: `listed` is called when they have been
 * reported, or `failed` with the error of the list. Nothing is called after `close`.
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
      // Not awaited: a cache whose store is unavailable may never become ready.
      following.then(
        (one) => one.close(),
        () => {},
      );
    },
  };
}

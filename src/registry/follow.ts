import type { Entry, ResourceCache } from '../watchcache/contract.ts';

/**
 * Calls `tell` with every object of a cache as it is now, and then with each later change, in
 * order; a removed one is undefined. Resolves when the present ones have been told. Changes that
 * come meanwhile win over the list, so none is lost.
 */
export async function follow(
  cache: ResourceCache,
  tell: (key: string, current: Entry | undefined) => void,
): Promise<{ close(): void }> {
  let changed: Set<string> | undefined = new Set();
  const subscription = cache.subscribe((change) => {
    const key = change.current?.key ?? change.previous?.key;
    if (key === undefined) return;
    changed?.add(key);
    tell(key, change.current);
  });
  await cache.ready();
  const list = await cache.list({
    namespace: '',
    resourceVersion: '0',
    resourceVersionMatch: undefined,
    limit: undefined,
    continueToken: undefined,
    filter: undefined,
  });
  for (const entry of list.entries()) if (!changed.has(entry.key)) tell(entry.key, entry);
  changed = undefined;
  return { close: () => subscription.close() };
}

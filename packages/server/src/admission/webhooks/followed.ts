import type { ResourceDef } from '@wheelhouse/kinds';
import type { ApiObject } from '@wheelhouse/machinery';
import { type CachePool, follow } from '../../registry/caches.ts';
import { decodeEntry } from '../../registry/object-codec.ts';
import type { Entry } from '../../watchcache/entry.ts';

/** Values derived from all objects of a kind, kept current. */
export interface Followed<T> {
  /** Sorted by the objects' names; each object is decoded on first use. */
  current(): readonly T[];
  /** Resolves when the existing objects are loaded. */
  readonly ready: Promise<void>;
  readonly isReady: boolean;
  close(): void;
}

/** Follows a kind in its watch cache. */
export function followed<T>(options: {
  readonly caches: CachePool;
  readonly def: ResourceDef;
  readonly read: (object: ApiObject) => readonly T[];
}): Followed<T> {
  const entries = new Map<string, Entry>();
  const partByEntry = new WeakMap<Entry, readonly T[]>();
  let all: readonly T[] | undefined;
  let isReady = false;
  let isClosed = false;
  let subscription: { close(): void } | undefined;
  const partOf = (entry: Entry): readonly T[] => {
    const cached = partByEntry.get(entry);
    if (cached !== undefined) return cached;
    const part = options.read(decodeEntry(entry));
    partByEntry.set(entry, part);
    return part;
  };
  const ready = follow(options.caches.of(options.def), (key, current) => {
    all = undefined;
    if (current === undefined) entries.delete(key);
    else entries.set(key, current);
  }).then((handle) => {
    isReady = true;
    subscription = handle;
    if (isClosed) handle.close();
  });
  return {
    current() {
      all ??= [...entries.values()]
        .sort((left, right) => (left.index.name < right.index.name ? -1 : 1))
        .flatMap(partOf);
      return all;
    },
    ready,
    get isReady() {
      return isReady;
    },
    close() {
      isClosed = true;
      subscription?.close();
    },
  };
}

import type { Clock } from './clock.ts';

/** Values that are good for a while. */
export interface ExpiringCache<Value> {
  /** The value, unless its time is over. */
  get(key: string): Value | undefined;
  /** Keeps a value for `ttlMs`; not at all when that is not above 0. */
  set(key: string, value: Value, ttlMs: number): void;
  readonly size: number;
}

/**
 * An empty cache of at most `entriesMax` values; room is made by forgetting what was longest not
 * asked for, so that strangers who fill it with junk cost others a miss and nothing more.
 */
export function createExpiringCache<Value>(options: {
  readonly entriesMax: number;
  readonly clock: Clock;
}): ExpiringCache<Value> {
  const { entriesMax, clock } = options;
  // A map keeps the order of insertion; what is used is inserted anew.
  const entries = new Map<string, { readonly value: Value; readonly endMs: number }>();
  return {
    get(key) {
      const entry = entries.get(key);
      if (entry === undefined) return undefined;
      entries.delete(key);
      if (clock.monotonic() >= entry.endMs) return undefined;
      entries.set(key, entry);
      return entry.value;
    },
    set(key, value, ttlMs) {
      entries.delete(key);
      if (!(ttlMs > 0)) return;
      for (const oldest of entries.keys()) {
        if (entries.size < entriesMax) break;
        entries.delete(oldest);
      }
      entries.set(key, { value, endMs: clock.monotonic() + ttlMs });
    },
    get size() {
      return entries.size;
    },
  };
}

import type { Clock } from './clock.ts';

/** A cache whose values expire. */
interface ExpiringCache<Value> {
  /** Returns the value unless it has expired. */
  get(key: string): Value | undefined;
  /** Keeps a value for `ttlMs` milliseconds; does nothing if that is not positive. */
  set(key: string, value: Value, ttlMs: number): void;
  readonly size: number;
}

/**
 * Creates a cache of at most `entriesMax` values, which evicts the least recently used one. A
 * client that fills it with useless values only causes cache misses for others.
 */
export function createExpiringCache<Value>(options: {
  readonly entriesMax: number;
  readonly clock: Clock;
}): ExpiringCache<Value> {
  const { entriesMax, clock } = options;
  // A Map keeps insertion order; entries are reinserted on use.
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

/** Returns the value under a key, which `make` creates if there is none. */
export function getOrMake<Key, Value extends object | string | null>(
  values: { get(key: Key): Value | undefined; set(key: Key, value: Value): unknown },
  key: Key,
  make: (key: Key) => Value,
): Value {
  const existing = values.get(key);
  if (existing !== undefined) return existing;
  const made = make(key);
  values.set(key, made);
  return made;
}

/**
 * Returns the promise under a key, which `make` creates if there is none. One that rejects is
 * removed, so that the next call tries again.
 */
export function sharedPromise<Key, Value>(
  promises: {
    get(key: Key): Promise<Value> | undefined;
    set(key: Key, promise: Promise<Value>): unknown;
    delete(key: Key): boolean;
  },
  key: Key,
  make: () => Promise<Value>,
): Promise<Value> {
  const existing = promises.get(key);
  if (existing !== undefined) return existing;
  const made = make();
  promises.set(key, made);
  made.catch(() => {
    if (promises.get(key) === made) promises.delete(key);
  });
  return made;
}

/**
 * Memoizes a function of texts that recur, such as the headers of a client. The memory is cleared
 * when it has `countMax` texts; texts of more than `lengthMax` characters are not kept.
 */
export function memoized<Value>(
  make: (text: string) => Value,
  { countMax, lengthMax }: { readonly countMax: number; readonly lengthMax: number },
): (text: string) => Value {
  const values = new Map<string, Value>();
  return (text) => {
    const kept = values.get(text);
    if (kept !== undefined) return kept;
    const value = make(text);
    if (text.length > lengthMax) return value;
    if (values.size >= countMax) values.clear();
    values.set(text, value);
    return value;
  };
}

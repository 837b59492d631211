import { type ResourceDef, type StorageDef, versionNamed } from '@wheelhouse/kinds';
import {
  type ApiObject,
  type Clock,
  type MaybePromise,
  methodNotAllowedOnPath,
  pathNotFound,
  serviceUnavailable,
} from '@wheelhouse/machinery';
import type { ListResult, ResourceCache } from '../watchcache/contract.ts';
import type { Entry } from '../watchcache/entry.ts';
import { contentOf } from '../watchcache/reads.ts';
import { convertedKind } from './conversion/converted-kinds.ts';
import { dryEntry, encodeStored, indexOf } from './object-codec.ts';

/** One watch cache per kind, opened on first use. */
export interface CachePool {
  /**
   * The cache of a kind. A request that began before its custom kind changed gets the cache of the
   * current kind. Throws 404 if the kind is gone and 503 if the client must retry.
   */
  of(def: ResourceDef): ResourceCache;
  /**
   * Ends the watches of a kind that changed or is no longer served. Pending reads continue with the
   * cache of its successor.
   */
  drop(def: ResourceDef, successor: ResourceDef | undefined): void;
  /** Trims the history of all caches in steps; writes trim only their own kind's. */
  trimSteps(): Generator<void, void>;
  close(): void;
}

interface Slot {
  readonly cache: ResourceCache;
  /**
   * The cache that the pool hands out: after the end of `cache` it delegates to the successor's.
   */
  readonly lasting: ResourceCache;
}

/**
 * Creates a pool.
 * @param open opens the cache of a kind; the cache calls `forget` when it has ended itself, so that
 *   the
 *   next request opens a new one
 */
export function createCachePool(
  open: (def: ResourceDef, forget: () => void) => ResourceCache,
): CachePool {
  const slots = new Map<ResourceDef | string, Slot>();
  const successors = new WeakMap<ResourceDef, { readonly next: ResourceDef | undefined }>();
  let closed = false;
  const of = (def: ResourceDef): ResourceCache => {
    const slot = slots.get(keyOf(def));
    if (slot !== undefined) return slot.lasting;
    if (closed) throw serviceUnavailable('the server is shutting down');
    const retired = successors.get(def) ?? retiredConverted(def);
    if (retired !== undefined) return of(replacement(def, retired.next));
    const cache = open(def, () => {
      if (slots.get(keyOf(def))?.cache === cache) slots.delete(keyOf(def));
    });
    const after = () => (successors.has(def) && !closed ? of(def) : undefined);
    const lasting = def.behavior.lifetime === 'server' ? cache : lastingCache(cache, after);
    slots.set(keyOf(def), { cache, lasting });
    return lasting;
  };
  /** A converted kind whose stored kind is retired is retired too, whether or not it was open. */
  const retiredConverted = (kind: ResourceDef) => {
    const whole = kind.convertedFrom;
    const retired = whole === undefined ? undefined : successors.get(whole);
    if (retired?.next === undefined) return retired;
    return { next: sameVersion(kind, retired.next) };
  };
  const dropOne = (def: ResourceDef, next: ResourceDef | undefined) => {
    successors.set(def, { next });
    const slot = slots.get(keyOf(def));
    slots.delete(keyOf(def));
    slot?.cache.close();
  };
  return {
    of,
    drop(def, successor) {
      dropOne(def, successor);
      for (const key of [...slots.keys()]) {
        if (typeof key === 'string' || key.convertedFrom !== def) continue;
        dropOne(key, successor === undefined ? undefined : sameVersion(key, successor));
      }
    },
    *trimSteps() {
      for (const { cache } of slots.values()) {
        yield* cache.trimSteps();
        yield;
      }
    },
    close() {
      closed = true;
      for (const { cache } of slots.values()) cache.close();
      slots.clear();
    },
  };
}

/**
 * A cache whose reads survive its end. `after` returns the successor, or undefined while the cache
 * is current; it throws if there is no successor.
 */
function lastingCache(cache: ResourceCache, after: () => ResourceCache | undefined): ResourceCache {
  const live = () => after() ?? cache;
  const again = <T>(work: (current: ResourceCache) => MaybePromise<T>): MaybePromise<T> => {
    const next = after();
    if (next !== undefined) return work(next);
    const result = work(cache);
    if (!(result instanceof Promise)) return result;
    return result.catch((error: unknown) => {
      const successor = after();
      if (successor === undefined) throw error;
      return work(successor);
    });
  };
  return {
    ready: async () => again((current) => current.ready()),
    peek: (key) => live().peek(key),
    count: () => live().count(),
    get: (key, resourceVersion) => again((current) => current.get(key, resourceVersion)),
    list: (request) => again((current) => current.list(request)),
    watch: async (spec) => again((current) => current.watch(spec)),
    subscribe: (listener) => live().subscribe(listener),
    trimSteps: () => cache.trimSteps(),
    close: () => cache.close(),
  };
}

/** Built-in kinds of the same objects share a cache; a custom kind that changes gets a new one. */
function keyOf(def: ResourceDef): ResourceDef | string {
  return def.behavior.lifetime === 'server' ? def.storage.prefix : def;
}

/** The current kind converted to the same version; undefined if it no longer has the version. */
function sameVersion(kind: ResourceDef, next: ResourceDef): ResourceDef | undefined {
  const version = versionNamed(next, kind.storage.apiVersion);
  return version === undefined ? undefined : convertedKind(next, version);
}

/**
 * The kind with which a request of a changed kind continues. Throws 404 if there is none, and 503
 * if the stored form of its objects has changed.
 */
function replacement(def: ResourceDef, next: ResourceDef | undefined): ResourceDef {
  if (next === undefined) throw pathNotFound();
  const isAlike =
    (next.behavior.converter === undefined) === (def.behavior.converter === undefined);
  if (isAlike && next.storage.apiVersion === def.storage.apiVersion) return next;
  throw serviceUnavailable(`${def.resource}.${def.group} has changed: please try again`);
}

/**
 * A cache of objects that are computed for each request: they have no versions and cannot be
 * watched. Lists are sorted by name and ignore limits.
 */
export function createComputedCache(options: {
  readonly storage: StorageDef;
  readonly objects: () => Promise<readonly ApiObject[]>;
}): ResourceCache {
  const { storage, objects } = options;
  const entries = async (): Promise<Entry[]> => {
    const list = (await objects()).map((object) =>
      dryEntry({
        key: object.metadata.name ?? '',
        value: encodeStored(object),
        index: indexOf(storage, object),
      }),
    );
    return list.sort((left, right) => (left.key < right.key ? -1 : 1));
  };
  return {
    ready: async () => {},
    peek: () => undefined,
    count: () => undefined,
    get: async (key) => (await entries()).find((entry) => entry.key === key),
    async list({ filter }) {
      const all = await entries();
      return resultOf(filter === undefined ? all : all.filter(({ index }) => filter(index)));
    },
    watch: () => Promise.reject(methodNotAllowedOnPath()),
    subscribe: () => ({ close: () => {} }),
    *trimSteps() {},
    close: () => {},
  };
}

function resultOf(entries: readonly Entry[]): ListResult {
  return {
    revision: 0,
    continueToken: undefined,
    remainingItemCount: undefined,
    ...contentOf(entries),
  };
}

interface Unreadable {
  readonly unreadable?: 'omitted';
}

type OnEntry = (key: string, current: Entry | undefined, previous: Entry | undefined) => void;

/**
 * Calls `onEntry` with every current object of a cache and then with each later change, in order. A
 * removed object and the predecessor of a new one are undefined. Resolves when all current objects
 * have been reported. Changes during the listing take precedence over it, so none is lost.
 * @param options.unreadable starts although some stored objects cannot be read; only for kinds
 * whose objects grant something (missing ones grant nothing) or on which the server must not depend
 * @param options.again called when the listing fails; whether to try again
 */
export async function follow(
  cache: ResourceCache,
  onEntry: OnEntry,
  options: Unreadable & { readonly again?: (error: unknown) => Promise<boolean> } = {},
): Promise<{ close(): void }> {
  let changed: Set<string> | undefined = new Set();
  const subscription = cache.subscribe((change) => {
    const key = change.current?.key ?? change.previous?.key;
    if (key === undefined) return;
    changed?.add(key);
    onEntry(key, change.current, change.previous);
  });
  const { unreadable, again } = options;
  const request = { namespace: '', resourceVersion: '0', ...(unreadable && { unreadable }) };
  let list: ListResult | undefined;
  while (list === undefined) {
    try {
      await cache.ready();
      list = await cache.list(request);
    } catch (error) {
      if (await again?.(error)) continue;
      subscription.close();
      throw error;
    }
  }
  for (const entry of list.entries()) {
    if (!changed.has(entry.key)) onEntry(entry.key, entry, undefined);
  }
  changed = undefined;
  return { close: () => subscription.close() };
}

/** Pause before a follower lists again, in milliseconds. */
const relistMs = 1_000;

/**
 * Follows a cache without waiting for its current objects: `listed` is called when they have been
 * reported, or `failed` with the error of the list. Nothing is called after `close`.
 * @param options.retrying lists again after a failure, which is reported each time
 */
export function followBeside(
  cache: ResourceCache,
  options: Unreadable & {
    readonly onEntry: OnEntry;
    readonly listed?: () => void;
    readonly failed?: (error: unknown) => void;
    readonly retrying?: Clock;
  },
): { close(): void } {
  const { unreadable, retrying } = options;
  let isClosed = false;
  const again = async (error: unknown) => {
    if (isClosed || retrying === undefined) return false;
    options.failed?.(error);
    await new Promise<void>((resolve) => {
      retrying.after(relistMs, resolve);
    });
    return !isClosed;
  };
  const onEntry: OnEntry = (key, current, previous) => {
    if (!isClosed) options.onEntry(key, current, previous);
  };
  const following = follow(cache, onEntry, { ...(unreadable && { unreadable }), again });
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
        (subscription) => subscription.close(),
        () => {},
      );
    },
  };
}

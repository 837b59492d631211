import type { CatalogueSnapshot, ResourceDef } from '@wheelhouse/kinds';
import {
  type ApiObject,
  andThen,
  type Clock,
  cut,
  type Dialect,
  type JsonObject,
  jsonEqual,
  type MaybePromise,
  pacedBytesMin,
  paceFor,
  runAtPace,
  runInOnePiece,
  Slices,
} from '@wheelhouse/machinery';
import { type CachePool, follow } from '../registry/caches.ts';
import {
  decodedAt,
  decodedEntries,
  decodedInSlices,
  decodeEntry,
  objectKey,
} from '../registry/object-codec.ts';
import type { Entry } from '../watchcache/entry.ts';
import type { ObjectReader } from './tools.ts';

/**
 * Reads objects for plugins from the watch caches. `get` and `list` decode each entry once, in
 * slices if it is large (TRUST-2), and keep what they return.
 */
export function createObjectReader(options: {
  readonly dialect: Dialect;
  readonly caches: CachePool;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly snapshot: () => CatalogueSnapshot;
  /** `any` for callers that follow changes and thus accept cached state. */
  readonly freshness?: 'newest' | 'any';
}): ObjectReader {
  const { caches, clock } = options;
  const resourceVersion = options.freshness === 'any' ? '0' : undefined;
  const decoded = new WeakMap<Entry, ApiObject>();
  const decode = (entry: Entry): MaybePromise<ApiObject> =>
    andThen(decodedInSlices(entry, clock), (object) => {
      decoded.set(entry, object);
      return object;
    });
  const decodeAll = async (entries: Iterable<Entry>): Promise<readonly ApiObject[]> => {
    const objects: ApiObject[] = [];
    const slices = new Slices(clock);
    for (const entry of entries) {
      const cached = decoded.get(entry);
      if (cached === undefined && slices.over) await slices.pause();
      const object = cached ?? decode(entry);
      objects.push(object instanceof Promise ? await object : object);
    }
    return objects;
  };
  const find = (resource: string) => defOf(options.snapshot(), options.dialect, resource);
  return {
    async get(resource, { namespace, name }) {
      const def = find(resource);
      if (def === undefined || name === '') return undefined;
      const entry = await caches.of(def).get(objectKey(namespace, name), resourceVersion);
      return entry === undefined ? undefined : (decoded.get(entry) ?? decode(entry));
    },
    list(resource, namespace) {
      const def = find(resource);
      if (def === undefined) return [];
      return andThen(caches.of(def).list({ namespace, resourceVersion }), (list) =>
        list.count === 0 ? [] : decodeAll(list.entries()),
      );
    },
    async *each(resource, namespace) {
      const def = find(resource);
      if (def === undefined) return;
      const list = await caches.of(def).list({ namespace, resourceVersion });
      yield* decodedEntries(list.entries(), clock);
    },
  };
}

function defOf(
  snapshot: CatalogueSnapshot,
  dialect: Dialect,
  resource: string,
): ResourceDef | undefined {
  const [plural, stem] = cut(resource, '.');
  return snapshot.builtin(stem === undefined ? '' : dialect.group(stem), plural);
}

/** Metadata that an update may change or omit without granting anything. */
const ungranting = new Set([
  'ownerReferences',
  'finalizers',
  'managedFields',
  'resourceVersion',
  'uid',
  'creationTimestamp',
  'generation',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
]);

/**
 * Whether an update changes only what the garbage collector changes, which must be able to release
 * objects that it could not create.
 */
export function onlyCollectorsFieldsDiffer(object: ApiObject, old: ApiObject): boolean {
  return jsonEqual(grantingPart(object), grantingPart(old));
}

function grantingPart(object: ApiObject): JsonObject {
  const metadata = Object.fromEntries(
    Object.entries(object.metadata).filter(([name]) => !ungranting.has(name)),
  );
  return { ...object, metadata };
}

/** Values derived from all objects of a kind, kept current. */
export interface Followed<T> {
  /**
   * Sorted by the objects' names; each object is decoded and read on first use. A promise only while
   * large ones have to be, in slices (TRUST-2).
   */
  current(): MaybePromise<readonly T[]>;
  /** Resolves when the existing objects are loaded. */
  readonly ready: Promise<void>;
  readonly isReady: boolean;
  close(): void;
}

interface Reading<T> {
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Derives the values of an object, in steps. */
  readonly read: (object: ApiObject) => Iterator<void, readonly T[]>;
}

/** The current entries of a kind, and the values that are derived from each of them once. */
class DerivedValues<T> {
  readonly #options: Reading<T>;
  readonly #entries = new Map<string, Entry>();
  readonly #parts = new WeakMap<Entry, readonly T[]>();
  #all: readonly T[] | undefined;
  #reading: Promise<readonly T[]> | undefined;

  constructor(options: Reading<T>) {
    this.#options = options;
  }

  set(key: string, entry: Entry | undefined): void {
    this.#all = undefined;
    if (entry === undefined) this.#entries.delete(key);
    else this.#entries.set(key, entry);
  }

  /** See `Followed.current`. */
  current(): MaybePromise<readonly T[]> {
    if (this.#all !== undefined) return this.#all;
    if (this.#unreadLarge().length === 0) return this.#readAll();
    this.#reading ??= this.#readInSlices().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  #unreadLarge(): readonly Entry[] {
    return [...this.#entries.values()].filter(
      (entry) => entry.json.length >= pacedBytesMin && !this.#parts.has(entry),
    );
  }

  /** Reads the large objects, and those that arrive meanwhile, and then the others. */
  async #readInSlices(): Promise<readonly T[]> {
    const { clock, read } = this.#options;
    for (let large = this.#unreadLarge(); large.length > 0; large = this.#unreadLarge()) {
      for (const entry of large) {
        const pace = paceFor(clock, entry.json.length);
        const object = await decodedAt(pace, entry);
        this.#parts.set(entry, await runAtPace(read(object), pace));
      }
    }
    return this.#readAll();
  }

  #readAll(): readonly T[] {
    this.#all ??= [...this.#entries.values()]
      .sort((left, right) => (left.index.name < right.index.name ? -1 : 1))
      .flatMap((entry) => this.#partOf(entry));
    return this.#all;
  }

  #partOf(entry: Entry): readonly T[] {
    const cached = this.#parts.get(entry);
    if (cached !== undefined) return cached;
    const part = runInOnePiece(this.#options.read(decodeEntry(entry)));
    this.#parts.set(entry, part);
    return part;
  }
}

/** Follows a kind in its watch cache. */
export function followed<T>(
  options: Reading<T> & { readonly caches: CachePool; readonly def: ResourceDef },
): Followed<T> {
  const values = new DerivedValues(options);
  let isReady = false;
  let isClosed = false;
  let subscription: { close(): void } | undefined;
  const onEntry = (key: string, current: Entry | undefined) => values.set(key, current);
  const ready = follow(options.caches.of(options.def), onEntry).then((handle) => {
    isReady = true;
    subscription = handle;
    if (isClosed) handle.close();
  });
  return {
    current: () => values.current(),
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

import type { ResourceDef } from '@wheelhouse/kinds';
import {
  type ApiObject,
  type Clock,
  type GroupKind,
  type GroupResource,
  internalError,
  StatusError,
  timedOut,
} from '@wheelhouse/machinery';
import { type Store, StoreError } from '@wheelhouse/store';
import { unservedBy } from '../watchcache/store-errors.ts';
import type { CachePool } from './cache-pool.ts';
import type { AdmissionPort, FieldManagerPort, WriteContext } from './contract.ts';
import type { DecodedObjects } from './decoded-objects.ts';

/** What the verbs of the generic registry work with; made once by `server/`. */
export interface Registry {
  readonly store: Store;
  readonly clock: Clock;
  readonly fieldManager: FieldManagerPort;
  readonly admission: AdmissionPort;
  readonly caches: CachePool;
  readonly decoded: DecodedObjects;
  /** `shared`: others write to the store too, so what a cache has may not be the newest. */
  readonly sharing?: 'shared' | 'own';
  /**
   * Whether the value of a store's key should be written anew although nothing changes in it: its
   * encryption key is not the newest (STORE-3). Absent where nothing is encrypted.
   */
  readonly isStale?: ((storeKey: string) => Promise<boolean>) | undefined;
}

/** The same registry for a write that follows from one which admission has judged already. */
export const unasked = (registry: Registry): Registry => ({
  ...registry,
  admission: { mutate: () => undefined, validate: () => undefined },
});

export function groupResourceOf(def: ResourceDef): GroupResource {
  return { group: def.group, resource: def.resource };
}

export function groupKindOf(def: ResourceDef): GroupKind {
  return { group: def.group, kind: def.kind };
}

/** Translates the store's errors to the API's catalogue; other errors pass unchanged. */
export function translateStoreError(error: unknown): unknown {
  if (!(error instanceof StoreError)) return error;
  switch (error.code) {
    case 'no-space':
    case 'disk-failed':
    case 'refused':
    case 'timed-out':
    case 'unavailable':
    case 'closed':
    case 'locked':
      return unservedBy(error);
    case 'compacted':
    case 'future-revision':
      return internalError('the store lost the revision that was read', error);
    case 'damaged':
      return new StatusError({
        code: 500,
        reason: 'StorageReadError',
        message: 'the store could not read an object: its data is damaged',
        cause: error,
      });
  }
}

/**
 * Refuses to store what nobody waits for any more: the last look before a write, so that a client
 * that was told of a timeout knows that the write has happened by then, or happens at once, or never.
 */
export function requireTime({ expired }: WriteContext): void {
  if (expired()) throw timedOut('write');
}

const fromStore = new WeakSet<object>();

/** Whether a store's write failed with this error, so that nobody knows whether it happened. */
export function cameFromStore(error: unknown): boolean {
  return typeof error === 'object' && error !== null && fromStore.has(error);
}

/** What etcd says of a value that is larger than it keeps. */
const tooLarge = 'etcdserver: request is too large';

/**
 * Writes an object; where it is too large for the store with the owners of its fields, then without
 * them, which only an apply needs (MF-2). `write` encodes the object as it then is.
 */
export function sparingOwners<T>(
  object: ApiObject,
  options: { readonly owners: 'needed' | 'spare'; readonly write: () => Promise<T> },
): Promise<T> {
  const { owners, write } = options;
  return write().catch((error: unknown) => {
    const isTooLarge =
      error instanceof StatusError && cameFromStore(error) && error.message === tooLarge;
    const isSpare = owners === 'spare' && object.metadata.managedFields !== undefined;
    if (!isTooLarge || !isSpare) throw error;
    delete object.metadata.managedFields;
    return write();
  });
}

/** Runs a store write, translating its errors. */
export function storing<T>(write: () => Promise<T>): Promise<T> {
  try {
    return write().catch(throwTranslated);
  } catch (error) {
    return throwTranslated(error);
  }
}

function throwTranslated(error: unknown): never {
  const translated = translateStoreError(error);
  if (typeof translated === 'object' && translated !== null) fromStore.add(translated);
  throw translated;
}

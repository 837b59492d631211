import type { Clock } from '../base/clock.ts';
import type { ResourceDef } from '../catalogue/resource-def.ts';
import { internalError, StatusError } from '../meta/status.ts';
import type { GroupKind, GroupResource } from '../meta/types.ts';
import { type Store, StoreError } from '../storage/contract.ts';
import { unservedBy } from '../watchcache/store-errors.ts';
import type { CachePool } from './cache-pool.ts';
import type { AdmissionPort, FieldManagerPort } from './contract.ts';
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
      return new StatusError({
        code: 507,
        reason: '',
        message: 'the store has no space left: nothing was written',
        cause: error,
      });
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

const fromStore = new WeakSet<object>();

/** Whether a store's write failed with this error, so that nobody knows whether it happened. */
export function cameFromStore(error: unknown): boolean {
  return typeof error === 'object' && error !== null && fromStore.has(error);
}

/** Runs a store write, translating its errors. */
export async function storing<T>(write: () => Promise<T>): Promise<T> {
  try {
    return await write();
  } catch (error) {
    const translated = translateStoreError(error);
    if (typeof translated === 'object' && translated !== null) fromStore.add(translated);
    throw translated;
  }
}

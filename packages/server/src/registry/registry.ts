import type { ResourceDef } from '@wheelhouse/kinds';
import {
  type ApiObject,
  type Clock,
  type GroupKind,
  type GroupResource,
  internalError,
  StatusError,
} from '@wheelhouse/machinery';
import { type Store, StoreError } from '@wheelhouse/store';
import { unservedBy } from '../watchcache/store-errors.ts';
import type { CachePool } from './cache-pool.ts';
import type { AdmissionPort, FieldManagerPort } from './contract.ts';
import type { DecodedObjects } from './object-codec.ts';
import type { Turns } from './turns.ts';

/** What the verbs of the generic registry work with; made once by `server/`. */
export interface Registry {
  readonly store: Store;
  readonly clock: Clock;
  readonly fieldManager: FieldManagerPort;
  readonly admission: AdmissionPort;
  readonly caches: CachePool;
  readonly decoded: DecodedObjects;
  /** Lets writers that lost a race to each other try again in turn. */
  readonly turns: Turns;
  /** `once`: a create whose generated name is taken does not try others (RetryGenerateName). */
  readonly generatedNames?: 'retried' | 'once';
  /**
   * Whether the value of a store's key should be written anew although nothing changes in it: its
   * encryption key is not the newest (STORE-3). Absent where nothing is encrypted.
   */
  readonly isStale?: ((storeKey: string) => Promise<boolean>) | undefined;
  /**
   * Encodes a large object in steps, for a store that keeps another encoding than JSON: the next put
   * of these very bytes of JSON need not. Absent where the store keeps JSON.
   */
  readonly encodeAhead?: ((request: EncodedAhead) => Generator<void, void>) | undefined;
}

/** An object on its way into the store. */
export interface EncodedAhead {
  readonly storeKey: string;
  readonly value: Buffer;
  /** What `value` encodes. */
  readonly object: ApiObject;
}

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
    case 'too-large':
    case 'lease-gone':
    case 'timed-out':
    case 'unavailable':
    case 'closed':
    case 'locked':
      return unservedBy(error);
    case 'compacted':
    case 'future-revision':
      return internalError('the store lost the revision that was read', error);
    case 'not-sealed':
      return internalError(error.message, error);
    case 'damaged':
      return new StatusError({
        code: 500,
        reason: 'StorageReadError',
        message: 'the store could not read an object: its data is damaged',
        cause: error,
      });
  }
}

/** Runs a read of the store, translating its errors. */
export function storing<T>(work: () => Promise<T>): Promise<T> {
  return work().catch((error: unknown) => {
    throw translateStoreError(error);
  });
}

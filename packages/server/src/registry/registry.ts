import type { ResourceDef } from '@wheelhouse/kinds';
import {
  type ApiObject,
  background,
  type Clock,
  type GroupKind,
  type GroupResource,
  internalError,
  StatusError,
} from '@wheelhouse/machinery';
import { type Store, StoreError } from '@wheelhouse/store';
import { unservedBy } from '../watchcache/store-errors.ts';
import type { CachePool } from './cache-pool.ts';
import type { AdmissionPort, FieldManagerPort, WriteContext } from './contract.ts';
import type { DecodedObjects } from './object-codec.ts';
import { internalPermit } from './permit.ts';

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

/** How long one waits for those before: somebody of them may ask a webhook that takes its time. */
const patienceMs = 1000;

/**
 * Lets those who lost a race to write an object try again one after the other. Else each of them loses
 * to all the others, and a hundred writers at once make five thousand attempts (PATCH-4). It is a
 * courtesy only: what is written is on condition of the revision as ever.
 */
export class Turns {
  readonly #clock: Clock;
  /** Resolves when all who asked for a key so far are done; keys nobody waits for are not here. */
  readonly #last = new Map<string, Promise<void>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Runs a task when it is its turn; `hasWaited` says whether others may have written meanwhile. */
  async take<T>(key: string, task: (hasWaited: boolean) => Promise<T>): Promise<T> {
    const before = this.#last.get(key);
    let end = (): void => {};
    const own = new Promise<void>((resolve) => {
      end = resolve;
    });
    const all = before === undefined ? own : before.then(() => own);
    this.#last.set(key, all);
    try {
      if (before !== undefined) await this.#patiently(before);
      return await task(before !== undefined);
    } finally {
      end();
      if (this.#last.get(key) === all) this.#last.delete(key);
    }
  }

  #patiently(before: Promise<void>): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#clock.after(patienceMs, resolve);
      const done = before.then(() => {
        timer.stop();
        resolve();
      });
      background({ where: 'endpoint' }, done);
    });
  }
}

/** Who the server is when it writes by itself: what every server has, and what plugins keep. */
export const serverContext: WriteContext = {
  permit: internalPermit('server'),
  user: {
    name: 'system:apiserver',
    uid: '',
    groups: ['system:masters', 'system:authenticated'],
    extra: {},
  },
  dryRun: false,
  fieldManager: 'wheelhouse',
  warn: () => {},
  expired: () => false,
  origin: 'server',
};

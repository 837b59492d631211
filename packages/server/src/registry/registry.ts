import type { ResourceDef } from '@wheelhouse/kinds';
import {
  type ApiObject,
  type Clock,
  type GroupKind,
  type GroupResource,
  notFound,
  pendingPromise,
  waitAtMost,
} from '@wheelhouse/machinery';
import type { Store } from '@wheelhouse/store';
import type { Entry } from '../watchcache/entry.ts';
import type { CachePool } from './caches.ts';
import type { AdmissionPort, FieldManagerPort, Target, WriteContext } from './contract.ts';
import { type DecodedObjects, objectKey } from './object-codec.ts';
import { internalPermit } from './permit.ts';

/** Dependencies of reads and writes; created once per server. */
export interface Registry {
  readonly store: Store;
  readonly clock: Clock;
  readonly fieldManager: FieldManagerPort;
  readonly admission: AdmissionPort;
  readonly caches: CachePool;
  readonly decoded: DecodedObjects;
  /** Serializes the retries of writers that lost a race. */
  readonly turns: Turns;
  /** `once`: a create whose generated name is taken is not retried (gate RetryGenerateName). */
  readonly generatedNames?: 'retried' | 'once';
  /**
   * Whether a stored value should be rewritten although it does not change, because its encryption
   * key is not the newest (STORE-3). Absent without encryption.
   */
  readonly isStale?: ((storeKey: string) => Promise<boolean>) | undefined;
  /**
   * Encodes a large object in steps for a store that does not keep JSON, so that the next put of
   * the same buffer need not. Absent if the store keeps JSON.
   */
  readonly encodeAhead?: ((request: EncodedAhead) => Generator<void, void>) | undefined;
}

/** An object on its way into the store. */
export interface EncodedAhead {
  readonly storeKey: string;
  readonly value: Buffer;
  /** The object that `value` encodes. */
  readonly object: ApiObject;
}

/** The group and resource of a kind, as errors name it. */
export function groupResourceOf(def: ResourceDef): GroupResource {
  return { group: def.group, resource: def.resource };
}

/** The group and kind, as errors of validation name it. */
export function groupKindOf(def: ResourceDef): GroupKind {
  return { group: def.group, kind: def.kind };
}

/** Maximum wait for earlier writers in milliseconds: one of them may be calling a slow webhook. */
const patienceMs = 1000;

/**
 * Lets writers that lost a race for an object retry one after the other. Otherwise each of them
 * would lose to all others, and a hundred concurrent writers would make five thousand attempts
 * (PATCH-4). Correctness does not depend on it: every write still compares the revision.
 */
export class Turns {
  readonly #clock: Clock;
  /**
   * By key, a promise that resolves when all writers so far are done; keys without writers are
   * absent.
   */
  readonly #last = new Map<string, Promise<void>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Runs a task after the earlier ones; `hasWaited`: other writers may have written meanwhile. */
  async take<T>(key: string, task: (hasWaited: boolean) => Promise<T>): Promise<T> {
    const before = this.#last.get(key);
    const { promise: own, resolve: end } = pendingPromise();
    const all = before === undefined ? own : before.then(() => own);
    this.#last.set(key, all);
    try {
      if (before !== undefined) await waitAtMost(this.#clock, patienceMs, before);
      return await task(before !== undefined);
    } finally {
      end();
      if (this.#last.get(key) === all) this.#last.delete(key);
    }
  }
}

/** The context of the server's own writes: of default objects, and of admission plugins. */
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

/** Resolves with the newest entry of a target. Rejects with 404 if it does not exist. */
export async function existingEntry(registry: Registry, target: Target): Promise<Entry> {
  const key = objectKey(target.namespace, target.name);
  const entry = await registry.caches.of(target.def).get(key, undefined);
  if (entry === undefined) throw notFound(groupResourceOf(target.def), target.name);
  return entry;
}

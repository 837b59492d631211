import type { StorageDef } from '@wheelhouse/kinds';
import { type ApiObject, methodNotAllowedOnPath } from '@wheelhouse/machinery';
import type { Entry, ListResult, ResourceCache } from '../watchcache/contract.ts';
import { runsOfAll } from '../watchcache/entry-run.ts';
import { dryEntry, encodeStored, indexOf } from './object-codec.ts';

/**
 * A cache over objects that are made when they are asked for: they have no versions, and cannot be
 * watched. Lists are in order of names and whole, whatever limit was asked.
 */
export function createComputedCache(options: {
  readonly storage: StorageDef;
  readonly objects: () => Promise<readonly ApiObject[]>;
}): ResourceCache {
  const { storage, objects } = options;
  const entries = async (): Promise<Entry[]> => {
    const made = (await objects()).map((object) =>
      dryEntry({
        key: object.metadata.name ?? '',
        value: encodeStored(object),
        index: indexOf(storage, object),
      }),
    );
    return made.sort((one, other) => (one.key < other.key ? -1 : 1));
  };
  return {
    ready: async () => {},
    peek: () => undefined,
    count: () => undefined,
    get: async (key) => (await entries()).find((one) => one.key === key),
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
    count: entries.length,
    entries: () => entries,
    jsonPieces: (typeBytes) => runsOfAll(entries, typeBytes),
  };
}

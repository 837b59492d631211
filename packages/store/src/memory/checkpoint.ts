import { type OrderedMap, orderedMapGet, orderedMapValues } from '@wheelhouse/machinery';
import { byteOrdered } from '../byte-order.ts';
import type { Checkpoint, Revision, StoredRecord } from '../contract.ts';

/** One state of a key; no record means deleted. */
export interface Version {
  readonly revision: Revision;
  readonly record: StoredRecord | undefined;
}

/** All retained states of a key, oldest first, never empty. */
export interface KeyHistory {
  readonly key: string;
  readonly versions: Version[];
  /** How many checkpoints the store had given out when this history became its own. */
  readonly generation: number;
}

/** The newest state of a key. */
export function latest(history: KeyHistory | undefined): StoredRecord | undefined {
  return history?.versions.at(-1)?.record;
}

/** A root of the store's persistent map: the histories in it change no more. */
export class MemoryCheckpoint implements Checkpoint {
  readonly store: unknown;
  readonly keys: OrderedMap<KeyHistory>;
  readonly revision: Revision;
  /** The newest revision at which the store was as it is here: only later writes can differ. */
  sameAt: Revision;

  constructor(options: { store: unknown; keys: OrderedMap<KeyHistory>; revision: Revision }) {
    this.store = options.store;
    this.keys = options.keys;
    this.revision = options.revision;
    this.sameAt = options.revision;
  }
}

/** A key that differs, with the record it is to have; undefined: it is to go. */
export interface Difference {
  readonly key: string;
  readonly record: StoredRecord | undefined;
}

/**
 * What must be written for the store to be as it was `before`: deletions ahead of puts, so that what
 * deleted objects hold is free for those that come back, in order of keys. Keys that begin with
 * `last` make up the second part.
 * @param states.changed the only keys that can differ; all keys when undefined
 */
export function differences(states: {
  readonly before: OrderedMap<KeyHistory>;
  readonly now: OrderedMap<KeyHistory>;
  readonly changed: ReadonlySet<string> | undefined;
  readonly last: string;
}): { readonly first: readonly Difference[]; readonly second: readonly Difference[] } {
  const { before, now, changed, last } = states;
  const found: Difference[] = [];
  for (const key of [...(changed ?? keysOf(before, now))].sort()) {
    const record = latest(orderedMapGet(before, byteOrdered(key)));
    const current = latest(orderedMapGet(now, byteOrdered(key)));
    // A value is never copied, so one that has come back is the same buffer.
    if (record?.value !== current?.value) found.push({ key, record });
  }
  const isLast = ({ key }: Difference) => key.startsWith(last);
  return {
    first: deletionsFirst(found.filter((one) => !isLast(one))),
    second: deletionsFirst(found.filter(isLast)),
  };
}

function keysOf(...maps: readonly OrderedMap<KeyHistory>[]): ReadonlySet<string> {
  return new Set(maps.flatMap((map) => Array.from(orderedMapValues(map), ({ key }) => key)));
}

function deletionsFirst(all: readonly Difference[]): readonly Difference[] {
  return [
    ...all.filter(({ record }) => record === undefined),
    ...all.filter(({ record }) => record !== undefined),
  ];
}

import {
  firstIndex,
  MapOwner,
  type OrderedMap,
  orderedMapDelete,
  orderedMapGet,
  orderedMapSet,
} from '@wheelhouse/machinery';
import type { Revision } from '@wheelhouse/store';
import type { EntryChange } from './contract.ts';
import { type Entry, entryAtRevision, settle } from './entry.ts';

/** All entries at one revision, by key. */
export type Snapshot = OrderedMap<Entry>;

/** One change in the window. Immutable except for its memos. */
export interface WindowChange extends EntryChange {
  readonly key: string;
  readonly position: number;
  /** Monotonic milliseconds at which it entered the window. */
  readonly at: number;
  /** Total bytes of all earlier changes. */
  readonly bytesBefore: number;
  /** The state after the change, on every 32nd change; states in between are replayed. */
  readonly checkpoint: Snapshot | undefined;
  /** The previous state at this change's revision, which a DELETED event contains. */
  deleted: Entry | undefined;
  /** Frames by `<type> <encoder key>`; dropped when the change is no longer hot. */
  frames: Map<string, Buffer> | undefined;
}

/** The limits of a window. */
export interface WindowLimits {
  /** Changes older than this may be dropped. */
  readonly historyMs: number;
  readonly changesMax: number;
  /** Maximum number of bytes of the entries' JSON. */
  readonly bytesMax: number;
}

/** A change that was read from the store, with its checkpoint. */
export type PastChange = EntryChange & Pick<WindowChange, 'key' | 'at' | 'checkpoint'>;

/** Number of changes per checkpoint. */
export const checkpointEvery = 32;
const hotChanges = 256;
/** Number of expired changes that one step drops, in about 2 ms (TRUST-2). */
const expiredPerStep = 1024;

/**
 * The recent changes of one resource, in order. The position of a change is permanent, so a reader
 * keeps only a number; changes at positions before `start` have been dropped.
 *
 * Example: loaded at revision 10, then changes at 12, 15, and 16 (13 and 14 belong to other
 * resources); 12 has been dropped since:
 *
 *     floor 12 │ position 1: 15 │ position 2: 16 │ end 3
 *
 * A watch after 12, 13, or 14 starts at position 1, after 15 at 2, after 16 or later at 3. A watch
 * after 11 is too old, because it would miss the change at 12. A list at exactly 14 is the state
 * before position 1: the base, which is the state at the floor.
 */
export class ChangeWindow {
  readonly #limits: WindowLimits;
  /**
   * Undefined before `#head`, so that dropped changes do not retain their entries, and the slabs
   * that these share with entries of other resources.
   */
  #changes: (WindowChange | undefined)[] = [];
  /** Array index of the oldest kept change; the array is shortened when half of it is dropped. */
  #head = 0;
  /** Position of the change at array index 0. */
  #origin = 0;
  #floor: Revision;
  /** The state at the floor. */
  #base: Snapshot;
  #current: Snapshot;
  /** Owns the nodes that have changed since `current` was last read. */
  #owner: MapOwner | undefined;
  #bytes = 0;
  #holds = 0;

  constructor(options: { limits: WindowLimits; revision: Revision; snapshot: Snapshot }) {
    this.#limits = options.limits;
    this.#floor = options.revision;
    this.#base = options.snapshot;
    this.#current = options.snapshot;
  }

  /** Position of the oldest kept change. */
  get start(): number {
    return this.#origin + this.#head;
  }

  /** Position of the next change. */
  get end(): number {
    return this.#origin + this.#changes.length;
  }

  /** The oldest revision after which a watch misses no change. */
  get floor(): Revision {
    return this.#floor;
  }

  /** The state after the newest change. */
  get current(): Snapshot {
    this.#owner = undefined;
    return this.#current;
  }

  /** Number of entries after the newest change. */
  get size(): number {
    return this.#current.size;
  }

  /** The entry of a key after the newest change. */
  readonly get = (key: string): Entry | undefined => orderedMapGet(this.#current, key);

  /** Total bytes of JSON of the kept changes. */
  get bytes(): number {
    return this.#bytes - this.bytesAt(this.start);
  }

  /** Bytes of JSON of all changes before `position`, from an arbitrary origin. */
  bytesAt(position: number): number {
    return position >= this.end ? this.#bytes : this.at(position).bytesBefore;
  }

  /** The change at a position from `start` to before `end`; throws for others. */
  at(position: number): WindowChange {
    const change = this.#changes[position - this.#origin];
    if (change === undefined || position < this.start) throw new Error('position is not kept');
    return change;
  }

  /** Whether the change at a position is recent enough for its frames to be kept. */
  isHot(position: number): boolean {
    return position >= this.end - hotChanges;
  }

  /** Position of the first change after `revision`; undefined if it may have been dropped. */
  positionAfter(revision: Revision): number | undefined {
    if (revision < this.#floor) return undefined;
    const changes = this.#changes;
    const first = firstIndex(
      { from: this.#head, to: changes.length },
      (index) => (changes[index]?.revision ?? 0) <= revision,
    );
    return this.#origin + first;
  }

  /** The state at a revision; undefined if it is older than the floor. */
  snapshotAt(revision: Revision): Snapshot | undefined {
    const end = this.positionAfter(revision);
    if (end === undefined) return undefined;
    if (end === this.end) return this.current;
    let from = end;
    let snapshot = this.#base;
    while (from > this.start) {
      const { checkpoint } = this.at(from - 1);
      if (checkpoint !== undefined) {
        snapshot = checkpoint;
        break;
      }
      from -= 1;
    }
    for (let position = from; position < end; position++) {
      snapshot = withChange(snapshot, this.at(position));
    }
    return snapshot;
  }

  /** Adds a change with a revision that is not lower than any other. Drops changes beyond the limits. */
  append(change: EntryChange & { readonly key: string; readonly at: number }): WindowChange {
    const { key, at, previous, current, revision } = change;
    this.#owner ??= new MapOwner();
    this.#current = withChange(this.#current, change, this.#owner);
    const withCheckpoint = this.end % checkpointEvery === 0;
    const added: WindowChange = {
      key,
      position: this.end,
      at,
      previous,
      current,
      revision,
      bytesBefore: this.#bytes,
      checkpoint: withCheckpoint ? this.current : undefined,
      deleted: undefined,
      frames: undefined,
    };
    this.#changes.push(added);
    this.#bytes += bytesOf(change);
    this.#dropFrames(this.end - 1 - hotChanges);
    this.trim(at);
    return added;
  }

  /** Prevents changes from being dropped until the returned function is called. */
  hold(): () => void {
    this.#holds += 1;
    return () => {
      this.#holds -= 1;
    };
  }

  /**
   * Drops changes beyond the limits at the time `now`, in monotonic milliseconds: all that exceed
   * the number or size, and a bounded number of those that are only too old. Returns whether
   * changes that are too old remain.
   */
  trim(now: number): boolean {
    if (this.#holds > 0) return false;
    const { historyMs, changesMax, bytesMax } = this.#limits;
    let expiredLeft = expiredPerStep;
    let isOld = false;
    for (;;) {
      const oldest = this.#changes[this.#head];
      if (oldest === undefined) break;
      const kept = this.#changes.length - this.#head;
      const over = kept > changesMax || this.#bytes - oldest.bytesBefore > bytesMax;
      isOld = oldest.at < now - historyMs;
      if (!over && (!isOld || expiredLeft === 0)) break;
      expiredLeft = Math.max(0, expiredLeft - 1);
      this.#dropOldest(oldest);
    }
    if (this.#head > 1024 && this.#head * 2 > this.#changes.length) {
      this.#changes = this.#changes.slice(this.#head);
      this.#origin += this.#head;
      this.#head = 0;
    }
    return this.start < this.end && isOld;
  }

  /** Drops the oldest change. */
  #dropOldest(oldest: WindowChange): void {
    this.#base = oldest.checkpoint ?? withChange(this.#base, oldest);
    this.#floor = oldest.revision;
    this.#changes[this.#head] = undefined;
    this.#head += 1;
    const { current, key } = oldest;
    if (current !== undefined && orderedMapGet(this.#current, key) === current) settle(current);
  }

  /**
   * Prepends older changes that were read from the store: all changes after `revision` and up to
   * the current floor, of whose own changes the window may still have the last. The positions of
   * the other changes do not change.
   */
  prepend(older: {
    readonly revision: Revision;
    readonly snapshot: Snapshot;
    readonly changes: readonly PastChange[];
  }): void {
    const kept = new Set<string>();
    for (let i = this.#head; this.#changes[i]?.revision === this.#floor; i += 1) {
      kept.add(this.#changes[i]?.key ?? '');
    }
    const dropped = older.changes.filter(
      ({ revision, key }) => revision < this.#floor || !kept.has(key),
    );
    const start = this.start - dropped.length;
    let bytesBefore = this.bytesAt(this.start);
    for (const change of dropped) bytesBefore -= bytesOf(change);
    const prepended = dropped.map((change, i) => {
      const position = start + i;
      const added = { ...change, position, bytesBefore, deleted: undefined, frames: undefined };
      bytesBefore += bytesOf(change);
      return added;
    });
    this.#origin = start;
    this.#changes = [...prepended, ...this.#changes.slice(this.#head)];
    this.#head = 0;
    this.#base = older.snapshot;
    this.#floor = older.revision;
  }

  #dropFrames(position: number): void {
    const change = this.#changes[position - this.#origin];
    if (change !== undefined) change.frames = undefined;
  }
}

function bytesOf({ current, previous }: EntryChange): number {
  return (current ?? previous)?.json.length ?? 0;
}

/** The entry of a change's DELETED event, created once. */
export function deletedEntry(change: WindowChange): Entry {
  const { previous } = change;
  if (previous === undefined) throw new Error('the change has no previous state');
  change.deleted ??= entryAtRevision(previous, change.revision);
  return change.deleted;
}

function withChange(
  snapshot: Snapshot,
  { key, current }: EntryChange & { key: string },
  owner?: MapOwner,
): Snapshot {
  return current === undefined
    ? orderedMapDelete(snapshot, key, owner)
    : orderedMapSet(snapshot, key, current, owner);
}
